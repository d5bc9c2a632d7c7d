// SPDX-License-Identifier: MIT
/* put_text.c - see put_text.h */
#include "query/output/put_text.h"

#include "base/escape.h"

#include <stdlib.h>

#define DIGITS_MAX 20u

void tbd_buffer_unsigned(struct tbd_buffer *out, uint64_t value)
{
    char digits[DIGITS_MAX], *at = digits + sizeof(digits);

    do
        *--at = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    tbd_buffer_put(out, at, (size_t)(digits + sizeof(digits) - at));
}

void tbd_buffer_signed(struct tbd_buffer *out, int64_t value)
{
    if (value < 0)
        tbd_buffer_byte(out, '-');
    tbd_buffer_unsigned(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void tbd_buffer_hex(struct tbd_buffer *out, uint64_t value)
{
    char digits[2 + 16], *at = digits + sizeof(digits);

    do
        *--at = "0123456789abcdef"[value & 15];
    while ((value >>= 4) != 0);
    *--at = 'x';
    *--at = '0';
    tbd_buffer_put(out, at, (size_t)(digits + sizeof(digits) - at));
}

void tbd_buffer_text(struct tbd_buffer *out, const char *text)
{
    tbd_buffer_put(out, text, strlen(text));
}

void tbd_buffer_escape(struct tbd_buffer *out, size_t begin)
{
    size_t length = out->used - begin, bytes;
    char *raw;

    if (out->failed ||
        tbd_escape_is_plain(TBD_ESCAPE_FIELD, (const char *)out->bytes + begin, length))
        return;
    raw = malloc(length);
    if (raw == NULL) {
        out->failed = true;
        return;
    }
    memcpy(raw, out->bytes + begin, length);
    bytes = tbd_escape(TBD_ESCAPE_FIELD, raw, length, NULL, 0);
    out->used = begin;
    if (tbd_buffer_reserve(out, bytes + 1) != NULL)
        out->used +=
            tbd_escape(TBD_ESCAPE_FIELD, raw, length, (char *)out->bytes + begin, bytes + 1);
    free(raw);
}
