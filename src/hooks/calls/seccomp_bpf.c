// SPDX-License-Identifier: MIT
/* seccomp_bpf.c - see seccomp_bpf.h
 *
 * A program is valid if: it has only instructions from the kernel's list for seccomp; jumps go
 * forward and stay inside; loads read aligned words of struct seccomp_data; memory cells are read
 * only after they were written on every path; it ends with a return.  So a valid program ends, and
 * needs no checks while it runs. */
#include "hooks/calls/seccomp_bpf.h"

#include "base/string.h"

#define CELLS 16u

/* ---- which programs are valid ---- */

static bool is_known(uint16_t code)
{
    switch (code) {
    case BPF_LD | BPF_W | BPF_ABS:
    case BPF_LD | BPF_W | BPF_LEN:
    case BPF_LDX | BPF_W | BPF_LEN:
    case BPF_LD | BPF_IMM:
    case BPF_LDX | BPF_IMM:
    case BPF_LD | BPF_MEM:
    case BPF_LDX | BPF_MEM:
    case BPF_ST:
    case BPF_STX:
    case BPF_RET | BPF_K:
    case BPF_RET | BPF_A:
    case BPF_MISC | BPF_TAX:
    case BPF_MISC | BPF_TXA:
    case BPF_ALU | BPF_NEG:
    case BPF_JMP | BPF_JA: return true;
    default: break;
    }
    switch (code & ~BPF_X) {
    case BPF_ALU | BPF_ADD:
    case BPF_ALU | BPF_SUB:
    case BPF_ALU | BPF_MUL:
    case BPF_ALU | BPF_DIV:
    case BPF_ALU | BPF_AND:
    case BPF_ALU | BPF_OR:
    case BPF_ALU | BPF_XOR:
    case BPF_ALU | BPF_LSH:
    case BPF_ALU | BPF_RSH:
    case BPF_JMP | BPF_JEQ:
    case BPF_JMP | BPF_JGE:
    case BPF_JMP | BPF_JGT:
    case BPF_JMP | BPF_JSET: return true;
    default: return false;
    }
}

static bool is_conditional(const struct sock_filter *insn)
{
    return BPF_CLASS(insn->code) == BPF_JMP && BPF_OP(insn->code) != BPF_JA;
}

/* `left`: the number of instructions after it. */
static bool is_valid_insn(const struct sock_filter *insn, size_t left)
{
    if (!is_known(insn->code))
        return false;
    if (is_conditional(insn))
        return insn->jt < left && insn->jf < left;
    switch (insn->code) {
    case BPF_LD | BPF_W | BPF_ABS: return insn->k < sizeof(struct seccomp_data) && !(insn->k & 3);
    case BPF_LD | BPF_MEM:
    case BPF_LDX | BPF_MEM:
    case BPF_ST:
    case BPF_STX: return insn->k < CELLS;
    case BPF_ALU | BPF_DIV | BPF_K: return insn->k != 0;
    case BPF_ALU | BPF_LSH | BPF_K:
    case BPF_ALU | BPF_RSH | BPF_K: return insn->k < 32;
    case BPF_JMP | BPF_JA: return insn->k < left;
    default: return true;
    }
}

/* Finds the cells that are written on every path to an instruction: jumps go forward, so one pass
 * is enough. */
static bool reads_written_cells(const struct sock_filter *program, size_t count)
{
    static uint16_t written[BPF_MAXINSNS]; /* used while holding the turn lock */
    uint16_t now = 0;

    memset(written, 0xff, sizeof(written));
    for (size_t i = 0; i < count; i++) {
        const struct sock_filter *insn = &program[i];

        now &= written[i];
        if (insn->code == BPF_ST || insn->code == BPF_STX)
            now |= (uint16_t)(1u << insn->k);
        if ((insn->code == (BPF_LD | BPF_MEM) || insn->code == (BPF_LDX | BPF_MEM)) &&
            !(now >> insn->k & 1))
            return false;
        if (insn->code == (BPF_JMP | BPF_JA)) {
            written[i + 1 + insn->k] &= now;
            now = 0xffff; /* the next instruction is reached by jumps alone */
        } else if (is_conditional(insn)) {
            written[i + 1 + insn->jt] &= now;
            written[i + 1 + insn->jf] &= now;
            now = 0xffff;
        }
    }
    return true;
}

bool tbd_bpf_is_valid(const struct sock_filter *program, size_t count)
{
    if (count == 0 || count > BPF_MAXINSNS || BPF_CLASS(program[count - 1].code) != BPF_RET)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!is_valid_insn(&program[i], count - 1 - i))
            return false;
    return reads_written_cells(program, count);
}

/* ---- running ---- */

struct machine {
    uint32_t a;
    uint32_t x;
    uint32_t cells[CELLS];
};

static uint32_t load_word(const struct seccomp_data *data, uint32_t at)
{
    uint32_t word;

    memcpy(&word, (const uint8_t *)data + at, sizeof(word));
    return word;
}

/* False: a division by zero, which ends the program with 0. */
static bool calculate(struct machine *m, uint16_t code, uint32_t k)
{
    uint32_t value = BPF_SRC(code) == BPF_X ? m->x : k;

    switch (BPF_OP(code)) {
    case BPF_ADD: m->a += value; break;
    case BPF_SUB: m->a -= value; break;
    case BPF_MUL: m->a *= value; break;
    case BPF_AND: m->a &= value; break;
    case BPF_OR: m->a |= value; break;
    case BPF_XOR: m->a ^= value; break;
    case BPF_LSH: m->a <<= value & 31; break;
    case BPF_RSH: m->a >>= value & 31; break;
    case BPF_NEG: m->a = 0u - m->a; break;
    case BPF_DIV:
        if (value == 0)
            return false;
        m->a /= value;
        break;
    default: break;
    }
    return true;
}

static bool is_true(const struct machine *m, uint16_t code, uint32_t k)
{
    uint32_t value = BPF_SRC(code) == BPF_X ? m->x : k;

    switch (BPF_OP(code)) {
    case BPF_JEQ: return m->a == value;
    case BPF_JGE: return m->a >= value;
    case BPF_JGT: return m->a > value;
    default: return m->a & value;
    }
}

static void move(struct machine *m, const struct sock_filter *insn, const struct seccomp_data *data)
{
    switch (insn->code) {
    case BPF_LD | BPF_W | BPF_ABS: m->a = load_word(data, insn->k); break;
    case BPF_LD | BPF_W | BPF_LEN: m->a = sizeof(*data); break;
    case BPF_LDX | BPF_W | BPF_LEN: m->x = sizeof(*data); break;
    case BPF_LD | BPF_IMM: m->a = insn->k; break;
    case BPF_LDX | BPF_IMM: m->x = insn->k; break;
    case BPF_LD | BPF_MEM: m->a = m->cells[insn->k]; break;
    case BPF_LDX | BPF_MEM: m->x = m->cells[insn->k]; break;
    case BPF_ST: m->cells[insn->k] = m->a; break;
    case BPF_STX: m->cells[insn->k] = m->x; break;
    case BPF_MISC | BPF_TAX: m->x = m->a; break;
    case BPF_MISC | BPF_TXA: m->a = m->x; break;
    default: break;
    }
}

uint32_t tbd_bpf_run(const struct sock_filter *program, const struct seccomp_data *data)
{
    struct machine m = { 0 };

    for (const struct sock_filter *insn = program;; insn++) {
        switch (BPF_CLASS(insn->code)) {
        case BPF_RET: return BPF_RVAL(insn->code) == BPF_A ? m.a : insn->k;
        case BPF_ALU:
            if (!calculate(&m, insn->code, insn->k))
                return 0;
            break;
        case BPF_JMP:
            if (BPF_OP(insn->code) == BPF_JA)
                insn += insn->k;
            else
                insn += is_true(&m, insn->code, insn->k) ? insn->jt : insn->jf;
            break;
        default: move(&m, insn, data); break;
        }
    }
}
