// SPDX-License-Identifier: MIT
/* cmd_history.c - values over time: history; and trace, the lines that were executed */
#include "query/calls/history_register.h"
#include "query/output/output.h"
#include "query/output/shard.h"
#include "query/commands/rows.h"
#include "query/session/source/source_place.h"

#include "base/array.h"
#include "base/binary_search.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define OBJECT_MAX TBD_DATA_BYTES

/* ---- history ---- */

#define FRAMES_MAX 256u
#define WHERE      " where "
#define RED_ZONE   128u /* below the stack pointer; a function that calls no other may use it */

/* The user's condition: the stores for which it holds. */
struct wanted_stores {
    size_t where;             /* offset of " where " in the run's text; 0: there is none */
    struct tbd_position *all; /* owned; ascending */
    size_t count, capacity;
    bool no_memory;
};

struct history {
    struct tbd_command_run *run;
    struct wanted_stores wanted;
    struct tbd_source_place *place;
    struct tbd_data object; /* in memory */
    size_t bytes;
    struct tbd_rows rows;
    json_t *row;    /* of the value that holds now; NULL before the first one */
    bool is_wanted; /* the row is to be shown */
    uint8_t now[OBJECT_MAX];
    bool has_before; /* `now` is the value that an earlier shard has the row of */
    bool is_past;    /* after the shard: what ends its last value is looked for */
    struct tbd_lifetime life;
};

/* A value without a writer is shown only if there is no condition. */
static bool is_wanted(const struct wanted_stores *wanted, const struct tbd_event *event)
{
    size_t at;

    if (wanted->where == 0 || event == NULL)
        return wanted->where == 0;
    at = TBD_COUNT_BEFORE(i, wanted->count,
                          tbd_position_compare(wanted->all[i], event->position) < 0);
    return at < wanted->count && tbd_position_compare(wanted->all[at], event->position) == 0;
}

static char *text_of(struct history *history)
{
    struct tbd_printer printer = tbd_source_printer(history->place, 0);
    struct tbd_data data = history->object;
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL)
        return NULL;
    data.in_memory = false;
    data.byte_count = (uint32_t)history->bytes;
    memcpy(data.bytes, history->now, history->bytes);
    tbd_data_print(&printer, &data, out);
    fclose(out);
    return text;
}

/* A value begins to hold at `from`; the event wrote it (NULL: its writer is not known). */
static void begin_value(struct history *history, struct tbd_position from,
                        const struct tbd_event *event)
{
    char *text = text_of(history);

    history->row = event != NULL ? tbd_rows_event(history->run->session, event) : json_object();
    json_object_set_new(history->row, "value", tbd_output_text(text == NULL ? "" : text));
    json_object_set_new(history->row, "from", tbd_rows_position(from));
    history->is_wanted = is_wanted(&history->wanted, event);
    free(text);
}

static void end_value(struct history *history, const struct tbd_position *to)
{
    if (history->row == NULL)
        return;
    json_object_set_new(history->row, "to", to == NULL ? json_null() : tbd_rows_position(*to));
    if (history->is_wanted)
        tbd_rows_add(&history->rows, history->row);
    else
        json_decref(history->row);
    history->row = NULL;
}

static bool read_object(struct history *history, struct tbd_position position, uint8_t *out)
{
    return tbd_session_read(history->run->session, position, history->object.address, out,
                            history->bytes) == TBD_OK;
}

/* The event has the new value if it is small; otherwise it is read from memory. */
static bool value_after(struct history *history, const struct tbd_event *event, uint8_t *out)
{
    struct tbd_position after = { event->position.time, event->position.offset + 1 };
    uint64_t address = history->object.address;

    memcpy(out, history->now, history->bytes);
    if (event->fresh != NULL || (event->flags & TBD_EVENT_HAS_VALUE) == 0 || event->size > 8)
        return read_object(history, after, out);
    for (uint64_t i = 0; i < event->size; i++) {
        if (event->addr + i - address < history->bytes)
            out[event->addr + i - address] = (uint8_t)(event->value >> (8 * i));
    }
    return true;
}

/* A bit-field's neighbours in its bytes do not count. */
static bool is_same_value(const struct history *history, const uint8_t *value)
{
    struct tbd_data now = history->object, then;
    uint64_t a, b;

    if (now.bits == 0)
        return memcmp(value, history->now, history->bytes) == 0;
    now.in_memory = false;
    now.byte_count = (uint32_t)history->bytes;
    then = now;
    memcpy(now.bytes, history->now, history->bytes);
    memcpy(then.bytes, value, history->bytes);
    return tbd_data_scalar(&history->place->places[0], &now, &a) &&
           tbd_data_scalar(&history->place->places[0], &then, &b) && a == b;
}

/* The value before the first store of all; its row is the first shard's. */
static void begin_first(struct history *history, struct tbd_position at)
{
    const struct tbd_session *session = history->run->session;

    if (!read_object(history, at, history->now) || history->life.is_bounded)
        return;
    if (session->shard.number <= 1)
        begin_value(history, tbd_session_first(session), NULL);
    else
        history->has_before = true;
}

static bool add_store(void *context, const struct tbd_event *event)
{
    struct history *history = context;
    struct tbd_position after = { event->position.time, event->position.offset + 1 };
    uint8_t value[OBJECT_MAX];

    if (history->row == NULL && !history->has_before)
        begin_first(history, event->position);
    if (!value_after(history, event, value))
        return true;
    if ((history->row != NULL || history->has_before) && is_same_value(history, value))
        return true;
    end_value(history, &event->position);
    if (history->is_past)
        return false;
    memcpy(history->now, value, history->bytes);
    begin_value(history, after, event);
    return ferror(history->run->out) == 0;
}

/* The call whose frame the object lies in; false: it is no local variable. */
static bool call_of(struct history *history, struct tbd_position position,
                    struct tbd_frame_call *out)
{
    struct tbd_frame *frames = calloc(FRAMES_MAX, sizeof(*frames));
    uint64_t address = history->object.address;
    bool found = false;
    size_t count = 0;

    if (frames != NULL &&
        tbd_session_stack(history->run->session, position, frames, FRAMES_MAX, &count) != TBD_OK)
        count = 0;
    for (size_t i = 0; i < count && !found; i++) {
        uint64_t low = frames[i].sp - (i == 0 ? RED_ZONE : 0);

        found = frames[i].cfa > low && address - low < frames[i].cfa - low;
        out->slot = frames[i].cfa - 8;
        out->from = i + 1 < count ? frames[i + 1].call_pc : 0;
    }
    free(frames);
    return found;
}

/* The lifetime of an object on the stack.  The call is searched backward from after this instruction,
 * which may be the function's first.  An exception or longjmp ends the frame, too. */
struct tbd_lifetime tbd_lifetime_of(struct tbd_command_run *run, struct tbd_frame_call call)
{
    struct tbd_session *session = run->session;
    struct tbd_position at = tbd_session_current(session), past = { at.time, at.offset + 1 };
    struct tbd_reg_state *state = malloc(sizeof(*state));
    struct tbd_lifetime life = { .is_bounded = false };
    struct tbd_question question;
    struct tbd_event event = { 0 };
    enum tbd_frame_end end;

    if (state == NULL || tbd_session_regs(session, at, state) != TBD_OK) {
        free(state);
        return life;
    }
    call.since = at;
    call.thread = state->regs.thread;
    free(state);
    question = tbd_question_before(past, TBD_EVENT_FUNC_ENTER);
    question.only_calls = true;
    tbd_question_where_field(&question, TBD_FIELD_SP, TBD_EXPR_EQ, call.slot);
    tbd_question_where_field(&question, TBD_FIELD_THREAD, TBD_EXPR_EQ, call.thread);
    life.is_bounded = tbd_command_find_event(run, &question, &event) == TBD_OK;
    life.from = event.position;
    life.has_end = tbd_frame_find_end(run, &call, NULL, &end, &event) == TBD_OK && life.is_bounded;
    life.to = event.position;
    return life;
}

/* All stores to the object while it lives. */
static struct tbd_question stores_to(const struct history *history)
{
    struct tbd_question question = tbd_question_all(TBD_EVENT_STORE);
    const struct tbd_lifetime *life = &history->life;

    tbd_question_where(&question, tbd_expr_touches(history->object.address, history->bytes));
    if (life->is_bounded)
        tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_GE, life->from.time);
    if (life->has_end)
        tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_LE, life->to.time);
    return question;
}

static bool add_wanted(void *context, const struct tbd_event *event)
{
    struct wanted_stores *wanted = context;

    wanted->no_memory =
        !tbd_array_grow(&wanted->all, wanted->count, &wanted->capacity, sizeof(*wanted->all));
    if (!wanted->no_memory)
        wanted->all[wanted->count++] = event->position;
    return !wanted->no_memory;
}

/* Finds the stores for which the user's condition holds. */
static enum tbd_exit find_wanted(struct history *history)
{
    struct tbd_command_run *run = history->run;
    struct wanted_stores *wanted = &history->wanted;
    struct tbd_question_words words = { .text = run->text,
                                        .of = run->arguments,
                                        .object = run->arguments,
                                        .of_end = wanted->where,
                                        .where = wanted->where + strlen(WHERE),
                                        .end = strlen(run->text) };
    struct tbd_question question;
    enum tbd_exit result;

    if (wanted->where == 0)
        return TBD_EXIT_FOUND;
    question = stores_to(history);
    result = tbd_command_take_words(run, &words, &question);
    if (result != TBD_EXIT_FOUND) {
        tbd_question_free(&question);
        return result;
    }
    result = tbd_command_each(run, &question, add_wanted, wanted);
    if (wanted->no_memory)
        return tbd_command_fail(run, TBD_NOMEM);
    return result == TBD_EXIT_NOT_FOUND ? TBD_EXIT_FOUND : result;
}

/* ---- a shard: the values that begin in its windows ---- */

/* The value at the shard's start, if it was stored since the object lives. */
static void find_before(struct history *history)
{
    struct tbd_session *session = history->run->session;
    struct tbd_position start = { session->shard.from, 0 }, after;
    struct tbd_question question = tbd_question_before(start, TBD_EVENT_STORE);
    struct tbd_event event;

    tbd_question_where(&question, tbd_expr_touches(history->object.address, history->bytes));
    if (history->life.is_bounded)
        tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_GE, history->life.from.time);
    if (tbd_command_find_event(history->run, &question, &event) != TBD_OK)
        return;
    after = (struct tbd_position){ event.position.time, event.position.offset + 1 };
    history->has_before = read_object(history, after, history->now);
}

/* The last value may hold on into later shards; the first shard's may begin before all stores. */
static enum tbd_exit look_past(struct history *history)
{
    struct tbd_question question = stores_to(history);

    history->is_past = true;
    tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_GE,
                             history->run->session->shard.to);
    return tbd_command_each(history->run, &question, add_store, history);
}

static enum tbd_exit search_shard(struct history *history)
{
    const struct tbd_session *session = history->run->session;
    struct tbd_question question = stores_to(history);
    bool is_first = session->shard.number == 1;
    enum tbd_exit result;

    if (!is_first)
        tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_GE, session->shard.from);
    if (session->shard.number != session->shard.count)
        tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_LT, session->shard.to);
    if (!is_first)
        find_before(history);
    result = tbd_command_each(history->run, &question, add_store, history);
    if (result <= TBD_EXIT_NOT_FOUND && session->shard.number != session->shard.count &&
        (history->row != NULL || (is_first && result == TBD_EXIT_NOT_FOUND)))
        result = look_past(history);
    return result == TBD_EXIT_NOT_FOUND && !is_first ? TBD_EXIT_FOUND : result;
}

static enum tbd_exit search_stores(struct history *history)
{
    struct tbd_question question;

    if (tbd_shard_is_on(history->run->session))
        return search_shard(history);
    question = stores_to(history);
    return tbd_command_each(history->run, &question, add_store, history);
}

static enum tbd_exit list_history(struct history *history)
{
    static const char *const columns[] = { "value", "from", "to", "source", "function", NULL };
    struct tbd_command_run *run = history->run;
    const struct tbd_lifetime *life = &history->life;
    struct tbd_frame_call call = { 0 };
    enum tbd_exit result;

    if (call_of(history, tbd_session_current(run->session), &call))
        history->life = tbd_lifetime_of(run, call);
    result = find_wanted(history);
    if (result != TBD_EXIT_FOUND)
        return result;
    tbd_rows_start(&history->rows, run, columns);
    result = search_stores(history);
    if (result == TBD_EXIT_NOT_FOUND && history->row == NULL &&
        read_object(history, tbd_session_current(run->session), history->now))
        begin_value(history, life->is_bounded ? life->from : tbd_session_first(run->session), NULL);
    end_value(history, life->has_end ? &life->to : NULL);
    if (result <= TBD_EXIT_NOT_FOUND)
        return tbd_rows_end(&history->rows);
    tbd_rows_drop(&history->rows);
    return result;
}

static enum tbd_exit refuse(const struct tbd_command_run *run, const char *why)
{
    struct tbd_query_error error = { .status = TBD_TYPE, .at = run->arguments };

    error.length = strlen(run->text) - run->arguments;
    snprintf(error.message, sizeof(error.message), "it has no place in memory here: %s", why);
    return tbd_command_wrong(run, &error);
}

/* Lists the values of what is not in memory here. */
static enum tbd_exit list_changing(struct history *history)
{
    struct tbd_command_run *run = history->run;
    const struct tbd_source_stack *stack = &history->place->stack;
    const struct tbd_data *object = &history->object;
    const char *why = object->is_known ? "it is in a register, or a result" : object->why;
    enum tbd_exit result;

    if (!object->of_frame || stack->selected != 0 || stack->frame_count == 0)
        return refuse(run, why);
    if (tbd_shard_is_on(run->session))
        return tbd_command_usage(run, "with --shard it is about a variable in memory");
    if (history->wanted.where != 0)
        return tbd_command_usage(run, "it is in a register: no condition about stores can hold "
                                      "for it");
    result = tbd_history_register(run, history->place);
    return result == TBD_EXIT_NOT_FOUND ? refuse(run, why) : result;
}

enum tbd_exit tbd_command_history(struct tbd_command_run *run)
{
    struct tbd_source_place place;
    struct history history = { .run = run, .place = &place };
    const char *where;
    enum tbd_exit result;

    if (run->argc == 0)
        return tbd_command_usage(run, "history takes an expression, and perhaps a condition");
    where = strstr(run->text + run->arguments, WHERE);
    history.wanted.where = where == NULL ? 0 : (size_t)(where - run->text);
    result = tbd_command_value_of(run, tbd_session_current(run->session), run->arguments,
                                  where == NULL ? strlen(run->text) : history.wanted.where, &place,
                                  &history.object);
    if (result != TBD_EXIT_FOUND)
        return result;
    if (history.object.is_known && !history.object.in_memory && history.object.soon_at != 0)
        tbd_data_at(history.object.soon_at, &history.object.type, &history.object);
    if (!history.object.is_known || !history.object.in_memory) {
        result = list_changing(&history);
    } else {
        history.bytes = history.object.bits != 0
                            ? (history.object.bit_offset + history.object.bits + 7) / 8
                            : (size_t)tbd_type_look(&history.object.type).bytes;
        result = history.bytes == 0 || history.bytes > OBJECT_MAX
                     ? refuse(run, "its size is not known, or too large")
                     : list_history(&history);
    }
    tbd_source_place_close(&place);
    free(history.wanted.all);
    return result;
}

/* ---- trace ---- */

struct listing {
    struct tbd_rows rows;
    struct tbd_position to;
    char file[4096]; /* of `text` */
    struct tbd_source_text text;
    bool has_text;
};

static void add_text(struct listing *listing, json_t *row)
{
    const char *file = json_string_value(json_object_get(row, "file"));
    json_int_t line = json_integer_value(json_object_get(row, "line"));

    if (file == NULL)
        return;
    if (strcmp(file, listing->file) != 0) {
        if (listing->has_text)
            tbd_source_unload(&listing->text);
        snprintf(listing->file, sizeof(listing->file), "%s", file);
        listing->has_text = tbd_source_load(file, &listing->text);
    }
    if (listing->has_text && line >= 1 && line <= (json_int_t)listing->text.line_count)
        json_object_set_new(row, "code", tbd_output_text(listing->text.lines[line]));
}

static bool add_line(void *context, const struct tbd_event *event)
{
    struct listing *listing = context;
    json_t *row;

    if (tbd_position_compare(event->position, listing->to) > 0)
        return false;
    row = tbd_rows_event(listing->rows.run->session, event);
    add_text(listing, row);
    tbd_rows_add(&listing->rows, row);
    return ferror(listing->rows.run->out) == 0;
}

static bool read_position(struct tbd_session *session, const char *text, struct tbd_position *out)
{
    char *end;

    *out = (struct tbd_position){ 0 };
    if (strcmp(text, "first") == 0)
        *out = tbd_session_first(session);
    else if (strcmp(text, "last") == 0)
        *out = tbd_session_last(session);
    else if (strcmp(text, "current") == 0)
        *out = tbd_session_current(session);
    else {
        out->time = strtoull(text, &end, 0);
        if (*end == '+')
            out->offset = (uint32_t)strtoul(end + 1, &end, 0);
        return *text >= '0' && *text <= '9' && *end == '\0';
    }
    return true;
}

/* The condition after the two positions, if there is one. */
static enum tbd_exit take_condition(struct tbd_command_run *run, struct tbd_question *question)
{
    struct tbd_question_words words = { .text = run->text };
    const char *where = strstr(run->text + run->arguments, " where ");

    if (where != NULL) {
        words.where = (size_t)(where - run->text) + strlen(" where ");
        words.end = strlen(run->text);
    }
    return tbd_command_take_words(run, &words, question);
}

/* trace FROM TO [where ...] */
enum tbd_exit tbd_command_trace(struct tbd_command_run *run)
{
    static const char *const columns[] = { "position", "function", "source", "code", NULL };
    struct listing listing = { .has_text = false };
    struct tbd_position from;
    struct tbd_question question;
    enum tbd_exit result;

    if (run->argc < 2 || (run->argc > 2 && strcmp(run->argv[2], "where") != 0) ||
        !read_position(run->session, run->argv[0], &from) ||
        !read_position(run->session, run->argv[1], &listing.to))
        return tbd_command_usage(run, "trace takes two positions");
    if (tbd_position_compare(listing.to, from) < 0)
        fprintf(stderr, "tbdq: note: the second position is before the first\n");
    question = tbd_question_after(from, TBD_EVENT_LINE);
    tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_LE, listing.to.time);
    result = take_condition(run, &question);
    if (result != TBD_EXIT_FOUND) {
        tbd_question_free(&question);
        return result;
    }
    tbd_rows_start(&listing.rows, run, columns);
    result = tbd_command_each(run, &question, add_line, &listing);
    if (listing.has_text)
        tbd_source_unload(&listing.text);
    if (result <= TBD_EXIT_NOT_FOUND)
        return tbd_rows_end(&listing.rows);
    tbd_rows_drop(&listing.rows);
    return result;
}
