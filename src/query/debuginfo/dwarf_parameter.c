// SPDX-License-Identifier: MIT
/* dwarf_parameter.c - see dwarf_parameter.h
 *
 * Registers are counted only for simple parameters.  One that needs the whole convention (a struct of
 * up to 16 bytes, for instance) ends the count: the registers of later parameters are not known.
 *
 * Debug information may be hostile: walks inside a class are bounded by NESTING_MAX and STEPS_MAX. */
#include "query/debuginfo/dwarf_parameter.h"

#include <dwarf.h>
#include <string.h>

#define REGISTERS   6
#define VECTORS     8
#define NESTING_MAX 16
#define STEPS_MAX   4096u

bool tbd_parameter_is_entry(const struct tbd_place_of *place, const Dwarf_Die *function)
{
    Dwarf_Die die = *function;
    Dwarf_Addr start;

    return dwarf_tag(&die) == DW_TAG_subprogram && dwarf_entrypc(&die, &start) == 0 &&
           start == place->address;
}

unsigned tbd_parameter_gpr(int number)
{
    static const uint8_t order[REGISTERS] = { TBD_RDI, TBD_RSI, TBD_RDX, TBD_RCX, TBD_R8, TBD_R9 };

    return order[number];
}

/* ---- objects of C++ that are passed as their address (Itanium C++ ABI, 3.1.2.3) ---- */

struct inside {
    int nesting;
    unsigned steps;
};

static bool is_object_inside(const struct tbd_type *type, struct inside *in);

/* A class's name without the text in <>, which is the name of its constructors. */
static bool is_constructor(Dwarf_Die *method, Dwarf_Die *class_die)
{
    const char *name = tbd_die_name(method), *of = tbd_die_name(class_die);
    size_t bytes = of == NULL ? 0 : strcspn(of, "<");

    return name != NULL && bytes != 0 && strncmp(name, of, bytes) == 0 && name[bytes] == '\0';
}

/* Does it have one parameter beside `this`, a reference to the class? */
static bool is_copying(Dwarf_Die *constructor, const Dwarf_Die *class_die)
{
    Dwarf_Die die;
    bool found = false;

    for (bool more = tbd_die_child(constructor, &die); more; more = tbd_die_next(&die, &die)) {
        struct tbd_type type = tbd_type_of(&die), target;

        if (dwarf_tag(&die) != DW_TAG_formal_parameter || tbd_die_flag(&die, DW_AT_artificial))
            continue;
        if (found || tbd_type_look(&type).kind != TBD_TYPE_REFERENCE ||
            !tbd_type_target(&type, &target) || tbd_type_look(&target).die.addr != class_die->addr)
            return false;
        found = true;
    }
    return found;
}

/* A destructor, copy constructor or virtual function that the compiler did not generate. */
static bool is_special(Dwarf_Die *method, Dwarf_Die *class_die)
{
    const char *name = tbd_die_name(method);
    uint64_t value = 0;

    if (tbd_die_number(method, DW_AT_virtuality, &value) && value != 0)
        return true;
    if (tbd_die_flag(method, DW_AT_deleted) ||
        (tbd_die_number(method, DW_AT_defaulted, &value) && value == DW_DEFAULTED_in_class))
        return false;
    return (name != NULL && *name == '~') ||
           (is_constructor(method, class_die) && is_copying(method, class_die));
}

static bool makes_object(Dwarf_Die *child, Dwarf_Die *class_die, struct inside *in)
{
    struct tbd_type type;
    uint64_t value = 0;
    bool result;

    switch (dwarf_tag(child)) {
    case DW_TAG_subprogram: return is_special(child, class_die);
    case DW_TAG_inheritance:
        if (tbd_die_number(child, DW_AT_virtuality, &value) && value != 0)
            return true;
        break;
    case DW_TAG_member:
        if (tbd_die_flag(child, DW_AT_external) || tbd_die_flag(child, DW_AT_declaration))
            return false;
        break;
    default: return false;
    }
    type = tbd_type_of(child);
    in->nesting++;
    result = is_object_inside(&type, in);
    in->nesting--;
    return result;
}

/* Does the class, or a part of it, depend on its address? */
static bool is_object_inside(const struct tbd_type *type, struct inside *in)
{
    struct tbd_type_view view = tbd_type_look(type);
    struct tbd_type array, element;
    uint64_t convention;
    Dwarf_Die die;

    if (in->nesting > NESTING_MAX)
        return false;
    for (array = *type; view.kind == TBD_TYPE_ARRAY && in->steps++ < STEPS_MAX; array = element) {
        if (!tbd_type_target(&array, &element))
            return false;
        view = tbd_type_look(&element);
    }
    if (view.kind != TBD_TYPE_STRUCT || view.die.addr == NULL)
        return false;
    if (tbd_die_number(&view.die, DW_AT_calling_convention, &convention))
        return convention == DW_CC_pass_by_reference;
    for (bool more = tbd_die_child(&view.die, &die); more; more = tbd_die_next(&die, &die)) {
        if (in->steps++ >= STEPS_MAX)
            return false;
        if (makes_object(&die, &view.die, in))
            return true;
    }
    return false;
}

static bool is_object(const struct tbd_type *type)
{
    struct inside in = { 0 };

    return is_object_inside(type, &in);
}

bool tbd_parameter_is_address(const struct tbd_type *type)
{
    return tbd_type_look(type).kind == TBD_TYPE_STRUCT && is_object(type);
}

/* ---- counting ---- */

/* The number of registers that a parameter of this type takes; -1: only the whole convention can
 * tell. */
static int registers_of(const struct tbd_type *type)
{
    struct tbd_type_view view = tbd_type_look(type);

    if (view.kind == TBD_TYPE_STRUCT && is_object(type))
        return 1;
    switch (view.kind) {
    case TBD_TYPE_INTEGER:
    case TBD_TYPE_ENUM: return view.bytes > 8 ? -1 : 1;
    case TBD_TYPE_POINTER:
    case TBD_TYPE_REFERENCE: return 1;
    case TBD_TYPE_FLOAT: return 0;
    case TBD_TYPE_STRUCT: return view.bytes > 16 ? 0 : -1;
    default: return -1;
    }
}

int tbd_parameter_register(const Dwarf_Die *function, const Dwarf_Die *parameter)
{
    struct tbd_type result = tbd_type_of(function);
    struct tbd_type_view view = tbd_type_look(&result);
    /* The address for a result that does not fit in registers comes first. */
    bool is_put = view.kind == TBD_TYPE_STRUCT && (view.bytes > 16 || is_object(&result));
    int next = is_put ? 1 : 0;
    Dwarf_Die die;

    if (view.kind == TBD_TYPE_STRUCT && view.bytes == 0)
        return -1; /* a class that is only declared here */
    for (bool more = tbd_die_child(function, &die); more; more = tbd_die_next(&die, &die)) {
        struct tbd_type type = tbd_type_of(&die);
        int takes = registers_of(&type);

        if (dwarf_tag(&die) != DW_TAG_formal_parameter)
            continue;
        if (die.addr == parameter->addr)
            return takes == 1 && next < REGISTERS ? next : -1;
        if (takes < 0)
            return -1;
        next += takes;
    }
    return -1;
}

int tbd_parameter_vector(const Dwarf_Die *function, const Dwarf_Die *parameter)
{
    int next = 0;
    Dwarf_Die die;

    for (bool more = tbd_die_child(function, &die); more; more = tbd_die_next(&die, &die)) {
        struct tbd_type type = tbd_type_of(&die);
        struct tbd_type_view view = tbd_type_look(&type);
        bool is_real = view.kind == TBD_TYPE_FLOAT && (view.bytes == 4 || view.bytes == 8);

        if (dwarf_tag(&die) != DW_TAG_formal_parameter)
            continue;
        if (die.addr == parameter->addr)
            return is_real && next < VECTORS ? next : -1;
        if (!is_real && registers_of(&type) < 0)
            return -1;
        next += is_real;
    }
    return -1;
}
