// SPDX-License-Identifier: MIT
/* put_text.c - see put_text.h */
#include "query/output/put_text.h"

#include "base/escape.h"

#include <stdlib.h>
#include <string.h>

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                            "25262728293031323334353637383940414243444546474849"
                            "50515253545556575859606162636465666768697071727374"
                            "75767778798081828384858687888990919293949596979899";

static size_t count_digits(uint64_t value)
{
    static const uint64_t least[] = { 0,
                                      10,
                                      100,
                                      1000,
                                      10000,
                                      100000,
                                      1000000,
                                      10000000,
                                      100000000,
                                      1000000000,
                                      10000000000,
                                      100000000000,
                                      1000000000000,
                                      10000000000000,
                                      100000000000000,
                                      1000000000000000,
                                      10000000000000000,
                                      100000000000000000,
                                      1000000000000000000,
                                      10000000000000000000u };
    size_t bits = 64 - (size_t)__builtin_clzll(value | 1);
    size_t low = bits * 1233 >> 12; /* log10(2) is 1233 / 4096, nearly */

    return low + (value >= least[low]);
}

/* Two digits at a time, from the last ones on. */
void tbd_buffer_unsigned(struct tbd_buffer *out, uint64_t value)
{
    size_t count = count_digits(value);
    uint8_t *at = tbd_buffer_reserve(out, count);

    if (at == NULL)
        return;
    out->used += count;
    for (at += count; value >= 100; value /= 100)
        memcpy(at -= 2, pairs + 2 * (value % 100), 2);
    if (value >= 10)
        memcpy(at - 2, pairs + 2 * value, 2);
    else
        at[-1] = (uint8_t)('0' + value);
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
