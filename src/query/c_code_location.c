// SPDX-License-Identifier: MIT
/* c_code_location.c - location descriptions to code (c_code.h)
 *
 * What dwarf_location.c does at one place, for all addresses where the same description and the same
 * frame rule hold. Only straight-line descriptions: no branches, pieces or values of the caller. */
#include "query/c_code.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#define OPS_MAX     64u
#define ENTRIES_MAX 100000u
#define NESTING_MAX 4
#define XMM_FIRST   17u
#define XMM_COUNT   16u

static const uint8_t reg_of_dwarf[TBD_REG_COUNT] = { TBD_RAX, TBD_RDX, TBD_RCX, TBD_RBX,
                                                     TBD_RSI, TBD_RDI, TBD_RBP, TBD_RSP,
                                                     TBD_R8,  TBD_R9,  TBD_R10, TBD_R11,
                                                     TBD_R12, TBD_R13, TBD_R14, TBD_R15 };

struct emission {
    struct tbd_c_emitter *e;
    const Dwarf_Die *function; /* whose frame base counts; NULL: none */
    int nesting;
    bool is_value;    /* DW_OP_stack_value */
    bool is_register; /* the object is in `reg` */
    uint64_t reg;
};

static bool emit_ops(struct emission *m, Dwarf_Attribute *attribute, const Dwarf_Op *ops,
                     size_t count);

static void narrow(struct tbd_c_emitter *e, uint64_t start, uint64_t end)
{
    struct tbd_c_code *code = e->code;
    uint64_t bias = e->place->bias;

    if (start + bias > code->start && start <= e->place->address)
        code->start = start + bias;
    if (end > e->place->address && end <= UINT64_MAX - bias && end + bias < code->end)
        code->end = end + bias;
}

/* The description that holds at the place; 0: none does. */
static size_t choose(struct tbd_c_emitter *e, Dwarf_Attribute *attribute, Dwarf_Op **ops)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t at = 0;
    size_t count;

    for (uint32_t i = 0; i < ENTRIES_MAX && (at = dwarf_getlocations(attribute, at, &base, &start,
                                                                     &end, ops, &count)) > 0;
         i++) {
        if (e->place->address >= start && e->place->address < end) {
            narrow(e, start, end);
            return count;
        }
        /* Where nothing is said, nothing holds up to the next entry. */
        if (start > e->place->address)
            narrow(e, 0, start);
        else
            narrow(e, end, UINT64_MAX);
    }
    return 0;
}

static bool emit_register(struct emission *m, uint64_t number, uint64_t add)
{
    if (number >= TBD_REG_COUNT)
        return false;
    tbd_c_emit(m->e, TBD_CI_REG, 8, reg_of_dwarf[number], 0);
    if (add != 0)
        tbd_c_emit(m->e, TBD_CI_ADD_VALUE, 8, 0, add);
    return true;
}

static bool emit_cfa(struct emission *m)
{
    Dwarf_Frame *frame =
        m->e->file == NULL ? NULL : tbd_elf_frame(m->e->file, m->e->place->address);
    struct emission inner = { .e = m->e, .nesting = m->nesting + 1 };
    Dwarf_Addr start, end;
    Dwarf_Op *ops;
    size_t count;
    bool good = frame != NULL && inner.nesting < NESTING_MAX &&
                dwarf_frame_cfa(frame, &ops, &count) == 0 && count != 0 &&
                dwarf_frame_info(frame, &start, &end, NULL) >= 0 &&
                emit_ops(&inner, NULL, ops, count) && !inner.is_register;

    if (good)
        narrow(m->e, start, end);
    free(frame);
    return good;
}

static bool emit_frame_base(struct emission *m, uint64_t offset)
{
    struct emission inner = { .e = m->e, .nesting = m->nesting + 1 };
    Dwarf_Attribute attribute;
    Dwarf_Op *ops;
    size_t count;

    if (m->function == NULL || inner.nesting > NESTING_MAX ||
        !tbd_die_attribute(m->function, DW_AT_frame_base, &attribute) ||
        (count = choose(m->e, &attribute, &ops)) == 0 ||
        !emit_ops(&inner, &attribute, ops, count) ||
        (inner.is_register && !emit_register(m, inner.reg, 0)))
        return false;
    if (offset != 0)
        tbd_c_emit(m->e, TBD_CI_ADD_VALUE, 8, 0, offset);
    return true;
}

/* The thread's vector lists the block of every module; the program's own is the first. */
static bool emit_thread_address(struct emission *m)
{
    if (!m->e->place->is_main_program)
        return false;
    tbd_c_emit(m->e, TBD_CI_FS, 8, 0, 0);
    tbd_c_emit(m->e, TBD_CI_ADD_VALUE, 8, 0, 8);
    tbd_c_emit(m->e, TBD_CI_LOAD, 8, 0, 0);
    tbd_c_emit(m->e, TBD_CI_ADD_VALUE, 8, 0, 16);
    tbd_c_emit(m->e, TBD_CI_LOAD, 8, 0, 0);
    tbd_c_emit(m->e, TBD_CI_ADD, 8, 0, 0);
    return true;
}

static bool emit_indexed(struct emission *m, Dwarf_Attribute *attribute, const Dwarf_Op *op,
                         bool is_address)
{
    Dwarf_Attribute value;
    Dwarf_Word word;

    if (attribute == NULL || dwarf_getlocation_attr(attribute, op, &value) != 0 ||
        dwarf_formaddr(&value, &word) != 0)
        return false;
    tbd_c_emit(m->e, TBD_CI_PUSH, 8, 0, is_address ? word + m->e->place->bias : word);
    return true;
}

/* Operations that are one instruction here; TBD_CI_UNKNOWN: none. */
static enum tbd_c_insn_op same_as(uint8_t atom)
{
    switch (atom) {
    case DW_OP_plus: return TBD_CI_ADD;
    case DW_OP_minus: return TBD_CI_SUB;
    case DW_OP_mul: return TBD_CI_MUL;
    case DW_OP_and: return TBD_CI_AND;
    case DW_OP_or: return TBD_CI_OR;
    case DW_OP_xor: return TBD_CI_XOR;
    case DW_OP_shl: return TBD_CI_SHL;
    case DW_OP_shr: return TBD_CI_SHR;
    case DW_OP_shra: return TBD_CI_SAR;
    case DW_OP_div: return TBD_CI_DIV_SIGNED;
    case DW_OP_mod: return TBD_CI_MOD;
    case DW_OP_eq: return TBD_CI_EQ;
    case DW_OP_ne: return TBD_CI_NE;
    case DW_OP_lt: return TBD_CI_LT_SIGNED;
    case DW_OP_le: return TBD_CI_LE_SIGNED;
    case DW_OP_neg: return TBD_CI_NEGATE;
    case DW_OP_not: return TBD_CI_COMPLEMENT;
    case DW_OP_dup: return TBD_CI_DUP;
    case DW_OP_drop: return TBD_CI_DROP;
    case DW_OP_swap: return TBD_CI_SWAP;
    default: return TBD_CI_UNKNOWN;
    }
}

static bool emit_convert(struct emission *m, Dwarf_Attribute *attribute, const Dwarf_Op *op)
{
    Dwarf_Die die;
    struct tbd_type type;
    struct tbd_type_view view;

    if (op->number == 0)
        return true;
    if (attribute == NULL || dwarf_getlocation_die(attribute, op, &die) != 0)
        return false;
    type = tbd_type_from(&die);
    view = tbd_type_look(&type);
    if (view.kind != TBD_TYPE_INTEGER || view.bytes == 0 || view.bytes > 8)
        return false;
    if (view.bytes < 8)
        tbd_c_emit(m->e, view.is_signed ? TBD_CI_SIGN : TBD_CI_ZERO, (unsigned)view.bytes * 8, 0,
                   0);
    return true;
}

static bool emit_other(struct emission *m, Dwarf_Attribute *attribute, const Dwarf_Op *op)
{
    enum tbd_c_insn_op same = same_as(op->atom);

    if (same != TBD_CI_UNKNOWN) {
        tbd_c_emit(m->e, same, 8, 0, 0);
        return true;
    }
    switch (op->atom) {
    case DW_OP_addr:
        tbd_c_emit(m->e, TBD_CI_PUSH, 8, 0, op->number + m->e->place->bias);
        return true;
    case DW_OP_addrx:
    case DW_OP_GNU_addr_index: return emit_indexed(m, attribute, op, true);
    case DW_OP_constx:
    case DW_OP_GNU_const_index: return emit_indexed(m, attribute, op, false);
    case DW_OP_bregx: return emit_register(m, op->number, op->number2);
    case DW_OP_fbreg: return emit_frame_base(m, op->number);
    case DW_OP_call_frame_cfa: return emit_cfa(m);
    case DW_OP_plus_uconst: tbd_c_emit(m->e, TBD_CI_ADD_VALUE, 8, 0, op->number); return true;
    case DW_OP_deref: tbd_c_emit(m->e, TBD_CI_LOAD, 8, 0, 0); return true;
    case DW_OP_deref_size:
        tbd_c_emit(m->e, TBD_CI_LOAD, (unsigned)op->number, 0, 0);
        return op->number >= 1 && op->number <= 8;
    case DW_OP_form_tls_address:
    case DW_OP_GNU_push_tls_address: return emit_thread_address(m);
    case DW_OP_regval_type:
    case DW_OP_GNU_regval_type: return emit_register(m, op->number, 0);
    case DW_OP_convert:
    case DW_OP_GNU_convert: return emit_convert(m, attribute, op);
    case DW_OP_regx:
        m->is_register = true;
        m->reg = op->number;
        return true;
    case DW_OP_stack_value: m->is_value = true; return true;
    case DW_OP_GNU_uninit:
    case DW_OP_nop: return true;
    default: return false;
    }
}

static bool emit_op(struct emission *m, Dwarf_Attribute *attribute, const Dwarf_Op *op)
{
    if (op->atom >= DW_OP_const1u && op->atom <= DW_OP_consts)
        tbd_c_emit(m->e, TBD_CI_PUSH, 8, 0, op->number);
    else if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
        tbd_c_emit(m->e, TBD_CI_PUSH, 8, 0, (uint64_t)(op->atom - DW_OP_lit0));
    else if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
        return emit_register(m, (uint64_t)(op->atom - DW_OP_breg0), op->number);
    else if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31) {
        m->is_register = true;
        m->reg = (uint64_t)(op->atom - DW_OP_reg0);
    } else
        return emit_other(m, attribute, op);
    return true;
}

static bool emit_ops(struct emission *m, Dwarf_Attribute *attribute, const Dwarf_Op *ops,
                     size_t count)
{
    for (size_t i = 0; i < count; i++) {
        /* What follows a register or a value belongs to a piece. */
        if (i >= OPS_MAX || m->is_register || m->is_value || !emit_op(m, attribute, &ops[i]))
            return false;
    }
    return true;
}

/* Does every way to the object lead through an operation that says it is gone? */
static bool is_gone(const Dwarf_Op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (ops[i].atom == DW_OP_implicit_pointer || ops[i].atom == DW_OP_GNU_implicit_pointer ||
            ops[i].atom == DW_OP_GNU_parameter_ref)
            return true;
    }
    return false;
}

static enum tbd_c_place_kind emit_constant(struct tbd_c_emitter *e, const Dwarf_Die *variable)
{
    Dwarf_Attribute attribute;
    uint64_t value;

    if (tbd_die_number(variable, DW_AT_const_value, &value)) {
        tbd_c_emit(e, TBD_CI_PUSH, 8, 0, value);
        return TBD_C_IN_WORD;
    }
    return tbd_die_attribute(variable, DW_AT_const_value, &attribute) ? TBD_C_TOO_HARD
                                                                      : TBD_C_NOWHERE;
}

static enum tbd_c_place_kind take_register(struct emission *m)
{
    if (m->reg - XMM_FIRST < XMM_COUNT)
        tbd_c_emit(m->e, TBD_CI_XMM, 8, (uint32_t)(m->reg - XMM_FIRST), 0);
    else if (!emit_register(m, m->reg, 0))
        return TBD_C_NOWHERE;
    return TBD_C_IN_WORD;
}

enum tbd_c_place_kind tbd_c_emit_location(struct tbd_c_emitter *e, const Dwarf_Die *variable)
{
    const struct tbd_dwarf_scopes *scopes = &e->place->scopes;
    struct emission m = { .e = e };
    size_t mark = e->code->count, depth = e->depth;
    Dwarf_Attribute attribute;
    Dwarf_Op *ops;
    size_t count;

    if (scopes->count != 0)
        m.function = &scopes->dies[scopes->count - 1];
    if (!tbd_die_attribute(variable, DW_AT_location, &attribute))
        return emit_constant(e, variable);
    count = choose(e, &attribute, &ops);
    if (count == 0 || is_gone(ops, count))
        return TBD_C_NOWHERE;
    if (!emit_ops(&m, &attribute, ops, count)) {
        e->code->count = mark;
        e->depth = depth;
        return TBD_C_TOO_HARD;
    }
    if (m.is_register)
        return take_register(&m);
    return m.is_value ? TBD_C_IN_WORD : TBD_C_IN_MEMORY;
}
