// SPDX-License-Identifier: MIT
/* print_scalar.c - numbers, characters, enumerators and pointers as text (print_private.h)
 *
 * PRINT_SCALAR-1  Reads are bounded: TBD_PRINT_ARRAY_BYTES of an array. */
#include "query/values/print_private.h"

#include "base/assert.h"
#include "query/text/print_text.h"

#include <dwarf.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FLAGS_MAX 64

/* ---- characters ---- */

bool tbd_print_is_char(const struct tbd_type_view *view)
{
    return view->kind == TBD_TYPE_INTEGER && view->bytes == 1 &&
           (view->encoding == DW_ATE_signed_char || view->encoding == DW_ATE_unsigned_char);
}

/* Up to the terminating NUL. */
static void print_string(struct tbd_print *p, uint64_t address)
{
    const struct tbd_stack_memory *memory = p->printer->place->memory;
    uint8_t text[TBD_TEXT_SHOWN];
    bool is_known = true;
    size_t count = 0;

    if (memory == NULL || !memory->read(memory->context, address, text, 1))
        return;
    while (count < sizeof(text) && is_known) {
        is_known = memory->read(memory->context, address + count, &text[count], 1);
        if (!is_known || text[count] == 0)
            break;
        count++;
    }
    fputc(' ', p->out);
    tbd_text_print(p->out, text, count, count == sizeof(text));
    if (!is_known)
        tbd_print_unknown_rest(p);
}

/* The characters that are known, up to `most`. */
static size_t read_chars(const struct tbd_print *p, const struct tbd_data *data, uint8_t *text,
                         size_t most)
{
    size_t known = 0;

    while (known < most && tbd_data_read(p->printer->place, data, known, &text[known], 1))
        known++;
    return known;
}

/* The whole array, if it is known, else the part that is shown. */
bool tbd_print_chars(struct tbd_print *p, const struct tbd_data *data, uint64_t count)
{
    size_t wanted = count < TBD_PRINT_ARRAY_BYTES ? (size_t)count : TBD_PRINT_ARRAY_BYTES;
    size_t shown = wanted < TBD_TEXT_SHOWN ? wanted : TBD_TEXT_SHOWN;
    uint8_t *text = malloc(wanted);
    size_t known;

    if (text == NULL)
        return false;
    TBD_INVARIANT("PRINT_SCALAR-1", wanted <= TBD_PRINT_ARRAY_BYTES && shown <= TBD_TEXT_SHOWN);
    known = tbd_data_read(p->printer->place, data, 0, text, wanted)
                ? wanted
                : read_chars(p, data, text, shown);
    if (known != 0)
        tbd_text_print(p->out, text, known, known >= shown && known < count);
    if (known != 0 && known < shown)
        tbd_print_unknown_rest(p);
    free(text);
    return known != 0;
}

/* ---- scalars ---- */

static void print_binary(FILE *out, uint64_t value)
{
    int top = value == 0 ? 0 : 63 - __builtin_clzll(value);

    for (int bit = top; bit >= 0; bit--)
        fputc('0' + (int)(value >> bit & 1), out);
}

static uint64_t mask_of(uint64_t bytes)
{
    return bytes >= 8 || bytes == 0 ? UINT64_MAX : (1ull << bytes * 8) - 1;
}

static void print_formatted(struct tbd_print *p, uint64_t value, uint64_t bytes)
{
    uint64_t narrow = value & mask_of(bytes);

    switch (p->printer->format) {
    case 'x': fprintf(p->out, "0x%" PRIx64, narrow); break;
    case 'o': fprintf(p->out, narrow == 0 ? "0" : "0%" PRIo64, narrow); break;
    case 't': print_binary(p->out, narrow); break;
    case 'u': fprintf(p->out, "%" PRIu64, narrow); break;
    case 'c':
        fprintf(p->out, "%" PRId64 " '", (int64_t)value);
        tbd_text_print_char(p->out, (uint8_t)value, '\'');
        fputc('\'', p->out);
        break;
    default: fprintf(p->out, "%" PRId64, (int64_t)value); break;
    }
}

/* Integers of 16 bytes. */
static bool print_large(struct tbd_print *p, const struct tbd_data *data, bool is_signed)
{
    unsigned __int128 value;
    char digits[48] = "", *at = digits + sizeof(digits) - 1;
    unsigned base = p->printer->format == 'x' ? 16 : p->printer->format == 'o' ? 8 : 10;
    bool is_negative;

    if (!tbd_data_read(p->printer->place, data, 0, &value, sizeof(value)))
        return false;
    is_negative = is_signed && base == 10 && p->printer->format != 'u' && (value >> 127) != 0;
    value = is_negative ? -value : value;
    do
        *--at = "0123456789abcdef"[value % base];
    while ((value /= base) != 0);
    fprintf(p->out, "%s%s%s", is_negative ? "-" : "", base == 16 ? "0x" : base == 8 ? "0" : "", at);
    return true;
}

static void print_integer(struct tbd_print *p, const struct tbd_type_view *view, uint64_t value)
{
    if (view->encoding == DW_ATE_boolean && value <= 1)
        fputs(value != 0 ? "true" : "false", p->out);
    else if (view->is_signed)
        fprintf(p->out, "%" PRId64, (int64_t)value);
    else
        fprintf(p->out, "%" PRIu64, value);
    if (!tbd_print_is_char(view))
        return;
    fputs(" '", p->out);
    tbd_text_print_char(p->out, (uint8_t)value, '\'');
    fputc('\'', p->out);
}

bool tbd_print_is_number(const struct tbd_type_view *view)
{
    return view->kind == TBD_TYPE_INTEGER && view->encoding != DW_ATE_boolean &&
           !tbd_print_is_char(view) && !tbd_print_is_wide(view);
}

/* In C++ "ns::" before the values of `enum ns::kind`, "ns::Color::" before those of `enum
 * class ns::Color`. */
static void print_enum_scope(struct tbd_print *p, const struct tbd_type_view *view)
{
    struct tbd_type type = tbd_type_from(&view->die);
    char text[256], *last = NULL;

    (void)tbd_type_text(&type, text, sizeof(text));
    if (strncmp(text, "enum ", 5) == 0 || tbd_die_name(&view->die) == NULL)
        return;
    for (char *at = text; (at = strstr(at, "::")) != NULL; at += 2)
        last = at + 2;
    if (tbd_die_flag(&view->die, DW_AT_enum_class))
        fprintf(p->out, "%s::", text);
    else if (last != NULL)
        fprintf(p->out, "%.*s", (int)(last - text), text);
}

/* Are the enumeration's values single bits (or 0), to be combined? */
static bool has_flags(const Dwarf_Die *enumeration, bool is_signed)
{
    unsigned count = 0;
    uint64_t number;
    Dwarf_Die die;

    for (bool more = tbd_die_child(enumeration, &die); more; more = tbd_die_next(&die, &die)) {
        if (dwarf_tag(&die) != DW_TAG_enumerator)
            continue;
        if (!tbd_die_number(&die, DW_AT_const_value, &number) || (number & (number - 1)) != 0 ||
            (is_signed && (int64_t)number < 0) || ++count > FLAGS_MAX)
            return false;
    }
    return count != 0;
}

/* (low | high | unknown: 0x8) */
static void print_flags(struct tbd_print *p, const struct tbd_type_view *view, uint64_t value)
{
    const char *before = "(";
    uint64_t number;
    Dwarf_Die die;

    if (value == 0) {
        fputc('0', p->out);
        return;
    }
    for (bool more = tbd_die_child(&view->die, &die); more; more = tbd_die_next(&die, &die)) {
        if (dwarf_tag(&die) != DW_TAG_enumerator ||
            !tbd_die_number(&die, DW_AT_const_value, &number) || (value & number) == 0)
            continue;
        value &= ~number;
        fputs(before, p->out);
        print_enum_scope(p, view);
        fputs(tbd_die_name(&die), p->out);
        before = " | ";
    }
    if (value != 0)
        fprintf(p->out, "%sunknown: 0x%" PRIx64, before, value);
    fputc(')', p->out);
}

static void print_enum(struct tbd_print *p, const struct tbd_type_view *view, uint64_t value)
{
    const char *name = tbd_type_enumerator(&view->die, value);

    if (name != NULL) {
        print_enum_scope(p, view);
        fputs(name, p->out);
    } else if (has_flags(&view->die, view->is_signed)) {
        print_flags(p, view, value & mask_of(view->bytes));
    } else if (view->is_signed) {
        fprintf(p->out, "%" PRId64, (int64_t)value);
    } else {
        fprintf(p->out, "%" PRIu64, value);
    }
}

static void print_pointer(struct tbd_print *p, const struct tbd_type *type, uint64_t value)
{
    const struct tbd_printer *printer = p->printer;
    struct tbd_type target;
    struct tbd_type_view view;
    char name[256];

    fprintf(p->out, "0x%" PRIx64, value);
    if (value == 0 || !tbd_type_target(type, &target))
        return;
    view = tbd_type_look(&target);
    if (tbd_print_is_char(&view))
        print_string(p, value);
    else if (view.kind == TBD_TYPE_FUNCTION
                 ? printer->function != NULL &&
                       printer->function(printer->context, value, name, sizeof(name))
                 : printer->symbol != NULL &&
                       printer->symbol(printer->context, value, name, sizeof(name)))
        fprintf(p->out, " <%s>", name);
    if (tbd_print_is_wide(&view))
        tbd_print_wide_pointer(p, value, &target);
}

void tbd_print_scalar(struct tbd_print *p, const struct tbd_data *data,
                      const struct tbd_type_view *view)
{
    uint64_t value;

    if (view->bytes == 16 && view->kind == TBD_TYPE_INTEGER && data->bits == 0) {
        if (!print_large(p, data, view->is_signed))
            tbd_print_unmapped(p, data);
        return;
    }
    if (!tbd_data_scalar(p->printer->place, data, &value))
        tbd_print_unmapped(p, data);
    else if (p->printer->format != 0)
        print_formatted(p, value, data->bits != 0 && !view->is_signed ? 0 : view->bytes);
    else if (view->kind == TBD_TYPE_POINTER)
        print_pointer(p, &data->type, value);
    else if (view->kind == TBD_TYPE_ENUM)
        print_enum(p, view, value);
    else if (tbd_print_is_wide(view))
        tbd_print_wide_char(p, view, value);
    else
        print_integer(p, view, value);
}

/* With its fraction's bits, as gdb shows it. */
static void print_nan(struct tbd_print *p, const struct tbd_data *data, uint64_t bytes)
{
    unsigned bits = bytes == 4 ? 23 : bytes == 8 ? 52 : 64;
    uint64_t words[2] = { 0 }, sign;

    (void)tbd_data_read(p->printer->place, data, 0, words, bytes > 10 ? 10 : (size_t)bytes);
    sign = bytes > 8 ? words[1] >> 15 & 1 : words[0] >> (bytes * 8 - 1);
    fprintf(p->out, "%snan(0x%" PRIx64 ")", sign != 0 ? "-" : "",
            bits == 64 ? words[0] : words[0] & (UINT64_MAX >> (64 - bits)));
}

void tbd_print_float(struct tbd_print *p, const struct tbd_data *data,
                     const struct tbd_type_view *view)
{
    long double value;

    if (!tbd_data_float(p->printer->place, data, &value))
        tbd_print_unmapped(p, data);
    else if (isnan(value))
        print_nan(p, data, view->bytes);
    else if (view->bytes == 4)
        fprintf(p->out, "%.9g", (double)value);
    else if (view->bytes == 8)
        fprintf(p->out, "%.17g", (double)value);
    else
        fprintf(p->out, "%.21Lg", value);
}

/* Two numbers, as gdb writes them: 1.5 + -2i */
void tbd_print_complex(struct tbd_print *p, const struct tbd_data *data,
                       const struct tbd_type_view *view)
{
    struct tbd_type half = tbd_type_made(DW_ATE_float, (uint8_t)(view->bytes / 2));
    struct tbd_type_view of = tbd_type_look(&half);
    struct tbd_data part;

    tbd_data_part(data, 0, &half, &part);
    tbd_print_float(p, &part, &of);
    fputs(" + ", p->out);
    tbd_data_part(data, view->bytes / 2, &half, &part);
    tbd_print_float(p, &part, &of);
    fputc('i', p->out);
}
