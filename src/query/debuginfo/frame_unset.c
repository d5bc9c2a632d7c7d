// SPDX-License-Identifier: MIT
/* frame_unset.c - see frame_unset.h
 *
 * The effects of the instructions are computed once for a function, and kept for the last function
 * requested; the places that a store to the variable may have preceded spread from the stores along
 * all paths. */
#include "query/debuginfo/frame_unset.h"

#include "query/debuginfo/dwarf_private.h"
#include "query/debuginfo/frame_flow.h"

#include <dwarf.h>
#include <stdlib.h>

#define CODE_MAX 65536u

_Static_assert(TBD_UNSET_XMM0 == 1u << TBD_FLOW_XMM_BIT, "one numbering of registers");

/* ---- the function's code ---- */

/* False when the function is in several pieces. */
static bool find_code(const Dwarf_Die *function, uint64_t *out_start, uint64_t *out_bytes)
{
    Dwarf_Die die = *function;
    Dwarf_Addr low, high, base, start, end;

    if (dwarf_tag(&die) != DW_TAG_subprogram || dwarf_hasattr(&die, DW_AT_ranges) ||
        dwarf_lowpc(&die, &low) != 0 || dwarf_highpc(&die, &high) != 0 || high <= low ||
        high - low > CODE_MAX || dwarf_ranges(&die, 0, &base, &start, &end) < 0)
        return false;
    *out_start = low;
    *out_bytes = high - low;
    return true;
}

static struct tbd_flow *read_flow(struct tbd_dwarf *dwarf, uint64_t start, uint64_t bytes)
{
    uint8_t *code = malloc(bytes);
    struct tbd_flow *flow = NULL;

    if (code != NULL && tbd_elf_read(dwarf->file, start, code, bytes) == bytes)
        flow = tbd_flow_read(code, bytes, start);
    free(code);
    return flow;
}

/* NULL: it cannot be read. */
static const struct tbd_flow *flow_of(struct tbd_dwarf *dwarf, const Dwarf_Die *function)
{
    uint64_t start, bytes;

    if (!find_code(function, &start, &bytes))
        return NULL;
    if (dwarf->flow_start != start) {
        free(dwarf->flow);
        dwarf->flow = read_flow(dwarf, start, bytes);
        dwarf->flow_start = start;
    }
    return dwarf->flow;
}

/* The instruction around an address; TBD_FLOW_NONE: none. */
static size_t insn_at(const struct tbd_flow *flow, uint64_t address)
{
    for (size_t i = 0; i < flow->count; i++) {
        uint64_t start = flow->start + flow->insns[i].at;

        if (address >= start && address < start + flow->insns[i].length)
            return i;
    }
    return TBD_FLOW_NONE;
}

/* ---- the variable's place ---- */

/* One description for the whole function: [frame base + offset]. */
static bool frame_offset(const Dwarf_Die *variable, int64_t *out)
{
    Dwarf_Attribute attribute;
    Dwarf_Op *ops;
    size_t count;

    if (!tbd_die_attribute(variable, DW_AT_location, &attribute) ||
        dwarf_getlocation(&attribute, &ops, &count) != 0 || count != 1 ||
        ops[0].atom != DW_OP_fbreg)
        return false;
    *out = (int64_t)ops[0].number;
    return true;
}

/* The base of the offset: CFA + *io, or none yet, because the frame pointer is still the caller's.
 * False: unknown. */
static bool add_base(const Dwarf_Die *function, const struct tbd_flow_state *state, int64_t *io,
                     bool *out_is_callers)
{
    struct tbd_flow_pointer base = { .where = TBD_FLOW_IN_FRAME };
    Dwarf_Attribute attribute;
    Dwarf_Op *ops;
    size_t count;

    if (!tbd_die_attribute(function, DW_AT_frame_base, &attribute) ||
        dwarf_getlocation(&attribute, &ops, &count) != 0 || count != 1)
        return false;
    if (ops[0].atom == DW_OP_reg6)
        base = state->rbp;
    else if (ops[0].atom == DW_OP_reg7)
        base = state->rsp;
    else if (ops[0].atom != DW_OP_call_frame_cfa)
        return false;
    *io += base.offset;
    *out_is_callers = base.where == TBD_FLOW_CALLERS;
    return base.where != TBD_FLOW_SOMEWHERE;
}

/* ---- stores to it ---- */

static bool may_store(const struct tbd_flow_store *store, int64_t offset, uint64_t bytes)
{
    return store->kind == TBD_FLOW_STORE_ANYWHERE ||
           (store->kind == TBD_FLOW_STORE_AT && store->offset < offset + (int64_t)bytes &&
            offset < store->offset + (int64_t)store->bytes);
}

static bool mark(uint8_t *may, size_t i)
{
    bool is_new = may[i] == 0;

    may[i] = 1;
    return is_new;
}

/* The instructions after instruction i. */
static bool mark_next(const struct tbd_flow *flow, size_t i, uint8_t *may)
{
    const struct tbd_flow_insn *insn = &flow->insns[i];
    bool changed = false;

    if (insn->goes_on && i + 1 < flow->count)
        changed |= mark(may, i + 1);
    if (insn->target != TBD_FLOW_NONE)
        changed |= mark(may, insn->target);
    for (size_t k = flow->first_break; insn->goes_anywhere && k < flow->count; k++)
        changed |= mark(may, k);
    return changed;
}

/* Whether a store may have been done before the instruction `wanted`. */
static bool may_be_set(const struct tbd_flow *flow, size_t wanted, int64_t offset, uint64_t bytes)
{
    uint8_t *may = calloc(flow->count, 1);
    bool changed = true, result;

    if (may == NULL)
        return true;
    for (size_t i = 0; i < flow->count; i++) /* keeps FRAME_FLOW-2 */
        may[i] = flow->insns[i].before.is_reached &&
                 flow->insns[i].before.rsp.where == TBD_FLOW_SOMEWHERE &&
                 flow->insns[i].before.written == UINT32_MAX;
    while (changed) {
        changed = false;
        for (size_t i = 0; i < flow->count; i++) {
            if (may[i] != 0 || may_store(&flow->insns[i].store, offset, bytes))
                changed |= mark_next(flow, i, may);
        }
    }
    result = may[wanted] != 0;
    free(may);
    return result;
}

enum tbd_unset tbd_frame_unset(const struct tbd_place_of *place, const Dwarf_Die *function,
                               const Dwarf_Die *variable, uint32_t *out_written)
{
    struct tbd_type type = tbd_type_of(variable);
    uint64_t bytes = tbd_type_look(&type).bytes;
    const struct tbd_flow_state *state;
    const struct tbd_flow *flow;
    bool is_callers = false;
    int64_t offset;
    size_t at;

    if (place->dwarf == NULL || !frame_offset(variable, &offset))
        return TBD_UNSET_NO;
    flow = flow_of(place->dwarf, function);
    at = flow == NULL ? TBD_FLOW_NONE : insn_at(flow, place->address);
    if (at == TBD_FLOW_NONE || !flow->insns[at].before.is_reached)
        return TBD_UNSET_NO;
    state = &flow->insns[at].before;
    if (!add_base(function, state, &offset, &is_callers))
        return TBD_UNSET_NO;
    *out_written = state->written;
    if (is_callers)
        return TBD_UNSET_PLACE;
    return offset < 0 && !may_be_set(flow, at, offset, bytes == 0 ? 1 : bytes) ? TBD_UNSET_VALUE
                                                                               : TBD_UNSET_NO;
}
