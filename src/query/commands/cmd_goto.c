// SPDX-License-Identifier: MIT
/* cmd_goto.c - goto and all: moving the current position, listing events */
#include "query/commands/commands.h"
#include "query/commands/output.h"
#include "query/text/progress.h"
#include "query/search/search.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void show_progress(void *context, uint32_t done, uint32_t total, uint64_t found)
{
    tbd_progress_show(context, "searching", done, total, found);
}

static void report_damage(const struct tbd_session_stats *stats)
{
    if (stats->damaged != 0)
        fprintf(stderr,
                "tbdq: note: %" PRIu32 " %s could not be read and left out, first window %" PRIu32
                ": %s at offset %" PRIu64 ": %s\n",
                stats->damaged, stats->damaged == 1 ? "window" : "windows", stats->first_damaged,
                stats->damage.file, stats->damage.offset, stats->damage.detail);
}

/* What could not be evaluated is said: an answer must not look more certain than it is. */
static void report_bad(const struct tbd_session *session)
{
    report_damage(&session->stats);
    if (session->stats.divisions != 0)
        fprintf(stderr,
                "tbdq: note: %" PRIu64 " events did not match because of a division by zero\n",
                session->stats.divisions);
    if (session->stats.unmapped != 0)
        fprintf(stderr,
                "tbdq: note: %" PRIu64
                " events did not match because memory is not mapped or not known\n",
                session->stats.unmapped);
    if (session->stats.optimized != 0)
        fprintf(stderr,
                "tbdq: note: %" PRIu64
                " events did not match because a variable has no value there (optimized out)\n",
                session->stats.optimized);
}

static void explain_windows(const struct tbd_session_stats *stats)
{
    fprintf(stderr,
            "tbdq: skipped: %" PRIu32 " by time or kind of event, %" PRIu32
            " by the index, %" PRIu32 " by their own summaries\n",
            stats->other_time, stats->not_in_index, stats->not_in_toc);
    fprintf(stderr, "tbdq: searched:");
    for (uint32_t i = 0; i < stats->searched_count; i++)
        fprintf(stderr, " %" PRIu32, stats->searched[i]);
    fprintf(stderr, "%s\n",
            stats->scanned > stats->searched_count ? " ..."
            : stats->scanned == 0                  ? " none"
                                                   : "");
}

static void explain(const struct tbd_session *session, double seconds)
{
    const struct tbd_session_stats *stats = &session->stats;

    fprintf(stderr,
            "tbdq: windows: %" PRIu32 " considered, %" PRIu32
            " skipped by their summaries, %" PRIu32 " searched, %" PRIu32
            " replayed in full, %" PRIu32 " replayed for an earlier question, %" PRIu32
            " replayed for registers; events that needed memory or registers: %" PRIu64
            "; positions replayed to: %" PRIu64 "; block entries replayed: %" PRIu64 "; %.3f s\n",
            stats->considered, stats->skipped, stats->scanned, stats->raised, stats->cached,
            stats->noted, stats->candidates, stats->replayed,
            session->replayer == NULL ? 0 : tbd_replayer_entries(session->replayer), seconds);
    explain_windows(stats);
    fprintf(
        stderr,
        "tbdq: seconds of all workers: %.3f planning, %.3f opening windows, %.3f walking them\n",
        stats->plan_s, stats->open_s, stats->walk_s);
}

static void print_event(const struct tbd_command_run *run, const struct tbd_event *event)
{
    json_t *object = run->silent ? NULL : tbd_output_event(run->session, event);

    if (run->silent)
        return;
    tbd_output_print_event(run->session, object, run->out);
    json_decref(object);
}

static struct tbd_position start_of(struct tbd_session *session,
                                    const struct tbd_question *question)
{
    switch (question->from) {
    case TBD_FROM_FIRST: return tbd_session_first(session);
    case TBD_FROM_LAST: return tbd_session_last(session);
    case TBD_FROM_CURRENT: return tbd_session_current(session);
    case TBD_FROM_POSITION: break;
    }
    return question->position;
}

/* Where nothing more can come says so. */
static const char *end_there(struct tbd_session *session, struct tbd_position start, bool backward)
{
    struct tbd_position end = backward ? tbd_session_first(session) : tbd_session_last(session);

    if (start.time != end.time || start.offset != end.offset)
        return "";
    return backward ? ", where the recording begins" : ", where the recording ends";
}

static enum tbd_exit not_found(const struct tbd_command_run *run,
                               const struct tbd_question *question, uint64_t found)
{
    struct tbd_position start = start_of(run->session, question);
    json_t *object;

    if (run->session->json) {
        object = json_object();
        json_object_set_new(object, "found", json_false());
        json_object_set_new(object, "type", json_string(tbd_event_type_name(question->type)));
        json_object_set_new(object, "matches", json_integer((json_int_t)found));
        tbd_output_line(object, run->out);
    } else if (question->from == TBD_FROM_CURRENT || question->from == TBD_FROM_POSITION) {
        fprintf(run->out, "not found: %" PRIu64 " such %s %s %" PRIu64 "+%" PRIu32 "%s\n", found,
                found == 1 ? "event" : "events", question->backward ? "before" : "after",
                start.time, start.offset, end_there(run->session, start, question->backward));
    } else {
        fprintf(run->out, "not found: %" PRIu64 " such %s\n", found,
                found == 1 ? "event" : "events");
    }
    return run->session->stats.damaged == 0 ? TBD_EXIT_NOT_FOUND : TBD_EXIT_TRACE;
}

/* In a chain the next part starts from here, whether or not the position is remembered. */
static void move_to(struct tbd_command_run *run, struct tbd_position position, uint32_t thread)
{
    if (run->session->has_at)
        run->session->at = position;
    tbd_session_move(run->session, position, thread);
}

enum tbd_exit tbd_command_go(struct tbd_command_run *run, struct tbd_position position)
{
    struct tbd_event event = { .type = TBD_EVENT_POSITION, .position = position };
    struct tbd_place place;
    enum tbd_status status = tbd_session_place(run->session, position, &place);

    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    event.pc = place.pc;
    event.thread = place.thread;
    move_to(run, position, 0);
    print_event(run, &event);
    return TBD_EXIT_FOUND;
}

static enum tbd_exit go_by_states(struct tbd_command_run *run, const struct tbd_question *question)
{
    struct tbd_position position;
    enum tbd_status status = tbd_command_states(run->session, start_of(run->session, question),
                                                question->backward, question->count, &position);

    if (status == TBD_NOTIME)
        return not_found(run, question, 0);
    return status == TBD_OK ? tbd_command_go(run, position) : tbd_command_fail(run, status);
}

static enum tbd_exit search(struct tbd_command_run *run, struct tbd_search *search)
{
    struct tbd_progress progress;
    struct tbd_event event = { 0 };
    uint64_t found;
    enum tbd_status status;

    tbd_progress_start(&progress, run->quiet);
    search->progress = show_progress;
    search->progress_context = &progress;
    status = tbd_search_run(search, &event, &found);
    tbd_progress_clear(&progress);
    if (run->explain)
        explain(run->session, tbd_progress_seconds(&progress));
    report_bad(run->session);
    if ((status == TBD_NOTFOUND || (status == TBD_OK && found == 0)) && run->each != NULL)
        return TBD_EXIT_NOT_FOUND;
    if (status == TBD_NOTFOUND || (status == TBD_OK && found == 0))
        return not_found(run, search->question, found); /* in what can be read */
    if (status != TBD_OK && search->error->status != TBD_OK)
        return tbd_command_wrong(run, search->error);
    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    if (search->each == NULL) {
        move_to(run, event.position, (event.flags & TBD_EVENT_RESUMED) != 0 ? event.thread : 0);
        print_event(run, &event);
    }
    return TBD_EXIT_FOUND;
}

static enum tbd_exit run_goto(struct tbd_command_run *run)
{
    struct tbd_query_error error;
    struct tbd_question question;
    struct tbd_search searching = { .session = run->session,
                                    .question = &question,
                                    .error = &error };
    enum tbd_exit result;

    if (tbd_question_parse(run->text, run->arguments, &question, &error) != TBD_OK)
        result = tbd_command_wrong(run, &error);
    else if (question.is_search && question.is_states)
        result = go_by_states(run, &question);
    else if (question.is_search)
        result = search(run, &searching);
    else
        result = tbd_command_go(run, start_of(run->session, &question));
    tbd_question_free(&question);
    return result;
}

static bool print_each(void *context, const struct tbd_event *event)
{
    const struct tbd_command_run *run = context;

    print_event(run, event);
    return ferror(run->out) == 0;
}

static enum tbd_exit run_all(struct tbd_command_run *run)
{
    struct tbd_query_error error;
    struct tbd_question question;
    struct tbd_search searching = { .session = run->session,
                                    .question = &question,
                                    .error = &error,
                                    .each = run->each == NULL ? print_each : run->each,
                                    .each_context = run->each == NULL ? run : run->each_context };
    enum tbd_exit result;

    if (tbd_question_parse_all(run->text, run->arguments, &question, &error) != TBD_OK)
        result = tbd_command_wrong(run, &error);
    else
        result = search(run, &searching);
    tbd_question_free(&question);
    return result;
}

/* The question without "of EXPRESSION". */
static enum tbd_exit resolved(struct tbd_command_run *run,
                              enum tbd_exit (*command)(struct tbd_command_run *run))
{
    struct tbd_command_run anew = *run;
    char *text;
    enum tbd_exit result = tbd_command_resolve_of(run, &text);

    if (result != TBD_EXIT_FOUND)
        return result;
    if (text != NULL)
        anew.text = text;
    result = command(&anew);
    free(text);
    return result;
}

/* The next " then " outside quotes; NULL if there is none. */
static char *find_then(char *text)
{
    bool quoted = false;

    for (; *text != '\0'; text++) {
        quoted ^= *text == '"';
        if (!quoted && strncmp(text, " then ", 6) == 0)
            return text;
    }
    return NULL;
}

static enum tbd_exit goto_part(const struct tbd_command_run *run, const char *text, bool is_first,
                               bool is_last)
{
    struct tbd_command_run part = *run;
    char *whole;
    enum tbd_exit result;

    if (asprintf(&whole, "%s%s", is_first ? "" : "goto current ", text) < 0)
        return TBD_EXIT_SYSTEM;
    part.text = whole;
    part.silent = run->silent || !is_last;
    if (!is_first)
        part.arguments = strlen("goto ");
    result = resolved(&part, run_goto);
    free(whole);
    return result;
}

enum tbd_exit tbd_command_goto(struct tbd_command_run *run)
{
    char *text = strdup(run->text);
    struct tbd_position at = run->session->at;
    enum tbd_exit result = text == NULL ? TBD_EXIT_SYSTEM : TBD_EXIT_FOUND;
    bool is_first = true;

    for (char *part = text, *then; part != NULL && result == TBD_EXIT_FOUND; part = then) {
        then = find_then(part);
        if (then != NULL) {
            *then = '\0';
            then += strlen(" then ");
        }
        result = goto_part(run, part, is_first, then == NULL);
        is_first = false;
    }
    free(text);
    if (run->session->has_at)
        run->session->at = at;
    return result;
}

enum tbd_exit tbd_command_goto_text(struct tbd_command_run *run, const char *question)
{
    struct tbd_command_run anew = *run;

    anew.text = question;
    anew.arguments = 0;
    return run_goto(&anew);
}

enum tbd_exit tbd_command_all(struct tbd_command_run *run)
{
    return resolved(run, run_all);
}

enum tbd_exit tbd_command_each(struct tbd_command_run *run, const char *question,
                               bool (*each)(void *context, const struct tbd_event *event),
                               void *context)
{
    struct tbd_command_run anew = *run;

    anew.text = question;
    anew.arguments = 0;
    anew.argc = 0;
    anew.each = each;
    anew.each_context = context;
    return resolved(&anew, run_all);
}

enum tbd_exit tbd_command_each_from(struct tbd_command_run *run, const char *text,
                                    bool (*each)(void *context, const struct tbd_event *event),
                                    void *context)
{
    struct tbd_command_run anew = *run;
    struct tbd_query_error error;
    struct tbd_question question;
    struct tbd_search searching = { .session = run->session,
                                    .question = &question,
                                    .error = &error,
                                    .each = each,
                                    .each_context = context };
    enum tbd_exit result;

    anew.text = text;
    anew.each = each;
    if (tbd_question_parse(text, 0, &question, &error) != TBD_OK) {
        result = tbd_command_wrong(&anew, &error);
    } else {
        question.count = UINT64_MAX;
        result = search(&anew, &searching);
    }
    tbd_question_free(&question);
    return result;
}

enum tbd_status tbd_command_find_event(struct tbd_command_run *run, const char *text,
                                       struct tbd_event *out)
{
    struct tbd_query_error error;
    struct tbd_question question;
    struct tbd_search searching = { .session = run->session,
                                    .question = &question,
                                    .error = &error };
    uint64_t found;
    enum tbd_status status = tbd_question_parse(text, 0, &question, &error);

    if (status == TBD_OK)
        status = tbd_search_run(&searching, out, &found);
    tbd_question_free(&question);
    return status;
}
