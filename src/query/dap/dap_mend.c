// SPDX-License-Identifier: MIT
/* dap_mend.c - see dap_mend.h
 *
 * A backslash before an escape that cannot be kept is doubled, so that the escape is text. */
#include "query/dap/dap_mend.h"

#include "base/escape.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define UNIT_BYTES 6u /* of "\ud800" */

/* The number in "\u1234"; -1: there is no such escape. */
static int unit_at(const char *text, size_t left)
{
    char digits[5] = { 0 };

    if (left < UNIT_BYTES || text[0] != '\\' || text[1] != 'u')
        return -1;
    memcpy(digits, text + 2, 4);
    for (size_t i = 0; i < 4; i++)
        if (!isxdigit((unsigned char)digits[i]))
            return -1;
    return (int)strtol(digits, NULL, 16);
}

static bool is_half(int unit, int first)
{
    return unit >= first && unit < first + 0x400;
}

/* How many bytes the escape at `text` has; 0: it cannot be kept. */
static size_t escape_bytes(const char *text, size_t left)
{
    int unit = unit_at(text, left);

    if (unit < 0)
        return left < 2 ? left : text[1] == 'x' ? 0 : 2;
    if (is_half(unit, 0xd800) && is_half(unit_at(text + UNIT_BYTES, left - UNIT_BYTES), 0xdc00))
        return 2 * UNIT_BYTES;
    return unit == 0 || is_half(unit, 0xd800) || is_half(unit, 0xdc00) ? 0 : UNIT_BYTES;
}

/* Writes to `out` (NULL: nowhere); returns how many bytes there are. */
static size_t double_escapes(const char *text, size_t bytes, char *out)
{
    size_t at = 0, used = 0, count;

    while (at < bytes) {
        count = text[at] == '\\' ? escape_bytes(text + at, bytes - at) : 1;
        if (count == 0 && out != NULL)
            out[used] = '\\';
        used += count == 0;
        count += count == 0;
        if (out != NULL)
            memcpy(out + used, text + at, count);
        used += count;
        at += count;
    }
    return used;
}

char *tbd_dap_mend(const char *text, size_t bytes, size_t *out_bytes)
{
    size_t length = tbd_escape(TBD_ESCAPE_UTF8, text, bytes, NULL, 0);
    char *escaped = malloc(length + 1), *mended = NULL;

    if (escaped == NULL)
        return NULL;
    (void)tbd_escape(TBD_ESCAPE_UTF8, text, bytes, escaped, length + 1);
    *out_bytes = double_escapes(escaped, length, NULL);
    mended = malloc(*out_bytes + 1);
    if (mended != NULL)
        mended[double_escapes(escaped, length, mended)] = '\0';
    free(escaped);
    return mended;
}
