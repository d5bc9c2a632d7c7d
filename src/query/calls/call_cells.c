// SPDX-License-Identifier: MIT
/* call_cells.c - see call_cells.h */
#include "query/calls/call_cells.h"

#include "base/address_table.h"
#include "base/safe_stream.h"
#include "query/output/put_text.h"
#include "query/session/callers.h"

#include <stdlib.h>

/* What an address is called in windows where the same modules are mapped. */
struct kept_name {
    uint64_t address;
    uint32_t mapped;
    char *text; /* owned: escaped */
    size_t length;
};

/* Names by address, and the last one that was asked for: mostly the next one, too. */
struct kept_names {
    struct tbd_address_table table; /* of struct kept_name */
    uint64_t address;
    uint32_t mapped;
    const char *text; /* borrowed from the table; NULL: none yet */
    size_t length;
};

struct shown_call {
    const struct tbd_listed_call *call;
    const struct tbd_output_registers *at_entry, *at_return;
};

typedef void (*put_cell)(struct tbd_call_cells *cells, const struct shown_call *row);

struct tbd_call_cells {
    struct tbd_rows *rows;
    struct tbd_session *session;
    struct tbd_call_shapes *shapes;
    struct kept_names functions, callers;
    put_cell puts[TBD_ROWS_MAX_COLUMNS]; /* as rows->columns */
    struct tbd_time_mapped here;         /* of the row's entry */
    struct tbd_buffer *out;              /* borrowed: the row's cells go to its end */
    struct tbd_buffer text;              /* for rows that are copied */
};

/* ---- names ---- */

static char *function_at(struct tbd_session *session, uint32_t window, uint64_t pc)
{
    struct tbd_symbol symbol;

    if (!tbd_symbols_at(session->symbols, window, pc, &symbol) || symbol.name == NULL)
        return strdup("");
    return tbd_shown_copy(symbol.name);
}

static char *caller_at(struct tbd_session *session, uint32_t window, uint64_t pc)
{
    char text[256];

    return tbd_shown_copy(tbd_symbols_format(session->symbols, window, pc, text, sizeof(text)));
}

typedef char *(*find_name)(struct tbd_session *session, uint32_t window, uint64_t address);

static void look_up(const struct tbd_call_cells *cells, struct kept_names *names, uint64_t address,
                    find_name find)
{
    const struct tbd_time_mapped *here = &cells->here;
    struct kept_name *name = tbd_address_table_add(&names->table, address, here->mapped);

    if (name != NULL && name->text == NULL) {
        name->text = find(cells->session, here->window, address);
        name->length = name->text == NULL ? 0 : strlen(name->text);
    }
    names->address = address;
    names->mapped = here->mapped;
    names->text = name == NULL ? NULL : name->text;
    names->length = names->text == NULL ? 0 : name->length;
}

static void put_name(struct tbd_call_cells *cells, struct kept_names *names, uint64_t address,
                     find_name find)
{
    if (names->text == NULL || names->address != address || names->mapped != cells->here.mapped)
        look_up(cells, names, address, find);
    tbd_buffer_put(cells->out, names->text, names->length);
}

static void free_names(struct kept_names *names)
{
    struct kept_name *all = names->table.entries;

    for (size_t i = 0; all != NULL && i <= names->table.mask; i++)
        free(all[i].text);
    tbd_address_table_free(&names->table);
}

/* ---- cells ---- */

static void put_time(struct tbd_buffer *text, struct tbd_position position)
{
    tbd_buffer_unsigned(text, position.time);
    if (position.offset == 0)
        return;
    tbd_buffer_byte(text, '+');
    tbd_buffer_unsigned(text, position.offset);
}

static void put_position(struct tbd_call_cells *cells, const struct shown_call *row)
{
    put_time(cells->out, row->call->enter.position);
}

static void put_exit(struct tbd_call_cells *cells, const struct shown_call *row)
{
    if (row->call->end == TBD_FRAME_RETURNS)
        put_time(cells->out, row->call->exit);
    else if (row->call->end == TBD_FRAME_LEFT)
        tbd_buffer_text(cells->out, TBD_FRAME_LEFT_TEXT);
}

static void put_nesting(struct tbd_call_cells *cells, const struct shown_call *row)
{
    if (row->call->enter.nesting != TBD_CALLERS_UNKNOWN)
        tbd_buffer_unsigned(cells->out, row->call->enter.nesting);
}

static void put_thread(struct tbd_call_cells *cells, const struct shown_call *row)
{
    tbd_buffer_unsigned(cells->out, row->call->enter.thread);
}

static void put_function(struct tbd_call_cells *cells, const struct shown_call *row)
{
    put_name(cells, &cells->functions, row->call->enter.pc, function_at);
}

static void put_values(struct tbd_call_cells *cells, const struct shown_call *row)
{
    tbd_output_put_parameters(cells->shapes, &row->call->enter, row->at_entry, cells->out);
}

static void put_result(struct tbd_call_cells *cells, const struct shown_call *row)
{
    const struct tbd_event exit = { .position = row->call->exit, .retval = row->call->retval };

    if (row->call->end == TBD_FRAME_RETURNS)
        tbd_output_put_result(cells->shapes, row->call->enter.pc, &exit, row->at_return,
                              cells->out);
}

static void put_duration(struct tbd_call_cells *cells, const struct shown_call *row)
{
    if (row->call->end == TBD_FRAME_RETURNS)
        tbd_buffer_unsigned(cells->out, row->call->exit.time - row->call->enter.position.time);
}

static void put_caller(struct tbd_call_cells *cells, const struct shown_call *row)
{
    put_name(cells, &cells->callers, row->call->enter.from, caller_at);
}

static const struct {
    const char *column;
    put_cell put;
} columns[] = {
    { "position", put_position }, { "exit", put_exit },         { "nesting", put_nesting },
    { "thread", put_thread },     { "function", put_function }, { "values", put_values },
    { "result", put_result },     { "duration", put_duration }, { "caller", put_caller },
};

/* ---- rows ---- */

struct tbd_call_cells *tbd_call_cells_new(struct tbd_rows *rows, struct tbd_call_shapes *shapes)
{
    const struct kept_names names = { .table = { .element = sizeof(struct kept_name),
                                                 .has_more = true } };
    struct tbd_call_cells *cells = calloc(1, sizeof(*cells));

    if (cells == NULL)
        return NULL;
    cells->rows = rows;
    cells->shapes = shapes;
    cells->session = tbd_call_shapes_session(shapes);
    cells->functions = cells->callers = names;
    for (size_t i = 0; i < rows->column_count; i++) {
        for (size_t k = 0; k < sizeof(columns) / sizeof(columns[0]); k++) {
            if (strcmp(columns[k].column, rows->columns[i]) == 0)
                cells->puts[i] = columns[k].put;
        }
    }
    return cells;
}

void tbd_call_cells_free(struct tbd_call_cells *cells)
{
    if (cells == NULL)
        return;
    free_names(&cells->functions);
    free_names(&cells->callers);
    tbd_buffer_free(&cells->text);
    free(cells);
}

/* Objects have more than the columns, or wall-clock times. */
static bool is_simple(const struct tbd_call_cells *cells)
{
    return !cells->session->json && !cells->session->shows_wall;
}

static void add_in_place(struct tbd_call_cells *cells, const struct shown_call *row)
{
    struct tbd_rows *rows = cells->rows;

    cells->out = &rows->lines;
    for (size_t i = 0; i < rows->column_count; i++) {
        size_t begin = rows->lines.used;

        cells->puts[i](cells, row);
        tbd_rows_end_cell(rows, begin, i);
    }
    tbd_rows_end_row(rows);
}

/* False without memory. */
static bool add_copied(struct tbd_call_cells *cells, const struct shown_call *row)
{
    size_t ends[TBD_ROWS_MAX_COLUMNS], count = cells->rows->column_count, begin = 0;
    struct tbd_cell out[TBD_ROWS_MAX_COLUMNS];

    cells->out = &cells->text;
    cells->text.used = 0;
    for (size_t i = 0; i < count; i++) {
        cells->puts[i](cells, row);
        ends[i] = cells->text.used;
    }
    if (cells->text.failed) {
        tbd_buffer_free(&cells->text);
        return false;
    }
    for (size_t i = 0; i < count; begin = ends[i++])
        out[i] = (struct tbd_cell){ (const char *)cells->text.bytes + begin, ends[i] - begin };
    tbd_rows_add_cells(cells->rows, out);
    return true;
}

bool tbd_call_cells_add(struct tbd_call_cells *cells, const struct tbd_listed_call *call,
                        const struct tbd_output_registers *at_entry,
                        const struct tbd_output_registers *at_return)
{
    struct shown_call row = { .call = call, .at_entry = at_entry, .at_return = at_return };

    if (!is_simple(cells) ||
        !tbd_time_mapped_find(cells->session, call->enter.position.time, &cells->here))
        return false;
    if (!tbd_rows_has_place(cells->rows))
        return add_copied(cells, &row);
    add_in_place(cells, &row);
    return true;
}
