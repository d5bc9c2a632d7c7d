// SPDX-License-Identifier: MIT
/* safe_stream.c - see safe_stream.h
 *
 * SAFE_STREAM-1  A character that is split between two writes is joined before it is checked. (not
 *     checked: test_escape does) */
#include "base/safe_stream.h"

#include "base/escape.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES 512u

struct safe {
    FILE *to;     /* borrowed */
    char held[4]; /* the beginning of a character */
    size_t held_bytes;
};

static bool write_piece(const struct safe *safe, const char *text, size_t length)
{
    char escaped[PIECE_BYTES * 4 + 4 * TBD_ESCAPE_MAX];
    size_t bytes = tbd_escape(TBD_ESCAPE_LINES, text, length, escaped, sizeof(escaped));

    return fwrite(escaped, 1, bytes, safe->to) == bytes;
}

/* Takes the kept bytes, and as much of the text as fits after them; returns how much. */
static size_t take_piece(struct safe *safe, const char *text, size_t length,
                         char piece[PIECE_BYTES + 4], size_t *out_bytes)
{
    size_t taken = length < PIECE_BYTES ? length : PIECE_BYTES;
    size_t bytes = safe->held_bytes + taken;

    memcpy(piece, safe->held, safe->held_bytes);
    memcpy(piece + safe->held_bytes, text, taken);
    safe->held_bytes = tbd_escape_unfinished(piece, bytes);
    *out_bytes = bytes - safe->held_bytes;
    memcpy(safe->held, piece + *out_bytes, safe->held_bytes);
    return taken;
}

/* Writes what stays as it is, if no beginning of a character goes before it; returns how much. */
static size_t write_plain(const struct safe *safe, const char *text, size_t length)
{
    size_t plain = safe->held_bytes != 0 ? 0 : tbd_escape_plain_lines(text, length);

    return plain == 0 ? 0 : fwrite(text, 1, plain, safe->to);
}

/* Keeps SAFE_STREAM-1. */
static ssize_t write_safe(void *context, const char *text, size_t count)
{
    struct safe *safe = context;
    size_t bytes, taken, at = write_plain(safe, text, count);
    char piece[PIECE_BYTES + 4];

    for (; at < count; at += taken) {
        taken = take_piece(safe, text + at, count - at, piece, &bytes);
        if (!write_piece(safe, piece, bytes) || ferror(safe->to))
            return 0;
    }
    return (ssize_t)count;
}

static int close_safe(void *context)
{
    struct safe *safe = context;
    bool good = write_piece(safe, safe->held, safe->held_bytes);

    good = fflush(safe->to) == 0 && good;
    free(safe);
    return good ? 0 : -1;
}

FILE *tbd_safe_stream(FILE *to)
{
    struct safe *safe = calloc(1, sizeof(*safe));
    FILE *stream = NULL;

    if (safe == NULL)
        return NULL;
    safe->to = to;
    stream =
        fopencookie(safe, "w", (cookie_io_functions_t){ .write = write_safe, .close = close_safe });
    if (stream == NULL)
        free(safe);
    else
        setvbuf(stream, NULL, _IOLBF, 0);
    return stream;
}

/* stderr is a variable in glibc: "it can be set like any other" (libc manual, Standard Streams). It
 * is never closed. */
void tbd_safe_messages(void)
{
    static struct safe messages;
    FILE *stream;

    messages.to = stderr;
    stream = fopencookie(&messages, "w", (cookie_io_functions_t){ .write = write_safe });
    if (stream != NULL) {
        setvbuf(stream, NULL, _IONBF, 0);
        stderr = stream;
    }
}

const char *tbd_shown(const char *text)
{
    static _Thread_local char shown[TBD_SHOWN_AT_ONCE][TBD_SHOWN_BYTES];
    static _Thread_local unsigned next;
    char *out = shown[next++ % TBD_SHOWN_AT_ONCE];

    if (tbd_escape(TBD_ESCAPE_FIELD, text, strlen(text), out, TBD_SHOWN_BYTES - 3) >=
        TBD_SHOWN_BYTES - 3)
        strcat(out, "...");
    return out;
}

char *tbd_shown_copy(const char *text)
{
    size_t length = strlen(text);
    size_t bytes = tbd_escape(TBD_ESCAPE_FIELD, text, length, NULL, 0) + 1;
    char *out = malloc(bytes);

    if (out != NULL)
        (void)tbd_escape(TBD_ESCAPE_FIELD, text, length, out, bytes);
    return out;
}
