// SPDX-License-Identifier: MIT
/* page_rows.c - see page_rows.h
 *
 * PAGE-ROWS-1  Lines that are kept are whole: the last one that was begun when the limit was reached is left out. */
#include "query/page/page_rows.h"

#include "query/output/output.h"
#include "query/text/user_interrupt.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_MOST (16u << 20)

static ssize_t take(void *context, const char *text, size_t bytes)
{
    struct tbd_page_rows *rows = context;

    if (rows->is_cut)
        return (ssize_t)bytes;
    if (rows->lines == rows->most || rows->used + bytes > BYTES_MOST) {
        rows->is_cut = true;
        tbd_interrupt_note();
        return (ssize_t)bytes;
    }
    while (rows->used + bytes + 1 > rows->capacity)
        if (!tbd_array_grow(&rows->bytes, rows->capacity, &rows->capacity, 1))
            return -1;
    memcpy(rows->bytes + rows->used, text, bytes);
    rows->used += bytes;
    for (size_t i = 0; i < bytes; i++)
        rows->lines += text[i] == '\n';
    return (ssize_t)bytes;
}

bool tbd_page_rows_start(struct tbd_page_rows *rows, size_t most)
{
    *rows = (struct tbd_page_rows){ .most = most };
    rows->out = fopencookie(rows, "w", (cookie_io_functions_t){ .write = take });
    if (rows->out == NULL)
        return false;
    setvbuf(rows->out, NULL, _IOLBF, 0);
    return true;
}

/* The object that the line is, or NULL. */
static json_t *object_of(const char *line, size_t bytes)
{
    json_t *object = *line == '{' ? json_loadb(line, bytes, JSON_ALLOW_NUL, NULL) : NULL;

    if (json_is_object(object))
        return object;
    json_decref(object);
    return NULL;
}

static void put_lines(char *bytes, json_t *objects, FILE *others)
{
    for (char *line = bytes, *end; *line != '\0'; line = end) {
        json_t *object;

        end = line + strcspn(line, "\n");
        object = object_of(line, (size_t)(end - line));
        if (object != NULL)
            json_array_append_new(objects, object);
        else
            fprintf(others, "%.*s\n", (int)(end - line), line);
        end += *end == '\n';
    }
}

void tbd_page_rows_put(struct tbd_page_rows *rows, json_t *answer)
{
    json_t *objects = json_array();
    char *text = NULL;
    size_t bytes = 0;
    FILE *others = open_memstream(&text, &bytes);

    fflush(rows->out);
    if (rows->used != 0) {
        rows->bytes[rows->used] = '\0';
        if (rows->is_cut) /* keeps PAGE-ROWS-1 */
            *(strrchr(rows->bytes, '\n') == NULL ? rows->bytes : strrchr(rows->bytes, '\n') + 1) =
                '\0';
        if (others != NULL)
            put_lines(rows->bytes, objects, others);
    }
    json_object_set_new(answer, "objects", objects);
    if (others != NULL && fclose(others) == 0 && bytes != 0)
        json_object_set_new(answer, "text", tbd_output_text(text));
    json_object_set_new(answer, "cut", json_boolean(rows->is_cut));
    free(text);
}

void tbd_page_rows_end(struct tbd_page_rows *rows)
{
    if (rows->out != NULL)
        fclose(rows->out);
    free(rows->bytes);
}
