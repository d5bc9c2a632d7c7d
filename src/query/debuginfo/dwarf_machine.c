// SPDX-License-Identifier: MIT
/* dwarf_machine.c - see dwarf_machine.h (DWARF 5, 2.5)
 *
 * DWARF_MACHINE-1  Every evaluation is bounded: TBD_MACHINE_STEPS_MAX operations in all,
 *     TBD_MACHINE_STACK_MAX words, TBD_MACHINE_NESTING_MAX expressions within expressions (frame
 *     bases, entry values). */
#include "query/debuginfo/dwarf_machine.h"

#include "base/vector_layout.h"
#include "base/assert.h"
#include "query/debuginfo/dwarf_thread.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define XMM_COUNT 16u

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

bool tbd_machine_push_number(struct tbd_machine *m, uint64_t value, enum tbd_number number)
{
    if (m->depth >= TBD_MACHINE_STACK_MAX)
        return tbd_machine_fail(m, "its location is too complicated");
    m->numbers[m->depth] = number;
    m->stack[m->depth++] = value;
    return true;
}

bool tbd_machine_push(struct tbd_machine *m, uint64_t value)
{
    return tbd_machine_push_number(m, value, TBD_NUMBER_GENERIC);
}

bool tbd_machine_pop(struct tbd_machine *m, uint64_t *out)
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
        return tbd_machine_fail(m,
                                frame->how == TBD_FRAME_REGS
                                    ? "it is in %s, which is not known here"
                                    : "it was in %s, which a called function may have changed",
                                reg_names[number]);
    *out = frame->gpr[reg];
    return true;
}

uint8_t tbd_machine_general(uint64_t number)
{
    return number < TBD_REG_COUNT ? (uint8_t)(reg_of_dwarf[number] + 1) : 0;
}

uint8_t tbd_machine_place(uint64_t number)
{
    return number - TBD_MACHINE_XMM < XMM_COUNT
               ? (uint8_t)(1 + TBD_DATA_XMM0 + number - TBD_MACHINE_XMM)
               : tbd_machine_general(number);
}

/* The bytes of a whole register, also of a vector register. */
bool tbd_machine_register(struct tbd_machine *m, uint64_t number, uint8_t *out, uint32_t *count)
{
    uint64_t value = 0;

    *count = 8;
    if (number - TBD_MACHINE_XMM < XMM_COUNT) {
        if (m->place->xsave == NULL)
            return tbd_machine_fail(m, "it was in xmm%u, which a called function may have changed",
                                    (unsigned)(number - TBD_MACHINE_XMM));
        *count = 16;
        memcpy(out, m->place->xsave + TBD_VECTOR_XMM + 16 * (number - TBD_MACHINE_XMM), 16);
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

bool tbd_machine_deref(struct tbd_machine *m, uint64_t bytes)
{
    uint64_t address = 0;

    return tbd_machine_pop(m, &address) && read_memory(m, address, bytes);
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
    size_t at = m->depth - 1 - index;

    return index < m->depth ? tbd_machine_push_number(m, m->stack[at], m->numbers[at])
                            : tbd_machine_fail(m, "its location is damaged");
}

static bool swap(struct tbd_machine *m, size_t count)
{
    enum tbd_number number;
    uint64_t top;

    if (m->depth < count)
        return tbd_machine_fail(m, "its location is damaged");
    top = m->stack[m->depth - 1];
    number = m->numbers[m->depth - 1];
    for (size_t i = 1; i < count; i++) {
        m->stack[m->depth - i] = m->stack[m->depth - i - 1];
        m->numbers[m->depth - i] = m->numbers[m->depth - i - 1];
    }
    m->stack[m->depth - count] = top;
    m->numbers[m->depth - count] = number;
    return true;
}

static bool combine(struct tbd_machine *m, uint8_t atom)
{
    enum tbd_number number;
    uint64_t a = 0, b = 0;

    if (!tbd_machine_pop(m, &b) || !tbd_machine_pop(m, &a))
        return false;
    number = m->numbers[m->depth];
    if (tbd_number_is_float(number) || tbd_number_is_float(m->numbers[m->depth + 1]))
        return number == m->numbers[m->depth + 1]
                   ? tbd_machine_combine_floats(m, atom, a, b, number)
                   : tbd_machine_fail(m, "its location is damaged");
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

    if (!tbd_machine_pop(m, &a))
        return false;
    if (tbd_number_is_float(m->numbers[m->depth]) && op->atom != DW_OP_drop)
        return tbd_machine_change_float(m, op->atom, a, m->numbers[m->depth]);
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
        block.length > TBD_DATA_BYTES - m->out->byte_count)
        return tbd_machine_fail(m, "its location is damaged");
    m->kind = TBD_IS_BYTES;
    memcpy(m->out->bytes + m->out->byte_count, block.data, block.length);
    m->out->byte_count += (uint32_t)block.length;
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
    case DW_OP_fbreg: return push_frame_base(m, op->number);
    case DW_OP_call_frame_cfa: return push_cfa(m);
    case DW_OP_entry_value:
    case DW_OP_GNU_entry_value: return tbd_machine_push_entry(m, attribute, op);
    case DW_OP_const_type:
    case DW_OP_GNU_const_type:
    case DW_OP_regval_type:
    case DW_OP_GNU_regval_type:
    case DW_OP_deref_type:
    case DW_OP_GNU_deref_type:
    case DW_OP_convert:
    case DW_OP_GNU_convert:
    case DW_OP_reinterpret:
    case DW_OP_GNU_reinterpret: return tbd_machine_typed(m, attribute, op);
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

    if (op->atom == DW_OP_bra && !tbd_machine_pop(m, &value))
        return false;
    *taken = value != 0;
    return true;
}

/* Operations [from, to) of one piece, or of the whole. */
bool tbd_machine_operations(struct tbd_machine *m, Dwarf_Attribute *attribute, const Dwarf_Op *ops,
                            size_t from, size_t to)
{
    for (size_t i = from; i < to;) {
        bool taken = false;

        if (++*m->steps > TBD_MACHINE_STEPS_MAX)
            return tbd_machine_fail(m, "its location is too complicated");
        TBD_INVARIANT("DWARF_MACHINE-1",
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
bool tbd_machine_choose(struct tbd_machine *m, Dwarf_Attribute *attribute, Dwarf_Op **ops,
                        size_t *count)
{
    int found = dwarf_getlocation_addr(attribute, m->place->address, ops, count, 1);

    if (found < 0)
        return tbd_machine_fail(m, "its location is damaged");
    return found > 0 ? true : tbd_machine_fail(m, TBD_DATA_NO_LOCATION);
}

bool tbd_machine_run(struct tbd_machine *m, Dwarf_Attribute *attribute)
{
    Dwarf_Op *ops;
    size_t count;

    if (m->nesting > TBD_MACHINE_NESTING_MAX)
        return tbd_machine_fail(m, "its location is too complicated");
    return tbd_machine_choose(m, attribute, &ops, &count) &&
           tbd_machine_operations(m, attribute, ops, 0, count);
}
