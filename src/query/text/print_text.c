// SPDX-License-Identifier: MIT
/* print_text.c - see print_text.h */
#include "query/text/print_text.h"

#include <ctype.h>
#include <string.h>

void tbd_text_print_char(FILE *out, uint8_t c, char quote)
{
    static const char from[] = "\a\b\f\n\r\t\v\033";
    static const char to[] = "abfnrtve";
    const char *found = c == 0 ? NULL : strchr(from, c);

    if (c == (uint8_t)quote || c == '\\')
        fprintf(out, "\\%c", c);
    else if (found != NULL && *found == '\033')
        fprintf(out, "\\033");
    else if (found != NULL)
        fprintf(out, "\\%c", to[found - from]);
    else if (isprint(c))
        fputc(c, out);
    else
        fprintf(out, "\\%03o", c);
}

/* The number of equal characters at the beginning of `text`. */
static size_t run_of(const uint8_t *text, size_t count)
{
    size_t run = 1;

    while (run < count && text[run] == text[0])
        run++;
    return run;
}

/* Prints the quotes and the comma between two parts of a string. */
static void print_between(FILE *out, size_t at, bool was_quoted, bool is_quoted)
{
    if (at != 0 && was_quoted && is_quoted)
        return;
    if (at != 0)
        fputs(was_quoted ? "\", " : ", ", out);
    fputs(is_quoted ? "\"" : "", out);
}

static void print_run(FILE *out, uint8_t c, size_t run)
{
    if (run > TBD_TEXT_REPEATS) {
        fputc('\'', out);
        tbd_text_print_char(out, c, '\'');
        fprintf(out, "' <repeats %zu times>", run);
    }
    for (size_t i = 0; i < run && run <= TBD_TEXT_REPEATS; i++)
        tbd_text_print_char(out, c, '"');
}

void tbd_text_print(FILE *out, const uint8_t *text, size_t count, bool is_cut)
{
    bool quoted = true;
    size_t at = 0;

    if (!is_cut && count != 0 && text[count - 1] == 0)
        count--;
    if (count == 0)
        fputc('"', out);
    for (size_t run; at < count && at < TBD_TEXT_SHOWN; at += run) {
        run = run_of(text + at, count - at);
        print_between(out, at, quoted, run <= TBD_TEXT_REPEATS);
        quoted = run <= TBD_TEXT_REPEATS;
        print_run(out, text[at], run);
    }
    fputs(quoted ? "\"" : "", out);
    fputs(is_cut || at < count ? "..." : "", out);
}
