// SPDX-License-Identifier: MIT
/* history_register.c - see history_register.h */
#include "query/calls/history_register.h"

#include "query/commands/rows.h"
#include "query/output/output.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX 2000u

struct line_list {
    struct tbd_event *all; /* owned */
    size_t count, capacity;
    bool is_cut, no_memory;
};

static bool add_line(void *context, const struct tbd_event *event)
{
    struct line_list *lines = context;

    lines->is_cut = lines->count == LINES_MAX;
    lines->no_memory = !lines->is_cut && !tbd_array_grow(&lines->all, lines->count,
                                                         &lines->capacity, sizeof(*lines->all));
    if (lines->is_cut || lines->no_memory)
        return false;
    lines->all[lines->count++] = *event;
    return true;
}

static void within(struct tbd_question *question, const struct tbd_lifetime *life, uint32_t thread)
{
    tbd_question_where_field(question, TBD_FIELD_THREAD, TBD_EXPR_EQ, thread);
    if (life->is_bounded)
        tbd_question_where_field(question, TBD_FIELD_TIME, TBD_EXPR_GE, life->from.time);
    if (life->has_end)
        tbd_question_where_field(question, TBD_FIELD_TIME, TBD_EXPR_LE, life->to.time);
}

/* Calls of the same function within this call have variables of their own. */
static bool is_recursive(struct tbd_command_run *run, const struct tbd_lifetime *life,
                         uint32_t thread, uint64_t start)
{
    struct tbd_position after = { life->from.time, life->from.offset + 1 };
    struct tbd_question question = tbd_question_after(after, TBD_EVENT_FUNC_ENTER);
    struct tbd_event event;

    within(&question, life, thread);
    tbd_question_where_field(&question, TBD_FIELD_PC, TBD_EXPR_EQ, start);
    return tbd_command_find_event(run, &question, &event) == TBD_OK;
}

/* The value at a position as text, which the caller frees; NULL: it has none there. */
static char *value_at(struct tbd_command_run *run, struct tbd_position position)
{
    struct tbd_query_error error = { .status = TBD_OK };
    struct tbd_source_place place;
    struct tbd_printer printer;
    struct tbd_data data;
    char *text = NULL;
    size_t bytes;
    FILE *out;

    if (tbd_source_evaluate(run->session, position, run->text, run->arguments, strlen(run->text),
                            &place, &data, &error) != TBD_OK)
        return NULL;
    out = data.is_known ? open_memstream(&text, &bytes) : NULL;
    if (out != NULL) {
        printer = tbd_source_printer(&place, 0);
        printer.options.pretty = false;
        printer.options.static_members = false;
        tbd_data_print(&printer, &data, out);
        fclose(out);
    }
    tbd_source_place_close(&place);
    return text;
}

static void end_row(struct tbd_rows *rows, json_t **row, const struct tbd_position *to)
{
    if (*row == NULL)
        return;
    json_object_set_new(*row, "to", to == NULL ? json_null() : tbd_rows_position(*to));
    tbd_rows_add(rows, *row);
    *row = NULL;
}

static enum tbd_exit list_values(struct tbd_command_run *run, const struct line_list *lines,
                                 const struct tbd_lifetime *life)
{
    static const char *const columns[] = { "value", "from", "to", "source", "function", NULL };
    struct tbd_rows rows;
    char *now = NULL, *next;
    json_t *row = NULL;

    tbd_rows_start(&rows, run, columns);
    for (size_t i = 0; i < lines->count; i++) {
        next = value_at(run, lines->all[i].position);
        if (next == NULL || (now != NULL && strcmp(now, next) == 0)) {
            free(next);
            continue;
        }
        end_row(&rows, &row, &lines->all[i].position);
        free(now);
        now = next;
        row = tbd_rows_event(run->session, &lines->all[i]);
        json_object_set_new(row, "value", tbd_output_text(now));
        json_object_set_new(row, "from", tbd_rows_position(lines->all[i].position));
    }
    end_row(&rows, &row, life->has_end ? &life->to : NULL);
    free(now);
    return tbd_rows_end(&rows);
}

enum tbd_exit tbd_history_register(struct tbd_command_run *run,
                                   const struct tbd_source_place *place)
{
    struct tbd_session *session = run->session;
    const struct tbd_frame *frames = place->stack.frames;
    struct tbd_frame_call call = { .slot = frames[0].cfa - 8,
                                   .from = place->stack.frame_count > 1 ? frames[1].call_pc : 0 };
    struct tbd_lifetime life = tbd_lifetime_of(run, call);
    struct tbd_question question = tbd_question_all(TBD_EVENT_LINE);
    struct line_list lines = { 0 };
    struct tbd_symbol symbol;
    struct tbd_place here;
    enum tbd_exit result;

    if (tbd_session_place(session, tbd_session_current(session), &here) != TBD_OK ||
        !tbd_symbols_at(session->symbols, here.window, here.pc, &symbol) || symbol.name == NULL ||
        !life.is_bounded || is_recursive(run, &life, here.thread, symbol.start)) {
        tbd_question_free(&question);
        return tbd_command_usage(run, "it is in a register, of a function whose call is not known "
                                      "or which calls itself: `print` shows it at each position");
    }
    within(&question, &life, here.thread);
    tbd_question_where_field(&question, TBD_FIELD_PC, TBD_EXPR_GE, symbol.start);
    tbd_question_where_field(&question, TBD_FIELD_PC, TBD_EXPR_LT, symbol.end);
    result = tbd_command_each(run, &question, add_line, &lines);
    if (lines.no_memory)
        result = tbd_command_no_memory();
    session->stats.told |= lines.is_cut;
    if (lines.is_cut)
        fprintf(stderr,
                "tbdq: note: the first %u lines only; its register changes without a store\n",
                LINES_MAX);
    if (result <= TBD_EXIT_NOT_FOUND)
        result = list_values(run, &lines, &life);
    free(lines.all);
    return result;
}
