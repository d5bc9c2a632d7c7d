// SPDX-License-Identifier: MIT
/* dwarf_print.c - see dwarf_print.h
 *
 * DWARF_PRINT-1  Output is bounded whatever the types say: ELEMENTS_MAX elements and members in
 *                all, NESTING_MAX levels, strings of TBD_TEXT_SHOWN characters.
 * DWARF_PRINT-2  Reads are bounded too: ARRAY_BYTES of an array. */
#include "query/values/dwarf_print.h"

#include "base/assert.h"
#include "query/values/cxx_print.h"
#include "query/text/print_text.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NESTING_MAX  12
#define ELEMENTS_MAX 200u
#define ARRAY_BYTES  65536u /* gdb's max-value-size */
#define ELEMENT_BYTES                                                                              \
    4096u /* the largest element that is compared with the next ones, to print repeats once */

struct print {
    const struct tbd_printer *printer;
    FILE *out;
    uint32_t elements; /* printed so far */
    int nesting;
};

static void print_value(struct print *p, const struct tbd_data *data);

static void print_unknown(struct print *p, const struct tbd_data *data)
{
    fprintf(p->out, "<optimized out: %s>", data->why);
}

static void print_unmapped(struct print *p, const struct tbd_data *data)
{
    if (!data->is_known)
        print_unknown(p, data);
    else if (data->in_memory)
        fprintf(p->out, "<memory at 0x%" PRIx64 " is not known>", data->address);
    else
        fputs("<optimized out: this part is kept nowhere>", p->out);
}

/* ---- characters ---- */

static bool is_char(const struct tbd_type_view *view)
{
    return view->kind == TBD_TYPE_INTEGER && view->bytes == 1 &&
           (view->encoding == DW_ATE_signed_char || view->encoding == DW_ATE_unsigned_char);
}

/* Up to the terminating NUL. */
static void print_string(struct print *p, uint64_t address)
{
    const struct tbd_stack_memory *memory = p->printer->place->memory;
    uint8_t text[TBD_TEXT_SHOWN];
    size_t count = 0;

    if (memory == NULL || !memory->read(memory->context, address, text, 1))
        return;
    while (count < sizeof(text) &&
           memory->read(memory->context, address + count, &text[count], 1) && text[count] != 0)
        count++;
    fputc(' ', p->out);
    tbd_text_print(p->out, text, count, count == sizeof(text));
}

/* The whole array, if it is known, else the part that is shown. */
static bool print_chars(struct print *p, const struct tbd_data *data, uint64_t count)
{
    size_t wanted = count < ARRAY_BYTES ? (size_t)count : ARRAY_BYTES;
    size_t shown = wanted < TBD_TEXT_SHOWN ? wanted : TBD_TEXT_SHOWN;
    uint8_t *text = malloc(wanted);
    bool good;

    if (text == NULL)
        return false;
    TBD_INVARIANT("DWARF_PRINT-2", wanted <= ARRAY_BYTES && shown <= TBD_TEXT_SHOWN);
    if (tbd_data_read(p->printer->place, data, 0, text, wanted))
        shown = wanted;
    good = shown == wanted || tbd_data_read(p->printer->place, data, 0, text, shown);
    if (good)
        tbd_text_print(p->out, text, shown, shown < count);
    free(text);
    return good;
}

/* ---- scalars ---- */

static void print_binary(FILE *out, uint64_t value)
{
    int top = value == 0 ? 0 : 63 - __builtin_clzll(value);

    for (int bit = top; bit >= 0; bit--)
        fputc('0' + (int)(value >> bit & 1), out);
}

static void print_formatted(struct print *p, uint64_t value, uint64_t bytes)
{
    uint64_t narrow = bytes >= 8 || bytes == 0 ? value : value & ((1ull << bytes * 8) - 1);

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
static bool print_large(struct print *p, const struct tbd_data *data, bool is_signed)
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

static void print_integer(struct print *p, const struct tbd_type_view *view, uint64_t value)
{
    if (view->encoding == DW_ATE_boolean && value <= 1)
        fputs(value != 0 ? "true" : "false", p->out);
    else if (view->is_signed)
        fprintf(p->out, "%" PRId64, (int64_t)value);
    else
        fprintf(p->out, "%" PRIu64, value);
    if (!is_char(view))
        return;
    fputs(" '", p->out);
    tbd_text_print_char(p->out, (uint8_t)value, '\'');
    fputc('\'', p->out);
}

/* In C++ "ns::" before the values of `enum ns::kind`, "ns::Color::" before those of `enum
 * class ns::Color`. */
static void print_enum_scope(struct print *p, const struct tbd_type_view *view)
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

static void print_enum(struct print *p, const struct tbd_type_view *view, uint64_t value)
{
    const char *name = tbd_type_enumerator(&view->die, value);

    if (name != NULL) {
        print_enum_scope(p, view);
        fputs(name, p->out);
    } else if (view->is_signed) {
        fprintf(p->out, "%" PRId64, (int64_t)value);
    } else {
        fprintf(p->out, "%" PRIu64, value);
    }
}

static void print_pointer(struct print *p, const struct tbd_type *type, uint64_t value)
{
    const struct tbd_printer *printer = p->printer;
    struct tbd_type target;
    struct tbd_type_view view;
    char name[256];

    fprintf(p->out, "0x%" PRIx64, value);
    if (value == 0 || !tbd_type_target(type, &target))
        return;
    view = tbd_type_look(&target);
    if (is_char(&view))
        print_string(p, value);
    else if (view.kind == TBD_TYPE_FUNCTION && printer->function != NULL &&
             printer->function(printer->context, value, name, sizeof(name)))
        fprintf(p->out, " <%s>", name);
}

static void print_scalar(struct print *p, const struct tbd_data *data,
                         const struct tbd_type_view *view)
{
    uint64_t value;

    if (view->bytes == 16 && view->kind == TBD_TYPE_INTEGER && data->bits == 0) {
        if (!print_large(p, data, view->is_signed))
            print_unmapped(p, data);
        return;
    }
    if (!tbd_data_scalar(p->printer->place, data, &value))
        print_unmapped(p, data);
    else if (p->printer->format != 0)
        print_formatted(p, value, data->bits != 0 && !view->is_signed ? 0 : view->bytes);
    else if (view->kind == TBD_TYPE_POINTER)
        print_pointer(p, &data->type, value);
    else if (view->kind == TBD_TYPE_ENUM)
        print_enum(p, view, value);
    else
        print_integer(p, view, value);
}

static void print_float(struct print *p, const struct tbd_data *data,
                        const struct tbd_type_view *view)
{
    long double value;

    if (!tbd_data_float(p->printer->place, data, &value))
        print_unmapped(p, data);
    else if (view->bytes == 4)
        fprintf(p->out, "%.9g", (double)value);
    else if (view->bytes == 8)
        fprintf(p->out, "%.17g", (double)value);
    else
        fprintf(p->out, "%.18Lg", value);
}

/* Two numbers, as gdb writes them: 1.5 + -2i */
static void print_complex(struct print *p, const struct tbd_data *data,
                          const struct tbd_type_view *view)
{
    struct tbd_type half = tbd_type_made(DW_ATE_float, (uint8_t)(view->bytes / 2));
    struct tbd_type_view of = tbd_type_look(&half);
    struct tbd_data part;

    tbd_data_part(data, 0, &half, &part);
    print_float(p, &part, &of);
    fputs(" + ", p->out);
    tbd_data_part(data, view->bytes / 2, &half, &part);
    print_float(p, &part, &of);
    fputc('i', p->out);
}

static void print_reference(struct print *p, const struct tbd_data *data)
{
    struct tbd_type target;
    struct tbd_data inner;
    uint64_t address;

    if (!tbd_data_scalar(p->printer->place, data, &address) ||
        !tbd_type_target(&data->type, &target)) {
        print_unmapped(p, data);
        return;
    }
    fprintf(p->out, "@0x%" PRIx64, address);
    if (p->printer->place->memory == NULL) /* an unknown kind of value */
        return;
    fputs(": ", p->out);
    tbd_data_at(address, &target, &inner);
    print_value(p, &inner);
}

/* ---- aggregates ---- */

static bool may_print_more(struct print *p)
{
    if (p->elements++ < ELEMENTS_MAX)
        return true;
    fputs("...", p->out);
    return false;
}

/* How many elements from `index` on have the same bytes, 1 at least. */
static uint64_t count_equal(struct print *p, const struct tbd_data *data, uint64_t index,
                            uint64_t count, uint64_t bytes)
{
    uint8_t first[ELEMENT_BYTES], others[ELEMENT_BYTES];
    uint64_t equal = 1, step = 1;

    if (bytes > sizeof(first) ||
        !tbd_data_read(p->printer->place, data, index * bytes, first, bytes))
        return 1;
    while (index + equal < count) {
        step = step * bytes * 2 <= sizeof(others) ? step * 2 : step;
        if (step > count - index - equal)
            step = count - index - equal;
        if (!tbd_data_read(p->printer->place, data, (index + equal) * bytes, others, step * bytes))
            return equal;
        for (uint64_t i = 0; i < step; i++, equal++) {
            if (memcmp(first, others + i * bytes, bytes) != 0)
                return equal;
        }
    }
    return equal;
}

static void print_elements(struct print *p, const struct tbd_data *data,
                           const struct tbd_type *type, uint64_t bytes, uint64_t count)
{
    uint64_t known = count <= ARRAY_BYTES / bytes ? count : ARRAY_BYTES / bytes + 1;
    struct tbd_data part;

    for (uint64_t i = 0, equal; i < known; i += equal) {
        if (p->elements >= ELEMENTS_MAX) {
            fputs("...", p->out);
            return;
        }
        fputs(i != 0 ? ", " : "", p->out);
        tbd_data_part(data, i * bytes, type, &part);
        print_value(p, &part);
        equal = count_equal(p, data, i, known, bytes);
        if (equal > TBD_TEXT_REPEATS)
            fprintf(p->out, " <repeats %" PRIu64 " times>", equal);
        else
            equal = 1;
        p->elements += equal == 1 ? 1 : TBD_TEXT_REPEATS;
    }
    fputs(known < count ? "..." : "", p->out);
}

static void print_array(struct print *p, const struct tbd_data *data,
                        const struct tbd_type_view *view)
{
    struct tbd_type element;
    struct tbd_type_view of;

    if (!tbd_type_target(&data->type, &element))
        return;
    of = tbd_type_look(&element);
    if (is_char(&of) && p->printer->format == 0 && view->count != 0) {
        if (!print_chars(p, data, view->count))
            print_unmapped(p, data);
        return;
    }
    fputc('{', p->out);
    if (of.bytes != 0)
        print_elements(p, data, &element, of.bytes, view->count);
    fputc('}', p->out);
}

/* Prints the symbol after a pointer to a class's table of virtual functions. */
static void print_table_name(struct print *p, const struct tbd_data *pointer)
{
    const struct tbd_printer *printer = p->printer;
    char name[256];
    uint64_t address;

    if (printer->symbol != NULL && pointer->is_known &&
        tbd_data_scalar(printer->place, pointer, &address) && address != 0 &&
        printer->symbol(printer->context, address, name, sizeof(name)))
        fprintf(p->out, " <%s>", name);
}

static void print_member(struct print *p, const struct tbd_data *data,
                         const struct tbd_member *member)
{
    struct tbd_data part;
    char name[128];

    if (member->is_base)
        fprintf(p->out, "<%s> = ", tbd_type_text(&member->type, name, sizeof(name)));
    else if (member->name != NULL)
        fprintf(p->out, "%s = ", member->name);
    tbd_data_part(data, member->offset, &member->type, &part);
    part.bits = member->bits;
    part.bit_offset = member->bit_offset;
    print_value(p, &part);
    if (member->name != NULL && strncmp(member->name, "_vptr", 5) == 0)
        print_table_name(p, &part);
}

/* A known number of characters, which may include NULs. */
static void print_counted(struct print *p, const struct tbd_cxx *cxx)
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
static void print_wide(struct print *p, const struct tbd_cxx *cxx)
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

static void print_element(struct print *p, const struct tbd_cxx *cxx,
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
    print_value(p, element);
    if (cxx->kind != TBD_CXX_MAP)
        return;
    fputs("] = ", p->out);
    print_value(p, second);
}

/* A container of the C++ library; false: it is none. */
static bool print_container(struct print *p, const struct tbd_data *data)
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
        print_value(p, &element);
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
        if (!may_print_more(p))
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

/* A base class without data, like most helpers of the C++ library, is not printed. */
static bool is_empty_base(struct print *p, const struct tbd_member *member, int nesting)
{
    struct tbd_type_view view = tbd_type_look(&member->type);
    struct tbd_member inner;
    Dwarf_Die of, at;

    if (!member->is_base || view.kind != TBD_TYPE_STRUCT || view.bytes > 1 || nesting > NESTING_MAX)
        return false;
    of = tbd_type_complete(p->printer->place->dwarf, &view.die);
    for (bool first = true; tbd_type_next_member(&of, first, &at, &inner); first = false) {
        if (!inner.is_static && !is_empty_base(p, &inner, nesting + 1))
            return false;
    }
    return true;
}

static void print_struct(struct print *p, const struct tbd_data *data,
                         const struct tbd_type_view *view)
{
    struct tbd_member member;
    Dwarf_Die of = tbd_type_complete(p->printer->place->dwarf, &view->die), at;
    bool first = true, any = false;

    if (p->printer->format == 0 && print_container(p, data))
        return;
    if (tbd_die_flag(&of, DW_AT_declaration)) {
        fputs("<incomplete type>", p->out);
        return;
    }
    fputc('{', p->out);
    for (; tbd_type_next_member(&of, first, &at, &member); first = false) {
        if (member.is_static || is_empty_base(p, &member, 0))
            continue;
        if (any)
            fputs(", ", p->out);
        any = true;
        if (!may_print_more(p))
            break;
        print_member(p, data, &member);
    }
    fputc('}', p->out);
}

static void print_function(struct print *p, const struct tbd_data *data)
{
    char name[256];

    fprintf(p->out, "0x%" PRIx64, data->address);
    if (p->printer->function != NULL &&
        p->printer->function(p->printer->context, data->address, name, sizeof(name)))
        fprintf(p->out, " <%s>", name);
}

/* A pointer to a member: an offset, or a function (or the place in its table) and what is added to
 * `this`. */
static void print_member_pointer(struct print *p, const struct tbd_data *data)
{
    struct tbd_type_view view = tbd_type_look(&data->type);
    uint64_t value;
    char name[256];

    if (view.die.addr == NULL || dwarf_tag(&view.die) != DW_TAG_ptr_to_member_type)
        fputs("<a type that is not supported>", p->out);
    else if (!tbd_data_read(p->printer->place, data, 0, &value, sizeof(value)))
        print_unmapped(p, data);
    else if (p->printer->function != NULL &&
             p->printer->function(p->printer->context, value, name, sizeof(name)))
        fprintf(p->out, "0x%" PRIx64 " <%s>", value, name);
    else
        fprintf(p->out, "0x%" PRIx64, value);
}

static void print_kind(struct print *p, const struct tbd_data *data)
{
    struct tbd_type_view view = tbd_type_look(&data->type);

    switch (view.kind) {
    case TBD_TYPE_INTEGER:
    case TBD_TYPE_ENUM:
    case TBD_TYPE_POINTER: print_scalar(p, data, &view); break;
    case TBD_TYPE_FLOAT: print_float(p, data, &view); break;
    case TBD_TYPE_REFERENCE: print_reference(p, data); break;
    case TBD_TYPE_STRUCT: print_struct(p, data, &view); break;
    case TBD_TYPE_ARRAY: print_array(p, data, &view); break;
    case TBD_TYPE_FUNCTION: print_function(p, data); break;
    case TBD_TYPE_VOID: fputs("void", p->out); break;
    case TBD_TYPE_UNKNOWN:
        if (view.encoding == DW_ATE_complex_float)
            print_complex(p, data, &view);
        else
            print_member_pointer(p, data);
        break;
    }
}

static void print_value(struct print *p, const struct tbd_data *data)
{
    if (!data->is_known) {
        print_unknown(p, data);
    } else if (p->nesting >= NESTING_MAX) {
        fputs("{...}", p->out);
    } else {
        p->nesting++;
        TBD_INVARIANT("DWARF_PRINT-1", p->nesting <= NESTING_MAX);
        print_kind(p, data);
        p->nesting--;
    }
}

void tbd_data_print(const struct tbd_printer *printer, const struct tbd_data *data, FILE *out)
{
    struct print p = { .printer = printer, .out = out };

    print_value(&p, data);
}
