// SPDX-License-Identifier: MIT
/* dwarf_passing.c - see dwarf_passing.h
 *
 * Debug information may be hostile: walks inside a type are bounded by NESTING_MAX and STEPS_MAX. */
#include "query/debuginfo/dwarf_passing.h"

#include "query/debuginfo/dwarf_parameter.h"

#include <dwarf.h>
#include <string.h>

#define GPRS        6u
#define VECTORS     8u
#define NESTING_MAX 16
#define STEPS_MAX   4096u
#define X87_BYTES   10u

/* ---- classes ---- */

struct type_walk {
    uint8_t classes[2];
    uint64_t alignment; /* the largest of the parts' */
    int nesting;
    unsigned steps;
};

static bool classify(struct type_walk *w, const struct tbd_type *type, uint64_t offset);

/* False: the whole value is in memory. */
static bool merge(struct type_walk *w, uint64_t offset, enum tbd_passing_class class)
{
    uint8_t *at = &w->classes[offset / 8 % 2];

    if (offset >= 16)
        return false;
    if (*at == TBD_PASS_NONE || class == TBD_PASS_INTEGER)
        *at = (uint8_t) class;
    else if (*at != TBD_PASS_INTEGER && *at != class)
        return false; /* x87 and others */
    return true;
}

static void align(struct type_walk *w, uint64_t bytes)
{
    w->alignment = bytes > w->alignment ? bytes : w->alignment;
}

static bool classify_number(struct type_walk *w, uint64_t bytes, uint64_t offset,
                            enum tbd_passing_class low, enum tbd_passing_class high)
{
    if (bytes == 0 || bytes > 16 || offset % bytes != 0)
        return false; /* not aligned: packed */
    align(w, bytes);
    return merge(w, offset, low) && (bytes <= 8 || merge(w, offset + 8, high));
}

static bool is_quad(const struct tbd_type_view *view)
{
    Dwarf_Die die = view->die;
    const char *name = die.addr == NULL ? NULL : tbd_die_name(&die);

    return name != NULL && strstr(name, "loat128") != NULL;
}

/* Complex numbers have no kind of their own. */
static bool is_complex(const struct tbd_type_view *view)
{
    return view->encoding == DW_ATE_complex_float && view->kind == TBD_TYPE_UNKNOWN;
}

static bool classify_real(struct type_walk *w, const struct tbd_type_view *view, uint64_t offset)
{
    uint64_t half = view->bytes / 2;

    if (is_complex(view) && half <= 8)
        return classify_number(w, half, offset, TBD_PASS_SSE, TBD_PASS_NONE) &&
               classify_number(w, half, offset + half, TBD_PASS_SSE, TBD_PASS_NONE);
    if (is_complex(view))
        return false;
    if (view->bytes == 16 && !is_quad(view))
        return classify_number(w, 16, offset, TBD_PASS_X87, TBD_PASS_X87_UPPER);
    return classify_number(w, view->bytes, offset, TBD_PASS_SSE, TBD_PASS_SSE_UPPER);
}

static bool classify_array(struct type_walk *w, const struct tbd_type *type,
                           const struct tbd_type_view *view, uint64_t offset)
{
    Dwarf_Die die = view->die;
    struct tbd_type element;
    uint64_t bytes;

    if (die.addr != NULL && tbd_die_flag(&die, DW_AT_GNU_vector))
        return classify_number(w, view->bytes, offset, TBD_PASS_SSE, TBD_PASS_SSE_UPPER);
    if (!tbd_type_target(type, &element))
        return false;
    bytes = tbd_type_look(&element).bytes;
    for (uint64_t i = 0; bytes != 0 && i < view->count; i++) {
        if (!classify(w, &element, offset + i * bytes))
            return false;
    }
    return bytes != 0;
}

static bool classify_members(struct type_walk *w, const struct tbd_type_view *view, uint64_t offset)
{
    struct tbd_member member;
    Dwarf_Die at;

    for (bool more = tbd_type_next_member(&view->die, true, &at, &member); more;
         more = tbd_type_next_member(&view->die, false, &at, &member)) {
        uint64_t there = offset + member.offset;

        if (w->steps++ >= STEPS_MAX)
            return false;
        if (member.is_static)
            continue;
        if (member.bits != 0
                ? !merge(w, there + member.bit_offset / 8, TBD_PASS_INTEGER) ||
                      !merge(w, there + (member.bit_offset + member.bits - 1) / 8, TBD_PASS_INTEGER)
                : !classify(w, &member.type, there))
            return false;
    }
    return true;
}

static bool classify(struct type_walk *w, const struct tbd_type *type, uint64_t offset)
{
    struct tbd_type_view view = tbd_type_look(type);
    bool fits = false;

    if (w->nesting >= NESTING_MAX || w->steps++ >= STEPS_MAX)
        return false;
    w->nesting++;
    switch (view.kind) {
    case TBD_TYPE_INTEGER:
    case TBD_TYPE_ENUM:
        fits = classify_number(w, view.bytes, offset, TBD_PASS_INTEGER, TBD_PASS_INTEGER);
        break;
    case TBD_TYPE_POINTER:
    case TBD_TYPE_REFERENCE:
        fits = classify_number(w, 8, offset, TBD_PASS_INTEGER, TBD_PASS_INTEGER);
        break;
    case TBD_TYPE_FLOAT: fits = classify_real(w, &view, offset); break;
    case TBD_TYPE_ARRAY: fits = classify_array(w, type, &view, offset); break;
    case TBD_TYPE_STRUCT: fits = classify_members(w, &view, offset); break;
    case TBD_TYPE_UNKNOWN: fits = is_complex(&view) && classify_real(w, &view, offset); break;
    case TBD_TYPE_VOID:
    case TBD_TYPE_FUNCTION: break;
    }
    w->nesting--;
    return fits;
}

/* The classes of a value by itself; *out_alignment is what the stack needs. */
static void classify_whole(const struct tbd_type *type, struct tbd_passing *out,
                           uint64_t *out_alignment)
{
    struct tbd_type_view view = tbd_type_look(type);
    struct type_walk w = { .alignment = 8 };
    bool is_wide = view.kind == TBD_TYPE_ARRAY && view.bytes > 16; /* a vector of more bits */

    *out = (struct tbd_passing){ .bytes = view.bytes };
    out->is_known =
        (view.kind != TBD_TYPE_UNKNOWN || is_complex(&view)) && view.bytes != 0 && !is_wide;
    out->is_address = tbd_parameter_is_address(type);
    if (!classify(&w, type, 0) || view.bytes > 16)
        w.classes[0] = w.classes[1] = TBD_PASS_MEMORY;
    memcpy(out->classes, w.classes, sizeof(out->classes));
    *out_alignment = w.alignment > 8 ? 16 : 8;
}

/* ---- results and parameters ---- */

static bool is_complex_x87(const struct tbd_type *type)
{
    struct tbd_type_view view = tbd_type_look(type);

    return is_complex(&view) && view.bytes == 32;
}

void tbd_passing_result(const Dwarf_Die *function, struct tbd_passing *out)
{
    struct tbd_type type = tbd_type_of(function);
    uint64_t alignment;

    classify_whole(&type, out, &alignment);
    if (is_complex_x87(&type)) {
        out->classes[0] = TBD_PASS_X87;
        out->classes[1] = TBD_PASS_X87;
    }
    if (out->is_address)
        out->classes[0] = TBD_PASS_MEMORY;
}

struct allocation {
    unsigned gprs, vectors; /* used */
    uint64_t stack;
};

static unsigned count_of(const struct tbd_passing *passing, enum tbd_passing_class class)
{
    return (passing->classes[0] == class ? 1u : 0u) + (passing->classes[1] == class ? 1u : 0u);
}

static void put_on_stack(struct allocation *a, struct tbd_passing *passing, uint64_t alignment)
{
    passing->classes[0] = TBD_PASS_MEMORY;
    a->stack = (a->stack + alignment - 1) & ~(alignment - 1);
    passing->offset = a->stack;
    a->stack += (passing->bytes + 7) & ~7ull;
}

static void allocate(struct allocation *a, const struct tbd_type *type, struct tbd_passing *passing)
{
    uint64_t alignment;
    unsigned gprs, vectors;

    classify_whole(type, passing, &alignment);
    if (passing->is_address) {
        passing->bytes = 8;
        passing->classes[0] = TBD_PASS_INTEGER;
        passing->classes[1] = TBD_PASS_NONE;
    }
    gprs = count_of(passing, TBD_PASS_INTEGER);
    vectors = count_of(passing, TBD_PASS_SSE);
    if (passing->classes[0] == TBD_PASS_NONE && passing->classes[1] == TBD_PASS_NONE)
        return;
    if (passing->classes[0] == TBD_PASS_MEMORY || passing->classes[0] == TBD_PASS_X87 ||
        a->gprs + gprs > GPRS || a->vectors + vectors > VECTORS) {
        put_on_stack(a, passing, alignment);
        return;
    }
    passing->first_gpr = (uint8_t)a->gprs;
    passing->first_vector = (uint8_t)a->vectors;
    a->gprs += gprs;
    a->vectors += vectors;
}

void tbd_passing_parameter(const Dwarf_Die *function, const Dwarf_Die *parameter,
                           struct tbd_passing *out)
{
    struct allocation a = { 0 };
    struct tbd_passing result;
    struct tbd_type type = tbd_type_of(function);
    Dwarf_Die die;

    tbd_passing_result(function, &result);
    a.gprs = tbd_type_look(&type).kind != TBD_TYPE_VOID && result.classes[0] == TBD_PASS_MEMORY;
    for (bool more = tbd_die_child(function, &die); more; more = tbd_die_next(&die, &die)) {
        if (dwarf_tag(&die) != DW_TAG_formal_parameter)
            continue;
        type = tbd_type_of(&die);
        allocate(&a, &type, out);
        if (!out->is_known || die.addr == parameter->addr)
            return; /* what comes after an unknown one is unknown, too */
    }
    *out = (struct tbd_passing){ .is_known = false };
}

/* ---- values ---- */

static bool take_bytes(struct tbd_data *out, unsigned at, const void *from, size_t bytes)
{
    if (from == NULL)
        return false;
    memcpy(out->bytes + at, from, bytes);
    return true;
}

static bool take_parts(const struct tbd_passing *passing, bool is_result,
                       const struct tbd_passing_registers *registers, struct tbd_data *out)
{
    unsigned gpr = passing->first_gpr, vector = passing->first_vector, x87 = 0;
    const uint64_t results[2] = { registers->rax, registers->rdx };
    const uint64_t *gprs = is_result ? results : registers->args;
    bool has_all = true;

    for (unsigned i = 0; i < 2; i++) {
        switch ((enum tbd_passing_class)passing->classes[i]) {
        case TBD_PASS_INTEGER: has_all &= take_bytes(out, i * 8, &gprs[gpr++], 8); break;
        case TBD_PASS_SSE:
            has_all &= registers->vector != NULL &&
                       take_bytes(out, i * 8, registers->vector + 16 * (size_t)vector++, 8);
            break;
        case TBD_PASS_SSE_UPPER:
            has_all &= registers->vector != NULL &&
                       take_bytes(out, i * 8, registers->vector + 16 * (size_t)(vector - 1) + 8, 8);
            break;
        case TBD_PASS_X87:
            has_all &= registers->x87 != NULL &&
                       take_bytes(out, i * 16, registers->x87 + 16 * (size_t)x87++, X87_BYTES);
            break;
        case TBD_PASS_NONE:
        case TBD_PASS_X87_UPPER:
        case TBD_PASS_MEMORY: break;
        }
    }
    return has_all;
}

void tbd_passing_value(const struct tbd_passing *passing, bool is_result,
                       const struct tbd_passing_registers *registers, const struct tbd_type *type,
                       struct tbd_data *out)
{
    if (!passing->is_known) {
        tbd_data_unknown(out, "it is not known how it is passed");
    } else if (passing->is_address) {
        bool is_on_stack = !is_result && passing->classes[0] == TBD_PASS_MEMORY;

        if (is_on_stack)
            tbd_data_unknown(out, "its address is on the stack");
        else
            tbd_data_at(is_result ? registers->rax : registers->args[passing->first_gpr], type,
                        out);
    } else if (passing->classes[0] == TBD_PASS_MEMORY) {
        tbd_data_at(is_result ? registers->rax : registers->sp + 8 + passing->offset, type, out);
    } else {
        *out = (struct tbd_data){ .type = *type, .is_known = true };
        out->byte_count = (uint32_t)passing->bytes;
        if (!take_parts(passing, is_result, registers, out))
            tbd_data_unknown(out, "its registers are not known");
    }
}

bool tbd_passing_needs_more(const struct tbd_passing *passing, bool is_result)
{
    bool takes_two =
        passing->classes[0] == TBD_PASS_INTEGER && passing->classes[1] == TBD_PASS_INTEGER;

    if (!passing->is_known || passing->is_address || passing->classes[0] == TBD_PASS_MEMORY)
        return false;
    return count_of(passing, TBD_PASS_SSE) + count_of(passing, TBD_PASS_X87) != 0 ||
           (is_result && takes_two);
}
