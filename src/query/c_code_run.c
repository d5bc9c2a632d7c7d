// SPDX-License-Identifier: MIT
/* c_code_run.c - runs the code of c_code.c
 *
 * I1  The compiler has checked depth, jumps (forward only) and operands: nothing is checked again
 *     but what the program's state decides. */
#include "query/c_code.h"

#include <string.h>

#define STRING_MAX 1024u

static uint64_t extend(uint64_t value, unsigned bits)
{
    unsigned shift = 64 - bits;

    return bits >= 64 ? value : (uint64_t)((int64_t)(value << shift) >> shift);
}

static double real_of(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static uint64_t widen(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;

    memcpy(&value, &low, sizeof(value));
    return bits_of((double)value);
}

/* Out of range is what x86 makes of it. */
static uint64_t truncate_real(double value)
{
    if (!(value > -9223372036854775808.0 && value < 18446744073709551616.0))
        return 1ull << 63;
    return value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
}

static bool load(const struct tbd_c_input *input, uint64_t address, size_t bytes, uint64_t *out)
{
    *out = 0;
    return input->memory != NULL &&
           input->memory->read(input->memory->context, address, out, bytes);
}

/* 1, 0; -1: memory is not known before a difference is found. */
static int string_equals(const struct tbd_c_input *input, uint64_t address, const char *wanted,
                         size_t bytes)
{
    char found[STRING_MAX];

    if (input->memory == NULL)
        return -1;
    if (bytes <= sizeof(found) &&
        input->memory->read(input->memory->context, address, found, bytes))
        return memcmp(found, wanted, bytes) == 0;
    for (size_t i = 0; i < bytes; i++) {
        if (!input->memory->read(input->memory->context, address + i, found, 1))
            return -1;
        if (*found != wanted[i])
            return 0;
    }
    return 1;
}

static bool divide(enum tbd_c_insn_op op, uint64_t a, uint64_t b, uint64_t *out)
{
    bool is_signed = op == TBD_CI_DIV_SIGNED || op == TBD_CI_MOD_SIGNED;
    bool is_quotient = op == TBD_CI_DIV_SIGNED || op == TBD_CI_DIV;

    if (b == 0)
        return false;
    if (is_signed && b == UINT64_MAX) /* INT64_MIN / -1 overflows in C */
        *out = is_quotient ? 0 - a : 0;
    else if (is_signed)
        *out =
            is_quotient ? (uint64_t)((int64_t)a / (int64_t)b) : (uint64_t)((int64_t)a % (int64_t)b);
    else
        *out = is_quotient ? a / b : a % b;
    return true;
}

static uint64_t combine(enum tbd_c_insn_op op, uint64_t a, uint64_t b)
{
    switch (op) {
    case TBD_CI_ADD: return a + b;
    case TBD_CI_SUB: return a - b;
    case TBD_CI_MUL: return a * b;
    case TBD_CI_AND: return a & b;
    case TBD_CI_OR: return a | b;
    case TBD_CI_XOR: return a ^ b;
    case TBD_CI_SHL: return b < 64 ? a << b : 0;
    case TBD_CI_SHR: return b < 64 ? a >> b : 0;
    case TBD_CI_SAR: return (uint64_t)((int64_t)a >> (b < 63 ? b : 63));
    case TBD_CI_EQ: return a == b;
    case TBD_CI_NE: return a != b;
    case TBD_CI_LT_SIGNED: return (int64_t)a < (int64_t)b;
    case TBD_CI_LE_SIGNED: return (int64_t)a <= (int64_t)b;
    case TBD_CI_LT: return a < b;
    case TBD_CI_LE: return a <= b;
    case TBD_CI_F_ADD: return bits_of(real_of(a) + real_of(b));
    case TBD_CI_F_SUB: return bits_of(real_of(a) - real_of(b));
    case TBD_CI_F_MUL: return bits_of(real_of(a) * real_of(b));
    case TBD_CI_F_DIV: return bits_of(real_of(a) / real_of(b));
    case TBD_CI_F_EQ: return real_of(a) == real_of(b);
    case TBD_CI_F_NE: return real_of(a) != real_of(b);
    case TBD_CI_F_LT: return real_of(a) < real_of(b);
    default: return real_of(a) <= real_of(b); /* TBD_CI_F_LE */
    }
}

static uint64_t change(const struct tbd_c_insn *insn, uint64_t a)
{
    switch (insn->op) {
    case TBD_CI_SIGN: return extend(a, insn->size);
    case TBD_CI_ZERO: return insn->size >= 64 ? a : a & ((1ull << insn->size) - 1);
    case TBD_CI_ADD_VALUE: return a + insn->value;
    case TBD_CI_NEGATE: return 0 - a;
    case TBD_CI_COMPLEMENT: return ~a;
    case TBD_CI_NOT: return a == 0;
    case TBD_CI_BOOL: return a != 0;
    case TBD_CI_FLOAT_WIDEN: return widen(a);
    case TBD_CI_FROM_SIGNED: return bits_of((double)(int64_t)a);
    case TBD_CI_FROM_UNSIGNED: return bits_of((double)a);
    case TBD_CI_TO_SIGNED: return truncate_real(real_of(a));
    case TBD_CI_F_NEGATE: return bits_of(-real_of(a));
    default: return real_of(a) != 0; /* TBD_CI_F_BOOL */
    }
}

/* What the program's state holds; keeps I1. */
static enum tbd_c_result fetch(const struct tbd_c_insn *insn, const struct tbd_c_input *input,
                               uint64_t *out)
{
    switch (insn->op) {
    case TBD_CI_PUSH: *out = insn->value; return TBD_C_VALUE;
    case TBD_CI_FIELD: *out = input->fields[insn->reg]; return TBD_C_VALUE;
    case TBD_CI_PC: *out = input->pc; return TBD_C_VALUE;
    case TBD_CI_FS: *out = input->fs_base; return *out == 0 ? TBD_C_UNKNOWN : TBD_C_VALUE;
    case TBD_CI_XMM:
        if (input->xsave == NULL)
            return TBD_C_UNKNOWN;
        memcpy(out, input->xsave + 160 + 16 * (size_t)insn->reg, sizeof(*out));
        return TBD_C_VALUE;
    default: break; /* TBD_CI_REG, TBD_CI_REG_LOAD */
    }
    if ((input->known >> insn->reg & 1) == 0)
        return TBD_C_UNKNOWN;
    *out = input->gpr[insn->reg] + insn->value;
    if (insn->op == TBD_CI_REG || load(input, *out, insn->size, out))
        return TBD_C_VALUE;
    return TBD_C_UNMAPPED;
}

enum tbd_c_result tbd_c_code_run(const struct tbd_c_code *code, const struct tbd_c_input *input,
                                 uint64_t *out)
{
    uint64_t stack[TBD_C_CODE_STACK + 1], *top = stack; /* *top is the last word */
    enum tbd_c_result result;

    for (size_t i = 0; i < code->count; i++) {
        const struct tbd_c_insn *insn = &code->insns[i];
        uint64_t swapped;
        int equal;

        switch (insn->op) {
        case TBD_CI_PUSH:
        case TBD_CI_REG:
        case TBD_CI_REG_LOAD:
        case TBD_CI_XMM:
        case TBD_CI_FS:
        case TBD_CI_PC:
        case TBD_CI_FIELD:
            result = fetch(insn, input, ++top);
            if (result != TBD_C_VALUE)
                return result;
            break;
        case TBD_CI_LOAD:
            if (!load(input, *top, insn->size, top))
                return TBD_C_UNMAPPED;
            break;
        case TBD_CI_DUP:
            top[1] = *top;
            top++;
            break;
        case TBD_CI_DROP: top--; break;
        case TBD_CI_SWAP:
            swapped = *top;
            *top = top[-1];
            top[-1] = swapped;
            break;
        case TBD_CI_DIV_SIGNED:
        case TBD_CI_DIV:
        case TBD_CI_MOD_SIGNED:
        case TBD_CI_MOD:
            top--;
            if (!divide(insn->op, *top, top[1], top))
                return TBD_C_DIVISION;
            break;
        case TBD_CI_JUMP: i = (size_t)insn->value - 1; break;
        case TBD_CI_JUMP_ZERO:
            if (*top-- == 0)
                i = (size_t)insn->value - 1;
            break;
        case TBD_CI_STRING_EQ:
            equal = string_equals(input, *top, code->strings + insn->value, insn->size);
            if (equal < 0)
                return TBD_C_UNMAPPED;
            *top = (uint64_t)equal;
            break;
        case TBD_CI_UNKNOWN: return TBD_C_UNKNOWN;
        case TBD_CI_SIGN:
        case TBD_CI_ZERO:
        case TBD_CI_ADD_VALUE:
        case TBD_CI_NEGATE:
        case TBD_CI_COMPLEMENT:
        case TBD_CI_NOT:
        case TBD_CI_BOOL:
        case TBD_CI_FLOAT_WIDEN:
        case TBD_CI_FROM_SIGNED:
        case TBD_CI_FROM_UNSIGNED:
        case TBD_CI_TO_SIGNED:
        case TBD_CI_F_NEGATE:
        case TBD_CI_F_BOOL: *top = change(insn, *top); break;
        default: top--; *top = combine(insn->op, *top, top[1]);
        }
    }
    *out = *top;
    return TBD_C_VALUE;
}
