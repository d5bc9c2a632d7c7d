// SPDX-License-Identifier: MIT
/* rows.c - see rows.h */
#include "query/commands/rows.h"

#include "base/safe_stream.h"
#include "query/text/user_interrupt.h"
#include "query/output/output.h"
#include "query/output/shard.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LINES_BYTES 32768u

/* ---- cells ---- */

static char *cell_of(const json_t *value);

/* "a, b, c" */
static char *list_of(const json_t *values)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < json_array_size(values); i++) {
        char *one = cell_of(json_array_get(values, i));

        fprintf(out, "%s%s", i == 0 ? "" : ", ", one == NULL ? "" : one);
        free(one);
    }
    fclose(out);
    return text;
}

/* The caller frees the result; NULL without memory. */
static char *cell_of(const json_t *value)
{
    char *text = NULL;

    if (json_is_string(value))
        return tbd_shown_copy(json_string_value(value));
    if (json_is_array(value))
        return list_of(value);
    if (!json_is_integer(value))
        return strdup("");
    return asprintf(&text, "%" JSON_INTEGER_FORMAT, json_integer_value(value)) < 0 ? NULL : text;
}

/* ---- tables ---- */

static void note_width(size_t *width, size_t length)
{
    if (length > *width)
        *width = length;
}

static void print_lines(struct tbd_rows *rows)
{
    if (rows->lines.failed)
        tbd_buffer_free(&rows->lines); /* the next lines may have memory */
    if (rows->lines.used != 0)
        fwrite(rows->lines.bytes, 1, rows->lines.used, rows->run->out);
    rows->lines.used = 0;
}

/* A write for each line would take longer than making it. */
static void end_line(struct tbd_rows *rows)
{
    if (rows->lines.failed || rows->lines.used >= LINES_BYTES)
        print_lines(rows);
}

/* Mostly few: eight at a time, without a call. */
static void put_spaces(struct tbd_buffer *line, size_t count)
{
    uint8_t *at = tbd_buffer_reserve(line, count + 8);

    if (at == NULL)
        return;
    for (size_t done = 0; done < count; done += 8)
        memset(at + done, ' ', 8);
    line->used += count;
}

void tbd_rows_end_cell(struct tbd_rows *rows, size_t begin, size_t column)
{
    size_t width = rows->widths[column], length = rows->lines.used - begin;

    if (column + 1 < rows->column_count)
        put_spaces(&rows->lines, (length < width ? width - length : 0) + 2);
}

static void end_text_line(struct tbd_rows *rows)
{
    tbd_buffer_byte(&rows->lines, '\n');
    end_line(rows);
}

static void print_cells(struct tbd_rows *rows, const struct tbd_cell *cells)
{
    for (size_t i = 0; i < rows->column_count; i++) {
        size_t begin = rows->lines.used;

        tbd_buffer_put(&rows->lines, cells[i].text, cells[i].length);
        tbd_rows_end_cell(rows, begin, i);
    }
    end_text_line(rows);
}

static void take_waiting(const json_t *row, size_t count, struct tbd_cell *out)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *text = json_array_get(row, i);

        out[i] = (struct tbd_cell){ json_string_value(text), json_string_length(text) };
    }
}

static void wait_with(struct tbd_rows *rows, const struct tbd_cell *cells)
{
    json_t *row = json_array();

    for (size_t i = 0; i < rows->column_count; i++) {
        note_width(&rows->widths[i], cells[i].length);
        json_array_append_new(row, json_stringn(cells[i].text, cells[i].length));
    }
    json_array_append_new(rows->waiting, row);
}

static void head_cells(const struct tbd_rows *rows, struct tbd_cell *out)
{
    for (size_t i = 0; i < rows->column_count; i++)
        out[i] = (struct tbd_cell){ rows->columns[i], strlen(rows->columns[i]) };
}

static void print_waiting(struct tbd_rows *rows)
{
    struct tbd_cell cells[TBD_ROWS_MAX_COLUMNS];
    size_t index;
    json_t *row;

    head_cells(rows, cells);
    for (size_t i = 0; i < rows->column_count; i++)
        note_width(&rows->widths[i], cells[i].length);
    rows->has_widths = true;
    print_cells(rows, cells);
    json_array_foreach(rows->waiting, index, row)
    {
        take_waiting(row, rows->column_count, cells);
        print_cells(rows, cells);
    }
    json_array_clear(rows->waiting);
}

/* ---- CSV ---- */

static bool is_one_of(const char *characters, char c)
{
    return c != '\0' && strchr(characters, c) != NULL;
}

static bool is_number(const struct tbd_cell *cell)
{
    size_t sign = cell->length != 0 && (*cell->text == '-' || *cell->text == '+');

    for (size_t i = sign; i < cell->length; i++) {
        if (!is_one_of("0123456789.", cell->text[i]))
            return false;
    }
    return cell->length > sign;
}

/* An apostrophe goes before text that a spreadsheet would take for a formula (OWASP, CSV injection). */
static bool is_formula(const struct tbd_cell *cell)
{
    return cell->length != 0 && is_one_of("=+-@\t\r", *cell->text) && !is_number(cell);
}

static bool needs_quotes(const struct tbd_cell *cell)
{
    for (size_t i = 0; i < cell->length; i++) {
        if (is_one_of(",\"\n\r", cell->text[i]))
            return true;
    }
    return false;
}

static void put_csv_cell(struct tbd_buffer *line, const struct tbd_cell *cell)
{
    bool is_quoted = needs_quotes(cell);

    tbd_buffer_put(line, "\"", is_quoted);
    tbd_buffer_put(line, "'", is_formula(cell));
    if (!is_quoted)
        tbd_buffer_put(line, cell->text, cell->length);
    for (size_t i = 0; is_quoted && i < cell->length; i++) {
        tbd_buffer_put(line, "\"", cell->text[i] == '"');
        tbd_buffer_byte(line, (uint8_t)cell->text[i]);
    }
    tbd_buffer_put(line, "\"", is_quoted);
}

static void print_csv(struct tbd_rows *rows, const struct tbd_cell *cells)
{
    for (size_t i = 0; i < rows->column_count; i++) {
        tbd_buffer_put(&rows->lines, ",", i != 0);
        put_csv_cell(&rows->lines, &cells[i]);
    }
    tbd_buffer_put(&rows->lines, "\r\n", 2);
    end_line(rows);
}

/* ---- rows ---- */

static void begin_shard(const struct tbd_rows *rows)
{
    bool are_counts = strcmp(rows->columns[0], "count") == 0;
    struct tbd_shard_kind kind = { .name = are_counts ? "counts" : "rows",
                                   .question = rows->run->text,
                                   .columns = rows->columns };

    tbd_shard_begin(rows->run->session, &kind, rows->run->out);
}

void tbd_rows_start(struct tbd_rows *rows, const struct tbd_command_run *run,
                    const char *const *columns)
{
    struct tbd_cell head[TBD_ROWS_MAX_COLUMNS];

    *rows = (struct tbd_rows){ .run = run, .waiting = json_array() };
    for (size_t i = 0; columns[i] != NULL && rows->column_count < TBD_ROWS_MAX_COLUMNS - 1; i++) {
        rows->columns[rows->column_count++] = columns[i];
        if (run->session->shows_wall && strcmp(columns[i], "position") == 0)
            rows->columns[rows->column_count++] = "wall";
    }
    head_cells(rows, head);
    if (tbd_shard_is_on(run->session))
        begin_shard(rows);
    else if (run->session->csv)
        print_csv(rows, head);
    print_lines(rows);
}

void tbd_rows_hide(struct tbd_rows *rows, const char *name)
{
    size_t hidden = 0, index;
    json_t *row;

    while (hidden < rows->column_count && strcmp(rows->columns[hidden], name) != 0)
        hidden++;
    if (hidden == rows->column_count || rows->has_widths || rows->run->session->csv)
        return;
    rows->column_count--;
    for (size_t i = hidden; i <= rows->column_count; i++) {
        rows->columns[i] = rows->columns[i + 1];
        rows->widths[i] = i < rows->column_count ? rows->widths[i + 1] : 0;
    }
    json_array_foreach(rows->waiting, index, row) json_array_remove(row, hidden);
}

void tbd_rows_add_cells(struct tbd_rows *rows, const struct tbd_cell *cells)
{
    rows->count++;
    if (rows->run->session->csv)
        print_csv(rows, cells);
    else if (rows->has_widths)
        print_cells(rows, cells);
    else
        wait_with(rows, cells);
    if (json_array_size(rows->waiting) >= TBD_ROWS_ALIGNED)
        print_waiting(rows);
}

bool tbd_rows_has_place(const struct tbd_rows *rows)
{
    return rows->has_widths && !rows->run->session->csv;
}

void tbd_rows_end_row(struct tbd_rows *rows)
{
    rows->count++;
    end_text_line(rows);
}

void tbd_rows_add(struct tbd_rows *rows, json_t *row)
{
    struct tbd_cell cells[TBD_ROWS_MAX_COLUMNS];
    char *texts[TBD_ROWS_MAX_COLUMNS];

    if (tbd_shard_is_on(rows->run->session)) {
        rows->count++;
        tbd_shard_row(rows->run->session, row, rows->run->out);
        return;
    }
    if (rows->run->session->json) {
        rows->count++;
        tbd_output_line(row, rows->run->out);
        return;
    }
    for (size_t i = 0; i < rows->column_count; i++) {
        texts[i] = cell_of(json_object_get(row, rows->columns[i]));
        cells[i].text = texts[i] == NULL ? "" : texts[i];
        cells[i].length = strlen(cells[i].text);
    }
    tbd_rows_add_cells(rows, cells);
    print_lines(rows); /* a search may go on for long */
    for (size_t i = 0; i < rows->column_count; i++)
        free(texts[i]);
    json_decref(row);
}

void tbd_rows_drop(struct tbd_rows *rows)
{
    json_decref(rows->waiting);
    tbd_buffer_free(&rows->lines);
}

enum tbd_exit tbd_rows_end(struct tbd_rows *rows)
{
    bool is_table = !rows->run->session->json && !rows->run->session->csv &&
                    !tbd_shard_is_on(rows->run->session);

    if (is_table && rows->count == 0 && !tbd_is_interrupted())
        fprintf(rows->run->out, "none\n");
    else if (is_table && !rows->has_widths)
        print_waiting(rows);
    print_lines(rows);
    tbd_rows_drop(rows);
    return rows->count == 0 ? TBD_EXIT_NOT_FOUND : TBD_EXIT_FOUND;
}

json_t *tbd_rows_position(struct tbd_position position)
{
    char text[48];

    snprintf(text, sizeof(text), "%" PRIu64 "+%" PRIu32, position.time, position.offset);
    if (position.offset == 0)
        *strchr(text, '+') = '\0';
    return json_string(text);
}

json_t *tbd_rows_event(struct tbd_session *session, const struct tbd_event *event)
{
    json_t *row = tbd_output_event(session, event);
    const char *file = json_string_value(json_object_get(row, "file"));

    json_object_set_new(row, "position", tbd_rows_position(event->position));
    if (file != NULL)
        tbd_output_source_cell(file, (uint32_t)json_integer_value(json_object_get(row, "line")),
                               row);
    return row;
}

/* ---- counts ---- */

static int compare_rows(const void *left, const void *right)
{
    json_t *const *a = left, *const *b = right;
    json_int_t x = json_integer_value(json_object_get(*a, "count"));
    json_int_t y = json_integer_value(json_object_get(*b, "count"));

    if (x != y)
        return x < y ? 1 : -1;
    return strcmp(json_string_value(json_object_get(*a, "by")),
                  json_string_value(json_object_get(*b, "by")));
}

enum tbd_exit tbd_rows_counts(const struct tbd_command_run *run, json_t *counts)
{
    static const char *const columns[] = { "count", "by", NULL };
    json_t **sorted = calloc(json_object_size(counts) + 1, sizeof(json_t *));
    size_t count = 0;
    struct tbd_rows rows;
    const char *key;
    json_t *value;

    json_object_foreach(counts, key, value)
    {
        json_t *row = json_object();

        json_object_set(row, "count", value);
        json_object_set_new(row, "by", tbd_output_text(key));
        if (sorted != NULL)
            sorted[count++] = row;
        else
            json_decref(row);
    }
    if (sorted != NULL)
        qsort(sorted, count, sizeof(json_t *), compare_rows);
    tbd_rows_start(&rows, run, columns);
    for (size_t i = 0; i < count; i++)
        tbd_rows_add(&rows, sorted[i]);
    free(sorted);
    return tbd_rows_end(&rows);
}
