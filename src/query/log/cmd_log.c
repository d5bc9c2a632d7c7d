// SPDX-License-Identifier: MIT
/* cmd_log.c - log: a line of text for every execution of a place, as if the program had printed it
 *
 *   log PLACE [where CONDITION] FORMAT [ARGUMENT...] [also PLACE ...]
 *
 * A place becomes a question, its arguments become kept values of that question (condition/expr_keep.h): so one
 * search gives rows and values, which the workers of the search write.  One place is printed as it is found.
 * Several places are searched one after the other, and their rows printed in the order of time.
 *
 * CMD_LOG-1  A row of several places is a struct logged_row and its text, up to a NUL: what a format writes has none.
 *     (not checked: write_kept() is the only writer) */
#include "query/commands/commands.h"
#include "query/commands/functions.h"
#include "query/commands/rows.h"
#include "query/log/log_format.h"
#include "query/output/log_line.h"
#include "query/output/output.h"
#include "query/output/shard.h"
#include "query/search/search.h"
#include "query/session/wall_time.h"

#include "base/array.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_MAX 16u

struct log_place {
    const char *name; /* as the user wrote it */
    struct tbd_log_format format;
    struct tbd_question question;
};

struct logged_row {
    struct tbd_position position;
    uint32_t thread, place;
    size_t text;
};

struct logging {
    struct tbd_command_run *run;
    struct log_place places[PLACES_MAX];
    uint32_t count;
    uint32_t place; /* being searched */
    bool has_threads;
    struct tbd_rows rows;    /* JSON, CSV */
    struct logged_row *kept; /* owned; of several places */
    size_t kept_count, kept_capacity;
    char *text; /* owned */
    size_t text_used, text_capacity;
    uint64_t printed;
    bool no_memory;
};

/* ---- a place ---- */

static bool is_line(const char *place)
{
    const char *colon = strrchr(place, ':');

    return colon != NULL && colon != place && colon[1] != '\0' &&
           colon[1 + strspn(colon + 1, "0123456789")] == '\0';
}

/* "func_enter where func==insert" of "insert"; NULL without memory. */
static char *question_of(const char *place, const char *condition)
{
    size_t word = strcspn(place, " "), length = strlen(place);
    const char *joint = condition == NULL ? "" : " and (", *close = condition == NULL ? "" : ")";
    const char *more = condition == NULL ? "" : condition, *colon = strrchr(place, ':');
    bool is_return = length > 7 && strcmp(place + length - 7, ":return") == 0;
    char *out = NULL;
    int made;

    if (place[word] != '\0' && tbd_event_type_find(place, word) != TBD_EVENT_POSITION)
        made = asprintf(&out, "%s%s%s", place, condition == NULL ? "" : " where ", more);
    else if (is_line(place))
        made = asprintf(&out, "line where src=<%.*s,%s>%s%s%s", (int)(colon - place), place,
                        colon + 1, joint, more, close);
    else
        made =
            asprintf(&out, "%s where func==\"%.*s\"%s%s%s", is_return ? "func_exit" : "func_enter",
                     (int)(is_return ? length - 7 : length), place, joint, more, close);
    return made < 0 ? NULL : out;
}

static enum tbd_exit read_question(struct tbd_command_run *run, const char *place,
                                   const char *condition, struct tbd_question *out)
{
    struct tbd_command_run own = *run;
    enum tbd_exit result;
    char *text;

    if (strchr(place, '"') != NULL || *place == '\0')
        return tbd_command_usage(run, "a place is FUNCTION, FUNCTION:return, FILE:LINE, or 'TYPE "
                                      "of EXPRESSION'");
    text = question_of(place, condition);
    if (text == NULL)
        return tbd_command_no_memory();
    own.text = text;
    own.arguments = 0;
    result = tbd_command_read_all(&own, 0, strlen(text), out);
    free(text);
    return result;
}

/* Keeps the value of one argument. */
static enum tbd_exit add_value(struct tbd_command_run *run, const char *text, bool as_text,
                               struct tbd_question *question)
{
    struct tbd_command_run own = *run;
    struct tbd_query_error error = { 0 };
    struct tbd_expr *expr;

    own.text = text;
    own.arguments = 0;
    if (tbd_expr_parse(text, 0, question->type, &expr, &error) != TBD_OK)
        return tbd_command_wrong(&own, &error);
    tbd_question_where(question, tbd_expr_keep(expr, question->keeps++, as_text));
    return question->is_lost ? tbd_command_no_memory() : TBD_EXIT_FOUND;
}

static enum tbd_exit read_format(struct tbd_command_run *run, const char *text,
                                 struct tbd_log_format *out)
{
    struct tbd_command_run own = *run;
    struct tbd_query_error error = { .status = TBD_USAGE, .length = 1 };
    const char *why;

    own.text = text;
    own.arguments = 0;
    if (tbd_log_format_read(text, out, &why, &error.at))
        return TBD_EXIT_FOUND;
    snprintf(error.message, sizeof(error.message), "%s", why);
    return tbd_command_wrong(&own, &error);
}

static unsigned words_of_place(const struct tbd_command_run *run, unsigned from)
{
    unsigned to = from;

    while (to < run->argc && strcmp(run->argv[to], "also") != 0)
        to++;
    return to;
}

/* PLACE [where CONDITION] FORMAT [ARGUMENT...]: words [from, to) of the arguments. */
static enum tbd_exit read_place(struct logging *log, unsigned from, unsigned to)
{
    struct tbd_command_run *run = log->run;
    struct log_place *place = &log->places[log->count];
    bool has_condition = to - from > 2 && strcmp(run->argv[from + 1], "where") == 0;
    unsigned format = from + (has_condition ? 3 : 1);
    enum tbd_exit result;

    if (format >= to)
        return tbd_command_usage(run, "log takes a place, a format, and values for it");
    result = read_format(run, run->argv[format], &place->format);
    if (result != TBD_EXIT_FOUND)
        return result;
    place->name = run->argv[from];
    log->count++;
    if (place->format.count != to - format - 1)
        return tbd_command_usage(run,
                                 place->format.count < to - format - 1
                                     ? "the format has fewer conversions than there are values"
                                     : "the format has more conversions than there are values");
    result = read_question(run, run->argv[from], has_condition ? run->argv[from + 2] : NULL,
                           &place->question);
    for (uint32_t i = 0; i < place->format.count && result == TBD_EXIT_FOUND; i++)
        result = add_value(run, run->argv[format + 1 + i],
                           place->format.pieces[i].conversion == 's', &place->question);
    return result;
}

static enum tbd_exit read_places(struct logging *log)
{
    enum tbd_exit result = TBD_EXIT_FOUND;
    unsigned from = 0;

    do {
        unsigned to = words_of_place(log->run, from);

        if (log->count == PLACES_MAX)
            return tbd_command_usage(log->run, "log takes at most 16 places");
        result = read_place(log, from, to);
        from = to + 1;
    } while (result == TBD_EXIT_FOUND && from <= log->run->argc);
    return result;
}

/* ---- rows ---- */

/* What a place's format makes of an event. */
struct log_line {
    struct tbd_position position;
    uint32_t thread, place;
    const struct tbd_kept_value *values; /* NULL: the format has none, or `text` is there */
    const char *text;                    /* written already; NULL: it is not */
};

static void write_message(const struct logging *log, const struct log_line *line, FILE *out)
{
    if (line->text != NULL)
        fputs(line->text, out);
    else
        tbd_log_format_write(&log->places[line->place].format, line->values, out);
}

static void write_text(const struct logging *log, struct tbd_session *session,
                       const struct log_line *line, FILE *out)
{
    char clock[TBD_WALL_TIME_BYTES] = "", position[48];
    struct tbd_log_head head = { .position = position,
                                 .wall = log->run->session->shows_wall ? clock : NULL,
                                 .has_thread = log->has_threads,
                                 .thread = line->thread };
    struct tbd_wall_time wall;

    snprintf(position, sizeof(position), "%" PRIu64 "+%" PRIu32, line->position.time,
             line->position.offset);
    if (line->position.offset == 0)
        *strchr(position, '+') = '\0';
    if (head.wall != NULL && tbd_wall_time_at(session, line->position.time, &wall))
        head.wall = tbd_wall_time_text(&wall, false, clock);
    tbd_log_head_print(&head, out);
    write_message(log, line, out);
    fputc('\n', out);
}

static json_t *row_of(const struct logging *log, struct tbd_session *session,
                      const struct log_line *line)
{
    bool is_json = log->run->session->json;
    struct tbd_wall_time wall;
    char clock[TBD_WALL_TIME_BYTES], *text = NULL;
    size_t bytes = 0;
    FILE *message = open_memstream(&text, &bytes);
    json_t *object = json_object();

    if (message == NULL)
        return object;
    write_message(log, line, message);
    fclose(message);
    json_object_set_new(object, "time", json_integer((json_int_t)line->position.time));
    json_object_set_new(object, "offset", json_integer(line->position.offset));
    json_object_set_new(object, "position", tbd_rows_position(line->position));
    json_object_set_new(object, "thread", json_integer(line->thread));
    if (log->run->session->shows_wall && tbd_wall_time_at(session, line->position.time, &wall)) {
        json_object_set_new(object, "wall", json_string(tbd_wall_time_text(&wall, is_json, clock)));
        json_object_set_new(object, "wall_exact", json_boolean(wall.is_exact));
    }
    json_object_set_new(object, "place", tbd_output_text(log->places[line->place].name));
    json_object_set_new(object, "text", tbd_output_text(text));
    free(text);
    return object;
}

/* On any thread, with its session. */
static void write_line(const struct logging *log, struct tbd_session *session,
                       const struct log_line *line, FILE *out)
{
    struct tbd_command_run run = *log->run;
    struct tbd_rows rows = log->rows;

    if (tbd_shard_is_on(run.session)) { /* take_rows() counts them */
        tbd_output_line(row_of(log, session, line), out);
        return;
    }
    if (!run.session->json && !run.session->csv) {
        write_text(log, session, line, out);
        return;
    }
    run.out = out;
    rows.run = &run;
    tbd_rows_add(&rows, row_of(log, session, line));
}

static struct log_line line_of(const struct logging *log, const struct tbd_event *event)
{
    return (struct log_line){ .position = event->position,
                              .thread = event->thread,
                              .place = log->place,
                              .values = event->kept };
}

/* ---- one place: rows are written as they are found ---- */

static bool write_row(void *context, struct tbd_session *session, const struct tbd_event *event,
                      FILE *out)
{
    const struct logging *log = context;
    struct log_line line = line_of(log, event);

    write_line(log, session, &line, out);
    return true;
}

/* So many lines are written. */
static void count_lines(struct logging *log, uint64_t count)
{
    log->printed += count;
    log->run->session->shard.rows += count;
}

static bool take_rows(void *context, const char *bytes, size_t size, uint64_t events)
{
    struct logging *log = context;

    count_lines(log, events);
    fwrite(bytes, 1, size, log->run->out);
    return ferror(log->run->out) == 0;
}

static bool print_event(void *context, const struct tbd_event *event)
{
    struct logging *log = context;

    count_lines(log, 1);
    (void)write_row(log, log->run->session, event, log->run->out);
    return ferror(log->run->out) == 0;
}

/* ---- several places: rows are kept, and printed in order ---- */

/* CMD_LOG-1 */
static bool write_kept(void *context, struct tbd_session *session, const struct tbd_event *event,
                       FILE *out)
{
    const struct logging *log = context;
    struct logged_row row = { .position = event->position,
                              .thread = event->thread,
                              .place = log->place };

    (void)session;
    fwrite(&row, sizeof(row), 1, out);
    tbd_log_format_write(&log->places[log->place].format, event->kept, out);
    fputc('\0', out);
    return true;
}

static bool take_kept(void *context, const char *bytes, size_t size, uint64_t events)
{
    struct logging *log = context;
    size_t at = 0;

    log->no_memory = !tbd_array_reserve(&log->kept, log->kept_count + events, &log->kept_capacity,
                                        sizeof(*log->kept)) ||
                     !tbd_array_reserve(&log->text, log->text_used + size, &log->text_capacity, 1);
    while (!log->no_memory && at < size) {
        struct logged_row *row = &log->kept[log->kept_count++];
        size_t length = strlen(bytes + at + sizeof(*row)) + 1;

        memcpy(row, bytes + at, sizeof(*row));
        row->text = log->text_used;
        memcpy(log->text + log->text_used, bytes + at + sizeof(*row), length);
        log->text_used += length;
        at += sizeof(*row) + length;
    }
    return !log->no_memory;
}

static bool keep_event(void *context, const struct tbd_event *event)
{
    struct logging *log = context;
    char *bytes = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&bytes, &size);

    log->no_memory = out == NULL;
    if (out == NULL)
        return false;
    (void)write_kept(log, log->run->session, event, out);
    fclose(out);
    (void)take_kept(log, bytes, size, 1);
    free(bytes);
    return !log->no_memory;
}

static int compare_rows(const void *left, const void *right)
{
    const struct logged_row *a = left, *b = right;
    int order = tbd_position_compare(a->position, b->position);

    if (order != 0)
        return order;
    return a->place != b->place ? (a->place < b->place ? -1 : 1)
                                : (a->text > b->text) - (a->text < b->text);
}

static void print_kept(struct logging *log)
{
    if (log->kept_count != 0)
        qsort(log->kept, log->kept_count, sizeof(*log->kept), compare_rows);
    for (size_t i = 0; i < log->kept_count && ferror(log->run->out) == 0; i++) {
        const struct logged_row *row = &log->kept[i];
        struct log_line line = { .position = row->position,
                                 .thread = row->thread,
                                 .place = row->place,
                                 .text = log->text + row->text };

        count_lines(log, 1);
        write_line(log, log->run->session, &line, log->run->out);
    }
}

/* ---- the command ---- */

static enum tbd_exit search_place(struct logging *log)
{
    bool is_only = log->count == 1;
    struct tbd_search search = { .question = &log->places[log->place].question,
                                 .each = is_only ? print_event : keep_event,
                                 .write = is_only ? write_row : write_kept,
                                 .take = is_only ? take_rows : take_kept,
                                 .each_context = log };

    return tbd_command_each_of(log->run, &search);
}

static enum tbd_exit search_places(struct logging *log)
{
    enum tbd_exit result = TBD_EXIT_FOUND;

    for (; log->place < log->count && result <= TBD_EXIT_NOT_FOUND; log->place++) {
        result = search_place(log);
        if (result <= TBD_EXIT_NOT_FOUND)
            log->run->session->stats.told |=
                tbd_functions_tell_inlined(log->run->session, log->places[log->place].name);
    }
    return log->no_memory ? tbd_command_no_memory() : result;
}

/* Lines of text have a form of their own, which `unite` knows. */
static void begin_shard(const struct tbd_command_run *run)
{
    const struct tbd_shard_kind kind = { .name = "log", .question = run->text };

    if (tbd_shard_is_on(run->session) && !run->session->json && !run->session->csv)
        tbd_shard_begin(run->session, &kind, run->out);
}

static bool says_none(const struct tbd_session *session)
{
    return !session->json && !session->csv && !tbd_shard_is_on(session);
}

enum tbd_exit tbd_command_log(struct tbd_command_run *run)
{
    static const char *const columns[] = { "position", "thread", "place", "text", NULL };
    struct logging log = { .run = run,
                           .has_threads = tbd_trace_thread_count(run->session->trace) > 1 };
    enum tbd_exit result = read_places(&log);

    if (result == TBD_EXIT_FOUND)
        begin_shard(run);
    tbd_rows_start(&log.rows, run, columns);
    if (result == TBD_EXIT_FOUND)
        result = search_places(&log);
    if (result <= TBD_EXIT_NOT_FOUND) {
        print_kept(&log);
        result = log.printed == 0 ? TBD_EXIT_NOT_FOUND : TBD_EXIT_FOUND;
        if (log.printed == 0 && says_none(run->session))
            fprintf(run->out, "none\n");
    }
    tbd_rows_drop(&log.rows);
    for (uint32_t i = 0; i < log.count; i++) {
        tbd_question_free(&log.places[i].question);
        tbd_log_format_free(&log.places[i].format);
    }
    free(log.kept);
    free(log.text);
    return result;
}
