// SPDX-License-Identifier: MIT
/* escape.c - see escape.h
 *
 * ESCAPE-1  The output has no byte below 0x20 and no 0x7f, except those that TBD_ESCAPE_LINES
 *     keeps. (not checked: test_escape does)
 * ESCAPE-2  The output is UTF-8, by RFC 3629: no overlong forms, no surrogates. (not checked:
 *     test_escape does) */
#include "base/escape.h"

#include "base/string.h"

#include <stdint.h>

#define IS_BYTE UINT32_MAX /* no character begins here */

struct range32 {
    uint32_t first, last;
};

/* Characters outside ASCII that control a terminal or are invisible.  Sorted. */
static const struct range32 harmful[] = {
    { 0x80, 0x9f },       /* C1: 0x9b is ESC [ */
    { 0xad, 0xad },       /* soft hyphen */
    { 0x61c, 0x61c },     /* Arabic letter mark */
    { 0x115f, 0x1160 },   /* fillers of Hangul */
    { 0x180e, 0x180e },   /* vowel separator */
    { 0x200b, 0x200f },   /* no width, marks of direction */
    { 0x2028, 0x202e },   /* line and paragraph separator, embeddings and overrides */
    { 0x2060, 0x206f },   /* no width, isolates, deprecated formats */
    { 0x3164, 0x3164 },   /* filler */
    { 0xfeff, 0xfeff },   /* byte order mark */
    { 0xffa0, 0xffa0 },   /* filler */
    { 0xfff9, 0xfffb },   /* annotations */
    { 0xe0000, 0xe007f }, /* tags */
};

static bool is_harmful(uint32_t character)
{
    for (size_t i = 0; i < sizeof(harmful) / sizeof(harmful[0]); i++) {
        if (character >= harmful[i].first && character <= harmful[i].last)
            return true;
    }
    return false;
}

/* Length of a character with this first byte; 0: no character begins with it. */
static size_t length_of(uint8_t first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xc2)
        return 0;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

/* Is it a surrogate, an overlong form, or beyond Unicode? */
static bool is_wrong(uint32_t character, size_t length)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };

    return character < least[length] || character > 0x10ffff ||
           (character >= 0xd800 && character < 0xe000);
}

/* Returns the character that begins here, and its length; IS_BYTE with length 1 if none does. */
static uint32_t decode(const char *text, size_t left, size_t *out_length)
{
    static const uint8_t masks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    size_t length = length_of((uint8_t)text[0]);
    uint32_t character;

    *out_length = 1;
    if (length == 0 || length > left)
        return IS_BYTE;
    character = (uint8_t)text[0] & masks[length];
    for (size_t i = 1; i < length; i++) {
        if (((uint8_t)text[i] & 0xc0) != 0x80)
            return IS_BYTE;
        character = character << 6 | ((uint8_t)text[i] & 0x3f);
    }
    if (is_wrong(character, length))
        return IS_BYTE;
    *out_length = length;
    return character;
}

/* May the character here stay as it is? */
static bool stays(enum tbd_escape_what what, uint32_t character, const char *next, size_t left)
{
    if (character == IS_BYTE)
        return false;
    if (what == TBD_ESCAPE_UTF8)
        return true;
    if (what == TBD_ESCAPE_LINES && (character == '\n' || character == '\t' ||
                                     (character == '\r' && left != 0 && *next == '\n')))
        return true;
    return character >= 0x20 && character != 0x7f && (character < 0x80 || !is_harmful(character));
}

/* ---- escapes ---- */

static size_t write_hex(char *out, char letter, uint32_t value, size_t digits)
{
    out[0] = '\\';
    out[1] = letter;
    for (size_t i = 0; i < digits; i++)
        out[2 + i] = "0123456789abcdef"[value >> (4 * (digits - 1 - i)) & 15];
    return 2 + digits;
}

/* Returns the length of the escape; at most TBD_ESCAPE_MAX. */
static size_t write_escape(uint32_t character, uint8_t byte, char out[TBD_ESCAPE_MAX])
{
    static const char letters[] = "abtnvfr"; /* from 7 on */

    if (character == IS_BYTE)
        return write_hex(out, 'x', byte, 2);
    if (character >= 7 && character <= 13) {
        out[0] = '\\';
        out[1] = letters[character - 7];
        return 2;
    }
    if (character < 0x80)
        return write_hex(out, 'x', character, 2);
    return character < 0x10000 ? write_hex(out, 'u', character, 4)
                               : write_hex(out, 'U', character, 6);
}

/* ---- texts ---- */

#define EACH(byte) (0x0101010101010101u * (byte))

/* Are these eight bytes printable ASCII?  Sums of seven bits each do not carry into the next byte. */
static bool are_plain(const char *text, bool or_newlines)
{
    uint64_t bytes, low, newlines;

    memcpy(&bytes, text, sizeof(bytes));
    low = bytes & EACH(0x7fu);
    newlines = or_newlines ? ~((low ^ EACH((uint64_t)'\n')) + EACH(0x7fu)) : 0;
    return ((bytes | (low + EACH(1u)) | ~((low + EACH(0x60u)) | newlines)) & EACH(0x80u)) == 0;
}

static bool is_plain(char c, bool or_newlines)
{
    return ((uint8_t)c >= 0x20 && (uint8_t)c < 0x7f) || (or_newlines && c == '\n');
}

/* How many bytes from here on stay as they are, whatever is escaped: most of all text. */
static inline size_t plain_run(const char *text, size_t length, bool or_newlines)
{
    size_t run = 0;

    while (length - run >= 8 && are_plain(text + run, or_newlines))
        run += 8;
    while (run < length && is_plain(text[run], or_newlines))
        run++;
    return run;
}

size_t tbd_escape_plain_lines(const char *text, size_t length)
{
    return plain_run(text, length, true);
}

/* What is written, and what the whole text needs. */
struct escaped {
    char *out;
    size_t capacity, used, need;
};

/* Plain bytes: as many as fit. */
static void put_run(struct escaped *e, const char *run, size_t bytes)
{
    size_t left = e->capacity == 0 ? 0 : e->capacity - e->used - 1;

    if (e->need == e->used && left != 0) {
        size_t fits = bytes < left ? bytes : left;

        memcpy(e->out + e->used, run, fits);
        e->used += fits;
    }
    e->need += bytes;
}

/* A character or an escape: all of it, or nothing. */
static void put_whole(struct escaped *e, const char *piece, size_t bytes)
{
    if (e->need == e->used && bytes < e->capacity - e->used) {
        for (size_t i = 0; i < bytes; i++)
            e->out[e->used++] = piece[i];
    }
    e->need += bytes;
}

size_t tbd_escape(enum tbd_escape_what what, const char *text, size_t length, char *out,
                  size_t capacity)
{
    struct escaped e = { .out = out, .capacity = capacity };
    size_t step;

    for (size_t at = 0; at < length; at += step) {
        char escape[TBD_ESCAPE_MAX];
        uint32_t character;

        step = plain_run(text + at, length - at, false);
        if (step != 0) {
            put_run(&e, text + at, step);
            continue;
        }
        character = decode(text + at, length - at, &step);
        if (stays(what, character, text + at + step, length - at - step))
            put_whole(&e, text + at, step);
        else
            put_whole(&e, escape, write_escape(character, (uint8_t)text[at], escape));
    }
    if (capacity != 0)
        out[e.used] = '\0';
    return e.need;
}

bool tbd_escape_is_plain(enum tbd_escape_what what, const char *text, size_t length)
{
    size_t step;

    for (size_t at = plain_run(text, length, false); at < length; at += step) {
        uint32_t character = decode(text + at, length - at, &step);

        if (!stays(what, character, text + at + step, length - at - step))
            return false;
    }
    return true;
}

size_t tbd_escape_unfinished(const char *text, size_t length)
{
    for (size_t back = 1; back <= 3 && back <= length; back++) {
        uint8_t byte = (uint8_t)text[length - back];

        if (byte == '\r' && back == 1)
            return 1; /* a newline may follow */
        if ((byte & 0xc0) != 0x80)
            return length_of(byte) > back ? back : 0;
    }
    return 0;
}
