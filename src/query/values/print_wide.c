// SPDX-License-Identifier: MIT
/* print_wide.c - characters of two and four bytes, and strings of them, as gdb writes them
 * (print_private.h)
 *
 * PRINT_WIDE-1  At most TBD_TEXT_SHOWN characters are read. (not checked: it is the bound of a
 *     loop) */
#include "query/values/print_private.h"

#include "query/text/print_text.h"

#include <inttypes.h>

bool tbd_print_is_wide(const struct tbd_type_view *view)
{
    return view->wide != 0;
}

/* One character, or the first half of one, of a string; returns how many units it takes. */
static size_t decode(const uint32_t *units, size_t left, uint64_t width, uint32_t *out)
{
    *out = units[0];
    if (width != 2 || left < 2 || (units[0] & 0xfc00) != 0xd800 || (units[1] & 0xfc00) != 0xdc00)
        return 1;
    *out = 0x10000 + ((units[0] & 0x3ff) << 10) + (units[1] & 0x3ff);
    return 2;
}

static void print_char(FILE *out, uint32_t c, char quote)
{
    if (c < 0x80)
        tbd_text_print_char(out, (uint8_t)c, quote);
    else if (c < 0xa0 || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
        fprintf(out, "\\%o", c);
    else if (c < 0x800)
        fprintf(out, "%c%c", 0xc0 | c >> 6, 0x80 | (c & 0x3f));
    else if (c < 0x10000)
        fprintf(out, "%c%c%c", 0xe0 | c >> 12, 0x80 | (c >> 6 & 0x3f), 0x80 | (c & 0x3f));
    else
        fprintf(out, "%c%c%c%c", 0xf0 | c >> 18, 0x80 | (c >> 12 & 0x3f), 0x80 | (c >> 6 & 0x3f),
                0x80 | (c & 0x3f));
}

void tbd_print_wide_char(struct tbd_print *p, const struct tbd_type_view *view, uint64_t value)
{
    fprintf(p->out, "%" PRIu64 " %c'", value, view->wide);
    print_char(p->out, (uint32_t)value, '\'');
    fputc('\'', p->out);
}

/* How often the unit at `at` is repeated. */
static size_t run_of(const uint32_t *units, size_t at, size_t count)
{
    size_t run = 1;

    while (at + run < count && units[at + run] == units[at])
        run++;
    return run;
}

/* Long runs stand between the quoted parts: L"ab", L'\000' <repeats 20 times>. */
static void print_units(FILE *out, char prefix, const uint32_t *units, size_t count, uint64_t width)
{
    bool quoted = false;
    uint32_t c;

    for (size_t at = 0, run; at < count;) {
        run = run_of(units, at, count);
        if (run > TBD_TEXT_REPEATS) {
            fprintf(out, "%s%s%c'", quoted ? "\"" : "", at != 0 ? ", " : "", prefix);
            print_char(out, units[at], '\'');
            fprintf(out, "' <repeats %zu times>", run);
            quoted = false;
            at += run;
            continue;
        }
        if (!quoted)
            fprintf(out, "%s%c\"", at != 0 ? ", " : "", prefix);
        quoted = true;
        at += decode(units + at, count - at, width, &c);
        print_char(out, c, '"');
    }
    if (count == 0)
        fprintf(out, "%c\"", prefix);
    fputs(quoted || count == 0 ? "\"" : "", out);
}

void tbd_print_wide(struct tbd_print *p, const struct tbd_data *first, uint64_t count)
{
    struct tbd_type_view view = tbd_type_look(&first->type);
    uint32_t units[TBD_TEXT_SHOWN] = { 0 };
    size_t known = 0;

    if (view.bytes != 2 && view.bytes != 4)
        return;
    while (known < TBD_TEXT_SHOWN && known < count &&
           tbd_data_read(p->printer->place, first, known * view.bytes, &units[known],
                         (size_t)view.bytes))
        known++;
    print_units(p->out, view.wide == 0 ? 'L' : view.wide, units, known, view.bytes);
    if (known < count && known < TBD_TEXT_SHOWN)
        tbd_print_unknown_rest(p);
    else if (known < count)
        fputs("...", p->out);
}

void tbd_print_wide_array(struct tbd_print *p, const struct tbd_data *data, uint64_t count)
{
    struct tbd_data first;
    struct tbd_type type;
    uint64_t last = 1;

    if (!tbd_type_target(&data->type, &type))
        return;
    tbd_data_part(data, 0, &type, &first);
    /* A NUL at the end goes without saying. */
    if (count != 0 && count <= TBD_TEXT_SHOWN) {
        size_t bytes = (size_t)tbd_type_look(&type).bytes;

        last = 0;
        if (!tbd_data_read(p->printer->place, &first, (count - 1) * bytes, &last, bytes))
            last = 1;
    }
    tbd_print_wide(p, &first, count - (last == 0));
}

void tbd_print_wide_pointer(struct tbd_print *p, uint64_t address, const struct tbd_type *type)
{
    size_t bytes = (size_t)tbd_type_look(type).bytes, count = 0;
    struct tbd_data first;
    uint32_t unit = 1;
    bool is_known = true;

    tbd_data_at(address, type, &first);
    while (count <= TBD_TEXT_SHOWN && unit != 0) {
        is_known = tbd_data_read(p->printer->place, &first, count * bytes, &unit, bytes);
        if (!is_known)
            break;
        count += unit != 0;
    }
    if (count == 0 && !is_known)
        return;
    fputc(' ', p->out);
    tbd_print_wide(p, &first, count);
    if (!is_known && count < TBD_TEXT_SHOWN)
        tbd_print_unknown_rest(p);
}
