// SPDX-License-Identifier: MIT
/* dap_bytes.c - see dap_bytes.h
 *
 * DAP_BYTES-1  start <= end <= capacity, and at most one message, one header and one piece that was added are kept */
#include "query/dap/dap_bytes.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char name[] = "Content-Length:";

/* Drops what was used. */
static void move_down(struct tbd_dap_bytes *bytes)
{
    if (bytes->start == 0)
        return;
    memmove(bytes->data, bytes->data + bytes->start, bytes->end - bytes->start);
    bytes->end -= bytes->start;
    bytes->start = 0;
}

bool tbd_dap_bytes_add(struct tbd_dap_bytes *bytes, const char *data, size_t count)
{
    size_t skipped = bytes->skip < count ? (size_t)bytes->skip : count;
    size_t wanted;
    char *bigger;

    bytes->skip -= skipped;
    data += skipped;
    count -= skipped;
    if (count == 0)
        return true;
    move_down(bytes);
    wanted = bytes->end + count;
    if (wanted > bytes->capacity) {
        wanted += wanted / 2;
        bigger = realloc(bytes->data, wanted);
        if (bigger == NULL)
            return false;
        bytes->data = bigger;
        bytes->capacity = wanted;
    }
    memcpy(bytes->data + bytes->end, data, count);
    bytes->end += count;
    TBD_INVARIANT("DAP_BYTES-1", bytes->start <= bytes->end && bytes->end <= bytes->capacity);
    return true;
}

/* The length that the header [text, end) says; false: none, or nonsense. */
static bool read_length(const char *text, const char *end, uint64_t *out)
{
    bool has_length = false;

    while (text < end) {
        const char *line_end = memchr(text, '\r', (size_t)(end - text));
        const char *at = text + strlen(name);
        uint64_t value = 0;

        if (line_end == NULL || (size_t)(line_end - text) < strlen(name))
            return false;
        if (strncasecmp(text, name, strlen(name)) == 0) {
            while (at < line_end && *at == ' ')
                at++;
            if (at == line_end || line_end - at > 12)
                return false;
            for (; at < line_end; at++) {
                if (*at < '0' || *at > '9')
                    return false;
                value = value * 10 + (uint64_t)(*at - '0');
            }
            *out = value;
            has_length = true;
        }
        text = line_end + 2;
    }
    return has_length;
}

/* No header begins at the start: goes on at the next place where one may. */
static enum tbd_dap_found skip_garbage(struct tbd_dap_bytes *bytes)
{
    size_t at = bytes->start + 1;

    while (at < bytes->end) {
        size_t rest = bytes->end - at, length = rest < strlen(name) ? rest : strlen(name);

        if (strncasecmp(bytes->data + at, name, length) == 0)
            break;
        at++;
    }
    bytes->start = at;
    return TBD_DAP_GARBAGE;
}

static enum tbd_dap_found skip_message(struct tbd_dap_bytes *bytes, uint64_t length)
{
    size_t here = bytes->end - bytes->start;

    if (length <= here) {
        bytes->start += (size_t)length;
    } else {
        bytes->skip = length - here;
        bytes->start = bytes->end;
    }
    return TBD_DAP_TOO_LONG;
}

enum tbd_dap_found tbd_dap_bytes_next(struct tbd_dap_bytes *bytes, const char **out,
                                      size_t *out_bytes)
{
    const char *text = bytes->data == NULL ? "" : bytes->data + bytes->start;
    size_t here = bytes->end - bytes->start;
    size_t searched = here < TBD_DAP_HEADER_BYTES ? here : TBD_DAP_HEADER_BYTES;
    const char *end = memmem(text, searched, "\r\n\r\n", 4);
    uint64_t length;
    size_t header;

    if (here == 0 || (end == NULL && here < TBD_DAP_HEADER_BYTES))
        return TBD_DAP_NOTHING;
    if (end == NULL || !read_length(text, end + 2, &length))
        return skip_garbage(bytes);
    header = (size_t)(end - text) + 4;
    if (length > TBD_DAP_MESSAGE_BYTES) {
        bytes->start += header;
        return skip_message(bytes, length);
    }
    if (here - header < length)
        return TBD_DAP_NOTHING;
    *out = text + header;
    *out_bytes = (size_t)length;
    bytes->start += header + (size_t)length;
    return TBD_DAP_MESSAGE;
}

void tbd_dap_bytes_free(struct tbd_dap_bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct tbd_dap_bytes){ 0 };
}
