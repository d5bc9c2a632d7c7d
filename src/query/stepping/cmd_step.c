// SPDX-License-Identifier: MIT
/* cmd_step.c - steps by line, function and instruction, both ways */
#include "query/output/output_call.h"
#include "query/stepping/step_line.h"
#include "query/session/code/inlined.h"
#include "query/output/output.h"
#include "query/session/source/source.h"

#include <stdlib.h>
#include <string.h>

/* The command's count, 1 by default; false if the argument is no count. */
static bool take_count(const struct tbd_command_run *run, uint64_t *out)
{
    char *end = NULL;

    *out = 1;
    if (run->argc == 0)
        return true;
    *out = strtoull(run->argv[0], &end, 0);
    return run->argc == 1 && *end == '\0' && *out != 0 && run->argv[0][0] != '-';
}

/* Moves to the event that the command's count selects; frees the question. */
static enum tbd_exit go(struct tbd_command_run *run, struct tbd_question *question)
{
    if (take_count(run, &question->count))
        return tbd_command_ask(run, question);
    tbd_question_free(question);
    return tbd_command_usage(run, "expected a count of at least 1");
}

/* The thread is compared as well, because other threads have larger frames too. */
static void where_frame(struct tbd_question *question, enum tbd_event_field field, uint64_t lowest,
                        uint32_t thread)
{
    tbd_question_where_field(question, field, TBD_EXPR_GE, lowest);
    tbd_question_where_field(question, TBD_FIELD_THREAD, TBD_EXPR_EQ, thread);
}

/* Where a step begins.  A thread that is selected but does not have control begins where it next has it: there its
 * registers are those that it has now, unless it waits in a system call.  TBD_NOTFOUND: it has control no more. */
static enum tbd_status start_of_step(struct tbd_command_run *run, struct tbd_position *out)
{
    struct tbd_session *session = run->session;
    struct tbd_place place;
    enum tbd_status status;
    size_t selected;

    *out = tbd_session_current(session);
    if (session->thread == 0)
        return TBD_OK;
    status = tbd_session_place(session, *out, &place);
    if (status != TBD_OK || place.thread == session->thread)
        return status;
    selected = tbd_source_selected(session, *out);
    status = tbd_frame_thread_block(run, false, session->thread, out);
    if (status == TBD_OK && selected != 0)
        tbd_source_select(session, *out, selected);
    return status;
}

/* ---- lines ---- */

/* There is nothing more in this direction. */
static enum tbd_exit at_end(struct tbd_command_run *run, bool backward)
{
    struct tbd_question question =
        backward ? tbd_question_before(tbd_session_first(run->session), TBD_EVENT_LINE)
                 : tbd_question_after(tbd_session_last(run->session), TBD_EVENT_LINE);

    return tbd_command_ask(run, &question);
}

static enum tbd_exit not_started(struct tbd_command_run *run, enum tbd_status status, bool backward)
{
    return status == TBD_NOTFOUND ? at_end(run, backward) : tbd_command_fail(run, status);
}

static enum tbd_exit ended(struct tbd_command_run *run, enum tbd_step_move move, bool backward)
{
    return move == TBD_STEP_ENDS ? at_end(run, backward) : tbd_command_fail(run, TBD_NOTIME);
}

/* TBD_EXIT_FOUND: the steps have led somewhere; else it has been said why not. */
static enum tbd_exit outcome(struct tbd_command_run *run, enum tbd_status status,
                             enum tbd_step_move move, bool backward)
{
    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    return move > TBD_STEP_ENDS ? TBD_EXIT_FOUND : ended(run, move, backward);
}

/* Moves to where the steps have led. */
static enum tbd_exit show(struct tbd_command_run *run, const struct tbd_step_walk *walk,
                          enum tbd_event_type type)
{
    struct tbd_event event = {
        .type = type, .position = walk->at, .pc = walk->pc, .thread = walk->frame.thread
    };
    json_t *object;

    tbd_command_take_end(run->session, &event);
    tbd_command_move(run, walk->at, 0);
    object = tbd_output_event(run->session, &event);
    tbd_output_print_event(run->session, object, run->out);
    json_decref(object);
    return TBD_EXIT_FOUND;
}

/* The frame that calls an inlined function is selected. */
static enum tbd_exit show_line(struct tbd_command_run *run, const struct tbd_stepping *stepping)
{
    const struct tbd_step_walk *walk = &stepping->walk;
    bool is_line = tbd_step_place_at(stepping->places, walk->window, walk->pc)->is_line_event;
    enum tbd_exit result = show(run, walk, is_line ? TBD_EVENT_LINE : TBD_EVENT_POSITION);

    if (stepping->selected != 0)
        tbd_source_select(run->session, walk->at, stepping->selected);
    return result;
}

static enum tbd_exit step_lines(struct tbd_command_run *run, enum tbd_step_kind kind, bool backward)
{
    struct tbd_stepping stepping;
    enum tbd_step_move move = TBD_STEP_ON;
    struct tbd_position from;
    enum tbd_exit result;
    enum tbd_status status;
    uint64_t count;

    if (!take_count(run, &count))
        return tbd_command_usage(run, "expected a count of at least 1");
    status = start_of_step(run, &from);
    if (status != TBD_OK)
        return not_started(run, status, backward);
    status = tbd_stepping_start(&stepping, run, from, kind);
    for (; status == TBD_OK && move == TBD_STEP_ON && count != 0; count--)
        move = backward ? tbd_stepping_backward(&stepping) : tbd_stepping_forward(&stepping);
    result = outcome(run, status, move, backward);
    if (result == TBD_EXIT_FOUND)
        result = show_line(run, &stepping);
    tbd_stepping_end(&stepping);
    return result;
}

enum tbd_exit tbd_command_step(struct tbd_command_run *run)
{
    return step_lines(run, TBD_STEP_INTO, false);
}

enum tbd_exit tbd_command_reverse_step(struct tbd_command_run *run)
{
    return step_lines(run, TBD_STEP_INTO, true);
}

enum tbd_exit tbd_command_next(struct tbd_command_run *run)
{
    return step_lines(run, TBD_STEP_OVER, false);
}

enum tbd_exit tbd_command_reverse_next(struct tbd_command_run *run)
{
    return step_lines(run, TBD_STEP_OVER, true);
}

enum tbd_exit tbd_command_until(struct tbd_command_run *run)
{
    return run->argc == 0 ? step_lines(run, TBD_STEP_UNTIL, false)
                          : tbd_command_go_to_place(run, false);
}

/* ---- functions ---- */

/* The registers that the result is in, if the event itself does not have it: only a replay finds them. */
static void take_result(struct tbd_session *session, struct tbd_call_shapes *shapes,
                        const struct tbd_event *exit, struct tbd_output_registers *out)
{
    const struct tbd_call_entry inside = { .position = exit->position, .pc = exit->pc };
    struct tbd_reg_state *state;

    if (!tbd_output_needs_return(shapes, &inside))
        return;
    state = calloc(1, sizeof(*state));
    if (state != NULL && tbd_session_regs(session, exit->position, state) == TBD_OK)
        tbd_output_registers_take(state, out);
    free(state);
}

/* The return with what it returns. */
static void print_return(struct tbd_command_run *run, const struct tbd_event *exit)
{
    struct tbd_output_registers registers = { 0 };
    struct tbd_call_shapes *shapes = tbd_call_shapes_new(run->session);
    json_t *object = tbd_output_event(run->session, exit);

    if (shapes != NULL) {
        take_result(run->session, shapes, exit, &registers);
        tbd_output_result(shapes, exit->pc, exit, &registers, object);
    }
    tbd_output_print_event(run->session, object, run->out);
    json_decref(object);
    tbd_call_shapes_free(shapes);
}

/* Goes to the return, and prints the result with it; then to the caller. */
static enum tbd_exit go_over_return(struct tbd_command_run *run, const struct tbd_event *exit,
                                    uint32_t thread)
{
    struct tbd_position at = exit->position;

    tbd_command_move_to(run, exit);
    if (!run->silent)
        print_return(run, exit);
    if (tbd_frame_thread_block(run, false, thread, &at) != TBD_OK)
        return TBD_EXIT_FOUND;
    return tbd_command_go(run, at);
}

/* The copy of an inlined function that is the innermost frame. */
static bool is_in_inlined(struct tbd_session *session, struct tbd_position position,
                          struct tbd_dwarf_inlined *out)
{
    uint32_t window;
    uint64_t pc;

    return tbd_session_pc(session, position, &window, &pc) == TBD_OK &&
           tbd_inlined_at(session->symbols, window, pc, out);
}

/* ---- finish ---- */

/* To the end of a function that has code of its own. */
static enum tbd_exit finish_call(struct tbd_command_run *run, const struct tbd_frame_call *call)
{
    struct tbd_question question;
    struct tbd_event event;
    enum tbd_frame_end end;
    enum tbd_status status = tbd_frame_find_end(run, call, NULL, &end, &event);

    if (status == TBD_NOTFOUND) {
        question = tbd_question_after(call->since, TBD_EVENT_FUNC_EXIT);
        where_frame(&question, TBD_FIELD_SP, call->slot, call->thread);
        return tbd_command_ask(run, &question);
    }
    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    if (end == TBD_FRAME_RETURNS)
        return go_over_return(run, &event, call->thread);
    fprintf(stderr, "tbdq: note: the function did not return: it was " TBD_FRAME_LEFT_TEXT "\n");
    return tbd_command_go(run, event.position);
}

/* The number, from the innermost one, of the copy of an inlined function around the walk's place; place->count: it is not in it. */
static unsigned copy_here(struct tbd_stepping *stepping, uint64_t id)
{
    const struct tbd_step_walk *walk = &stepping->walk;
    const struct tbd_step_place *place =
        tbd_step_place_at(stepping->places, walk->window, walk->pc);
    unsigned copy = 0;

    while (copy < place->count && place->around[copy].id != id)
        copy++;
    return copy;
}

/* Goes on from `from`, out of the copy that is number `copy` around `pc`, from the innermost one. */
static enum tbd_exit finish_copy(struct tbd_command_run *run, struct tbd_position from, uint64_t pc,
                                 size_t copy)
{
    struct tbd_stepping stepping;
    enum tbd_status status = tbd_stepping_start(&stepping, run, from, TBD_STEP_OUT);
    enum tbd_step_move move = TBD_STEP_ON;
    const struct tbd_step_place *place;
    enum tbd_exit result;

    if (status == TBD_OK) {
        place = tbd_step_place_at(stepping.places, stepping.walk.window, pc);
        stepping.selected = copy_here(&stepping, copy < place->count ? place->around[copy].id : 0);
        place = tbd_step_place_at(stepping.places, stepping.walk.window, stepping.walk.pc);
        if (stepping.selected < place->count)
            move = tbd_stepping_forward(&stepping);
        else
            stepping.selected = place->starting;
    }
    result = outcome(run, status, move, false);
    if (result == TBD_EXIT_FOUND)
        result = show_line(run, &stepping);
    tbd_stepping_end(&stepping);
    return result;
}

/* The selected frame is a copy in a function that has called another one: to the return there, and out of the copy. */
static enum tbd_exit finish_copy_further_out(struct tbd_command_run *run,
                                             const struct tbd_source_stack *stack,
                                             struct tbd_frame_call *call)
{
    const struct tbd_source_frame *selected = &stack->calls[stack->selected];
    struct tbd_event event;
    enum tbd_frame_end end;
    enum tbd_status status;

    tbd_frame_take_slot(stack->frames, stack->frame_count, selected->stack - 1, call);
    status = tbd_frame_find_end(run, call, NULL, &end, &event);
    if (status == TBD_OK && end != TBD_FRAME_RETURNS)
        return tbd_command_go(run, event.position);
    if (status == TBD_OK)
        status = tbd_frame_thread_block(run, false, call->thread, &event.position);
    if (status != TBD_OK)
        return ended(run, status == TBD_NOTFOUND ? TBD_STEP_ENDS : TBD_STEP_FAILED, false);
    return finish_copy(run, event.position, stack->frames[selected->stack].call_pc,
                       selected->function);
}

/* The same for the selected frame. */
static enum tbd_exit finish_selected(struct tbd_command_run *run, struct tbd_frame_call *call)
{
    struct tbd_source_stack stack;
    const struct tbd_source_frame *selected;
    enum tbd_exit result;
    enum tbd_status status = tbd_source_stack(run->session, call->since, &stack);

    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    selected = &stack.calls[stack.selected];
    if (selected->is_inlined && selected->stack != 0) {
        result = finish_copy_further_out(run, &stack, call);
    } else if (selected->is_inlined) {
        result = finish_copy(run, call->since, stack.frames[0].pc, selected->function);
    } else {
        if (selected->stack != 0)
            tbd_frame_take_slot(stack.frames, stack.frame_count, selected->stack, call);
        result = finish_call(run, call);
    }
    tbd_source_stack_free(&stack);
    return result;
}

enum tbd_exit tbd_command_finish(struct tbd_command_run *run)
{
    struct tbd_dwarf_inlined inlined;
    struct tbd_frame_call call;
    struct tbd_position from;
    enum tbd_status status;

    if (run->argc != 0)
        return tbd_command_usage(run, "finish takes no arguments");
    status = start_of_step(run, &from);
    if (status != TBD_OK)
        return not_started(run, status, false);
    status = tbd_frame_call_at(run->session, from, &call);
    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    if (tbd_source_selected(run->session, call.since) != 0)
        return finish_selected(run, &call);
    if (is_in_inlined(run->session, call.since, &inlined))
        return step_lines(run, TBD_STEP_OUT, false);
    return finish_call(run, &call);
}

enum tbd_exit tbd_command_reverse_finish(struct tbd_command_run *run)
{
    struct tbd_dwarf_inlined inlined;
    struct tbd_position here;
    struct tbd_step_walk walk;
    enum tbd_step_move move = TBD_STEP_FAILED;
    enum tbd_exit result;
    enum tbd_status status;

    if (run->argc != 0)
        return tbd_command_usage(run, "reverse-finish takes no arguments");
    status = start_of_step(run, &here);
    if (status != TBD_OK)
        return not_started(run, status, true);
    if (is_in_inlined(run->session, here, &inlined))
        return step_lines(run, TBD_STEP_OUT, true);
    status = tbd_step_walk_start(&walk, run, here);
    if (status == TBD_OK)
        move = tbd_step_to_call(&walk);
    result = outcome(run, status, move, true);
    if (result == TBD_EXIT_FOUND)
        result = show(run, &walk, TBD_EVENT_POSITION);
    tbd_step_walk_end(&walk);
    return result;
}

/* ---- instructions ---- */

static enum tbd_status insns_at(struct tbd_session *session, uint64_t time, uint64_t *out)
{
    struct tbd_place place;
    enum tbd_status status =
        tbd_session_place(session, (struct tbd_position){ .time = time }, &place);

    *out = status == TBD_OK ? place.insns : 0;
    return status;
}

enum tbd_status tbd_command_states(struct tbd_session *session, struct tbd_position from,
                                   bool backward, uint64_t count, struct tbd_position *out)
{
    uint64_t insns = 0, offset = from.offset;
    enum tbd_status status = insns_at(session, from.time, &insns);

    while (status == TBD_OK && backward && count > offset) {
        count -= offset + 1;
        status = from.time == 0 ? TBD_NOTIME : insns_at(session, --from.time, &insns);
        offset = insns == 0 ? 0 : insns - 1;
    }
    while (status == TBD_OK && !backward && count != 0 && offset + count >= insns) {
        count -= insns > offset ? insns - offset : 1;
        status = insns_at(session, ++from.time, &insns);
        offset = 0;
    }
    from.offset = (uint32_t)(backward ? offset - count : offset + count);
    *out = from;
    return status;
}

static enum tbd_exit step_instructions(struct tbd_command_run *run, bool backward)
{
    struct tbd_step_walk walk;
    enum tbd_step_move move = TBD_STEP_ON;
    struct tbd_position from;
    enum tbd_exit result;
    enum tbd_status status;
    uint64_t count;

    if (!take_count(run, &count))
        return tbd_command_usage(run, "expected a count of at least 1");
    status = start_of_step(run, &from);
    if (status != TBD_OK)
        return not_started(run, status, backward);
    status = tbd_step_walk_start(&walk, run, from);
    for (; status == TBD_OK && move > TBD_STEP_ENDS && count != 0; count--)
        move =
            backward ? tbd_step_backward(&walk, NULL, NULL) : tbd_step_forward(&walk, NULL, NULL);
    result = outcome(run, status, move, backward);
    if (result == TBD_EXIT_FOUND)
        result = show(run, &walk, TBD_EVENT_POSITION);
    tbd_step_walk_end(&walk);
    return result;
}

enum tbd_exit tbd_command_nexti(struct tbd_command_run *run)
{
    return step_instructions(run, false);
}

enum tbd_exit tbd_command_reverse_nexti(struct tbd_command_run *run)
{
    return step_instructions(run, true);
}

/* The states of all threads follow each other; those of a thread that was selected are its own. */
static enum tbd_exit step_states(struct tbd_command_run *run, bool backward)
{
    struct tbd_position from, here = tbd_session_current(run->session);
    enum tbd_status status = start_of_step(run, &from);
    struct tbd_question question;

    if (status != TBD_OK)
        return not_started(run, status, backward);
    question = backward ? tbd_question_before(from, TBD_EVENT_STATE)
                        : tbd_question_after(from, TBD_EVENT_STATE);
    if (from.time != here.time || from.offset != here.offset)
        tbd_question_where_field(&question, TBD_FIELD_THREAD, TBD_EXPR_EQ, run->session->thread);
    return go(run, &question);
}

enum tbd_exit tbd_command_stepi(struct tbd_command_run *run)
{
    return step_states(run, false);
}

enum tbd_exit tbd_command_reverse_stepi(struct tbd_command_run *run)
{
    return step_states(run, true);
}
