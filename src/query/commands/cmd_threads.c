// SPDX-License-Identifier: MIT
/* cmd_threads.c - threads, thread: which there were, where each is at the current position, and which is
 * selected */
#include "query/commands/commands.h"
#include "query/output/output.h"
#include "query/session/dump_state.h"
#include "query/session/source/source_place.h"
#include "query/session/thread_names.h"

#include "base/safe_stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- "thread N" after a command ---- */

bool tbd_command_find_thread(struct tbd_session *session, const char *text, uint32_t *out)
{
    char *end;
    unsigned long number = strtoul(text, &end, 0);

    if (*text == '\0' || *end != '\0' || number == 0 || number > UINT32_MAX)
        return false;
    *out = tbd_session_thread_called(session, (uint32_t)number);
    return true;
}

bool tbd_command_take_thread(struct tbd_command_run *run)
{
    uint32_t before = run->session->thread;

    if (run->argc != 2 || strcmp(run->argv[0], "thread") != 0 ||
        !tbd_command_find_thread(run->session, run->argv[1], &run->session->thread))
        return false;
    run->names_thread = true;
    run->thread_before = before;
    run->argc = 0;
    return true;
}

/* ---- where they are ---- */

static enum tbd_status find_places_in_dump(struct tbd_session *session,
                                           struct tbd_position position, uint64_t *pcs)
{
    uint32_t thread = session->thread;
    struct tbd_reg_state *state = calloc(1, sizeof(*state));
    enum tbd_status status = state == NULL ? TBD_NOMEM : TBD_OK;

    for (uint32_t i = 0; status == TBD_OK && i < tbd_trace_thread_count(session->trace); i++) {
        session->thread = tbd_trace_thread(session->trace, i)->tid;
        status = tbd_session_regs(session, position, state);
        pcs[i] = state->regs.rip;
    }
    session->thread = thread;
    free(state);
    return status;
}

/* rip of each thread that lives at the position, by index in the table; 0 for others. */
static enum tbd_status find_places(struct tbd_session *session, struct tbd_position position,
                                   uint64_t *pcs)
{
    uint32_t count = tbd_trace_thread_count(session->trace);
    struct tbd_reg_state *states = calloc(count, sizeof(*states));
    uint32_t window = tbd_trace_window_of(session->trace, position.time);
    enum tbd_status status = states == NULL ? TBD_NOMEM : tbd_session_replayer(session);
    size_t wanted = 0;

    for (uint32_t i = 0; status == TBD_OK && i < count; i++) {
        const struct tbd_thread_info *thread = tbd_trace_thread(session->trace, i);

        if (tbd_thread_lives_at(thread, position.time))
            states[wanted++] =
                (struct tbd_reg_state){ .position = position, .thread = thread->tid };
    }
    if (status == TBD_OK && wanted != 0)
        status = tbd_session_replay_regs(session, window, states, wanted);
    wanted = 0;
    for (uint32_t i = 0; status == TBD_OK && i < count; i++) {
        if (tbd_thread_lives_at(tbd_trace_thread(session->trace, i), position.time))
            pcs[i] = states[wanted++].regs.rip;
    }
    free(states);
    return status;
}

/* ---- output ---- */

/* In a dump of a program that ran with calling contexts. */
static void set_context(struct tbd_session *session, uint32_t tid, uint32_t window, json_t *object)
{
    struct tbd_msg_calling calling;

    if (session->info->is_dump && tbd_dump_calling(session, window, tid, &calling) == TBD_OK)
        json_object_set_new(object, "context", tbd_output_hex(calling.value));
}

/* Since when it lives, and how much it has run: a dump does not know. */
static void set_life(const struct tbd_thread_info *thread, json_t *object)
{
    json_object_set_new(object, "start", json_integer((json_int_t)thread->start_time));
    if (thread->creator != 0)
        json_object_set_new(object, "creator", json_integer((json_int_t)thread->creator));
    if (thread->has_ended) {
        json_object_set_new(object, "end", json_integer((json_int_t)thread->end_time));
        json_object_set_new(object, "status", json_integer((json_int_t)thread->status));
    }
    json_object_set_new(object, "blocks", json_integer((json_int_t)thread->blocks));
    json_object_set_new(object, "switches", json_integer((json_int_t)thread->switches));
}

/* `order`: the how many-th thread it is. */
static json_t *thread_object(struct tbd_session *session, uint32_t order, uint64_t pc,
                             uint32_t control, uint32_t window)
{
    const struct tbd_thread_info *thread = tbd_trace_thread(session->trace, order - 1);
    json_t *object = json_object();
    char name[TBD_THREAD_NAME_BYTES];

    tbd_thread_name(session, thread, name);
    json_object_set_new(object, "thread", json_integer((json_int_t)thread->tid));
    json_object_set_new(object, "number", json_integer((json_int_t)order));
    json_object_set_new(object, "name", tbd_output_text(name));
    if (!session->info->is_dump)
        set_life(thread, object);
    json_object_set_new(object, "control", json_boolean(pc != 0 && thread->tid == control));
    if (pc == 0)
        return object;
    json_object_set_new(object, "pc", tbd_output_hex(pc));
    tbd_output_symbol(session, window, pc, object);
    set_context(session, thread->tid, window, object);
    return object;
}

static const char *get(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text == NULL ? "" : tbd_shown(text);
}

static json_int_t number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static void print_life(const json_t *object, FILE *out)
{
    fprintf(out, " from %" JSON_INTEGER_FORMAT, number(object, "start"));
    if (json_object_get(object, "creator") != NULL)
        fprintf(out, " by %" JSON_INTEGER_FORMAT, number(object, "creator"));
    if (json_object_get(object, "end") != NULL)
        fprintf(out, " to %" JSON_INTEGER_FORMAT " (status %" JSON_INTEGER_FORMAT ")",
                number(object, "end"), number(object, "status"));
    fprintf(out, ", %" JSON_INTEGER_FORMAT " blocks, %" JSON_INTEGER_FORMAT " turns",
            number(object, "blocks"), number(object, "switches"));
}

static void print_thread(const json_t *object, FILE *out)
{
    bool has_control = json_is_true(json_object_get(object, "control"));

    fprintf(out, "%c %-3" JSON_INTEGER_FORMAT " %-7" JSON_INTEGER_FORMAT " %-15s",
            has_control ? '*' : ' ', number(object, "number"), number(object, "thread"),
            get(object, "name"));
    if (json_object_get(object, "start") != NULL)
        print_life(object, out);
    if (json_object_get(object, "pc") != NULL)
        fprintf(out, "  at %s %s%s%s", get(object, "pc"), get(object, "module"),
                *get(object, "function") == '\0' ? "" : "!", get(object, "function"));
    if (json_object_get(object, "context") != NULL)
        fprintf(out, ", context %s", get(object, "context"));
    fputc('\n', out);
}

enum tbd_exit tbd_command_threads(struct tbd_command_run *run)
{
    struct tbd_session *session = run->session;
    struct tbd_position position = tbd_session_current(session);
    uint32_t count = tbd_trace_thread_count(session->trace);
    uint64_t *pcs = calloc(count + 1ul, sizeof(*pcs));
    struct tbd_place place;
    enum tbd_status status;

    if (run->argc != 0) {
        free(pcs);
        return tbd_command_usage(run, "threads takes no arguments");
    }
    status = pcs == NULL ? TBD_NOMEM : tbd_session_place(session, position, &place);
    if (status == TBD_OK)
        status = session->info->is_dump ? find_places_in_dump(session, position, pcs)
                                        : find_places(session, position, pcs);
    for (uint32_t i = 0; status == TBD_OK && i < count; i++) {
        json_t *object = thread_object(session, i + 1, pcs[i], place.thread, place.window);

        if (session->json) {
            tbd_output_line(object, run->out);
            continue;
        }
        print_thread(object, run->out);
        json_decref(object);
    }
    free(pcs);
    return status == TBD_OK ? TBD_EXIT_FOUND : tbd_command_fail(run, status);
}

enum tbd_exit tbd_command_bt_threads(struct tbd_command_run *run, struct tbd_position position)
{
    struct tbd_session *session = run->session;
    uint32_t count = tbd_trace_thread_count(session->trace), before = session->thread;
    enum tbd_exit result = TBD_EXIT_FOUND;
    char name[TBD_THREAD_NAME_BYTES];

    for (uint32_t i = 0; result == TBD_EXIT_FOUND && i < count; i++) {
        const struct tbd_thread_info *thread = tbd_trace_thread(session->trace, i);

        if (!tbd_thread_lives_at(thread, position.time))
            continue;
        tbd_thread_name(session, thread, name);
        if (!session->json)
            fprintf(run->out, "thread %" PRIu32 "  %s\n", thread->tid, tbd_shown(name));
        session->thread = thread->tid;
        result = tbd_command_print_stack(run, position);
    }
    session->thread = before;
    return result;
}

/* ---- the selected thread ---- */

/* The how many-th thread it is that has this id at this time; 0: none. */
static uint32_t order_of(const struct tbd_session *session, uint32_t tid, uint64_t time)
{
    uint32_t count = tbd_trace_thread_count(session->trace);

    for (uint32_t i = 0; i < count; i++) {
        const struct tbd_thread_info *thread = tbd_trace_thread(session->trace, i);

        if (thread->tid == tid && tbd_thread_lives_at(thread, time))
            return i + 1;
    }
    return 0;
}

/* Until the next move.  The thread that has control needs no selection: answers are about it. */
static void select_thread(struct tbd_session *session, const struct tbd_place *place,
                          struct tbd_position position, uint32_t tid)
{
    session->thread = tid == place->thread && !session->has_thread ? 0 : tid;
    tbd_session_move(session, position, session->thread);
    if (session->has_at) /* then nothing has moved, but a frame was one of the other thread */
        tbd_source_select(session, position, 0);
}

static enum tbd_exit show_thread(struct tbd_command_run *run, const struct tbd_place *place,
                                 struct tbd_position position, uint32_t order)
{
    struct tbd_session *session = run->session;
    const struct tbd_thread_info *thread = tbd_trace_thread(session->trace, order - 1);
    struct tbd_source_place at;
    enum tbd_status status = tbd_source_place_open(session, position, SIZE_MAX, &at);
    char name[TBD_THREAD_NAME_BYTES];

    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    if (session->json) {
        tbd_output_line(
            thread_object(session, order, at.stack.frames[0].pc, place->thread, place->window),
            run->out);
    } else {
        tbd_thread_name(session, thread, name);
        fprintf(run->out, "thread %" PRIu32 " (id %" PRIu32 ")  %s%s\n", order, thread->tid,
                tbd_shown(name), thread->tid == place->thread ? "" : ", does not have control");
        tbd_command_print_frame(run, &at, at.stack.selected);
    }
    tbd_source_place_close(&at);
    return TBD_EXIT_FOUND;
}

enum tbd_exit tbd_command_thread(struct tbd_command_run *run)
{
    struct tbd_session *session = run->session;
    struct tbd_position position = tbd_session_current(session);
    struct tbd_place place;
    enum tbd_status status = tbd_session_place(session, position, &place);
    uint32_t order, tid = session->thread != 0 ? session->thread : place.thread;

    if (run->argc > 1 || (run->argc == 1 && !tbd_command_find_thread(session, run->argv[0], &tid)))
        return tbd_command_usage(run, "thread takes at most a thread's number or id");
    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    order = order_of(session, tid, position.time);
    if (order == 0)
        return tbd_command_usage(run, "no such thread lives at this position: see `tbdq threads`");
    if (run->argc == 1)
        select_thread(session, &place, position, tid);
    return show_thread(run, &place, position, order);
}
