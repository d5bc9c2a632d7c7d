// SPDX-License-Identifier: MIT
/* history_register.c - see history_register.h */
#include "query/calls/history_register.h"

#include "query/commands/rows.h"
#include "query/output/output.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_MAX 2000u /* of each kind */

/* Where lines begin, and blocks. */
struct place_list {
    struct tbd_event *all; /* owned */
    size_t count, capacity;
    size_t first;              /* of those of the kind that is looked for */
    struct tbd_position until; /* if is_cut: here, some are left out */
    bool is_cut, no_memory;
};

static bool add_place(void *context, const struct tbd_event *event)
{
    struct place_list *places = context;

    if (places->count - places->first == PLACES_MAX) {
        if (!places->is_cut || tbd_position_compare(event->position, places->until) < 0)
            places->until = event->position;
        places->is_cut = true;
        return false;
    }
    places->no_memory =
        !tbd_array_grow(&places->all, places->count, &places->capacity, sizeof(*places->all));
    if (places->no_memory)
        return false;
    places->all[places->count++] = *event;
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

/* Adds where the function's lines, or blocks, begin during the call. */
static enum tbd_exit find_places(struct tbd_command_run *run, const struct tbd_lifetime *life,
                                 uint32_t thread, const struct tbd_symbol *function,
                                 enum tbd_event_type type, struct place_list *places)
{
    struct tbd_question question = tbd_question_all(type);
    enum tbd_exit result;

    within(&question, life, thread);
    tbd_question_where_field(&question, TBD_FIELD_PC, TBD_EXPR_GE, function->start);
    tbd_question_where_field(&question, TBD_FIELD_PC, TBD_EXPR_LT, function->end);
    places->first = places->count;
    result = tbd_command_each(run, &question, add_place, places);
    return places->no_memory ? tbd_command_no_memory() : result;
}

static int by_position(const void *a, const void *b)
{
    return tbd_position_compare(((const struct tbd_event *)a)->position,
                                ((const struct tbd_event *)b)->position);
}

static void put_in_order(struct place_list *places)
{
    if (places->count != 0)
        qsort(places->all, places->count, sizeof(*places->all), by_position);
    while (places->is_cut && places->count != 0 &&
           tbd_position_compare(places->all[places->count - 1].position, places->until) >= 0)
        places->count--;
}

static enum tbd_exit list_values(struct tbd_command_run *run, const struct place_list *places,
                                 const struct tbd_lifetime *life)
{
    static const char *const columns[] = { "value", "from", "to", "source", "function", NULL };
    struct tbd_rows rows;
    char *now = NULL, *next;
    json_t *row = NULL;

    tbd_rows_start(&rows, run, columns);
    for (size_t i = 0; i < places->count; i++) {
        next = value_at(run, places->all[i].position);
        if (next == NULL || (now != NULL && strcmp(now, next) == 0)) {
            free(next);
            continue;
        }
        end_row(&rows, &row, &places->all[i].position);
        free(now);
        now = next;
        row = tbd_rows_event(run->session, &places->all[i]);
        json_object_set_new(row, "value", tbd_output_text(now));
        json_object_set_new(row, "from", tbd_rows_position(places->all[i].position));
    }
    end_row(&rows, &row, life->has_end ? &life->to : NULL);
    free(now);
    if (rows.count != 0)
        return tbd_rows_end(&rows);
    tbd_rows_drop(&rows);
    return TBD_EXIT_NOT_FOUND;
}

enum tbd_exit tbd_history_register(struct tbd_command_run *run,
                                   const struct tbd_source_place *place)
{
    struct tbd_session *session = run->session;
    const struct tbd_frame *frames = place->stack.frames;
    struct tbd_frame_call call = { .slot = frames[0].cfa - 8,
                                   .from = place->stack.frame_count > 1 ? frames[1].call_pc : 0 };
    struct tbd_lifetime life = tbd_lifetime_of(run, call);
    struct place_list places = { 0 };
    struct tbd_symbol symbol;
    struct tbd_place here;
    enum tbd_exit result;

    if (tbd_session_place(session, tbd_session_current(session), &here) != TBD_OK ||
        !tbd_symbols_at(session->symbols, here.window, here.pc, &symbol) || symbol.name == NULL ||
        !life.is_bounded || is_recursive(run, &life, here.thread, symbol.start))
        return tbd_command_usage(run, "it is in a register, of a function whose call is not known "
                                      "or which calls itself: `print` shows it at each position");
    result = find_places(run, &life, here.thread, &symbol, TBD_EVENT_LINE, &places);
    if (result <= TBD_EXIT_NOT_FOUND)
        result = find_places(run, &life, here.thread, &symbol, TBD_EVENT_BLOCK_ENTRY, &places);
    put_in_order(&places);
    session->stats.told |= places.is_cut;
    if (places.is_cut)
        fprintf(stderr,
                "tbdq: note: the first %zu places only; its register changes without a store\n",
                places.count);
    if (result <= TBD_EXIT_NOT_FOUND)
        result = list_values(run, &places, &life);
    free(places.all);
    return result;
}
