// SPDX-License-Identifier: MIT
/* rows.h - answers of many rows: a table with aligned columns, CSV (RFC 4180), or JSON lines */
#ifndef TBD_QUERY_ROWS_H
#define TBD_QUERY_ROWS_H

#include "format/files/codec.h"
#include "query/commands/commands.h"

#include <jansson.h>

#define TBD_ROWS_MAX_COLUMNS 12u
#define TBD_ROWS_ALIGNED     256u /* rows whose widths decide how a table is aligned */

/* Text of a table or CSV, escaped as a field (base/escape.h). */
struct tbd_cell {
    const char *text;
    size_t length;
};

struct tbd_rows {
    const struct tbd_command_run *run;
    const char *columns[TBD_ROWS_MAX_COLUMNS + 1]; /* keys of a row's object, ending with NULL */
    size_t column_count;
    json_t *waiting; /* rows until the widths are known: the texts of their cells */
    size_t widths[TBD_ROWS_MAX_COLUMNS];
    bool has_widths;
    uint64_t count;
    struct tbd_buffer lines; /* not printed yet */
};

/* JSON objects are printed whole; tables and CSV have the columns. */
void tbd_rows_start(struct tbd_rows *rows, const struct tbd_command_run *run,
                    const char *const *columns);
/* Releases `row`. */
void tbd_rows_add(struct tbd_rows *rows, json_t *row);
/* A row of which only the columns are known: not as JSON.  Much cheaper than one by its object, and printed with others,
 * by tbd_rows_end() at the latest. */
void tbd_rows_add_cells(struct tbd_rows *rows, const struct tbd_cell *cells);
/* The same without a copy: each cell's text is put at the end of rows->lines, which is as long as the second argument
 * before, and then there is a row.  Only if tbd_rows_has_place(): not before the widths are known, and not as CSV. */
bool tbd_rows_has_place(const struct tbd_rows *rows);
void tbd_rows_end_cell(struct tbd_rows *rows, size_t begin, size_t column);
void tbd_rows_end_row(struct tbd_rows *rows);
/* The column `name` is not shown.  Nothing once lines are printed: a table whose rows do not wait any
 * more, or CSV. */
void tbd_rows_hide(struct tbd_rows *rows, const char *name);
/* Prints nothing; instead of tbd_rows_end(). */
void tbd_rows_drop(struct tbd_rows *rows);
/* Prints the rows that wait.  Without any row it returns TBD_EXIT_NOT_FOUND, and a table says so. */
enum tbd_exit tbd_rows_end(struct tbd_rows *rows);

/* Prints an object of numbers by name as rows of `count` and `by`, the largest first. */
enum tbd_exit tbd_rows_counts(const struct tbd_command_run *run, json_t *counts);

/* An event as a row: its object (output.h) with `position` ("TIME+K") and `source` ("file.c:7"). */
json_t *tbd_rows_event(struct tbd_session *session, const struct tbd_event *event);
json_t *tbd_rows_position(struct tbd_position position);

/* Reads the run's "NAME [where CONTEXT]": all events of a type in a function or at a source line.
 * *out is a question only after TBD_EXIT_FOUND. */
enum tbd_exit tbd_rows_read_named(struct tbd_command_run *run, enum tbd_event_type type,
                                  enum tbd_name_kind kind, const char *usage,
                                  struct tbd_question *out);

#endif
