// SPDX-License-Identifier: MIT
/* cmd_age.c - lower, raise, merge: change the windows of a finished trace, as the organizer does
 * with old ones */
#include "query/commands/commands.h"

#include "format/merging/change.h"
#include "format/files/file.h"
#include "query/text/progress.h"
#include "query/text/user_interrupt.h"
#include "replay/raise.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The command opens the trace once more: this handle sees its own changes. */
struct ageing {
    struct tbd_command_run *run;
    struct tbd_writer *writer;
    struct tbd_trace *trace;
    uint32_t from, to; /* places */
};

/* ---- arguments ---- */

static bool parse_number(const char *text, const char *end, uint32_t *out)
{
    char *stop;
    unsigned long value;

    errno = 0;
    value = strtoul(text, &stop, 10);
    *out = (uint32_t)value;
    return *text >= '0' && *text <= '9' && stop == end && !errno && value < UINT32_MAX;
}

/* "all", "N" or "N-M": places as `tbdq windows` shows them. */
static bool parse_range(struct ageing *a, const char *text)
{
    uint32_t count = tbd_trace_window_count(a->trace);
    const char *end = text + strlen(text);
    const char *dash = strchr(text, '-');

    a->from = 0;
    a->to = count - 1;
    if (strcmp(text, "all") == 0)
        return count != 0;
    if (!parse_number(text, dash == NULL ? end : dash, &a->from))
        return false;
    a->to = a->from;
    if (dash != NULL && !parse_number(dash + 1, end, &a->to))
        return false;
    return a->from <= a->to && a->to < count;
}

/* ---- one handle after the other ---- */

/* A damaged trace is not changed: that could only make it worse. */
static enum tbd_status open_trace(struct ageing *a)
{
    const char *path = a->run->session->info->path;
    enum tbd_status status;

    tbd_trace_close(a->trace);
    a->trace = NULL;
    status = tbd_trace_open(path, &a->trace, &a->run->session->why);
    if (status == TBD_OK && tbd_trace_info(a->trace)->damage_count != 0)
        status = tbd_error_set(&a->run->session->why, TBD_CORRUPT, path, 0, "%s",
                               tbd_trace_damage(a->trace, 0));
    return status;
}

static enum tbd_status begin(struct ageing *a, struct tbd_command_run *run)
{
    struct tbd_session *session = run->session;
    enum tbd_status status = tbd_writer_open(session->info->path, &a->writer, &session->why);

    a->run = run;
    return status == TBD_OK ? open_trace(a) : status;
}

static enum tbd_exit finish(struct ageing *a, enum tbd_exit result)
{
    tbd_trace_close(a->trace);
    tbd_writer_free(a->writer);
    return result;
}

static enum tbd_exit report(struct ageing *a, enum tbd_status status, const char *what,
                            uint32_t windows)
{
    if (status != TBD_OK)
        return finish(a, tbd_command_fail(a->run, status));
    if (a->run->session->json)
        fprintf(a->run->out, "{\"windows\": %" PRIu32 ", \"done\": \"%s\"}\n", windows, what);
    else if (!a->run->quiet)
        fprintf(a->run->out, "%" PRIu32 " windows %s\n", windows, what);
    return finish(a, TBD_EXIT_FOUND);
}

/* ---- lower ---- */

enum tbd_exit tbd_command_lower(struct tbd_command_run *run)
{
    struct ageing a = { 0 };
    uint32_t level = TBD_LEVEL_BITS, done = 0;
    enum tbd_status status;

    if (run->argc < 1 || run->argc > 2 ||
        (run->argc == 2 &&
         (!parse_number(run->argv[1], run->argv[1] + strlen(run->argv[1]), &level) ||
          level < TBD_LEVEL_BITS || level > TBD_LEVEL_COUNTS)))
        return tbd_command_usage(run, "lower takes windows, and 1 or 2");
    status = begin(&a, run);
    if (status != TBD_OK)
        return finish(&a, tbd_command_fail(run, status));
    if (!parse_range(&a, run->argv[0]))
        return finish(&a, tbd_command_usage(run, "there are no such windows"));
    for (uint32_t i = a.from; i <= a.to && status == TBD_OK; i++) {
        if (tbd_trace_window(a.trace, i)->level <= level || !tbd_change_is_possible(a.trace, i))
            continue;
        status =
            tbd_change_lower_to(a.trace, a.writer, i, (enum tbd_level)level, &run->session->why);
        done++;
    }
    return report(&a, status, "lowered", done);
}

/* ---- raise ---- */

static void say_left(const struct ageing *a, uint32_t left)
{
    fprintf(stderr,
            "tbdq: %" PRIu32 " of windows %" PRIu32 "-%" PRIu32
            " cannot be kept with their events: they are merged, or too long\n"
            "hint: questions about them are answered all the same, by replays\n",
            left, a->from, a->to);
}

static bool show_raised(void *progress, uint32_t done, uint32_t wanted)
{
    tbd_progress_show(progress, "raising", done, wanted, TBD_PROGRESS_NONE);
    return !tbd_is_interrupted();
}

static enum tbd_status raise_all(struct ageing *a, enum tbd_level level, uint32_t *out_raised)
{
    struct tbd_session *session = a->run->session;
    struct tbd_progress progress;
    struct tbd_raise how = { .trace = a->trace,
                             .writer = a->writer,
                             .from = a->from,
                             .to = a->to,
                             .level = level,
                             .workers = session->workers,
                             .goes_on = show_raised,
                             .context = &progress };
    enum tbd_status status;

    tbd_progress_start(&progress, a->run->quiet);
    status = tbd_raise_windows(&how, out_raised, &session->divergence, &session->why);
    tbd_progress_clear(&progress);
    return status;
}

enum tbd_exit tbd_command_raise(struct tbd_command_run *run)
{
    struct ageing a = { 0 };
    uint32_t wanted = 0, left = 0, raised = 0, level = TBD_LEVEL_EVENTS;
    enum tbd_status status;

    if (run->argc < 1 || run->argc > 2 ||
        (run->argc == 2 &&
         (!parse_number(run->argv[1], run->argv[1] + strlen(run->argv[1]), &level) ||
          level < TBD_LEVEL_COUNTS || level > TBD_LEVEL_EVENTS)))
        return tbd_command_usage(run, "raise takes windows, and 2 or 3");
    status = begin(&a, run);
    if (status != TBD_OK)
        return finish(&a, tbd_command_fail(run, status));
    if (!parse_range(&a, run->argv[0]))
        return finish(&a, tbd_command_usage(run, "there are no such windows"));
    for (uint32_t i = a.from; i <= a.to; i++) {
        bool is_possible = tbd_raise_is_possible(a.trace, i, (enum tbd_level)level);

        wanted += is_possible;
        left += !is_possible && tbd_trace_window(a.trace, i)->level < level;
    }
    if (left != 0)
        say_left(&a, left);
    if (left != 0 && wanted == 0)
        return finish(&a, TBD_EXIT_USAGE);
    status = raise_all(&a, (enum tbd_level)level, &raised);
    return report(&a, status, "raised", raised);
}

/* ---- merge ---- */

static enum tbd_status merge_one(struct ageing *a, uint32_t first, uint32_t count)
{
    struct tbd_error *why = &a->run->session->why;
    struct tbd_change change = { 0 };
    enum tbd_status status =
        tbd_change_merge(a->trace, a->writer, first, count, TBD_LEVEL_COUNTS, 0, &change, why);

    if (status == TBD_OK)
        status = tbd_change_commit(a->writer, &change);
    tbd_change_free(&change);
    return status == TBD_OK ? open_trace(a) : status;
}

enum tbd_exit tbd_command_merge(struct tbd_command_run *run)
{
    struct ageing a = { 0 };
    uint32_t step = 0, left, done = 0;
    enum tbd_status status;

    if (run->argc < 1 || run->argc > 2 ||
        (run->argc == 2 &&
         (!parse_number(run->argv[1], run->argv[1] + strlen(run->argv[1]), &step) || step < 2)))
        return tbd_command_usage(run, "merge takes windows, and how many become one");
    status = begin(&a, run);
    if (status != TBD_OK)
        return finish(&a, tbd_command_fail(run, status));
    if (!parse_range(&a, run->argv[0]))
        return finish(&a, tbd_command_usage(run, "there are no such windows"));
    left = a.to - a.from + 1;
    for (uint32_t at = a.from; left > 1 && status == TBD_OK; at++) {
        uint32_t count = step != 0 && step < left ? step : left;

        status = merge_one(&a, at, count);
        left -= count;
        done += count;
    }
    return report(&a, status, "merged", done);
}
