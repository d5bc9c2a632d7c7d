// SPDX-License-Identifier: MIT
/* dwarf_print.c - see dwarf_print.h
 *
 * DWARF_PRINT-1  Output is bounded whatever the types say: TBD_PRINT_ELEMENTS_MAX elements and
 *                members in all, TBD_PRINT_NESTING_MAX levels, strings of TBD_TEXT_SHOWN
 *                characters. */
#include "query/values/print_private.h"

#include "base/assert.h"
#include "query/values/cxx_object.h"

#include <dwarf.h>
#include <inttypes.h>

static void print_kind(struct tbd_print *p, const struct tbd_data *data);

static void print_unknown(struct tbd_print *p, const struct tbd_data *data)
{
    p->parts.unknown++;
    if (p->printer->brief)
        fputs("<unknown>", p->out);
    else
        fprintf(p->out, "<optimized out: %s>", data->why);
}

void tbd_print_unmapped(struct tbd_print *p, const struct tbd_data *data)
{
    if (!data->is_known) {
        print_unknown(p, data);
        return;
    }
    p->parts.unknown++;
    if (p->printer->brief)
        fputs("<unknown>", p->out);
    else if (data->in_memory)
        fprintf(p->out, "<memory at 0x%" PRIx64 " is not known>", data->address);
    else
        fputs("<optimized out: this part is kept nowhere>", p->out);
}

void tbd_print_unknown_rest(struct tbd_print *p)
{
    p->parts.known++;
    p->parts.unknown++;
    fputs(" <the rest is not known>", p->out);
}

void tbd_print_damaged_rest(struct tbd_print *p)
{
    p->parts.unknown++;
    fputs("<the rest is damaged or not known>", p->out);
}

void tbd_print_line(struct tbd_print *p, int deeper)
{
    if (p->printer->options.pretty)
        fprintf(p->out, "\n%*s", 2 * (p->nesting - 1 + deeper), "");
}

bool tbd_print_may_go_on(struct tbd_print *p)
{
    if (p->elements++ < TBD_PRINT_ELEMENTS_MAX)
        return true;
    fputs("...", p->out);
    return false;
}

/* The whole object of which *object is a part, with its class before it: "(Circle *) ". */
static void take_whole(struct tbd_print *p, const char *sign, struct tbd_data *object)
{
    const struct tbd_printer *printer = p->printer;
    struct tbd_class_finder finder = { printer->type, printer->context };
    struct tbd_data whole;
    char name[256];

    if (!printer->options.object || p->nesting != 1 ||
        !tbd_object_whole(printer->place, &finder, object, &whole))
        return;
    *object = whole;
    fprintf(p->out, "(%s%s) ", tbd_type_text(&whole.type, name, sizeof(name)), sign);
}

/* What a pointer or reference points to, if that is an object with virtual functions. */
static uint64_t take_target(struct tbd_print *p, const char *sign, const struct tbd_type *type,
                            uint64_t address, struct tbd_data *out)
{
    struct tbd_type target;

    if (!tbd_type_target(type, &target) || tbd_type_look(&target).kind != TBD_TYPE_STRUCT)
        return address;
    tbd_data_at(address, &target, out);
    take_whole(p, sign, out);
    return out->address;
}

static void print_object_pointer(struct tbd_print *p, const struct tbd_data *data,
                                 const struct tbd_type_view *view)
{
    struct tbd_data target, whole = *data;
    uint64_t address;

    if (p->printer->format == 0 && p->nesting == 1 &&
        tbd_data_scalar(p->printer->place, data, &address) && address != 0) {
        address = take_target(p, " *", &data->type, address, &target);
        tbd_data_number(address, &data->type, &whole);
    }
    tbd_print_scalar(p, &whole, view);
}

static void print_object(struct tbd_print *p, const struct tbd_data *data,
                         const struct tbd_type_view *view)
{
    struct tbd_type_view seen = *view;
    struct tbd_data whole = *data;

    if (p->printer->format == 0)
        take_whole(p, "", &whole);
    if (whole.type.die.addr != data->type.die.addr)
        seen = tbd_type_look(&whole.type);
    tbd_print_struct(p, &whole, &seen);
}

/* gdb shows what a reference refers to only in the value itself; here numbers are shown in members,
 * too, as lambdas have captured them. */
static bool shows_target(const struct tbd_print *p, const struct tbd_type *target)
{
    enum tbd_type_kind kind = tbd_type_look(target).kind;

    return p->nesting == 1 || kind == TBD_TYPE_INTEGER || kind == TBD_TYPE_FLOAT ||
           kind == TBD_TYPE_ENUM || kind == TBD_TYPE_POINTER;
}

static void print_reference(struct tbd_print *p, const struct tbd_data *data)
{
    struct tbd_type target;
    struct tbd_data inner;
    uint64_t address;

    if (!tbd_data_scalar(p->printer->place, data, &address) ||
        !tbd_type_target(&data->type, &target)) {
        tbd_print_unmapped(p, data);
        return;
    }
    tbd_data_at(address, &target, &inner);
    address = take_target(p, " &", &data->type, address, &inner);
    fprintf(p->out, "@0x%" PRIx64, address);
    if (p->printer->place->memory == NULL ||
        !shows_target(p, &target)) /* an unknown kind of value */
        return;
    fputs(": ", p->out);
    if (tbd_type_look(&inner.type).kind == TBD_TYPE_REFERENCE)
        tbd_print_value(p, &inner); /* a type may refer to itself */
    else
        print_kind(p, &inner);
}

static void print_function(struct tbd_print *p, const struct tbd_data *data)
{
    char name[256];

    fprintf(p->out, "0x%" PRIx64, data->address);
    if (p->printer->function != NULL &&
        p->printer->function(p->printer->context, data->address, name, sizeof(name)))
        fprintf(p->out, " <%s>", name);
}

/* The number of a virtual function in its class's table. */
static bool table_place(Dwarf_Die *die, uint64_t *out)
{
    Dwarf_Attribute attribute;
    Dwarf_Op *ops;
    size_t count;

    if (dwarf_tag(die) != DW_TAG_subprogram || tbd_die_name(die) == NULL ||
        !tbd_die_attribute(die, DW_AT_vtable_elem_location, &attribute) ||
        dwarf_getlocation(&attribute, &ops, &count) != 0 || count != 1 ||
        ops[0].atom != DW_OP_constu)
        return false;
    *out = ops[0].number;
    return true;
}

/* "&shop::Point::y", "&virtual shop::Shape::area"; false for functions that are not virtual. */
static bool print_member_name(struct tbd_print *p, const Dwarf_Die *pointer, uint64_t value)
{
    Dwarf_Die holder, die, of, target;
    uint64_t number;
    struct tbd_type type;
    char name[256];
    bool is_function;

    if (!tbd_die_reference(pointer, DW_AT_containing_type, &holder) ||
        !tbd_die_reference(pointer, DW_AT_type, &target))
        return false;
    is_function = dwarf_tag(&target) == DW_TAG_subroutine_type;
    if (is_function ? (value & 1) == 0 : value == UINT64_MAX) {
        fputs(is_function && value != 0 ? "" : "NULL", p->out);
        return !is_function || value == 0;
    }
    of = tbd_type_complete(p->printer->place->dwarf, &holder);
    type = tbd_type_from(&of);
    for (bool more = tbd_die_child(&of, &die); more; more = tbd_die_next(&die, &die)) {
        if (is_function
                ? !table_place(&die, &number) || number != value / 8
                : dwarf_tag(&die) != DW_TAG_member ||
                      !tbd_die_number(&die, DW_AT_data_member_location, &number) || number != value)
            continue;
        fprintf(p->out, "&%s%s::%s", is_function ? "virtual " : "",
                tbd_type_text(&type, name, sizeof(name)), tbd_die_name(&die));
        return true;
    }
    return false;
}

/* A pointer to a member: an offset, or a function (or the place in its table) and what is added to
 * `this`. */
static void print_member_pointer(struct tbd_print *p, const struct tbd_data *data)
{
    struct tbd_type_view view = tbd_type_look(&data->type);
    uint64_t value;
    char name[256];

    if (view.die.addr == NULL || dwarf_tag(&view.die) != DW_TAG_ptr_to_member_type)
        fputs("<a type that is not supported>", p->out);
    else if (!tbd_data_read(p->printer->place, data, 0, &value, sizeof(value)))
        tbd_print_unmapped(p, data);
    else if (print_member_name(p, &view.die, value))
        ;
    else if (p->printer->function != NULL &&
             p->printer->function(p->printer->context, value, name, sizeof(name)))
        fprintf(p->out, "0x%" PRIx64 " <%s>", value, name);
    else
        fprintf(p->out, "0x%" PRIx64, value);
}

static void print_kind(struct tbd_print *p, const struct tbd_data *data)
{
    struct tbd_type_view view = tbd_type_look(&data->type);
    uint32_t unknown = p->parts.unknown;

    switch (view.kind) {
    case TBD_TYPE_INTEGER:
    case TBD_TYPE_ENUM: tbd_print_scalar(p, data, &view); break;
    case TBD_TYPE_POINTER: print_object_pointer(p, data, &view); break;
    case TBD_TYPE_FLOAT: tbd_print_float(p, data, &view); break;
    case TBD_TYPE_REFERENCE: print_reference(p, data); break;
    case TBD_TYPE_STRUCT: print_object(p, data, &view); break;
    case TBD_TYPE_ARRAY: tbd_print_array(p, data, &view); break;
    case TBD_TYPE_FUNCTION: print_function(p, data); break;
    case TBD_TYPE_VOID: fputs("void", p->out); break;
    case TBD_TYPE_UNKNOWN:
        if (view.encoding == DW_ATE_complex_float)
            tbd_print_complex(p, data, &view);
        else
            print_member_pointer(p, data);
        break;
    }
    if (p->parts.unknown == unknown)
        p->parts.known++;
}

void tbd_print_value(struct tbd_print *p, const struct tbd_data *data)
{
    if (!data->is_known) {
        print_unknown(p, data);
    } else if (p->nesting >= TBD_PRINT_NESTING_MAX) {
        fputs("{...}", p->out);
    } else {
        p->nesting++;
        TBD_INVARIANT("DWARF_PRINT-1", p->nesting <= TBD_PRINT_NESTING_MAX);
        print_kind(p, data);
        p->nesting--;
    }
}

struct tbd_print_parts tbd_data_print(const struct tbd_printer *printer,
                                      const struct tbd_data *data, FILE *out)
{
    struct tbd_print p = { .printer = printer, .out = out };

    tbd_print_value(&p, data);
    return p.parts;
}
