// SPDX-License-Identifier: MIT
/* shared_quick_shape.c - see shared_quick_shape.h
 *
 * Flags are those that the processor itself gives: it executes the same operation on registers. */
#include "hooks/instructions/shared_quick_shape.h"

#include "base/string.h"

/* ---- shape ---- */

struct quick_bytes {
    const uint8_t *bytes;
    uint8_t at; /* of the opcode, after 0x0f */
    uint8_t rex;
    bool has_word_prefix, has_lock, is_two_bytes;
};

/* False: prefixes that change more than the size of operands and the address. */
static bool take_prefixes(struct quick_bytes *q, const struct tbd_insn *insn)
{
    for (; q->at < insn->length; q->at++) {
        uint8_t byte = q->bytes[q->at];

        if (byte == 0x66)
            q->has_word_prefix = true;
        else if (byte == 0xf0)
            q->has_lock = true;
        else if (byte != 0x64 && byte != 0x65 && byte != 0x67 && byte != 0x2e && byte != 0x3e)
            break;
    }
    if (q->at < insn->length && (q->bytes[q->at] & 0xf0) == 0x40)
        q->rex = q->bytes[q->at++];
    q->is_two_bytes = q->at < insn->length && q->bytes[q->at] == 0x0f;
    q->at = (uint8_t)(q->at + q->is_two_bytes);
    return q->at + 1u == insn->modrm_at && insn->prefix_bytes <= 1;
}

static uint8_t word_size(const struct quick_bytes *q)
{
    return q->rex & 8 ? 8 : q->has_word_prefix ? 2 : 4;
}

static uint64_t constant_at_end(const struct tbd_insn *insn, const uint8_t *bytes, uint8_t size)
{
    int32_t value = 0;

    memcpy(&value, bytes + insn->length - size, size);
    return (uint64_t)(int64_t)(size == 1 ? (int8_t)value : size == 2 ? (int16_t)value : value);
}

static void set_constant(struct tbd_quick_shape *s, const struct tbd_insn *insn,
                         const uint8_t *bytes, bool is_byte)
{
    s->is_constant = true;
    s->constant = constant_at_end(insn, bytes, is_byte ? 1 : s->size == 2 ? 2 : 4);
}

/* mov, add to cmp, test, xchg. */
static void shape_one_byte(struct tbd_quick_shape *s, const struct quick_bytes *q,
                           const struct tbd_insn *insn)
{
    uint8_t opcode = q->bytes[q->at], digit = q->bytes[insn->modrm_at] >> 3 & 7;

    s->size = s->reg_size = opcode & 1 || opcode == 0x63 ? word_size(q) : 1;
    if (opcode < 0x40 && (opcode & 7) < 4) {
        s->form = opcode & 2 ? TBD_QUICK_TO_REG : TBD_QUICK_TO_MEM;
        s->op = opcode >> 3;
    } else if (opcode == 0x80 || opcode == 0x81 || opcode == 0x83) {
        s->form = TBD_QUICK_TO_MEM;
        s->op = digit;
        set_constant(s, insn, q->bytes, opcode != 0x81);
    } else if (opcode == 0x84 || opcode == 0x85) {
        s->form = TBD_QUICK_TO_MEM;
        s->op = TBD_QUICK_TEST;
    } else if ((opcode == 0xf6 || opcode == 0xf7) && !digit) {
        s->form = TBD_QUICK_TO_MEM;
        s->op = TBD_QUICK_TEST;
        set_constant(s, insn, q->bytes, opcode == 0xf6);
    } else if (opcode == 0x86 || opcode == 0x87) {
        s->form = TBD_QUICK_XCHG;
    } else if (opcode == 0x88 || opcode == 0x89) {
        s->form = TBD_QUICK_STORE;
    } else if (opcode == 0x8a || opcode == 0x8b) {
        s->form = TBD_QUICK_LOAD;
    } else if ((opcode == 0xc6 || opcode == 0xc7) && !digit) {
        s->form = TBD_QUICK_STORE;
        set_constant(s, insn, q->bytes, opcode == 0xc6);
    } else if (opcode == 0x63 && s->size == 8) {
        s->form = TBD_QUICK_LOAD_SX;
        s->size = 4;
    }
}

/* movzx, movsx, xadd, cmpxchg, bt to btc. */
static void shape_two_bytes(struct tbd_quick_shape *s, const struct quick_bytes *q,
                            const struct tbd_insn *insn)
{
    uint8_t opcode = q->bytes[q->at], digit = q->bytes[insn->modrm_at] >> 3 & 7;

    s->reg_size = word_size(q);
    s->size = opcode & 1 ? s->reg_size : 1;
    switch (opcode) {
    case 0xb6:
    case 0xb7: s->form = TBD_QUICK_LOAD; break;
    case 0xbe:
    case 0xbf: s->form = TBD_QUICK_LOAD_SX; break;
    case 0xb0:
    case 0xb1: s->form = TBD_QUICK_CMPXCHG; break;
    case 0xc0:
    case 0xc1: s->form = TBD_QUICK_XADD; break;
    case 0xba:
        s->form = digit < 4 ? TBD_QUICK_NONE : TBD_QUICK_TO_MEM;
        s->op = (uint8_t)(TBD_QUICK_BT + (digit & 3));
        s->size = s->reg_size;
        set_constant(s, insn, q->bytes, true);
        break;
    default: return;
    }
    if (opcode == 0xb7 || opcode == 0xbf)
        s->size = 2;
    if (s->form == TBD_QUICK_CMPXCHG || s->form == TBD_QUICK_XADD)
        s->reg_size = s->size;
}

struct tbd_quick_shape tbd_quick_shape_of(const struct tbd_insn *insn, const uint8_t *bytes)
{
    struct tbd_quick_shape s = { .form = TBD_QUICK_NONE };
    struct quick_bytes q = { .bytes = bytes };

    if (!insn->modrm_at || bytes[insn->modrm_at] >> 6 == 3 || !insn->access_count ||
        !take_prefixes(&q, insn))
        return s;
    if (q.is_two_bytes)
        shape_two_bytes(&s, &q, insn);
    else
        shape_one_byte(&s, &q, insn);
    s.ea = insn->access[0].ea;
    s.reg = (uint8_t)((bytes[insn->modrm_at] >> 3 & 7) | (q.rex & 4 ? 8 : 0));
    s.is_high = s.reg_size == 1 && !q.rex && s.reg >= 4;
    s.reg = s.is_high ? s.reg & 3 : s.reg;
    s.is_locked = q.has_lock || s.form == TBD_QUICK_XCHG;
    for (unsigned i = 0; i < insn->access_count; i++) {
        s.writes |= (insn->access[i].flags & TBD_ACCESS_WRITE) != 0;
        if (insn->access[i].size != s.size ||
            insn->access[i].flags & (TBD_ACCESS_XLAT | TBD_ACCESS_BITS))
            s.form = TBD_QUICK_NONE;
    }
    return s;
}

/* ---- registers ---- */

static uint64_t source_of(const struct tbd_quick_shape *s, const struct tbd_regs *regs)
{
    return s->is_constant ? s->constant : regs->gpr[s->reg] >> (s->is_high ? 8 : 0);
}

static void put_register(struct tbd_regs *regs, uint8_t reg, uint8_t size, bool is_high,
                         uint64_t value)
{
    uint64_t mask = size == 1 ? 0xff : 0xffff;
    unsigned shift = is_high ? 8 : 0;

    if (size == 8)
        regs->gpr[reg] = value;
    else if (size == 4)
        regs->gpr[reg] = (uint32_t)value;
    else
        regs->gpr[reg] = (regs->gpr[reg] & ~(mask << shift)) | (value & mask) << shift;
}

static void set_register(const struct tbd_quick_shape *s, struct tbd_regs *regs, uint64_t value)
{
    put_register(regs, s->reg, s->reg_size, s->is_high, value);
}

static uint64_t with_sign(uint64_t value, uint8_t size)
{
    return (uint64_t)(size == 1 ? (int8_t)value : size == 2 ? (int16_t)value : (int32_t)value);
}

/* ---- operations ---- */

#define ARITHMETIC 0x8d5ull /* flags: cf, pf, af, zf, sf, of */
#define CARRY      1ull

/* left = left op right, with the program's flags, as the operation may leave some of them alone: all but of, which bt and its kind
 * alone leave.  `found`: what they are afterwards.  The compiler may have values below the stack pointer. */
#define RUN(name, type)                                                                            \
    {                                                                                              \
        type to = (type)left, from = (type)right;                                                  \
        __asm__ volatile("sahf; " name " %[from], %[to]; lea -128(%%rsp), %%rsp; "                 \
                         "pushfq; popq %[found]; lea 128(%%rsp), %%rsp"                            \
                         : [to] "+q"(to), [found] "=r"(found)                                      \
                         : [from] "q"(from), "a"(*io_rflags << 8)                                  \
                         : "cc", "memory");                                                        \
        left = to;                                                                                 \
        break;                                                                                     \
    }
#define RUN_SIZES(name)                                                                            \
    switch (size) {                                                                                \
    case 1: RUN(name "b", uint8_t)                                                                 \
    case 2: RUN(name "w", uint16_t)                                                                \
    case 4: RUN(name "l", uint32_t)                                                                \
    default: RUN(name "q", uint64_t)                                                               \
    }                                                                                              \
    break

#define RUN_WORDS(name)                                                                            \
    switch (size) {                                                                                \
    case 2: RUN(name "w", uint16_t)                                                                \
    case 4: RUN(name "l", uint32_t)                                                                \
    default: RUN(name "q", uint64_t)                                                               \
    }                                                                                              \
    break

static uint64_t operate(uint8_t op, uint8_t size, uint64_t left, uint64_t right,
                        uint64_t *io_rflags)
{
    uint64_t found = *io_rflags, mask = op < TBD_QUICK_BT ? ARITHMETIC : CARRY;

    switch ((enum tbd_quick_op)op) {
    case TBD_QUICK_ADD: RUN_SIZES("add");
    case TBD_QUICK_OR: RUN_SIZES("or");
    case TBD_QUICK_ADC: RUN_SIZES("adc");
    case TBD_QUICK_SBB: RUN_SIZES("sbb");
    case TBD_QUICK_AND: RUN_SIZES("and");
    case TBD_QUICK_SUB: RUN_SIZES("sub");
    case TBD_QUICK_XOR: RUN_SIZES("xor");
    case TBD_QUICK_CMP: RUN_SIZES("cmp");
    case TBD_QUICK_TEST: RUN_SIZES("test");
    case TBD_QUICK_BT: RUN_WORDS("bt");
    case TBD_QUICK_BTS: RUN_WORDS("bts");
    case TBD_QUICK_BTR: RUN_WORDS("btr");
    case TBD_QUICK_BTC: RUN_WORDS("btc");
    }
    *io_rflags = (*io_rflags & ~mask) | (found & mask);
    return left;
}

/* Compares the accumulator; memory becomes the source if they are equal, else the accumulator
 * becomes memory. */
static uint64_t compare_and_exchange(const struct tbd_quick_shape *s, struct tbd_regs *regs,
                                     uint64_t memory)
{
    uint64_t differs = (regs->gpr[TBD_RAX] ^ memory) << (64 - 8 * s->size);

    (void)operate(TBD_QUICK_CMP, s->size, regs->gpr[TBD_RAX], memory, &regs->rflags);
    if (!differs)
        return source_of(s, regs);
    put_register(regs, TBD_RAX, s->size, false, memory);
    return memory;
}

uint64_t tbd_quick_run(const struct tbd_quick_shape *s, struct tbd_regs *regs, uint64_t memory)
{
    uint64_t source = source_of(s, regs), sum;

    switch ((enum tbd_quick_form)s->form) {
    case TBD_QUICK_LOAD: set_register(s, regs, memory); return memory;
    case TBD_QUICK_LOAD_SX: set_register(s, regs, with_sign(memory, s->size)); return memory;
    case TBD_QUICK_STORE: return source;
    case TBD_QUICK_TO_REG:
        sum = operate(s->op, s->size, source, memory, &regs->rflags);
        if (s->op != TBD_QUICK_CMP)
            set_register(s, regs, sum);
        return memory;
    case TBD_QUICK_TO_MEM: return operate(s->op, s->size, memory, source, &regs->rflags);
    case TBD_QUICK_XCHG: set_register(s, regs, memory); return source;
    case TBD_QUICK_XADD:
        sum = operate(TBD_QUICK_ADD, s->size, memory, source, &regs->rflags);
        set_register(s, regs, memory);
        return sum;
    case TBD_QUICK_CMPXCHG: return compare_and_exchange(s, regs, memory);
    case TBD_QUICK_NONE: break;
    }
    return memory;
}
