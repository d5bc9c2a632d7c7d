// SPDX-License-Identifier: MIT
/* break_place.c - see break_place.h */
#include "query/commands/break_place.h"

#include "query/commands/functions.h"
#include "query/session/code/inlined.h"
#include "query/session/source/source.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool is_number(const char *text, const char *end)
{
    const char *at = text;

    while (at < end && isdigit((unsigned char)*at))
        at++;
    return at == end && at > text;
}

/* Such names are looked up; others are patterns, which need not fit anything. */
static bool is_identifier(const char *text, const char *end)
{
    const char *at = text;

    while (at < end && (isalnum((unsigned char)*at) || *at == '_'))
        at++;
    return at == end && !isdigit((unsigned char)*text);
}

/* The name of the source file at the current position; NULL: none is known.  Without its folder: a condition
 * does not know a path with ".." in it. */
static const char *current_file(struct tbd_session *session)
{
    struct tbd_source_line line;
    struct tbd_place place;
    const char *slash;

    if (tbd_session_place(session, tbd_session_current(session), &place) != TBD_OK ||
        !tbd_source_line_at(session, place.window, place.pc, &line))
        return NULL;
    slash = strrchr(line.file, '/');
    return slash == NULL ? line.file : slash + 1;
}

/* The first instructions of a function's inlined copies and of its own code; NULL: it is not inlined,
 * or the name is a pattern. */
static char *inlined_question(struct tbd_session *session, const char *place, size_t length)
{
    struct tbd_position here = tbd_session_current(session);
    uint32_t window = tbd_trace_window_of(session->trace, here.time);
    char *name = strndup(place, length), *out = NULL;
    struct tbd_symbol own[TBD_FUNCTIONS_MAX];
    struct tbd_dwarf_inlined *all = NULL;
    size_t count = 0, own_count = 0, bytes = 0;
    FILE *text;

    if (name != NULL && strpbrk(name, "*?[!\"") == NULL && window != UINT32_MAX)
        all = tbd_inlined_find(session->symbols, window, name, &count);
    if (count != 0)
        own_count = tbd_functions_called(session, window, name, own);
    free(name);
    text = count == 0 ? NULL : open_memstream(&out, &bytes);
    for (size_t i = 0; text != NULL && i < count; i++)
        fprintf(text, "%spc==%#" PRIx64, i == 0 ? "state where (" : " or ", all[i].entry);
    for (size_t i = 0; text != NULL && i < own_count; i++)
        fprintf(text, " or pc==%#" PRIx64, own[i].start);
    if (text != NULL) {
        fputc(')', text);
        fclose(text);
    }
    free(all);
    return out;
}

/* "line where src=<FILE,LINE>" */
static char *line_question(const char *file, int file_length, const char *line, int line_length)
{
    char *out;

    return asprintf(&out, "line where src=<%.*s,%.*s>", file_length, file, line_length, line) < 0
               ? NULL
               : out;
}

/* "*0x401136", where gdb has an address; "*name*" is a pattern. */
static bool is_address(const char *text, const char *end)
{
    return end - text > 1 && *text == '*' && isdigit((unsigned char)text[1]);
}

/* "state where pc==ADDRESS"; NULL: it is no number. */
static char *address_question(const char *text, const char *end, const char **out_why)
{
    char number[32], *stop, *out;
    uint64_t address;

    snprintf(number, sizeof(number), "%.*s", (int)(end - text), text);
    address = strtoull(number, &stop, 0);
    if (*stop != '\0' || stop - number != end - text) {
        *out_why = "an address is a number: *0x401136";
        return NULL;
    }
    return asprintf(&out, "state where pc==%#" PRIx64, address) < 0 ? NULL : out;
}

static bool is_quoted(const char *text, const char *end)
{
    return end - text > 2 && *text == '"' &&
           memchr(text + 1, '"', (size_t)(end - text - 1)) == end - 1;
}

char *tbd_break_place(struct tbd_session *session, const char *text, size_t length,
                      const char **out_why)
{
    const char *end = text + length, *colon = end, *file, *quote;
    char *out = NULL;

    *out_why = NULL;
    if (is_quoted(text, end)) {
        text++;
        end--;
        length -= 2;
        colon = end;
    }
    if (is_address(text, end))
        return address_question(text + 1, end, out_why);
    while (colon > text && *colon != ':')
        colon--;
    if (is_number(text, end)) {
        file = current_file(session);
        if (file == NULL)
            *out_why = "no source file is known here: FILE:LINE";
        return file == NULL ? NULL : line_question(file, (int)strlen(file), text, (int)length);
    }
    if (colon > text && is_number(colon + 1, end))
        return line_question(text, (int)(colon - text), colon + 1, (int)(end - colon - 1));
    if (memchr(text, '"', length) != NULL) {
        *out_why = "a place is a function, FILE:LINE, a line's number, or *ADDRESS";
        return NULL;
    }
    out = inlined_question(session, text, length);
    if (out != NULL)
        return out;
    quote = is_identifier(text, end) ? "" : "\"";
    return asprintf(&out, "func_enter where func==%s%.*s%s", quote, (int)length, text, quote) < 0
               ? NULL
               : out;
}
