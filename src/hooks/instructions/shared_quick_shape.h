// SPDX-License-Identifier: MIT
/* shared_quick_shape.h - what an instruction of the usual forms does with its one memory operand, and doing it
 *
 * Forms are those of general registers: mov, movzx, movsx, movsxd, add to cmp, test, bt with a constant and its kind, xchg, xadd, cmpxchg. */
#ifndef TBD_HOOKS_SHARED_QUICK_SHAPE_H
#define TBD_HOOKS_SHARED_QUICK_SHAPE_H

#include "patcher/decode.h"

enum tbd_quick_form {
    TBD_QUICK_NONE,    /* another instruction */
    TBD_QUICK_LOAD,    /* register = memory; movzx too */
    TBD_QUICK_LOAD_SX, /* the same with the sign */
    TBD_QUICK_STORE,   /* memory = source */
    TBD_QUICK_TO_REG,  /* register = register op memory */
    TBD_QUICK_TO_MEM,  /* memory = memory op source */
    TBD_QUICK_XCHG,
    TBD_QUICK_XADD,
    TBD_QUICK_CMPXCHG,
};

/* As numbered in opcodes. */
enum tbd_quick_op {
    TBD_QUICK_ADD,
    TBD_QUICK_OR,
    TBD_QUICK_ADC,
    TBD_QUICK_SBB,
    TBD_QUICK_AND,
    TBD_QUICK_SUB,
    TBD_QUICK_XOR,
    TBD_QUICK_CMP, /* stores nothing */
    TBD_QUICK_TEST,
    TBD_QUICK_BT,
    TBD_QUICK_BTS,
    TBD_QUICK_BTR,
    TBD_QUICK_BTC,
};

struct tbd_quick_shape {
    struct tbd_ea ea;
    uint64_t constant; /* the source, unless it is `reg` */
    uint8_t form;      /* enum tbd_quick_form */
    uint8_t op;        /* enum tbd_quick_op */
    uint8_t size;      /* of the operand in memory: 1, 2, 4, 8 */
    uint8_t reg_size;  /* of the register */
    uint8_t reg;
    bool is_high; /* ah, ch, dh, bh */
    bool is_constant;
    bool writes; /* also where it need not change anything (cmpxchg) */
    bool is_locked;
};

/* The shape of a decoded instruction, with its bytes. */
struct tbd_quick_shape tbd_quick_shape_of(const struct tbd_insn *insn, const uint8_t *bytes);

/* Executes it with `memory` in place of its operand: returns what that becomes, and sets registers and flags, but not rip. */
uint64_t tbd_quick_run(const struct tbd_quick_shape *shape, struct tbd_regs *regs, uint64_t memory);

#endif
