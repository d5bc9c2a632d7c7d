// SPDX-License-Identifier: MIT
/* rows.c - see rows.h */
#include "query/commands/rows.h"

#include "base/safe_stream.h"
#include "query/text/user_interrupt.h"
#include "query/output/output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

static char *cell(const json_t *row, const char *key)
{
    return cell_of(json_object_get(row, key));
}

/* ---- tables ---- */

static void note_width(size_t *width, const char *text)
{
    size_t length = text == NULL ? 0 : strlen(text);

    if (length > *width)
        *width = length;
}

static void measure(struct tbd_rows *rows)
{
    size_t index;
    json_t *row;

    for (size_t i = 0; rows->columns[i] != NULL; i++) {
        note_width(&rows->widths[i], rows->columns[i]);
        json_array_foreach(rows->waiting, index, row)
        {
            char *text = cell(row, rows->columns[i]);

            note_width(&rows->widths[i], text);
            free(text);
        }
    }
    rows->has_widths = true;
}

static void print_cells(const struct tbd_rows *rows, const json_t *row)
{
    FILE *out = rows->run->out;

    for (size_t i = 0; rows->columns[i] != NULL; i++) {
        char *text = row == NULL ? strdup(rows->columns[i]) : cell(row, rows->columns[i]);
        bool is_last = rows->columns[i + 1] == NULL;

        fprintf(out, "%-*s%s", is_last ? 0 : (int)rows->widths[i], text == NULL ? "" : text,
                is_last ? "\n" : "  ");
        free(text);
    }
}

static void print_waiting(struct tbd_rows *rows)
{
    size_t index;
    json_t *row;

    measure(rows);
    print_cells(rows, NULL);
    json_array_foreach(rows->waiting, index, row) print_cells(rows, row);
    json_array_clear(rows->waiting);
}

/* ---- CSV ---- */

static bool is_number(const char *text)
{
    size_t sign = *text == '-' || *text == '+';

    return text[sign] != '\0' && text[sign + strspn(text + sign, "0123456789.")] == '\0';
}

/* An apostrophe goes before text that a spreadsheet would take for a formula (OWASP, CSV injection). */
static bool is_formula(const char *text)
{
    return *text != '\0' && strchr("=+-@\t\r", *text) != NULL && !is_number(text);
}

static void print_csv_cell(FILE *out, const char *text)
{
    const char *mark = is_formula(text) ? "'" : "";

    if (text[strcspn(text, ",\"\n\r")] == '\0') {
        fprintf(out, "%s%s", mark, text);
        return;
    }
    fprintf(out, "\"%s", mark);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void print_csv(const struct tbd_rows *rows, const json_t *row)
{
    for (size_t i = 0; rows->columns[i] != NULL; i++) {
        char *text = row == NULL ? strdup(rows->columns[i]) : cell(row, rows->columns[i]);

        if (i != 0)
            fputc(',', rows->run->out);
        print_csv_cell(rows->run->out, text == NULL ? "" : text);
        free(text);
    }
    fputs("\r\n", rows->run->out);
}

/* ---- rows ---- */

void tbd_rows_start(struct tbd_rows *rows, const struct tbd_command_run *run,
                    const char *const *columns)
{
    size_t count = 0;

    *rows = (struct tbd_rows){ .run = run, .waiting = json_array() };
    for (size_t i = 0; columns[i] != NULL && count < TBD_ROWS_MAX_COLUMNS - 1; i++) {
        rows->columns[count++] = columns[i];
        if (run->session->shows_wall && strcmp(columns[i], "position") == 0)
            rows->columns[count++] = "wall";
    }
    if (run->session->csv)
        print_csv(rows, NULL);
}

void tbd_rows_add(struct tbd_rows *rows, json_t *row)
{
    rows->count++;
    if (rows->run->session->json) {
        tbd_output_line(row, rows->run->out);
        return;
    }
    if (rows->run->session->csv)
        print_csv(rows, row);
    else if (rows->has_widths)
        print_cells(rows, row);
    else
        json_array_append(rows->waiting, row);
    json_decref(row);
    if (json_array_size(rows->waiting) >= TBD_ROWS_ALIGNED)
        print_waiting(rows);
}

enum tbd_exit tbd_rows_end(struct tbd_rows *rows)
{
    bool is_table = !rows->run->session->json && !rows->run->session->csv;

    if (is_table && rows->count == 0 && !tbd_is_interrupted())
        fprintf(rows->run->out, "none\n");
    else if (is_table && !rows->has_widths)
        print_waiting(rows);
    json_decref(rows->waiting);
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
    const char *name = file == NULL ? NULL : strrchr(file, '/');
    char text[256];

    json_object_set_new(row, "position", tbd_rows_position(event->position));
    if (file != NULL) {
        snprintf(text, sizeof(text), "%s:%" JSON_INTEGER_FORMAT, name == NULL ? file : name + 1,
                 json_integer_value(json_object_get(row, "line")));
        json_object_set_new(row, "source", tbd_output_text(text));
    }
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
