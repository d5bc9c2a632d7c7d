// SPDX-License-Identifier: MIT
/* page_request.c - see page_request.h
 *
 * A question is one object: {"lines": ["where", "bt"]}, {"begin": true}, {"complete": "goto fi"} or
 * {"sums": 800, "span": [0, 1289]}, and with each of them, optional: "id", "at": [TIME, K], "thread", "frame", "span",
 * "text", "rows".  Other keys are refused.  "at" is [-N, K] before the end of a crash dump. */
#include "query/page/page_request.h"

#include "format/stream/crash_values.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* ---- who may ask ---- */

bool tbd_page_is_host(const char *host)
{
    static const char *const names[] = { "127.0.0.1", "localhost", "[::1]" };

    for (size_t i = 0; host != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        size_t length = strlen(names[i]);
        const char *port = host + length;

        if (strncmp(host, names[i], length) != 0 || (*port != '\0' && *port != ':'))
            continue;
        port += *port == ':';
        return strlen(port) <= 5 && strspn(port, "0123456789") == strlen(port);
    }
    return false;
}

bool tbd_page_is_origin(const char *origin, const char *host)
{
    static const char scheme[] = "http://";

    return origin == NULL || (strncmp(origin, scheme, sizeof(scheme) - 1) == 0 && host != NULL &&
                              strcmp(origin + sizeof(scheme) - 1, host) == 0);
}

const char *tbd_page_path(const char *url, const char *token)
{
    size_t length = TBD_PAGE_TOKEN_BYTES - 1;
    volatile unsigned char differs = 0;

    if (url[0] != '/' || strnlen(url + 1, length) != length || url[1 + length] != '/')
        return NULL;
    for (size_t i = 0; i < length; i++)
        differs = (unsigned char)(differs | (url[1 + i] ^ token[i]));
    return differs == 0 ? url + 1 + length + 1 : NULL;
}

/* ---- what is asked ---- */

/* What no line has that somebody types. */
static bool is_line(const char *text, size_t bytes)
{
    if (bytes >= TBD_PAGE_LINE_BYTES || strlen(text) != bytes)
        return false;
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return false;
    return true;
}

static bool take_number(const json_t *value, uint64_t most, uint64_t *out)
{
    json_int_t number = json_integer_value(value);

    if (!json_is_integer(value) || number < 0 || (uint64_t)number > most)
        return false;
    *out = (uint64_t)number;
    return true;
}

static bool take_pair(const json_t *value, uint64_t most, uint64_t *first, uint64_t *second)
{
    return json_is_array(value) && json_array_size(value) == 2 &&
           take_number(json_array_get(value, 0), INT64_MAX, first) &&
           take_number(json_array_get(value, 1), most, second);
}

static bool take_line(const json_t *value, struct tbd_page_question *out)
{
    const char *text = json_string_value(value);

    if (text == NULL || out->line_count == TBD_PAGE_LINES ||
        !is_line(text, json_string_length(value)))
        return false;
    out->lines[out->line_count] = strdup(text);
    return out->lines[out->line_count++] != NULL;
}

static bool take_lines(const json_t *value, struct tbd_page_question *out)
{
    bool good = json_is_array(value) && json_array_size(value) != 0;

    for (size_t i = 0; good && i < json_array_size(value); i++)
        good = take_line(json_array_get(value, i), out);
    return good;
}

static bool take_begin(const json_t *value, struct tbd_page_question *out)
{
    out->kind = TBD_PAGE_BEGINS;
    return json_is_true(value);
}

static bool take_complete(const json_t *value, struct tbd_page_question *out)
{
    out->kind = TBD_PAGE_COMPLETES;
    return take_line(value, out);
}

static bool take_sums(const json_t *value, struct tbd_page_question *out)
{
    uint64_t pixels = 0;

    out->kind = TBD_PAGE_SUMS;
    if (!take_number(value, TBD_PAGE_PIXELS, &pixels) || pixels == 0)
        return false;
    out->pixels = (uint32_t)pixels;
    return true;
}

static bool take_id(const json_t *value, struct tbd_page_question *out)
{
    const char *text = json_string_value(value);

    if (text == NULL || json_string_length(value) >= sizeof(out->id) ||
        !is_line(text, json_string_length(value)))
        return false;
    strcpy(out->id, text);
    return true;
}

static bool take_at(const json_t *value, struct tbd_page_question *out)
{
    json_int_t time = json_integer_value(json_array_get(value, 0));
    uint64_t offset = 0;

    if (time < 0 && time >= -(json_int_t)UINT32_MAX && json_array_size(value) == 2 &&
        take_number(json_array_get(value, 1), UINT32_MAX, &offset)) {
        out->has_at = true;
        out->place.back = (uint64_t)-time;
    } else {
        out->has_at = take_pair(value, UINT32_MAX, &out->place.at.time, &offset);
    }
    out->place.at.offset = (uint32_t)offset;
    return out->has_at;
}

static bool take_thread(const json_t *value, struct tbd_page_question *out)
{
    uint64_t thread = 0;
    bool good = take_number(value, UINT32_MAX, &thread);

    out->place.thread = (uint32_t)thread;
    return good;
}

static bool take_frame(const json_t *value, struct tbd_page_question *out)
{
    uint64_t frame = 0;
    bool good = take_number(value, UINT32_MAX, &frame);

    out->place.frame = (size_t)frame;
    return good;
}

static bool take_span(const json_t *value, struct tbd_page_question *out)
{
    out->has_span = take_pair(value, INT64_MAX, &out->since, &out->until);
    return out->has_span && out->since < out->until;
}

static bool take_text(const json_t *value, struct tbd_page_question *out)
{
    out->is_text = json_is_true(value);
    return json_is_boolean(value);
}

static bool take_rows(const json_t *value, struct tbd_page_question *out)
{
    uint64_t rows = 0;
    bool good = take_number(value, TBD_PAGE_ROWS, &rows) && rows != 0;

    out->rows = (size_t)rows;
    return good;
}

static const struct {
    const char *key;
    bool is_kind; /* says what is asked; one of them is there */
    bool (*take)(const json_t *value, struct tbd_page_question *out);
} keys[] = {
    { "lines", true, take_lines },
    { "begin", true, take_begin },
    { "complete", true, take_complete },
    { "sums", true, take_sums },
    { "id", false, take_id },
    { "at", false, take_at },
    { "thread", false, take_thread },
    { "frame", false, take_frame },
    { "span", false, take_span },
    { "text", false, take_text },
    { "rows", false, take_rows },
};

static bool take_key(const char *key, const json_t *value, struct tbd_page_question *out,
                     unsigned *io_kinds)
{
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(key, keys[i].key) == 0) {
            *io_kinds += keys[i].is_kind;
            return keys[i].take(value, out);
        }
    return false;
}

bool tbd_page_question_read(const char *body, size_t bytes, struct tbd_page_question *out,
                            const char **why)
{
    json_t *object = json_loadb(body, bytes, JSON_REJECT_DUPLICATES, NULL), *value;
    const char *key;
    unsigned kinds = 0;

    *out = (struct tbd_page_question){ .rows = TBD_PAGE_ROWS };
    *why = json_is_object(object) ? NULL : "it is not an object of JSON";
    json_object_foreach(object, key, value)
    {
        if (!take_key(key, value, out, &kinds))
            *why = "it has a key that is not known, or with an impossible value";
    }
    if (*why == NULL && (kinds != 1 || (out->kind == TBD_PAGE_SUMS && !out->has_span)))
        *why = "it must have one of lines, begin, complete, and sums with span";
    json_decref(object);
    if (*why != NULL)
        tbd_page_question_free(out);
    return *why == NULL;
}

bool tbd_page_dial_read(const char *body, size_t bytes, uint32_t *out)
{
    json_t *object = json_loadb(body, bytes, JSON_REJECT_DUPLICATES, NULL);
    uint64_t setting = 0;
    bool good = json_object_size(object) == 1 &&
                take_number(json_object_get(object, "record"), TBD_RECORD_MOST, &setting);

    *out = (uint32_t)setting;
    json_decref(object);
    return good;
}

void tbd_page_question_free(struct tbd_page_question *question)
{
    for (size_t i = 0; i < question->line_count; i++)
        free(question->lines[i]);
    *question = (struct tbd_page_question){ .rows = 0 };
}
