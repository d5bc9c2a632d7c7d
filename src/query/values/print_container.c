// SPDX-License-Identifier: MIT
/* tbd_print_container.c - containers of the C++ library by their elements (print_private.h) */
#include "query/values/print_private.h"

#include "query/values/cxx_print.h"
#include "query/text/print_text.h"

#include <inttypes.h>
#include <string.h>

/* A known number of characters, which may include NULs. */
static void print_counted(struct tbd_print *p, const struct tbd_cxx *cxx)
{
    uint8_t text[TBD_TEXT_SHOWN];
    size_t count = 0;

    while (count < sizeof(text) && count < cxx->count &&
           tbd_data_read(p->printer->place, &cxx->data, count, &text[count], 1))
        count++;
    tbd_text_print(p->out, text, count, count < cxx->count);
    if (count < sizeof(text) && count < cxx->count)
        fputs(" <the rest is not known>", p->out);
}

/* One character, or the first half of one, of a wide string; returns how many units it takes. */
static uint32_t decode_wide(const uint32_t *units, size_t left, uint8_t width, uint32_t *out)
{
    *out = units[0];
    if (width != 2 || left < 2 || (units[0] & 0xfc00) != 0xd800 || (units[1] & 0xfc00) != 0xdc00)
        return 1;
    *out = 0x10000 + ((units[0] & 0x3ff) << 10) + (units[1] & 0x3ff);
    return 2;
}

static void print_wide_char(FILE *out, uint32_t c)
{
    if (c < 0x80)
        tbd_text_print_char(out, (uint8_t)c, '"');
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

/* L"...", u"..." or U"...", by the type of its characters. */
static void print_wide(struct tbd_print *p, const struct tbd_cxx *cxx)
{
    struct tbd_type_view view = tbd_type_look(&cxx->data.type);
    const char *name = view.die.addr == NULL ? NULL : tbd_die_name(&view.die);
    uint32_t units[TBD_TEXT_SHOWN] = { 0 }, c;
    size_t count = 0;

    while (
        count < TBD_TEXT_SHOWN && count < cxx->count &&
        tbd_data_read(p->printer->place, &cxx->data, count * cxx->width, &units[count], cxx->width))
        count++;
    fputs(name == NULL || strcmp(name, "wchar_t") == 0 ? "L\""
          : cxx->width == 2                            ? "u\""
                                                       : "U\"",
          p->out);
    for (size_t i = 0; i < count;) {
        i += decode_wide(units + i, count - i, cxx->width, &c);
        print_wide_char(p->out, c);
    }
    fputs(count < cxx->count ? "\"..." : "\"", p->out);
}

static void print_element(struct tbd_print *p, const struct tbd_cxx *cxx,
                          const struct tbd_data *element, const struct tbd_data *second)
{
    if (cxx->kind == TBD_CXX_POINTER)
        fputs("get() = ", p->out);
    if (cxx->kind == TBD_CXX_OPTIONAL)
        fputs("[contained value] = ", p->out);
    if (cxx->kind == TBD_CXX_NUMBERED)
        fprintf(p->out, "[%" PRIu64 "] = ", cxx->number);
    if (cxx->kind == TBD_CXX_MAP)
        fputc('[', p->out);
    tbd_print_value(p, element);
    if (cxx->kind != TBD_CXX_MAP)
        return;
    fputs("] = ", p->out);
    tbd_print_value(p, second);
}

/* A container of the C++ library; false: it is none. */
bool tbd_print_container(struct tbd_print *p, const struct tbd_data *data)
{
    struct tbd_cxx cxx;
    struct tbd_data element, second;

    if (!tbd_cxx_open(p->printer->place, data, &cxx))
        return false;
    if (cxx.kind == TBD_CXX_STRING || cxx.kind == TBD_CXX_WIDE) {
        fputs(cxx.title, p->out);
        if (cxx.kind == TBD_CXX_STRING)
            print_counted(p, &cxx);
        else
            print_wide(p, &cxx);
        return true;
    }
    if (cxx.kind == TBD_CXX_ITERATOR && tbd_cxx_next(p->printer->place, &cxx, &element, &second)) {
        tbd_print_value(p, &element);
        return true;
    }
    fputs(cxx.title, p->out);
    if (cxx.count == 0) {
        fputs(cxx.kind == TBD_CXX_OPTIONAL ? " [no contained value]" : "", p->out);
        return true;
    }
    fputs(" = {", p->out);
    for (uint64_t i = 0; i < cxx.count; i++) {
        fputs(i != 0 ? ", " : "", p->out);
        if (!tbd_print_may_go_on(p))
            break;
        if (!tbd_cxx_next(p->printer->place, &cxx, &element, &second)) {
            fputs("<the rest is damaged or not known>", p->out);
            break;
        }
        print_element(p, &cxx, &element, &second);
    }
    fputc('}', p->out);
    return true;
}
