// SPDX-License-Identifier: MIT
/* cmd_calls.c - calls: the calls of a function, with parameters, result, caller, entry and exit
 *
 * The user's condition is about what a row shows.  Its parts that an entry decides go into the search;
 * the others are decided when the calls' ends are known. */
#include "query/calls/call_cells.h"
#include "query/calls/call_registers.h"
#include "query/commands/functions.h"
#include "query/output/output.h"
#include "query/output/shard.h"
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

/* What rows are made of. */
struct call_listing {
    struct tbd_command_run *run;
    struct tbd_session *session;
    struct tbd_call_list list;
    struct tbd_call_registers registers;
    struct tbd_row_condition *condition; /* owned; NULL: none */
    struct tbd_call_shapes *shapes;      /* owned */
};

static void add_end(struct call_listing *l, const struct tbd_listed_call *call,
                    const struct tbd_output_registers *registers, json_t *row)
{
    struct tbd_session *session = l->session;
    struct tbd_event exit = { .position = call->exit, .retval = call->retval };

    json_object_set_new(row, "exit", exit_of(session, call));
    json_object_set_new(
        row, "retval", call->end == TBD_FRAME_RETURNS ? tbd_output_hex(call->retval) : json_null());
    if (call->end == TBD_FRAME_LEFT)
        json_object_set_new(row, "left", json_true());
    if (call->end != TBD_FRAME_RETURNS)
        return;
    json_object_set_new(row, "duration",
                        json_integer((json_int_t)(call->exit.time - call->enter.position.time)));
    tbd_output_result(l->shapes, call->enter.pc, &exit, registers, row);
}

static json_t *call_row(struct call_listing *l, size_t index)
{
    struct tbd_session *session = l->session;
    const struct tbd_listed_call *call = &l->list.all[index];
    struct tbd_event enter = tbd_call_entry_event(&call->enter);
    json_t *row = tbd_rows_event(session, &enter);
    uint32_t window = tbd_trace_window_of(session->trace, call->enter.position.time);
    char text[256];

    tbd_output_parameters(l->shapes, &call->enter,
                          tbd_call_registers_at(&l->registers, index, false), row);
    json_object_set_new(row, "nesting",
                        call->enter.nesting == TBD_CALLERS_UNKNOWN
                            ? json_null()
                            : json_integer((json_int_t)call->enter.nesting));
    json_object_set_new(row, "caller",
                        tbd_output_text(tbd_symbols_format(session->symbols, window,
                                                           call->enter.from, text, sizeof(text))));
    add_end(l, call, tbd_call_registers_at(&l->registers, index, true), row);
    return row;
}

/* The call as its condition sees it. */
static struct tbd_event event_of(struct call_listing *l, size_t index)
{
    const struct tbd_listed_call *call = &l->list.all[index];
    struct tbd_event event = tbd_call_entry_event(&call->enter);

    event.type = TBD_EVENT_CALL;
    event.retval = tbd_output_retval(l->shapes, &call->enter, call->retval,
                                     tbd_call_registers_at(&l->registers, index, true));
    event.began = call->exit.time;
    if (call->end == TBD_FRAME_RETURNS)
        event.flags |= TBD_EVENT_RETURNED;
    return event;
}

static bool is_wanted(struct call_listing *l, size_t index)
{
    struct tbd_event event;

    if (l->condition == NULL)
        return true;
    event = event_of(l, index);
    return tbd_row_condition_holds(l->condition, &event);
}

static void add_row(struct call_listing *l, struct tbd_rows *rows, struct tbd_call_cells *cells,
                    size_t index)
{
    if (!is_wanted(l, index))
        return;
    if (cells == NULL || !tbd_call_cells_add(cells, &l->list.all[index],
                                             tbd_call_registers_at(&l->registers, index, false),
                                             tbd_call_registers_at(&l->registers, index, true)))
        tbd_rows_add(rows, call_row(l, index));
}

static enum tbd_exit print_calls(struct call_listing *l)
{
    static const char *const columns[] = { "position", "exit",   "nesting",  "thread", "function",
                                           "values",   "result", "duration", "caller", NULL };
    struct tbd_call_cells *cells; /* NULL: by objects */
    struct tbd_query_error problem;
    struct tbd_rows rows;

    tbd_rows_start(&rows, l->run, columns);
    cells = tbd_shard_is_on(l->session) ? NULL : tbd_call_cells_new(&rows, l->shapes);
    for (size_t i = 0; i < l->list.count; i++)
        add_row(l, &rows, cells, i);
    tbd_call_cells_free(cells);
    if (rows.count != 0 || !tbd_row_condition_is_empty(l->condition, &problem))
        return tbd_rows_end(&rows);
    tbd_rows_drop(&rows);
    return tbd_command_wrong(l->run, &problem);
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

static enum tbd_exit fetch_registers(struct call_listing *l)
{
    l->shapes = tbd_call_shapes_new(l->session);
    if (l->shapes == NULL ||
        tbd_call_registers_fetch(l->shapes, &l->list, &l->registers) == TBD_NOMEM)
        return tbd_command_fail(l->run, TBD_NOMEM);
    return TBD_EXIT_FOUND;
}

/* calls FUNC [where ...] */
enum tbd_exit tbd_command_calls(struct tbd_command_run *run)
{
    struct call_listing l = { .run = run, .session = run->session };
    struct tbd_question question;
    enum tbd_exit result = tbd_rows_read_named(
        run, TBD_EVENT_CALL, TBD_NAME_FUNCTION,
        "calls takes the name of a function, and perhaps a condition", &question);

    if (result == TBD_EXIT_FOUND)
        result = take_condition(run, &question, &l.condition);
    if (result == TBD_EXIT_FOUND)
        result = tbd_call_list_find(run, &question, &l.list);
    if (result <= TBD_EXIT_NOT_FOUND)
        result = fetch_registers(&l);
    if (result <= TBD_EXIT_NOT_FOUND)
        result = print_calls(&l);
    if (result <= TBD_EXIT_NOT_FOUND)
        (void)tbd_functions_tell_inlined(run->session, run->argv[0]);
    tbd_call_shapes_free(l.shapes);
    tbd_call_registers_free(&l.registers);
    tbd_call_list_free(&l.list);
    tbd_row_condition_free(l.condition);
    return result;
}
