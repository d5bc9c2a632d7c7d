// SPDX-License-Identifier: MIT
/* dwarf_location.c - location descriptions (DWARF 5, 2.5 and 2.6) evaluated on a frame
 *
 * DWARF_LOCATION-1  Every evaluation is bounded: TBD_MACHINE_STEPS_MAX operations in all,
 *     TBD_MACHINE_STACK_MAX words, TBD_MACHINE_NESTING_MAX expressions within expressions (frame
 *     bases, entry values).
 * DWARF_LOCATION-2  The first thing that is missing ends the evaluation, and `why` says what it
 *     was. (not checked: it is about what is not done) */
#include "query/debuginfo/dwarf_location.h"

#include "base/assert.h"
#include "query/debuginfo/dwarf_machine.h"
#include "query/debuginfo/dwarf_parameter.h"
#include "query/debuginfo/frame_unset.h"
#include "query/debuginfo/dwarf_thread.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XMM_FIRST    17u /* DWARF number of xmm0 */
#define XMM_COUNT    16u
#define XMM_IN_XSAVE 160u

/* System V ABI, figure 3.36. */
static const uint8_t reg_of_dwarf[TBD_REG_COUNT] = { TBD_RAX, TBD_RDX, TBD_RCX, TBD_RBX,
                                                     TBD_RSI, TBD_RDI, TBD_RBP, TBD_RSP,
                                                     TBD_R8,  TBD_R9,  TBD_R10, TBD_R11,
                                                     TBD_R12, TBD_R13, TBD_R14, TBD_R15 };
static const char *const reg_names[TBD_REG_COUNT] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi",
                                                      "rbp", "rsp", "r8",  "r9",  "r10", "r11",
                                                      "r12", "r13", "r14", "r15" };

/* ---- expressions ---- */

struct tbd_machine tbd_machine_nested(const struct tbd_machine *m, const struct tbd_place_of *place)
{
    return (struct tbd_machine){
        .place = place, .nesting = m->nesting + 1, .steps = m->steps, .out = m->out
    };
}

bool tbd_machine_fail(struct tbd_machine *m, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (m->out->why[0] == '\0')
        vsnprintf(m->out->why, sizeof(m->out->why), format, args);
    va_end(args);
    return false;
}

bool tbd_machine_push(struct tbd_machine *m, uint64_t value)
{
    if (m->depth >= TBD_MACHINE_STACK_MAX)
        return tbd_machine_fail(m, "its location is too complicated");
    m->stack[m->depth++] = value;
    return true;
}

static bool pop(struct tbd_machine *m, uint64_t *out)
{
    if (m->depth == 0)
        return tbd_machine_fail(m, "its location is damaged");
    *out = m->stack[--m->depth];
    return true;
}

static bool read_register(struct tbd_machine *m, uint64_t number, uint64_t *out)
{
    const struct tbd_frame *frame = m->place->frame;
    unsigned reg;

    if (frame == NULL)
        return tbd_machine_fail(m, "it needs a frame");
    if (number == TBD_REG_COUNT) {
        *out = frame->pc;
        return true;
    }
    if (number >= TBD_REG_COUNT)
        return tbd_machine_fail(m, "it is in a register that is not known here");
    reg = reg_of_dwarf[number];
    if ((frame->known >> reg & 1) == 0)
        return tbd_machine_fail(m, "it was in %s, which a called function may have changed",
                                reg_names[number]);
    *out = frame->gpr[reg];
    return true;
}

/* The bytes of a whole register, also of a vector register. */
static bool register_bytes(struct tbd_machine *m, uint64_t number, uint8_t *out, uint32_t *count)
{
    uint64_t value = 0;

    *count = 8;
    if (number - XMM_FIRST < XMM_COUNT) {
        if (m->place->xsave == NULL)
            return tbd_machine_fail(m, "it was in xmm%u, which a called function may have changed",
                                    (unsigned)(number - XMM_FIRST));
        *count = 16;
        memcpy(out, m->place->xsave + XMM_IN_XSAVE + 16 * (number - XMM_FIRST), 16);
        return true;
    }
    if (!read_register(m, number, &value))
        return false;
    memcpy(out, &value, sizeof(value));
    return true;
}

static bool read_memory(struct tbd_machine *m, uint64_t address, uint64_t bytes)
{
    uint64_t value = 0;

    if (bytes == 0 || bytes > 8)
        return tbd_machine_fail(m, "its location is damaged");
    if (m->place->memory == NULL ||
        !m->place->memory->read(m->place->memory->context, address, &value, (size_t)bytes))
        return tbd_machine_fail(m, "memory at 0x%" PRIx64 " is not mapped", address);
    return tbd_machine_push(m, value);
}

static bool push_frame_base(struct tbd_machine *m, uint64_t offset)
{
    struct tbd_machine inner = tbd_machine_nested(m, m->place);
    Dwarf_Attribute attribute;

    if (m->function == NULL || inner.nesting > TBD_MACHINE_NESTING_MAX ||
        !tbd_die_attribute(m->function, DW_AT_frame_base, &attribute))
        return tbd_machine_fail(m, "its function has no frame base");
    if (!tbd_machine_run(&inner, &attribute))
        return false;
    if (inner.kind == TBD_IN_REGISTER) {
        uint64_t value = 0;

        return read_register(m, inner.reg, &value) && tbd_machine_push(m, value + offset);
    }
    return inner.depth != 0 ? tbd_machine_push(m, inner.stack[inner.depth - 1] + offset)
                            : tbd_machine_fail(m, "its function has no frame base");
}

static bool push_thread_address(struct tbd_machine *m, uint64_t offset)
{
    uint64_t block = 0;
    const char *why = tbd_thread_block(m->place, &block);

    return why == NULL ? tbd_machine_push(m, block + offset) : tbd_machine_fail(m, "%s", why);
}

/* ---- operations ---- */

static bool pick(struct tbd_machine *m, uint64_t index)
{
    return index < m->depth ? tbd_machine_push(m, m->stack[m->depth - 1 - index])
                            : tbd_machine_fail(m, "its location is damaged");
}

static bool swap(struct tbd_machine *m, size_t count)
{
    uint64_t top;

    if (m->depth < count)
        return tbd_machine_fail(m, "its location is damaged");
    top = m->stack[m->depth - 1];
    for (size_t i = 1; i < count; i++)
        m->stack[m->depth - i] = m->stack[m->depth - i - 1];
    m->stack[m->depth - count] = top;
    return true;
}

static bool combine(struct tbd_machine *m, uint8_t atom)
{
    uint64_t a = 0, b = 0;

    if (!pop(m, &b) || !pop(m, &a))
        return false;
    switch (atom) {
    case DW_OP_plus: return tbd_machine_push(m, a + b);
    case DW_OP_minus: return tbd_machine_push(m, a - b);
    case DW_OP_mul: return tbd_machine_push(m, a * b);
    case DW_OP_and: return tbd_machine_push(m, a & b);
    case DW_OP_or: return tbd_machine_push(m, a | b);
    case DW_OP_xor: return tbd_machine_push(m, a ^ b);
    case DW_OP_shl: return tbd_machine_push(m, b < 64 ? a << b : 0);
    case DW_OP_shr: return tbd_machine_push(m, b < 64 ? a >> b : 0);
    case DW_OP_shra: return tbd_machine_push(m, (uint64_t)((int64_t)a >> (b < 63 ? b : 63)));
    case DW_OP_eq: return tbd_machine_push(m, a == b);
    case DW_OP_ne: return tbd_machine_push(m, a != b);
    case DW_OP_lt: return tbd_machine_push(m, (int64_t)a < (int64_t)b);
    case DW_OP_le: return tbd_machine_push(m, (int64_t)a <= (int64_t)b);
    case DW_OP_gt: return tbd_machine_push(m, (int64_t)a > (int64_t)b);
    case DW_OP_ge: return tbd_machine_push(m, (int64_t)a >= (int64_t)b);
    case DW_OP_mod:
        return b == 0 ? tbd_machine_fail(m, "its location divides by zero")
                      : tbd_machine_push(m, a % b);
    default: break;
    }
    if (b == 0)
        return tbd_machine_fail(m, "its location divides by zero");
    return tbd_machine_push(m, b == UINT64_MAX ? 0 - a : (uint64_t)((int64_t)a / (int64_t)b));
}

static bool change(struct tbd_machine *m, const Dwarf_Op *op)
{
    uint64_t a = 0;

    if (!pop(m, &a))
        return false;
    switch (op->atom) {
    case DW_OP_neg: return tbd_machine_push(m, 0 - a);
    case DW_OP_not: return tbd_machine_push(m, ~a);
    case DW_OP_abs: return tbd_machine_push(m, (int64_t)a < 0 ? 0 - a : a);
    case DW_OP_plus_uconst: return tbd_machine_push(m, a + op->number);
    case DW_OP_deref: return read_memory(m, a, 8);
    case DW_OP_deref_size: return read_memory(m, a, op->number);
    case DW_OP_form_tls_address:
    case DW_OP_GNU_push_tls_address: return push_thread_address(m, a);
    default: return true; /* DW_OP_drop */
    }
}

/* Converts to another base type, given by its entry; integers only. */
static bool convert(struct tbd_machine *m, Dwarf_Attribute *attribute, const Dwarf_Op *op)
{
    Dwarf_Die die;
    struct tbd_type type;
    struct tbd_type_view view;
    uint64_t value = 0;

    if (!pop(m, &value))
        return false;
    if (op->number == 0)
        return tbd_machine_push(m, value);
    if (dwarf_getlocation_die(attribute, op, &die) != 0)
        return tbd_machine_fail(m, "its location is damaged");
    type = tbd_type_from(&die);
    view = tbd_type_look(&type);
    if (view.kind != TBD_TYPE_INTEGER || view.bytes == 0 || view.bytes > 8)
        return tbd_machine_fail(m, "it was calculated with floating-point numbers");
    return tbd_machine_push(m, tbd_data_extend(value, (uint32_t)view.bytes * 8, view.is_signed));
}

static bool push_indexed(struct tbd_machine *m, Dwarf_Attribute *attribute, const Dwarf_Op *op,
                         bool is_address)
{
    Dwarf_Attribute value;
    Dwarf_Word word;

    if (dwarf_getlocation_attr(attribute, op, &value) != 0 || dwarf_formaddr(&value, &word) != 0)
        return tbd_machine_fail(m, "its location is damaged");
    return tbd_machine_push(m, is_address ? word + m->place->bias : word);
}

static bool push_register(struct tbd_machine *m, uint64_t number, uint64_t offset)
{
    uint64_t value = 0;

    return read_register(m, number, &value) && tbd_machine_push(m, value + offset);
}

static bool push_cfa(struct tbd_machine *m)
{
    if (m->place->frame == NULL || m->place->frame->cfa == 0)
        return tbd_machine_fail(m, "the frame's start is not known");
    return tbd_machine_push(m, m->place->frame->cfa);
}

static bool take_bytes(struct tbd_machine *m, Dwarf_Attribute *attribute, const Dwarf_Op *op)
{
    Dwarf_Block block;

    if (dwarf_getlocation_implicit_value(attribute, op, &block) != 0 ||
        block.length > TBD_DATA_BYTES)
        return tbd_machine_fail(m, "its location is damaged");
    m->kind = TBD_IS_BYTES;
    m->out->byte_count = (uint32_t)block.length;
    memcpy(m->out->bytes, block.data, block.length);
    return true;
}

static bool step_other(struct tbd_machine *m, Dwarf_Attribute *attribute, const Dwarf_Op *op)
{
    switch (op->atom) {
    case DW_OP_addr: return tbd_machine_push(m, op->number + m->place->bias);
    case DW_OP_addrx:
    case DW_OP_GNU_addr_index: return push_indexed(m, attribute, op, true);
    case DW_OP_constx:
    case DW_OP_GNU_const_index: return push_indexed(m, attribute, op, false);
    case DW_OP_dup: return pick(m, 0);
    case DW_OP_over: return pick(m, 1);
    case DW_OP_pick: return pick(m, op->number);
    case DW_OP_swap: return swap(m, 2);
    case DW_OP_rot: return swap(m, 3);
    case DW_OP_bregx: return push_register(m, op->number, op->number2);
    case DW_OP_regval_type:
    case DW_OP_GNU_regval_type: return push_register(m, op->number, 0);
    case DW_OP_fbreg: return push_frame_base(m, op->number);
    case DW_OP_call_frame_cfa: return push_cfa(m);
    case DW_OP_entry_value:
    case DW_OP_GNU_entry_value: return tbd_machine_push_entry(m, attribute, op);
    case DW_OP_convert:
    case DW_OP_GNU_convert: return convert(m, attribute, op);
    case DW_OP_implicit_value: return take_bytes(m, attribute, op);
    case DW_OP_implicit_pointer:
    case DW_OP_GNU_implicit_pointer:
        return tbd_machine_fail(m, "the pointer was optimized out, not what it points to");
    case DW_OP_GNU_parameter_ref: return tbd_machine_fail(m, "the parameter was optimized out");
    case DW_OP_regx:
        m->kind = TBD_IN_REGISTER;
        m->reg = op->number;
        return true;
    case DW_OP_stack_value: m->kind = TBD_IS_VALUE; return true;
    case DW_OP_GNU_uninit:
    case DW_OP_nop: return true;
    default:
        return tbd_machine_fail(m, "operation 0x%02x of its location is not supported", op->atom);
    }
}

static bool is_constant(uint8_t atom)
{
    return atom >= DW_OP_const1u && atom <= DW_OP_consts;
}

static bool is_unary(uint8_t atom)
{
    return atom == DW_OP_neg || atom == DW_OP_not || atom == DW_OP_abs ||
           atom == DW_OP_plus_uconst || atom == DW_OP_deref || atom == DW_OP_deref_size ||
           atom == DW_OP_drop || atom == DW_OP_form_tls_address ||
           atom == DW_OP_GNU_push_tls_address;
}

static bool is_binary(uint8_t atom)
{
    return atom == DW_OP_plus || atom == DW_OP_minus || atom == DW_OP_mul || atom == DW_OP_and ||
           atom == DW_OP_or || atom == DW_OP_xor || (atom >= DW_OP_shl && atom <= DW_OP_shra) ||
           (atom >= DW_OP_eq && atom <= DW_OP_ne) || atom == DW_OP_div || atom == DW_OP_mod;
}

static bool step(struct tbd_machine *m, Dwarf_Attribute *attribute, const Dwarf_Op *op)
{
    if (is_constant(op->atom))
        return tbd_machine_push(m, op->number);
    if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
        return tbd_machine_push(m, (uint64_t)(op->atom - DW_OP_lit0));
    if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
        return push_register(m, (uint64_t)(op->atom - DW_OP_breg0), op->number);
    if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31) {
        m->kind = TBD_IN_REGISTER;
        m->reg = (uint64_t)(op->atom - DW_OP_reg0);
        return true;
    }
    if (is_unary(op->atom))
        return change(m, op);
    if (is_binary(op->atom))
        return combine(m, op->atom);
    return step_other(m, attribute, op);
}

/* A jump leads to the operation at a byte offset; SIZE_MAX if there is none. */
static size_t jump_target(const Dwarf_Op *ops, size_t count, size_t at)
{
    Dwarf_Word wanted = ops[at].offset + 3 + ops[at].number;

    for (size_t i = 0; i < count; i++) {
        if (ops[i].offset == wanted)
            return i;
    }
    return SIZE_MAX;
}

static bool jumps(struct tbd_machine *m, const Dwarf_Op *op, bool *taken)
{
    uint64_t value = 1;

    if (op->atom == DW_OP_bra && !pop(m, &value))
        return false;
    *taken = value != 0;
    return true;
}

/* Operations [from, to) of one piece, or of the whole. */
static bool run(struct tbd_machine *m, Dwarf_Attribute *attribute, const Dwarf_Op *ops, size_t from,
                size_t to)
{
    for (size_t i = from; i < to;) {
        bool taken = false;

        if (++*m->steps > TBD_MACHINE_STEPS_MAX)
            return tbd_machine_fail(m, "its location is too complicated");
        TBD_INVARIANT("DWARF_LOCATION-1",
                      m->depth <= TBD_MACHINE_STACK_MAX && m->nesting <= TBD_MACHINE_NESTING_MAX);
        if (ops[i].atom != DW_OP_skip && ops[i].atom != DW_OP_bra) {
            if (!step(m, attribute, &ops[i]))
                return false;
        } else if (!jumps(m, &ops[i], &taken)) {
            return false;
        }
        i = taken ? jump_target(ops, to, i) : i + 1;
        if (taken && (i < from || i >= to))
            return tbd_machine_fail(m, "its location is damaged");
    }
    return true;
}

/* The location description that is valid at the place's address. */
static bool choose(struct tbd_machine *m, Dwarf_Attribute *attribute, Dwarf_Op **ops, size_t *count)
{
    int found = dwarf_getlocation_addr(attribute, m->place->address, ops, count, 1);

    if (found < 0)
        return tbd_machine_fail(m, "its location is damaged");
    return found > 0 ? true : tbd_machine_fail(m, "it has no location at this instruction");
}

bool tbd_machine_run(struct tbd_machine *m, Dwarf_Attribute *attribute)
{
    Dwarf_Op *ops;
    size_t count;

    if (m->nesting > TBD_MACHINE_NESTING_MAX)
        return tbd_machine_fail(m, "its location is too complicated");
    return choose(m, attribute, &ops, &count) && run(m, attribute, ops, 0, count);
}

/* ---- results ---- */

static bool is_piece(uint8_t atom)
{
    return atom == DW_OP_piece || atom == DW_OP_bit_piece;
}

/* Appends the bytes that the operations [from, to) described to out->bytes. */
static bool add_piece(struct tbd_machine *m, size_t from, size_t to, uint64_t size)
{
    struct tbd_data *out = m->out;
    uint8_t bytes[16] = { 0 };
    uint32_t count = 8;
    uint64_t value = 0;

    if (size > TBD_DATA_BYTES - out->byte_count)
        return tbd_machine_fail(m, "it is too large");
    if (from == to) {
        memset(out->lost + out->byte_count, 1, (size_t)size);
        out->byte_count += (uint32_t)size;
        return true;
    }
    if (m->kind == TBD_IN_MEMORY) {
        if (!pop(m, &value) || m->place->memory == NULL ||
            !m->place->memory->read(m->place->memory->context, value, out->bytes + out->byte_count,
                                    (size_t)size))
            return tbd_machine_fail(m, "a part of it is not mapped");
    } else {
        if (m->kind == TBD_IN_REGISTER ? !register_bytes(m, m->reg, bytes, &count)
                                       : !pop(m, &value))
            return false;
        if (m->kind != TBD_IN_REGISTER)
            memcpy(bytes, &value, sizeof(value));
        if (size > sizeof(bytes))
            return tbd_machine_fail(m, "its location is damaged");
        memcpy(out->bytes + out->byte_count, bytes, (size_t)size);
    }
    out->byte_count += (uint32_t)size;
    return true;
}

static bool run_pieces(struct tbd_machine *m, Dwarf_Attribute *attribute, const Dwarf_Op *ops,
                       size_t count)
{
    size_t from = 0;

    for (size_t i = 0; i < count; i++) {
        if (!is_piece(ops[i].atom))
            continue;
        if (ops[i].atom == DW_OP_bit_piece && (ops[i].number % 8 != 0 || ops[i].number2 != 0))
            return tbd_machine_fail(m, "its bits are in several places");
        m->kind = TBD_IN_MEMORY;
        if (!run(m, attribute, ops, from, i) ||
            !add_piece(m, from, i, ops[i].atom == DW_OP_piece ? ops[i].number : ops[i].number / 8))
            return false;
        from = i + 1;
    }
    return memchr(m->out->lost, 0, m->out->byte_count) != NULL
               ? true
               : tbd_machine_fail(m, "it is kept nowhere");
}

static bool take_result(struct tbd_machine *m)
{
    struct tbd_data *out = m->out;
    uint64_t value = 0;

    switch (m->kind) {
    case TBD_IS_BYTES: return true;
    case TBD_IN_REGISTER: return register_bytes(m, m->reg, out->bytes, &out->byte_count);
    case TBD_IS_VALUE:
        if (!pop(m, &value))
            return false;
        out->byte_count = 8;
        memcpy(out->bytes, &value, sizeof(value));
        return true;
    case TBD_IN_MEMORY: break;
    }
    out->in_memory = true;
    return pop(m, &out->address);
}

static bool run_location(struct tbd_machine *m, Dwarf_Attribute *attribute)
{
    Dwarf_Op *ops;
    size_t count;

    if (!choose(m, attribute, &ops, &count))
        return false;
    if (count == 0)
        return tbd_machine_fail(m, "it has no location at this instruction");
    if (is_piece(ops[count - 1].atom))
        return run_pieces(m, attribute, ops, count);
    return run(m, attribute, ops, 0, count) && take_result(m);
}

static bool take_constant(const Dwarf_Die *variable, struct tbd_data *out)
{
    Dwarf_Attribute attribute;
    Dwarf_Block block;
    uint64_t value = 0;

    if (tbd_die_number(variable, DW_AT_const_value, &value)) {
        out->byte_count = 8;
        memcpy(out->bytes, &value, sizeof(value));
        return true;
    }
    if (!tbd_die_attribute(variable, DW_AT_const_value, &attribute) ||
        dwarf_formblock(&attribute, &block) != 0 || block.length > TBD_DATA_BYTES)
        return false;
    out->byte_count = (uint32_t)block.length;
    memcpy(out->bytes, block.data, block.length);
    return true;
}

/* ---- before something is stored to it ---- */

/* Does the description give a place below the frame, where the function has stored nothing yet? */
static bool is_below_frame(struct tbd_machine *m, Dwarf_Attribute *attribute)
{
    Dwarf_Op *ops;
    size_t count;

    return choose(m, attribute, &ops, &count) && count != 0 && ops[0].atom == DW_OP_fbreg &&
           (int64_t)ops[0].number < 0;
}

static void take_register(struct tbd_machine *m, const struct tbd_type *type, uint64_t value)
{
    struct tbd_data *out = m->out;

    out->is_known = true;
    if (tbd_parameter_is_address(type)) {
        tbd_data_at(value, type, out);
    } else {
        out->byte_count = sizeof(value);
        memcpy(out->bytes, &value, sizeof(value));
    }
}

/* The register of a parameter that unoptimized code has not yet stored in its described place.
 * `written`: registers that hold another value by now. */
static void take_passed(struct tbd_machine *m, Dwarf_Attribute *attribute,
                        const Dwarf_Die *variable, uint32_t written)
{
    struct tbd_data *out = m->out;
    struct tbd_type type = out->type;
    int number = tbd_parameter_register(m->function, variable);
    int vector = tbd_parameter_vector(m->function, variable);

    if (number < 0 && vector < 0 && !is_below_frame(m, attribute))
        return;
    if (number >= 0 && (written >> tbd_parameter_gpr(number) & 1) != 0)
        number = -1;
    if (vector >= 0 && (written & TBD_UNSET_XMM0 << vector) != 0)
        vector = -1;
    memset(out, 0, sizeof(*out));
    out->type = type;
    if (vector >= 0)
        out->is_known =
            register_bytes(m, XMM_FIRST + (unsigned)vector, out->bytes, &out->byte_count);
    else if (number < 0)
        (void)tbd_machine_fail(m, "it is not stored yet at its function's first instructions");
    else
        take_register(m, &type, m->place->frame->gpr[tbd_parameter_gpr(number)]);
}

/* At its function's first instructions, in the innermost frame. */
static void correct_early(struct tbd_machine *m, Dwarf_Attribute *attribute,
                          const Dwarf_Die *variable)
{
    const struct tbd_frame *frame = m->place->frame;
    enum tbd_unset unset;
    uint32_t written = 0;

    if (m->function == NULL || frame == NULL || frame->how != TBD_FRAME_REGS)
        return;
    unset = tbd_frame_unset(m->place, m->function, variable, &written);
    if (dwarf_tag((Dwarf_Die *)(uintptr_t)variable) == DW_TAG_formal_parameter &&
        (unset != TBD_UNSET_NO || tbd_parameter_is_entry(m->place, m->function)))
        take_passed(m, attribute, variable, written);
    else if (unset == TBD_UNSET_PLACE)
        m->out->is_known = tbd_machine_fail(m, "its function has no frame yet");
}

/* An array of one dimension whose length the function computed (C's variable length arrays). */
static void take_length(const struct tbd_machine *m, struct tbd_data *out)
{
    struct tbd_type_view view = tbd_type_look(&out->type);
    struct tbd_machine bound = tbd_machine_nested(m, m->place);
    struct tbd_data ignored = { .is_known = false };
    Dwarf_Attribute attribute;
    Dwarf_Die range;
    uint64_t last = 0;

    if (view.kind != TBD_TYPE_ARRAY || view.count != 0 || view.die.addr == NULL ||
        !tbd_die_child(&view.die, &range) || dwarf_tag(&range) != DW_TAG_subrange_type ||
        !tbd_die_attribute(&range, DW_AT_upper_bound, &attribute) ||
        dwarf_whatform(&attribute) != DW_FORM_exprloc)
        return;
    bound.function = m->function;
    bound.out = &ignored;
    if (tbd_machine_run(&bound, &attribute) && pop(&bound, &last) && last < INT64_MAX)
        out->type.count = last + 1;
}

void tbd_location_value(const struct tbd_place_of *place, const Dwarf_Die *variable,
                        struct tbd_data *out)
{
    uint32_t steps = 0;
    struct tbd_machine m = { .place = place, .steps = &steps, .out = out };
    Dwarf_Attribute attribute;

    memset(out, 0, sizeof(*out));
    out->type = tbd_type_of(variable);
    if (place->scopes.count != 0)
        m.function = &place->scopes.dies[place->scopes.count - 1];
    if (tbd_die_attribute(variable, DW_AT_location, &attribute)) {
        out->is_known = run_location(&m, &attribute);
        if (!out->is_known || out->in_memory)
            correct_early(&m, &attribute, variable);
        if (out->is_known && out->in_memory)
            take_length(&m, out);
    } else {
        out->is_known = take_constant(variable, out);
        if (!out->is_known)
            tbd_data_unknown(out, "it has no location");
    }
}
