// SPDX-License-Identifier: MIT
/* cmd_diff.c - diff: where two runs first differ, and why
 *
 *   diff A B [--ignore RULE,...] [--all] [--max N] [--first] [--brief]
 *
 *   1. modules and builds are paired (diff_builds.c)
 *   2. both runs are walked, and the first difference of each thread is found (diff_first.c)
 *   3. of each: the branch (diff_branch.c), what it depended on, back to where both agree (diff_cause.c)
 *   4. a difference whose origin is to be ignored is passed over: the comparison goes on where both are at the
 *      same place again
 *   5. without any: the first bytes that were given out differently (diff_output.c), followed back likewise
 *   6. functions and lines that ran more often on one side (diff_counts.c) */
#include "query/diff/diff_output.h"
#include "query/diff/diff_show.h"

#include "base/safe_stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PASSED_MAX 200u /* differences that are passed over in one thread */

static const char USAGE[] = "diff takes two traces: diff A B [--ignore RULE,...] [--all] [--max N] "
                            "[--first] [--brief]";

struct diffing {
    struct tbd_command_run *run;
    struct tbd_diff_rules rules;
    const char *names[2];
    char *ignored; /* owned: the words of --ignore */
    struct tbd_diff_side sides[2];
    struct tbd_diff_builds *builds;
    struct tbd_diff_point *points; /* owned */
    uint32_t count;                /* of streams that both sides have */
    uint64_t shown, passed;
};

/* ---- arguments ---- */

static bool take_rules(struct diffing *diffing, const char *text)
{
    char *rest = NULL;

    free(diffing->ignored);
    diffing->ignored = strdup(text);
    if (diffing->ignored == NULL)
        return false;
    for (char *word = strtok_r(diffing->ignored, ",", &rest); word != NULL;
         word = strtok_r(NULL, ",", &rest)) {
        if (strcmp(word, "addresses") == 0)
            diffing->rules.addresses = true;
        else if (strcmp(word, "pids") == 0)
            diffing->rules.pids = true;
        else if (strcmp(word, "times") == 0)
            diffing->rules.times = true;
        else if (strcmp(word, "libc") == 0)
            diffing->rules.without_libc = true;
        else if (diffing->rules.module_count < TBD_DIFF_IGNORED_MAX)
            diffing->rules.modules[diffing->rules.module_count++] = word;
        else
            return false;
    }
    return true;
}

static bool take_number(const char *text, uint32_t *out)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    *out = (uint32_t)value;
    return *text >= '1' && *text <= '9' && *end == '\0' && value <= 10000;
}

static bool take_word(struct diffing *diffing, unsigned *io_index)
{
    const struct tbd_command_run *run = diffing->run;
    const char *word = run->argv[*io_index];
    const char *next = *io_index + 1 < run->argc ? run->argv[*io_index + 1] : NULL;

    if (strcmp(word, "--all") == 0)
        diffing->rules.with_libc = true;
    else if (strcmp(word, "--first") == 0)
        diffing->rules.only_first = true;
    else if (strcmp(word, "--brief") == 0)
        diffing->rules.is_brief = true;
    else if (strcmp(word, "--ignore") == 0 && next != NULL && diffing->ignored == NULL)
        return ++*io_index != 0 && take_rules(diffing, next);
    else if (strcmp(word, "--max") == 0 && next != NULL)
        return ++*io_index != 0 && take_number(next, &diffing->rules.max);
    else if (word[0] == '-' || diffing->names[1] != NULL)
        return false;
    else
        diffing->names[diffing->names[0] != NULL] = word;
    return true;
}

static bool read_arguments(struct diffing *diffing)
{
    for (unsigned i = 0; i < diffing->run->argc; i++)
        if (!take_word(diffing, &i))
            return false;
    return diffing->names[1] != NULL;
}

/* ---- both sides ---- */

static enum tbd_exit fail(struct diffing *diffing, const struct tbd_diff_side *side,
                          enum tbd_status status)
{
    if (side != NULL) {
        diffing->run->session->why = side->session.why;
        diffing->run->session->divergence = side->session.divergence;
    }
    return tbd_command_fail(diffing->run, status);
}

static enum tbd_exit open_side(struct diffing *diffing, unsigned number)
{
    struct tbd_diff_side *side = &diffing->sides[number];
    const struct tbd_session *own = diffing->run->session;
    enum tbd_status status;

    side->number = number;
    side->rules = &diffing->rules;
    side->session = (struct tbd_session){ .workers = own->workers,
                                          .no_cache = own->no_cache,
                                          .syntax = own->syntax,
                                          .is_private = true,
                                          .json = own->json };
    side->is_open = true;
    status = tbd_session_open(&side->session, diffing->names[number]);
    if (status != TBD_OK)
        return fail(diffing, side, status);
    if (side->session.info->is_dump || tbd_trace_window_count(side->session.trace) == 0)
        return tbd_command_usage(diffing->run, "diff takes recordings, not dumps");
    return TBD_EXIT_FOUND;
}

static enum tbd_exit open_both(struct diffing *diffing)
{
    enum tbd_exit result = open_side(diffing, 0);
    enum tbd_status status;
    uint32_t threads[2];

    if (result == TBD_EXIT_FOUND)
        result = open_side(diffing, 1);
    if (result != TBD_EXIT_FOUND)
        return result;
    status = tbd_diff_builds_new(&diffing->sides[0].session, &diffing->sides[1].session,
                                 &diffing->builds);
    for (unsigned i = 0; i < 2; i++) {
        diffing->sides[i].builds = diffing->builds;
        threads[i] = tbd_trace_thread_count(diffing->sides[i].session.trace);
    }
    diffing->count = 2 * (threads[0] < threads[1] ? threads[0] : threads[1]);
    diffing->points = calloc((size_t)diffing->count + 1, sizeof(*diffing->points));
    if (diffing->points == NULL)
        status = TBD_NOMEM;
    return status == TBD_OK ? TBD_EXIT_FOUND : fail(diffing, NULL, status);
}

/* ---- differences ---- */

static bool is_passed_over(const struct tbd_diff_rules *rules, const struct tbd_diff_cause *cause)
{
    return (rules->addresses && cause->origin == TBD_DIFF_ADDRESS) ||
           (rules->pids && cause->origin == TBD_DIFF_PID) ||
           (rules->times && cause->origin == TBD_DIFF_TIME);
}

/* Code of two builds that goes another way, or on, with the same inputs. */
static void settle(struct diffing *diffing, const struct tbd_diff_point *point,
                   struct tbd_diff_branch *branch, struct tbd_diff_cause *cause)
{
    const struct tbd_diff_side *side = &diffing->sides[1];

    if (cause->origin != TBD_DIFF_NOT_FOUND || diffing->rules.is_brief || !point->has_step[1] ||
        side->codes[point->step[1].id].key != 0) /* it is not called by its lines */
        return;
    branch->how = TBD_DIFF_PARTS_IN_CODE;
    if (cause->rows == NULL)
        cause->rows = json_array();
    cause->origin = TBD_DIFF_CODE;
    snprintf(cause->text, sizeof(cause->text), "the two builds have other code here");
}

/* Shows the difference, unless it is passed over. */
static enum tbd_status look_at(struct diffing *diffing, uint32_t stream, bool *out_is_shown)
{
    struct tbd_diff_point *point = &diffing->points[stream];
    struct tbd_diff_branch branch;
    struct tbd_diff_cause cause = { .rows = NULL };
    struct tbd_diff_found found = {
        .stream = stream, .point = point, .branch = &branch, .cause = &cause
    };
    enum tbd_status status = tbd_diff_branch_find(diffing->sides, point, stream, &branch);

    if (status == TBD_OK && !diffing->rules.is_brief &&
        (branch.how == TBD_DIFF_PARTS_AT_BRANCH || branch.how == TBD_DIFF_PARTS_AT_FAULT))
        status = tbd_diff_cause_find(diffing->sides, branch.at,
                                     branch.how == TBD_DIFF_PARTS_AT_FAULT, &cause);
    settle(diffing, point, &branch, &cause);
    *out_is_shown = status == TBD_OK && !is_passed_over(&diffing->rules, &cause);
    if (*out_is_shown)
        tbd_diff_show(diffing->run, diffing->sides, &found);
    tbd_diff_cause_free(&cause);
    return status;
}

static enum tbd_status look_at_stream(struct diffing *diffing, uint32_t stream)
{
    struct tbd_diff_point *point = &diffing->points[stream];
    uint32_t shown = 0, passed = 0;

    while (point->is_there && passed < PASSED_MAX) {
        bool is_shown;
        enum tbd_status status = look_at(diffing, stream, &is_shown);

        if (status != TBD_OK)
            return status;
        shown += is_shown;
        passed += !is_shown;
        diffing->shown += is_shown;
        diffing->passed += !is_shown;
        if (shown >= diffing->rules.max)
            break;
        status = tbd_diff_rejoin(diffing->sides, point, stream);
        if (status == TBD_NOTFOUND)
            break;
        point->is_there = false;
        if (status == TBD_OK)
            status = tbd_diff_next(point);
        if (status != TBD_OK)
            return status;
    }
    return TBD_OK;
}

/* Two runs with equal steps may give out other bytes: the first ones whose origin counts are shown. */
static enum tbd_status look_at_outputs(struct diffing *diffing)
{
    struct tbd_diff_output_calls calls[2] = { { .all = NULL } };
    struct tbd_diff_value values[2];
    struct tbd_diff_point point = { .is_there = true };
    struct tbd_diff_branch branch = { .how = TBD_DIFF_PARTS_IN_OUTPUT };
    enum tbd_status status = TBD_OK;
    uint32_t stream;

    for (unsigned side = 0; side < 2 && status == TBD_OK; side++)
        status = tbd_diff_output_read(diffing->run, &diffing->sides[side], &calls[side]);
    while (status == TBD_OK && diffing->shown == 0 && diffing->passed < PASSED_MAX &&
           tbd_diff_output_next(diffing->sides, calls, values, &stream, &branch.byte)) {
        struct tbd_diff_cause cause = { .rows = NULL };
        struct tbd_diff_found found = {
            .stream = stream, .point = &point, .branch = &branch, .cause = &cause
        };

        branch.at[0] = values[0].at;
        branch.at[1] = values[1].at;
        if (!diffing->rules.is_brief)
            status = tbd_diff_cause_of(diffing->sides, values, &cause);
        if (status == TBD_OK && is_passed_over(&diffing->rules, &cause)) {
            diffing->passed++;
        } else if (status == TBD_OK) {
            diffing->shown++;
            tbd_diff_show(diffing->run, diffing->sides, &found);
        }
        tbd_diff_cause_free(&cause);
    }
    tbd_diff_output_free(&calls[0]);
    tbd_diff_output_free(&calls[1]);
    return status;
}

static enum tbd_status show_counts(struct diffing *diffing)
{
    static const char *const names[] = { "function", "line" };
    enum tbd_status status = TBD_OK;

    for (unsigned i = 0; i < 2 && status == TBD_OK && !diffing->rules.only_first; i++) {
        struct tbd_diff_counts counts;

        status = tbd_diff_counts_make(diffing->sides, i == 1, &counts);
        if (status == TBD_OK)
            tbd_diff_show_counts(diffing->run, &counts, names[i]);
        tbd_diff_counts_free(&counts);
    }
    return status;
}

static void say_beforehand(struct diffing *diffing)
{
    uint32_t threads[2];
    size_t index = 0;
    const char *name;

    for (unsigned i = 0; i < 2; i++)
        threads[i] = tbd_trace_thread_count(diffing->sides[i].session.trace);
    while (tbd_diff_builds_differ(diffing->builds, &index, &name))
        fprintf(stderr, "tbdq: note: two builds of %s: compared by function and line\n",
                tbd_shown(name));
    if (threads[0] != threads[1])
        fprintf(stderr, "tbdq: note: %" PRIu32 " threads in A, %" PRIu32 " in B\n", threads[0],
                threads[1]);
}

/* The blocks have other names under other rules. */
static void forget(struct diffing *diffing)
{
    for (unsigned i = 0; i < 2; i++) {
        struct tbd_diff_side *side = &diffing->sides[i];

        if (side->code_capacity != 0)
            memset(side->codes, 0, side->code_capacity * sizeof(*side->codes));
        if (side->count_capacity != 0)
            memset(side->counts, 0, side->count_capacity * sizeof(*side->counts));
        side->line_key_count = 0;
    }
    memset(diffing->points, 0, diffing->count * sizeof(*diffing->points));
}

static enum tbd_exit compare(struct diffing *diffing)
{
    struct tbd_diff_side *failed = NULL;
    enum tbd_status status;

    status = tbd_diff_find(diffing->sides, diffing->points, diffing->count, &failed);
    if (status != TBD_OK)
        return fail(diffing, failed, status);
    for (uint32_t i = 0; i < diffing->count && status == TBD_OK; i++)
        status = look_at_stream(diffing, i);
    if (status == TBD_OK)
        status = show_counts(diffing);
    if (status != TBD_OK)
        return fail(diffing, NULL, status);
    if (diffing->shown != 0)
        return TBD_EXIT_FOUND;
    if (!diffing->rules.with_libc && !diffing->rules.without_libc && diffing->passed == 0) {
        fprintf(stderr, "tbdq: note: no difference outside of the C library: it is compared now\n");
        diffing->rules.with_libc = true;
        forget(diffing);
        return compare(diffing);
    }
    if (diffing->passed == 0)
        status = look_at_outputs(diffing);
    if (status != TBD_OK)
        return fail(diffing, NULL, status);
    if (diffing->shown != 0)
        return TBD_EXIT_FOUND;
    if (!diffing->run->session->json)
        fprintf(diffing->run->out, "no difference%s\n",
                diffing->passed == 0 && !diffing->rules.without_libc
                    ? ""
                    : " but those that are ignored");
    return TBD_EXIT_NOT_FOUND;
}

enum tbd_exit tbd_command_diff(struct tbd_command_run *run)
{
    struct diffing *diffing = calloc(1, sizeof(*diffing));
    enum tbd_exit result;

    if (diffing == NULL)
        return tbd_command_no_memory();
    diffing->run = run;
    diffing->rules.max = 1;
    result = read_arguments(diffing) ? open_both(diffing) : tbd_command_usage(run, USAGE);
    if (result == TBD_EXIT_FOUND) {
        say_beforehand(diffing);
        result = compare(diffing);
    }
    tbd_diff_builds_free(diffing->builds);
    tbd_diff_side_close(&diffing->sides[0]);
    tbd_diff_side_close(&diffing->sides[1]);
    free(diffing->points);
    free(diffing->ignored);
    free(diffing);
    return result;
}
