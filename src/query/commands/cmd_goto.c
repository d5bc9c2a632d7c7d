// SPDX-License-Identifier: MIT
/* cmd_goto.c - goto and all: moving the current position, listing events */
#include "query/commands/commands.h"
#include "query/output/event_lines.h"
#include "query/output/output.h"
#include "query/output/shard.h"
#include "query/text/progress.h"
#include "query/search/search.h"
#include "query/session/position_text.h"
#include "query/session/signal_info.h"
#include "query/condition/field_names.h"
#include "query/session/wall_time.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void show_progress(void *context, uint32_t done, uint32_t total, uint64_t found)
{
    tbd_progress_show(context, "searching", done, total, found);
}

void tbd_command_report_bad(const struct tbd_session *session)
{
    const char *word = session->stats.shadowed;

    if (word[0] != '\0')
        fprintf(stderr, "tbdq: note: '%s' is %s here; the variable is var(%s)\n", word,
                tbd_field_find(word, strlen(word)) != NULL ? "the event's" : "the register", word);
    if (session->stats.bad.divisions != 0)
        fprintf(stderr,
                "tbdq: note: %" PRIu64 " events did not match because of a division by zero\n",
                session->stats.bad.divisions);
    if (session->stats.bad.unmapped != 0)
        fprintf(stderr,
                "tbdq: note: %" PRIu64
                " events did not match because memory is not mapped or not known\n",
                session->stats.bad.unmapped);
    if (session->stats.bad.optimized != 0)
        fprintf(stderr,
                "tbdq: note: %" PRIu64
                " events did not match because a variable has no value there (optimized out)\n",
                session->stats.bad.optimized);
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
    if (tbd_shard_is_on(run->session)) {
        tbd_shard_row(run->session, object, run->out);
        return;
    }
    tbd_output_print_event(run->session, object, run->out);
    json_decref(object);
}

struct tbd_position tbd_command_start(struct tbd_session *session,
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

/* Says so where nothing more can come. */
static const char *end_there(struct tbd_session *session, struct tbd_position start, bool backward)
{
    struct tbd_position end = backward ? tbd_session_first(session) : tbd_session_last(session);

    if (start.time != end.time || start.offset != end.offset)
        return "";
    return backward ? ", where the recording begins" : ", where the recording ends";
}

enum tbd_exit tbd_command_none(const struct tbd_command_run *run, const char *type, uint64_t found)
{
    json_t *object;

    if (tbd_shard_is_on(run->session))
        return TBD_EXIT_NOT_FOUND;
    if (run->session->json) {
        object = json_object();
        json_object_set_new(object, "found", json_false());
        json_object_set_new(object, "type", json_string(type));
        json_object_set_new(object, "matches", json_integer((json_int_t)found));
        tbd_output_line(object, run->out);
    } else {
        fprintf(run->out, "not found: %" PRIu64 " such %s\n", found,
                found == 1 ? "event" : "events");
    }
    return TBD_EXIT_NOT_FOUND;
}

static enum tbd_exit not_found(const struct tbd_command_run *run,
                               const struct tbd_question *question, uint64_t found)
{
    struct tbd_position start = tbd_command_start(run->session, question);

    if (!run->session->json &&
        (question->from == TBD_FROM_CURRENT || question->from == TBD_FROM_POSITION)) {
        fprintf(run->out, "not found: %" PRIu64 " such %s %s %s%s\n", found,
                found == 1 ? "event" : "events", question->backward ? "before" : "after",
                tbd_position_text(run->session, start).text,
                end_there(run->session, start, question->backward));
        return TBD_EXIT_NOT_FOUND;
    }
    return tbd_command_none(run, tbd_event_type_name(question->type), found);
}

void tbd_command_move(struct tbd_command_run *run, struct tbd_position position, uint32_t thread)
{
    if (run->session->has_at) {
        run->session->at = position;
        if (!run->session->has_thread)
            run->session->thread = thread;
    }
    tbd_session_move(run->session, position, thread);
}

void tbd_command_move_to(struct tbd_command_run *run, const struct tbd_event *event)
{
    tbd_command_move(run, event->position,
                     (event->flags & TBD_EVENT_RESUMED) != 0 ? event->thread : 0);
}

void tbd_command_take_end(struct tbd_session *session, struct tbd_event *event)
{
    if (event->position.time + 1 == session->info->blocks &&
        tbd_position_compare(event->position, tbd_session_last(session)) == 0)
        (void)tbd_signal_take_fatal(event, session->info);
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
    tbd_command_take_end(run->session, &event);
    tbd_command_move(run, position, 0);
    print_event(run, &event);
    return TBD_EXIT_FOUND;
}

static enum tbd_exit go_by_states(struct tbd_command_run *run, const struct tbd_question *question)
{
    struct tbd_position position;
    enum tbd_status status =
        tbd_command_states(run->session, tbd_command_start(run->session, question),
                           question->backward, question->count, &position);

    if (status == TBD_NOTIME)
        return not_found(run, question, 0);
    return status == TBD_OK ? tbd_command_go(run, position) : tbd_command_fail(run, status);
}

/* ---- asking ---- */

/* TBD_NOTFOUND: the windows that can be read have none. */
static enum tbd_status look(struct tbd_command_run *run, struct tbd_search *search,
                            struct tbd_event *out, uint64_t *out_found)
{
    struct tbd_progress progress;
    enum tbd_status status;

    if (search->question->is_lost)
        return TBD_NOMEM;
    tbd_progress_start(&progress, run->quiet);
    search->progress = show_progress;
    /* cppcheck-suppress autoVariables ; the search ends here, too */
    search->progress_context = &progress;
    status = tbd_search_run(search, out, out_found);
    tbd_progress_clear(&progress);
    if (run->explain)
        explain(run->session, tbd_progress_seconds(&progress));
    tbd_command_report_bad(run->session);
    return status == TBD_OK && *out_found == 0 ? TBD_NOTFOUND : status;
}

static enum tbd_exit failed(struct tbd_command_run *run, const struct tbd_search *search,
                            enum tbd_status status)
{
    return search->error->status != TBD_OK ? tbd_command_wrong(run, search->error)
                                           : tbd_command_fail(run, status);
}

enum tbd_exit tbd_command_search(struct tbd_command_run *run, struct tbd_question *question,
                                 struct tbd_event *out, uint64_t *out_found)
{
    struct tbd_query_error error = { 0 };
    struct tbd_search search = { .session = run->session, .question = question, .error = &error };
    enum tbd_status status;

    *out_found = 0;
    status = look(run, &search, out, out_found);
    if (status == TBD_NOTFOUND)
        return TBD_EXIT_NOT_FOUND;
    return status == TBD_OK ? TBD_EXIT_FOUND : failed(run, &search, status);
}

struct event_listing {
    const struct tbd_command_run *run;
    uint64_t count, most;          /* most 0: all */
    struct tbd_event_lines *lines; /* owned; NULL: lines by objects */
};

static bool print_each(void *context, const struct tbd_event *event)
{
    struct event_listing *listing = context;

    listing->count++;
    if (!tbd_event_lines_print(listing->lines, event, listing->run->out))
        print_event(listing->run, event);
    return ferror(listing->run->out) == 0 && listing->count != listing->most;
}

#define BACKWARD_MOST 100000u

struct backward_listing {
    const struct tbd_command_run *run;
    json_t *rows; /* owned */
};

static bool keep_each(void *context, const struct tbd_event *event)
{
    struct backward_listing *listing = context;

    return json_array_append_new(listing->rows, tbd_output_event(listing->run->session, event)) ==
           0;
}

/* From the event on; others at its position may go before it. */
static void list_from(struct tbd_question *question, struct tbd_position at)
{
    question->backward = false;
    question->from = TBD_FROM_POSITION;
    if (at.offset != 0)
        question->position = (struct tbd_position){ at.time, at.offset - 1 };
    else if (at.time != 0)
        question->position = (struct tbd_position){ at.time - 1, TBD_BLOCK_MAX_INSNS };
    else
        question->from = TBD_FROM_FIRST;
}

/* The last rows, as many as are wanted, in the order in which they are met going back. */
static void print_backward(const struct backward_listing *listing, uint64_t wanted)
{
    size_t count = json_array_size(listing->rows);
    size_t least = count > wanted ? count - (size_t)wanted : 0;

    for (size_t i = count; i-- > least;)
        tbd_shard_row(listing->run->session, json_incref(json_array_get(listing->rows, i)),
                      listing->run->out);
}

/* One search goes back to the first of the events; one that lists them, which goes forward, has all. */
static enum tbd_exit list_backward(struct tbd_command_run *run, struct tbd_question *question)
{
    struct backward_listing listing = { .run = run, .rows = json_array() };
    uint64_t wanted = question->count, found = 0;
    struct tbd_event event = { .position = tbd_session_first(run->session) };
    enum tbd_exit result = tbd_command_search(run, question, &event, &found);

    if (result == TBD_EXIT_FOUND || (result == TBD_EXIT_NOT_FOUND && found != 0)) {
        list_from(question,
                  result == TBD_EXIT_FOUND ? event.position : tbd_session_first(run->session));
        result = tbd_command_each(run, question, keep_each, &listing);
    }
    if (result == TBD_EXIT_FOUND)
        print_backward(&listing, wanted);
    json_decref(listing.rows);
    return result;
}

/* The first events of a shard, as many as are wanted of the whole run: `unite` knows which one it is. */
static enum tbd_exit list_shard(struct tbd_command_run *run, struct tbd_question *question)
{
    struct event_listing listing = { .run = run, .most = question->count };
    struct tbd_shard_kind kind = { .name = "found",
                                   .question = run->text,
                                   .type = tbd_event_type_name(question->type),
                                   .backward = question->backward,
                                   .wanted = question->count };

    if (question->from != TBD_FROM_FIRST && question->from != TBD_FROM_LAST) {
        tbd_question_free(question);
        return tbd_command_usage(run, "with --shard it begins at `first` or `last`");
    }
    if (question->backward && question->count > BACKWARD_MOST) {
        tbd_question_free(question);
        return tbd_command_usage(run, "with --shard it goes back over at most 100000 events");
    }
    tbd_shard_begin(run->session, &kind, run->out);
    if (question->backward)
        return list_backward(run, question);
    return tbd_command_each(run, question, print_each, &listing);
}

static enum tbd_exit go_by_search(struct tbd_command_run *run, struct tbd_question *question)
{
    struct tbd_event event = { 0 };
    uint64_t found;
    enum tbd_exit result = tbd_command_search(run, question, &event, &found);

    if (result == TBD_EXIT_NOT_FOUND)
        return not_found(run, question, found);
    if (result != TBD_EXIT_FOUND)
        return result;
    tbd_command_move_to(run, &event);
    print_event(run, &event);
    return TBD_EXIT_FOUND;
}

enum tbd_exit tbd_command_ask(struct tbd_command_run *run, struct tbd_question *question)
{
    enum tbd_exit result;

    if (question->is_lost)
        result = tbd_command_fail(run, TBD_NOMEM);
    else if (tbd_shard_is_on(run->session) && question->is_search &&
             !tbd_question_is_states(question))
        return list_shard(run, question);
    else if (tbd_shard_is_on(run->session))
        result = tbd_command_usage(run, "with --shard it looks for events");
    else if (!question->is_search)
        result = tbd_command_go(run, tbd_command_start(run->session, question));
    else if (tbd_question_is_states(question))
        result = go_by_states(run, question);
    else
        result = go_by_search(run, question);
    tbd_question_free(question);
    return result;
}

enum tbd_exit tbd_command_each_of(struct tbd_command_run *run, struct tbd_search *search)
{
    struct tbd_query_error error = { 0 };
    struct tbd_question *question = search->question;
    struct tbd_event last;
    uint64_t found = 0;
    enum tbd_exit result = TBD_EXIT_FOUND;
    enum tbd_status status;

    search->session = run->session;
    search->error = &error;
    question->count = TBD_QUESTION_ALL;
    status = look(run, search, &last, &found);
    if (status == TBD_NOTFOUND)
        result = TBD_EXIT_NOT_FOUND;
    else if (status != TBD_OK)
        result = failed(run, search, status);
    search->error = NULL;
    tbd_question_free(question);
    return result;
}

enum tbd_exit tbd_command_each(struct tbd_command_run *run, struct tbd_question *question,
                               bool (*each)(void *context, const struct tbd_event *event),
                               void *context)
{
    struct tbd_search search = { .question = question, .each = each, .each_context = context };

    return tbd_command_each_of(run, &search);
}

enum tbd_status tbd_command_find_event(struct tbd_command_run *run, struct tbd_question *question,
                                       struct tbd_event *out)
{
    struct tbd_query_error error = { 0 };
    struct tbd_search search = { .session = run->session, .question = question, .error = &error };
    uint64_t found;
    enum tbd_status status = question->is_lost ? TBD_NOMEM : tbd_search_run(&search, out, &found);

    tbd_question_free(question);
    return status;
}

/* ---- goto ---- */

/* One part of a chain: text[from, to). */
static enum tbd_exit goto_part(struct tbd_command_run *run, size_t from, size_t to)
{
    struct tbd_query_error error;
    struct tbd_question question;
    struct tbd_question_words words;
    bool is_first = from == run->arguments;
    enum tbd_exit result;

    if ((is_first ? tbd_question_read : tbd_question_read_next)(run->text, from, to, &question,
                                                                &words, &error) != TBD_OK)
        return tbd_command_wrong(run, &error);
    result = tbd_command_take_words(run, &words, &question);
    if (result == TBD_EXIT_FOUND)
        return tbd_command_ask(run, &question);
    tbd_question_free(&question);
    return result;
}

/* Offset of the next " then " outside quotes, or of the end. */
static size_t find_then(const char *text, size_t from)
{
    bool quoted = false;

    for (; text[from] != '\0'; from++) {
        quoted ^= text[from] == '"';
        if (!quoted && strncmp(text + from, " then ", 6) == 0)
            break;
    }
    return from;
}

/* "main", "list.c:31", "*lambda*", *0x401136 */
static bool is_place(const struct tbd_command_run *run)
{
    const char *word = run->argc == 1 ? run->argv[0] : "0";

    if (strcmp(word, "first") == 0 || strcmp(word, "last") == 0 || strcmp(word, "current") == 0)
        return false;
    return isalpha((unsigned char)*word) || (*word != '\0' && strchr("_*?~\"", *word) != NULL) ||
           strchr(word, ':') != NULL;
}

/* "09:35:53.5", "2026-11-23T09:35": the first block entry from then on. */
static bool is_wall_time(const struct tbd_command_run *run, uint64_t *out_ns)
{
    return run->argc == 1 && isdigit((unsigned char)run->argv[0][0]) &&
           strchr(run->argv[0], ':') != NULL &&
           tbd_wall_time_read(run->session, run->argv[0], out_ns);
}

static enum tbd_exit go_to_wall_time(struct tbd_command_run *run, uint64_t ns)
{
    struct tbd_position position = { 0 };

    if (!tbd_wall_time_find(run->session, ns, &position.time)) {
        fprintf(stderr, "tbdq: the trace does not say when its events happened\n");
        return TBD_EXIT_TRACE;
    }
    if (position.time >= run->session->info->blocks)
        position = tbd_session_last(run->session);
    return tbd_command_go(run, position);
}

enum tbd_exit tbd_command_goto(struct tbd_command_run *run)
{
    struct tbd_command_run part = *run;
    struct tbd_position at = run->session->at;
    enum tbd_exit result = TBD_EXIT_FOUND;
    size_t from = run->arguments, to;
    uint64_t ns;

    if (tbd_shard_is_on(run->session) && strstr(run->text, " then ") != NULL)
        return tbd_command_usage(run, "with --shard there is one search, without `then`");
    if (tbd_shard_is_on(run->session) && (is_wall_time(run, &ns) || is_place(run)))
        return tbd_command_usage(run, "with --shard it looks for events");
    if (is_wall_time(run, &ns))
        return go_to_wall_time(run, ns);
    if (is_place(run))
        return tbd_command_go_to_place(run, true);
    for (bool more = true; more && result == TBD_EXIT_FOUND; from = to + strlen(" then ")) {
        to = find_then(run->text, from);
        more = run->text[to] != '\0';
        part.silent = run->silent || more;
        result = goto_part(&part, from, to);
    }
    if (run->session->has_at)
        run->session->at = at;
    return result;
}

/* ---- all ---- */

enum tbd_exit tbd_command_read_all(struct tbd_command_run *run, size_t from, size_t to,
                                   struct tbd_question *out)
{
    struct tbd_query_error error;
    struct tbd_question_words words;
    enum tbd_exit result;

    if (tbd_question_read_all(run->text, from, to, out, &words, &error) != TBD_OK)
        return tbd_command_wrong(run, &error);
    result = tbd_command_take_words(run, &words, out);
    if (result != TBD_EXIT_FOUND)
        tbd_question_free(out);
    return result;
}

enum tbd_exit tbd_command_all(struct tbd_command_run *run)
{
    struct event_listing listing = { .run = run };
    struct tbd_question question;
    enum tbd_event_type type;
    enum tbd_exit result = tbd_command_read_all(run, run->arguments, strlen(run->text), &question);

    if (result != TBD_EXIT_FOUND)
        return result;
    type = question.type;
    if (tbd_shard_is_on(run->session))
        tbd_shard_begin(run->session,
                        &(struct tbd_shard_kind){ .name = "events",
                                                  .question = run->text,
                                                  .type = tbd_event_type_name(type) },
                        run->out);
    if (!tbd_shard_is_on(run->session) && !run->silent)
        listing.lines = tbd_event_lines_new(run->session);
    result = tbd_command_each(run, &question, print_each, &listing);
    tbd_event_lines_free(listing.lines);
    if (result != TBD_EXIT_NOT_FOUND || listing.count != 0)
        return result;
    question = tbd_question_all(type);
    return not_found(run, &question, 0);
}
