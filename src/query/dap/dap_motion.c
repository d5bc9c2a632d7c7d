// SPDX-License-Identifier: MIT
/* dap_motion.c - steps and runs, both ways
 *
 * A step is the command of tbdq: it says where it would end.  Breakpoints on the way there are looked for like
 * those of a run. */
#include "query/dap/dap_requests.h"

#include "query/serve/captured.h"
#include "query/session/thread_path.h"
#include "query/text/user_interrupt.h"

#include <stdlib.h>
#include <string.h>

/* ---- stops ---- */

static void stop_at(struct tbd_dap *dap, const struct tbd_dap_stop *stop)
{
    static const char *const reasons[TBD_DAP_POINT_KINDS] = { "breakpoint", "function breakpoint",
                                                              "instruction breakpoint",
                                                              "data breakpoint", "exception" };

    tbd_dap_stand(dap, stop->at, stop->event.thread);
    tbd_dap_moved(dap);
    tbd_dap_stopped(dap, reasons[stop->point->kind], NULL, stop->point);
}

/* The recording has no more in this direction. */
static void stop_at_end(struct tbd_dap *dap, bool backward)
{
    struct tbd_session *session = &dap->session;

    tbd_dap_stand(dap, backward ? tbd_session_first(session) : tbd_session_last(session), 0);
    tbd_dap_moved(dap);
    tbd_dap_stopped(dap, backward ? "entry" : "pause",
                    backward ? "The recording begins here" : "The recording ends here", NULL);
}

static void stop_in_failure(struct tbd_dap *dap, const char *why, bool was_interrupted)
{
    char text[1200];

    if (!was_interrupted) {
        snprintf(text, sizeof(text), "tbdq: %s\n", why);
        tbd_dap_print(dap, "important", text);
    }
    tbd_dap_moved(dap);
    tbd_dap_stopped(dap, "pause", was_interrupted ? "Paused" : "The question failed", NULL);
}

static void fail(struct tbd_dap *dap, enum tbd_status status)
{
    const char *detail = dap->session.why.detail;
    char why[600];

    snprintf(why, sizeof(why), "%s%s%.500s", tbd_status_text(status), *detail != '\0' ? ": " : "",
             detail);
    stop_in_failure(dap, why, status == TBD_INTERRUPTED);
}

/* ---- runs ---- */

static bool can_move(struct tbd_dap *dap)
{
    if (dap->session.info->is_dump)
        tbd_dap_refuse(dap, "a crash dump has one moment only: nothing moves in it");
    return !dap->session.info->is_dump;
}

static void run(struct tbd_dap *dap, bool backward)
{
    struct tbd_dap_stop stop;
    enum tbd_status status;

    tbd_dap_link_moves(&dap->link);
    status = tbd_dap_run(dap, backward, NULL, &stop);
    if (status != TBD_OK)
        fail(dap, status);
    else if (stop.point != NULL)
        stop_at(dap, &stop);
    else
        stop_at_end(dap, backward);
}

void tbd_dap_continue(struct tbd_dap *dap, const json_t *arguments)
{
    (void)arguments;
    if (!can_move(dap))
        return;
    tbd_dap_reply(dap, json_pack("{s:b}", "allThreadsContinued", true));
    run(dap, false);
}

void tbd_dap_reverse_continue(struct tbd_dap *dap, const json_t *arguments)
{
    (void)arguments;
    if (!can_move(dap))
        return;
    tbd_dap_reply(dap, NULL);
    run(dap, true);
}

/* ---- steps ---- */

/* Stands where `thread` goes on, if another one has control; false: it does not go on. */
static bool stand_in(struct tbd_dap *dap, json_int_t thread)
{
    struct tbd_session *session = &dap->session;
    const struct tbd_path_block *block;
    struct tbd_path path;
    struct tbd_place place;
    bool is_there = true;

    if (thread <= 0 || thread > UINT32_MAX ||
        tbd_session_place(session, tbd_dap_at(dap), &place) != TBD_OK ||
        place.thread == (uint32_t)thread)
        return true;
    tbd_path_start(&path, session, (uint32_t)thread, tbd_dap_at(dap).time);
    is_there = tbd_path_from(&path, tbd_dap_at(dap).time, &block) == TBD_OK;
    if (is_there)
        tbd_dap_stand(dap, (struct tbd_position){ .time = block->time }, 0);
    tbd_path_free(&path);
    return is_there;
}

/* Breakpoints between `from` and where the step has led stop it; true: one has. */
static bool stops_before(struct tbd_dap *dap, struct tbd_position from, bool backward)
{
    struct tbd_position to = tbd_dap_at(dap);
    struct tbd_dap_stop stop = { .point = NULL };
    enum tbd_status status;

    if (dap->point_count == 0)
        return false;
    tbd_dap_stand(dap, from, 0);
    status = tbd_dap_run(dap, backward, &to, &stop);
    tbd_dap_stand(dap, to, 0);
    if (status != TBD_OK) {
        tbd_dap_stand(dap, from, 0);
        fail(dap, status);
        return true;
    }
    if (stop.point != NULL && tbd_position_compare(stop.at, to) != 0) {
        stop_at(dap, &stop);
        return true;
    }
    return false;
}

static void finish_step(struct tbd_dap *dap, const struct tbd_captured *captured,
                        struct tbd_position from, bool backward)
{
    struct tbd_session *session = &dap->session;
    size_t hidden;
    char why[600];

    if (captured->result > TBD_EXIT_NOT_FOUND) {
        tbd_dap_stand(dap, from, 0);
        stop_in_failure(dap, tbd_captured_why(captured, why, sizeof(why)), tbd_is_interrupted());
        return;
    }
    hidden = tbd_source_selected(session, tbd_dap_at(dap));
    if (stops_before(dap, from, backward))
        return;
    if (captured->result == TBD_EXIT_NOT_FOUND) {
        stop_at_end(dap, backward);
        return;
    }
    tbd_dap_moved(dap);
    dap->hidden = hidden;
    tbd_dap_stopped(dap, "step", NULL, NULL);
}

static void step(struct tbd_dap *dap, const json_t *arguments, const char *command, bool backward)
{
    struct tbd_session *session = &dap->session;
    struct tbd_position from;
    struct tbd_captured captured;

    if (!can_move(dap))
        return;
    if (!stand_in(dap, tbd_dap_number(arguments, "threadId", 0))) {
        tbd_dap_refuse(dap, "this thread runs no more");
        return;
    }
    tbd_dap_reply(dap, NULL);
    tbd_dap_link_moves(&dap->link);
    from = tbd_dap_at(dap);
    tbd_dap_stand(dap, from, 0);
    tbd_captured_run(session, command, &captured);
    finish_step(dap, &captured, from, backward);
    tbd_captured_free(&captured);
}

static bool by_instruction(const json_t *arguments)
{
    return strcmp(tbd_dap_text(arguments, "granularity"), "instruction") == 0;
}

void tbd_dap_next(struct tbd_dap *dap, const json_t *arguments)
{
    step(dap, arguments, by_instruction(arguments) ? "nexti" : "next", false);
}

void tbd_dap_step_in(struct tbd_dap *dap, const json_t *arguments)
{
    step(dap, arguments, by_instruction(arguments) ? "stepi" : "step", false);
}

void tbd_dap_step_out(struct tbd_dap *dap, const json_t *arguments)
{
    step(dap, arguments, "finish", false);
}

void tbd_dap_step_back(struct tbd_dap *dap, const json_t *arguments)
{
    step(dap, arguments, by_instruction(arguments) ? "reverse-nexti" : "reverse-next", true);
}

void tbd_dap_step_back_in(struct tbd_dap *dap, const json_t *arguments)
{
    step(dap, arguments, by_instruction(arguments) ? "reverse-stepi" : "reverse-step", true);
}

void tbd_dap_step_back_out(struct tbd_dap *dap, const json_t *arguments)
{
    step(dap, arguments, "reverse-finish", true);
}

/* ---- the rest ---- */

void tbd_dap_goto(struct tbd_dap *dap, const json_t *arguments)
{
    json_int_t id = tbd_dap_number(arguments, "targetId", 0);

    if (!can_move(dap))
        return;
    if (id < 1 || (uint64_t)id > dap->target_count) {
        tbd_dap_refuse(dap, "there is no target %lld", (long long)id);
        return;
    }
    tbd_dap_reply(dap, NULL);
    tbd_dap_stand(dap, dap->targets[id - 1], 0);
    tbd_dap_moved(dap);
    tbd_dap_stopped(dap, "goto", NULL, NULL);
}

/* What ran has been stopped by the thread that reads, or nothing runs. */
void tbd_dap_pause(struct tbd_dap *dap, const json_t *arguments)
{
    (void)arguments;
    tbd_dap_reply(dap, NULL);
}

void tbd_dap_restart(struct tbd_dap *dap, const json_t *arguments)
{
    (void)arguments;
    if (!can_move(dap))
        return;
    tbd_dap_reply(dap, NULL);
    stop_at_end(dap, true);
}
