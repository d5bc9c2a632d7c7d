// SPDX-License-Identifier: MIT
/* dwarf_print.c - see dwarf_print.h
 *
 * DWARF_PRINT-1  Output is bounded whatever the types say: TBD_PRINT_ELEMENTS_MAX elements and
 *                members in all, TBD_PRINT_NESTING_MAX levels, strings of TBD_TEXT_SHOWN
 *                characters. */
#include "query/values/print_private.h"

#include "base/assert.h"

#include <dwarf.h>
#include <inttypes.h>

static void print_unknown(struct tbd_print *p, const struct tbd_data *data)
{
    fprintf(p->out, "<optimized out: %s>", data->why);
}

void tbd_print_unmapped(struct tbd_print *p, const struct tbd_data *data)
{
    if (!data->is_known)
        print_unknown(p, data);
    else if (data->in_memory)
        fprintf(p->out, "<memory at 0x%" PRIx64 " is not known>", data->address);
    else
        fputs("<optimized out: this part is kept nowhere>", p->out);
}

bool tbd_print_may_go_on(struct tbd_print *p)
{
    if (p->elements++ < TBD_PRINT_ELEMENTS_MAX)
        return true;
    fputs("...", p->out);
    return false;
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
    fprintf(p->out, "@0x%" PRIx64, address);
    if (p->printer->place->memory == NULL) /* an unknown kind of value */
        return;
    fputs(": ", p->out);
    tbd_data_at(address, &target, &inner);
    tbd_print_value(p, &inner);
}

static void print_function(struct tbd_print *p, const struct tbd_data *data)
{
    char name[256];

    fprintf(p->out, "0x%" PRIx64, data->address);
    if (p->printer->function != NULL &&
        p->printer->function(p->printer->context, data->address, name, sizeof(name)))
        fprintf(p->out, " <%s>", name);
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
    else if (p->printer->function != NULL &&
             p->printer->function(p->printer->context, value, name, sizeof(name)))
        fprintf(p->out, "0x%" PRIx64 " <%s>", value, name);
    else
        fprintf(p->out, "0x%" PRIx64, value);
}

static void print_kind(struct tbd_print *p, const struct tbd_data *data)
{
    struct tbd_type_view view = tbd_type_look(&data->type);

    switch (view.kind) {
    case TBD_TYPE_INTEGER:
    case TBD_TYPE_ENUM:
    case TBD_TYPE_POINTER: tbd_print_scalar(p, data, &view); break;
    case TBD_TYPE_FLOAT: tbd_print_float(p, data, &view); break;
    case TBD_TYPE_REFERENCE: print_reference(p, data); break;
    case TBD_TYPE_STRUCT: tbd_print_struct(p, data, &view); break;
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

void tbd_data_print(const struct tbd_printer *printer, const struct tbd_data *data, FILE *out)
{
    struct tbd_print p = { .printer = printer, .out = out };

    tbd_print_value(&p, data);
}
