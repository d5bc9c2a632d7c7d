// SPDX-License-Identifier: MIT
/* dwarf_entry_value.c - a register's value at a function's entry, from the caller's call site
 *
 * A call site (DWARF 5, 3.4) names the function it calls and, for each parameter's register, an
 * expression of the caller.  It is valid only if this call led here: a function that jumped to this
 * one passed other values.
 *
 * DWARF_ENTRY_VALUE-1  Keeps dwarf_location.c's: SITES_MAX entries are looked at. */
#include "query/debuginfo/dwarf_machine.h"

#include "base/assert.h"

#include <dwarf.h>
#include <string.h>

#define SITES_MAX 100000u

static const char *linkage_name(const Dwarf_Die *die)
{
    Dwarf_Attribute attribute;

    if (tbd_die_attribute(die, DW_AT_linkage_name, &attribute))
        return dwarf_formstring(&attribute);
    return tbd_die_name(die);
}

static bool is_site_of(Dwarf_Die *die, uint64_t address)
{
    int tag = dwarf_tag(die);
    Dwarf_Attribute attribute;
    Dwarf_Addr value;

    if (tag != DW_TAG_call_site && tag != DW_TAG_GNU_call_site)
        return false;
    return dwarf_attr(die, tag == DW_TAG_call_site ? DW_AT_call_return_pc : DW_AT_low_pc,
                      &attribute) != NULL &&
           dwarf_formaddr(&attribute, &value) == 0 && value == address;
}

/* The call site below `parent` that returns to `address`. */
static bool find_site(const Dwarf_Die *parent, uint64_t address, int nesting, uint32_t *visits,
                      Dwarf_Die *out)
{
    Dwarf_Die die;

    for (bool more = tbd_die_child(parent, &die); more && ++*visits < SITES_MAX;
         more = tbd_die_next(&die, &die)) {
        TBD_INVARIANT("DWARF_ENTRY_VALUE-1", *visits < SITES_MAX);
        if (is_site_of(&die, address)) {
            *out = die;
            return true;
        }
        if (nesting < TBD_DWARF_MAX_SCOPES && dwarf_haschildren(&die) == 1 &&
            find_site(&die, address, nesting + 1, visits, out))
            return true;
    }
    return false;
}

/* For expressions of the caller: they may refer to its frame. */
static struct tbd_machine machine_of_caller(struct tbd_machine *m,
                                            const struct tbd_place_of *caller)
{
    struct tbd_machine made = tbd_machine_nested(m, caller);

    if (caller->scopes.count != 0)
        made.function = &caller->scopes.dies[caller->scopes.count - 1];
    return made;
}

/* Does the call name the function that runs, and not a function that jumped to it?  A direct call
 * names its target; an indirect one computes it. */
static bool calls_function(struct tbd_machine *m, const struct tbd_place_of *caller,
                           Dwarf_Die *site)
{
    Dwarf_Die origin, callee;
    Dwarf_Attribute attribute;
    Dwarf_Addr low;
    const char *a, *b;
    struct tbd_machine target = machine_of_caller(m, caller);

    callee = m->place->scopes.dies[m->place->scopes.count - 1];
    if (tbd_die_reference(
            site, dwarf_tag(site) == DW_TAG_call_site ? DW_AT_call_origin : DW_AT_abstract_origin,
            &origin)) {
        a = linkage_name(&origin);
        b = linkage_name(&callee);
        return a != NULL && b != NULL && strcmp(a, b) == 0;
    }
    if (dwarf_attr(site,
                   dwarf_tag(site) == DW_TAG_call_site ? DW_AT_call_target
                                                       : DW_AT_GNU_call_site_target,
                   &attribute) == NULL ||
        dwarf_lowpc(&callee, &low) != 0 || !tbd_machine_run(&target, &attribute) ||
        target.kind == TBD_IN_REGISTER || target.depth == 0)
        return false;
    return target.stack[target.depth - 1] == low + m->place->bias;
}

static bool parameter_is_in(Dwarf_Die *die, uint64_t reg)
{
    Dwarf_Attribute attribute;
    Dwarf_Op *ops;
    size_t count;
    int tag = dwarf_tag(die);

    if ((tag != DW_TAG_call_site_parameter && tag != DW_TAG_GNU_call_site_parameter) ||
        dwarf_attr(die, DW_AT_location, &attribute) == NULL ||
        dwarf_getlocation(&attribute, &ops, &count) != 0 || count != 1)
        return false;
    return (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31 &&
            (uint64_t)(ops[0].atom - DW_OP_reg0) == reg) ||
           (ops[0].atom == DW_OP_regx && ops[0].number == reg);
}

static bool push_passed(struct tbd_machine *m, const struct tbd_place_of *caller, Dwarf_Die *site,
                        uint64_t reg)
{
    struct tbd_machine inner = machine_of_caller(m, caller);
    Dwarf_Attribute attribute;
    Dwarf_Die die;

    for (bool more = tbd_die_child(site, &die); more; more = tbd_die_next(&die, &die)) {
        if (!parameter_is_in(&die, reg))
            continue;
        if (dwarf_attr(&die, DW_AT_call_value, &attribute) == NULL &&
            dwarf_attr(&die, DW_AT_GNU_call_site_value, &attribute) == NULL)
            break;
        if (!tbd_machine_run(&inner, &attribute))
            return false;
        if (inner.kind == TBD_IN_REGISTER || inner.depth == 0)
            break;
        return tbd_machine_push(m, inner.stack[inner.depth - 1]);
    }
    return tbd_machine_fail(m, "its value at the function's entry is not known");
}

bool tbd_machine_push_entry(struct tbd_machine *m, Dwarf_Attribute *attribute, const Dwarf_Op *op)
{
    const struct tbd_place_of *caller = m->place->caller;
    Dwarf_Attribute inner;
    Dwarf_Op *ops;
    size_t count;
    Dwarf_Die site;
    uint32_t visits = 0;
    uint64_t reg;

    if (dwarf_getlocation_attr(attribute, op, &inner) != 0 ||
        dwarf_getlocation(&inner, &ops, &count) != 0 || count != 1 ||
        !((ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) || ops[0].atom == DW_OP_regx))
        return tbd_machine_fail(m, "its value at the function's entry is not known");
    reg = ops[0].atom == DW_OP_regx ? ops[0].number : (uint64_t)(ops[0].atom - DW_OP_reg0);
    *m->steps += TBD_MACHINE_STEPS_MAX / 256; /* looking for a call is expensive */
    if (m->nesting >= TBD_MACHINE_NESTING_MAX || caller == NULL || caller->dwarf == NULL ||
        caller->scopes.count == 0 || m->place->scopes.count == 0 ||
        !find_site(&caller->scopes.dies[caller->scopes.count - 1], caller->frame->pc - caller->bias,
                   0, &visits, &site))
        return tbd_machine_fail(m, "it was changed, and the caller does not say what it passed");
    if (!calls_function(m, caller, &site))
        return tbd_machine_fail(m, "it was changed, and the function was not called directly");
    return push_passed(m, caller, &site, reg);
}
