// SPDX-License-Identifier: MIT
/* log_format.c - see log_format.h
 *
 * LOG_FORMAT-1  What reaches printf is made here: flags, width and precision of at most two digits each, a length
 *     that fits the argument, one letter.  Nothing that the user wrote is passed on as it is. (not checked:
 *     test_log_format) */
#include "query/log/log_format.h"

#include "base/escape.h"
#include "query/text/shortage.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

static char unescaped(char letter)
{
    return letter == 'n' ? '\n' : letter == 't' ? '\t' : letter;
}

/* "12" of "12d"; false: longer than two digits. */
static bool take_digits(const char **at, char *spec, size_t *length)
{
    unsigned digits = 0;

    while (isdigit((unsigned char)**at) && digits < 3) {
        spec[(*length)++] = *(*at)++;
        digits++;
    }
    return digits < 3;
}

/* Flags, width, precision; skips the length.  `at` is after the '%'. */
static const char *take_spec(const char *at, struct tbd_log_piece *piece)
{
    size_t length = 0;
    bool is_good;

    piece->spec[length++] = '%';
    while (*at != '\0' && strchr("-+ #0", *at) != NULL && length < 6)
        piece->spec[length++] = *at++;
    is_good = take_digits(&at, piece->spec, &length);
    if (*at == '.') {
        piece->spec[length++] = *at++;
        is_good = take_digits(&at, piece->spec, &length) && is_good;
    }
    piece->spec[length] = '\0';
    while (*at != '\0' && strchr("hlqjztL", *at) != NULL)
        at++;
    return is_good ? at : NULL;
}

/* Literal text up to a conversion or the end, to *io_to; "%%" is a percent sign. */
static const char *take_text(const char *at, char **io_to)
{
    char *to = *io_to;

    while (*at != '\0' && (*at != '%' || at[1] == '%')) {
        if (*at == '\\' && at[1] != '\0') {
            *to++ = unescaped(at[1]);
            at += 2;
        } else {
            at += *at == '%' ? 2 : 1;
            *to++ = at[-1];
        }
    }
    *io_to = to;
    return at;
}

static const char *take_conversion(const char *at, struct tbd_log_piece *piece, const char **why)
{
    *why = "the width and the precision have at most two digits each";
    at = take_spec(at + 1, piece);
    if (at == NULL)
        return NULL;
    *why = "unknown conversion: d i u x X o c p f e g a s and %% are known";
    if (*at == '\0' || strchr("diuxXocpfFeEgGaAs", *at) == NULL)
        return NULL;
    piece->conversion = *at;
    return at + 1;
}

bool tbd_log_format_read(const char *text, struct tbd_log_format *out, const char **why, size_t *at)
{
    const char *here = text, *next;
    char *to;

    *out = (struct tbd_log_format){ .text = malloc(strlen(text) + 1) };
    *why = "out of memory";
    to = out->text;
    for (; to != NULL; here = next) {
        struct tbd_log_piece *piece = &out->pieces[out->count];
        char *begin = to;

        piece->text = (uint32_t)(to - out->text);
        here = take_text(here, &to);
        piece->bytes = (uint32_t)(to - begin);
        if (*here == '\0') { /* a row ends anyway */
            out->ends_line = piece->bytes != 0 && to[-1] == '\n';
            piece->bytes -= out->ends_line;
            return true;
        }
        *why = "too many values";
        next = out->count == TBD_KEPT_MAX ? NULL : take_conversion(here, piece, why);
        if (next == NULL)
            break;
        out->count++;
    }
    *at = (size_t)(here - text);
    tbd_log_format_free(out);
    return false;
}

void tbd_log_format_free(struct tbd_log_format *format)
{
    free(format->text);
    format->text = NULL;
}

/* ---- writing ---- */

static double real_of(const struct tbd_kept_value *value)
{
    double real;

    memcpy(&real, &value->v, sizeof(real));
    return value->state == TBD_KEPT_REAL ? real : (double)(int64_t)value->v;
}

/* A real number becomes an integer as in C, as far as one can hold it. */
static uint64_t integer_of(const struct tbd_kept_value *value)
{
    double real = real_of(value);

    if (value->state != TBD_KEPT_REAL)
        return value->v;
    return real > -9.2e18 && real < 9.2e18 ? (uint64_t)(int64_t)real : 0;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* LOG_FORMAT-1 */

static void write_text(const struct tbd_log_piece *piece, const struct tbd_kept_value *record,
                       const struct tbd_kept_value *value, FILE *out)
{
    char brief[TBD_KEPT_TEXT_MAX * TBD_ESCAPE_MAX + 1], spec[TBD_LOG_SPEC_MAX + 2];
    size_t bytes = (size_t)value->bytes * TBD_ESCAPE_MAX + 1;
    char *shown = bytes <= sizeof(brief) ? brief : malloc(bytes);

    if (shown == NULL) {
        tbd_shortage_note();
        return;
    }
    (void)tbd_escape(TBD_ESCAPE_FIELD, (const char *)record + value->text, value->bytes, shown,
                     bytes);
    snprintf(spec, sizeof(spec), "%ss", piece->spec);
    fprintf(out, spec, shown);
    if (shown != brief)
        free(shown);
}

static void write_number(const struct tbd_log_piece *piece, const struct tbd_kept_value *value,
                         FILE *out)
{
    char spec[TBD_LOG_SPEC_MAX + 8];
    bool is_real = strchr("fFeEgGaA", piece->conversion) != NULL;

    if (piece->conversion == 'c') {
        (void)tbd_escape(TBD_ESCAPE_FIELD, (const char[]){ (char)value->v, '\0' }, 1, spec,
                         sizeof(spec));
        fputs(spec, out);
    } else if (piece->conversion == 'p') {
        fprintf(out, "0x%llx", (unsigned long long)value->v);
    } else if (is_real) {
        snprintf(spec, sizeof(spec), "%s%c", piece->spec, piece->conversion);
        fprintf(out, spec, real_of(value));
    } else {
        snprintf(spec, sizeof(spec), "%sll%c", piece->spec, piece->conversion);
        fprintf(out, spec, (unsigned long long)integer_of(value));
    }
}

#pragma GCC diagnostic pop

void tbd_log_format_write(const struct tbd_log_format *format, const struct tbd_kept_value *record,
                          FILE *out)
{
    for (uint32_t i = 0; i <= format->count; i++) {
        const struct tbd_log_piece *piece = &format->pieces[i];

        fwrite(format->text + piece->text, 1, piece->bytes, out);
        if (i == format->count)
            break;
        switch ((enum tbd_kept_state)record[i].state) {
        case TBD_KEPT_NONE: fputs("<unavailable>", out); break;
        case TBD_KEPT_OPTIMIZED: fputs("<optimized out>", out); break;
        case TBD_KEPT_TEXT: write_text(piece, record, &record[i], out); break;
        default: write_number(piece, &record[i], out); break;
        }
    }
}
