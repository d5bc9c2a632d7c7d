// SPDX-License-Identifier: MIT
/* shard_file.c - see shard_file.h */
#include "query/shards/shard_file.h"

#include "query/output/shard.h"

#include "base/open_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_FIRST 4096u

__attribute__((format(printf, 2, 3))) static bool fail(struct tbd_shard_file *shard,
                                                       const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(shard->why, sizeof(shard->why), format, arguments);
    va_end(arguments);
    return false;
}

bool tbd_shard_number(const json_t *object, const char *key, uint64_t *out)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

const char *tbd_shard_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text == NULL ? "" : text;
}

/* ---- lines ---- */

static bool grow(struct tbd_shard_file *shard)
{
    size_t capacity = shard->capacity == 0 ? LINE_FIRST : shard->capacity * 2;
    char *line = capacity > TBD_SHARD_LINE_MAX ? NULL : realloc(shard->line, capacity);

    if (line == NULL)
        return fail(shard, capacity > TBD_SHARD_LINE_MAX ? "a line is too long" : "out of memory");
    shard->line = line;
    shard->capacity = capacity;
    return true;
}

/* A whole line, without its end.  False: there is none. */
static bool read_line(struct tbd_shard_file *shard, size_t *out_bytes)
{
    size_t used = 0;
    int c;

    while ((c = getc_unlocked(shard->file)) != EOF && c != '\n') {
        if (used == shard->capacity && !grow(shard))
            return false;
        shard->line[used++] = (char)c;
    }
    *out_bytes = used;
    if (c == EOF && ferror(shard->file))
        return fail(shard, "it cannot be read: %s", strerror(errno));
    return c == '\n';
}

/* NULL: `why` is set, or the file is at its end. */
static json_t *read_object(struct tbd_shard_file *shard)
{
    size_t bytes = 0;
    json_t *object;

    if (!read_line(shard, &bytes))
        return NULL;
    object = json_loadb(shard->line, bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    if (json_is_object(object))
        return object;
    json_decref(object);
    fail(shard, "row %" JSON_INTEGER_FORMAT " is damaged", (json_int_t)shard->rows + 1);
    return NULL;
}

/* ---- the first line ---- */

static bool take_head(struct tbd_shard_file *shard, const json_t *head)
{
    uint64_t version = 0;
    json_t *of = json_object_get(head, "of");

    if (!tbd_shard_number(head, "tbd_shard", &version) || version == 0)
        return fail(shard, "it is not the answer of a shard");
    if (version > TBD_SHARD_VERSION)
        return fail(shard, "a newer tbdq made it");
    if (!tbd_shard_number(head, "shard", &shard->number) ||
        !tbd_shard_number(head, "shards", &shard->count) ||
        !tbd_shard_number(head, "from", &shard->from) ||
        !tbd_shard_number(head, "to", &shard->to) || !json_is_object(of) || shard->number == 0 ||
        shard->number > shard->count || shard->count > TBD_SHARDS_MAX || shard->from > shard->to)
        return fail(shard, "its first line is damaged");
    shard->of = json_incref(of);
    shard->backward = json_is_true(json_object_get(of, "backward"));
    return true;
}

bool tbd_shard_file_open(struct tbd_shard_file *shard, const char *path)
{
    int fd = tbd_open_named(path);
    json_t *head;
    bool good;

    *shard = (struct tbd_shard_file){ .path = path };
    shard->file = fd < 0 ? NULL : fdopen(fd, "r");
    if (shard->file == NULL) {
        fail(shard, "it cannot be opened: %s", strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    head = read_object(shard);
    good = head != NULL && take_head(shard, head);
    if (head == NULL)
        fail(shard, "it is not the answer of a shard");
    json_decref(head);
    return good;
}

/* ---- rows ---- */

static bool is_in_order(struct tbd_shard_file *shard, uint64_t time)
{
    bool is_good =
        !shard->has_last || (shard->backward ? time <= shard->last_time : time >= shard->last_time);

    shard->has_last = true;
    shard->last_time = time;
    return is_good;
}

/* Keeps SHARD_FILE-1.  Rows of counts have no time. */
static bool check_row(struct tbd_shard_file *shard, const json_t *row)
{
    uint64_t time = shard->from;

    if (json_object_get(row, "time") == NULL)
        return true;
    return tbd_shard_number(row, "time", &time) && time >= shard->from && time < shard->to &&
           is_in_order(shard, time);
}

static bool check_end(struct tbd_shard_file *shard, const json_t *end)
{
    uint64_t rows, status;

    return tbd_shard_number(end, "rows", &rows) && rows == shard->rows &&
           tbd_shard_number(end, "exit", &status) && status <= 255 &&
           json_is_object(json_object_get(end, "left_out"));
}

json_t *tbd_shard_file_next(struct tbd_shard_file *shard)
{
    json_t *object = shard->end == NULL ? read_object(shard) : NULL;

    if (object == NULL)
        return NULL;
    if (json_object_get(object, "tbd_shard_end") != NULL) {
        if (check_end(shard, object))
            shard->end = object;
        else
            json_decref(object);
        if (shard->end == NULL)
            fail(shard, "its last line does not fit its rows");
        return NULL;
    }
    shard->rows++;
    if (check_row(shard, object))
        return object;
    json_decref(object);
    fail(shard, "row %" JSON_INTEGER_FORMAT " does not belong there", (json_int_t)shard->rows);
    return NULL;
}

void tbd_shard_file_rest(struct tbd_shard_file *shard)
{
    if (shard->file != NULL)
        fclose(shard->file);
    shard->file = NULL;
    free(shard->line);
    shard->line = NULL;
    shard->capacity = 0;
}

void tbd_shard_file_close(struct tbd_shard_file *shard)
{
    tbd_shard_file_rest(shard);
    json_decref(shard->of);
    json_decref(shard->end);
    shard->of = shard->end = NULL;
}
