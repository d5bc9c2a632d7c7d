// SPDX-License-Identifier: MIT
/* cmd_calls.c - calls: the calls of a function, with parameters, result, caller, entry and exit
 *
 * The user's condition is about what a row shows.  Its parts that an entry decides go into the search;
 * the others are decided when the calls' ends are known. */
#include "query/calls/call_registers.h"
#include "query/commands/functions.h"
#include "query/output/output.h"
#include "query/commands/rows.h"
#include "query/search/row_condition.h"
#include "query/session/callers.h"

static json_t *exit_of(const struct tbd_session *session, const struct tbd_listed_call *call)
{
    if (call->end == TBD_FRAME_RETURNS)
        return tbd_rows_position(call->exit);
    return call->end == TBD_FRAME_LEFT && !session->json ? json_string(TBD_FRAME_LEFT_TEXT)
                                                         : json_null();
}

static void add_end(struct tbd_session *session, const struct tbd_listed_call *call,
                    const struct tbd_output_registers *registers, json_t *row)
{
    struct tbd_event exit = { .position = call->exit, .retval = call->retval };

    json_object_set_new(row, "exit", exit_of(session, call));
    json_object_set_new(
        row, "retval", call->end == TBD_FRAME_RETURNS ? tbd_output_hex(call->retval) : json_null());
    if (call->end == TBD_FRAME_LEFT)
        json_object_set_new(row, "left", json_true());
    if (call->end != TBD_FRAME_RETURNS)
        return;
    json_object_set_new(row, "duration",
                        json_integer((json_int_t)(call->exit.time - call->enter->position.time)));
    tbd_output_result(session, call->enter->pc, &exit, registers, row);
}

static json_t *call_row(struct tbd_session *session, const struct tbd_call_list *list, size_t index,
                        const struct tbd_call_registers *registers)
{
    const struct tbd_listed_call *call = &list->all[index];
    json_t *row = tbd_rows_event(session, call->enter);
    uint32_t window = tbd_trace_window_of(session->trace, call->enter->position.time);
    char text[256];

    tbd_output_parameters(session, call->enter, tbd_call_registers_at(registers, index, false),
                          row);
    json_object_set_new(row, "nesting",
                        call->enter->number == TBD_CALLERS_UNKNOWN
                            ? json_null()
                            : json_integer((json_int_t)call->enter->number));
    json_object_set_new(row, "caller",
                        tbd_output_text(tbd_symbols_format(session->symbols, window,
                                                           call->enter->from, text, sizeof(text))));
    add_end(session, call, tbd_call_registers_at(registers, index, true), row);
    return row;
}

/* The call as its condition sees it. */
static struct tbd_event event_of(struct tbd_session *session, const struct tbd_listed_call *call,
                                 const struct tbd_output_registers *registers)
{
    struct tbd_event event = *call->enter;

    event.type = TBD_EVENT_CALL;
    event.retval = tbd_output_retval(session, call->enter, call->retval, registers);
    event.began = call->exit.time;
    if (call->end == TBD_FRAME_RETURNS)
        event.flags |= TBD_EVENT_RETURNED;
    return event;
}

static enum tbd_exit print_calls(struct tbd_command_run *run, const struct tbd_call_list *list,
                                 const struct tbd_call_registers *registers,
                                 struct tbd_row_condition *condition)
{
    static const char *const columns[] = { "position", "exit",   "nesting",  "thread", "function",
                                           "values",   "result", "duration", "caller", NULL };
    struct tbd_query_error problem;
    struct tbd_rows rows;

    tbd_rows_start(&rows, run, columns);
    for (size_t i = 0; i < list->count; i++) {
        struct tbd_event event =
            event_of(run->session, &list->all[i], tbd_call_registers_at(registers, i, true));

        if (tbd_row_condition_holds(condition, &event))
            tbd_rows_add(&rows, call_row(run->session, list, i, registers));
    }
    if (rows.count != 0 || !tbd_row_condition_is_empty(condition, &problem))
        return tbd_rows_end(&rows);
    json_decref(rows.waiting);
    return tbd_command_wrong(run, &problem);
}

/* Takes the part of the condition that needs the calls' ends. */
static enum tbd_exit take_condition(struct tbd_command_run *run, struct tbd_question *question,
                                    struct tbd_row_condition **out)
{
    struct tbd_query_error error = { 0 };
    struct tbd_expr *late = NULL;
    enum tbd_status status;

    question->type = TBD_EVENT_FUNC_ENTER;
    if (!tbd_expr_split(question->where, &question->where, &late))
        return tbd_command_fail(run, TBD_NOMEM);
    status = tbd_row_condition_new(run->session, late, out, &error);
    if (status == TBD_OK)
        return TBD_EXIT_FOUND;
    tbd_question_free(question);
    return error.status != TBD_OK ? tbd_command_wrong(run, &error) : tbd_command_fail(run, status);
}

/* calls FUNC [where ...] */
enum tbd_exit tbd_command_calls(struct tbd_command_run *run)
{
    struct tbd_call_list list = { 0 };
    struct tbd_call_registers registers = { 0 };
    struct tbd_row_condition *condition = NULL;
    struct tbd_question question;
    enum tbd_exit result = tbd_rows_read_named(
        run, TBD_EVENT_CALL, TBD_NAME_FUNCTION,
        "calls takes the name of a function, and perhaps a condition", &question);

    if (result == TBD_EXIT_FOUND)
        result = take_condition(run, &question, &condition);
    if (result == TBD_EXIT_FOUND)
        result = tbd_call_list_find(run, &question, &list);
    if (result <= TBD_EXIT_NOT_FOUND &&
        tbd_call_registers_fetch(run->session, &list, &registers) == TBD_NOMEM)
        result = tbd_command_fail(run, TBD_NOMEM);
    if (result <= TBD_EXIT_NOT_FOUND)
        result = print_calls(run, &list, &registers, condition);
    if (result <= TBD_EXIT_NOT_FOUND)
        tbd_functions_tell_inlined(run->session, run->argv[0]);
    tbd_call_registers_free(&registers);
    tbd_call_list_free(&list);
    tbd_row_condition_free(condition);
    return result;
}
