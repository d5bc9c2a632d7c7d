// SPDX-License-Identifier: MIT
/* block_def.h - the definition of a block in the stream: its code, and the events of one execution
 *
 * A definition is sent once, and saved in the trace as it is; each execution of the block adds a
 * record of operands, which the definition's ops describe. */
#ifndef TBD_FORMAT_BLOCK_DEF_H
#define TBD_FORMAT_BLOCK_DEF_H

#include <stdint.h>

/* How a block ends: what its last instruction is. */
enum tbd_end {
    TBD_END_LIMIT = 1,  /* instruction limit, or the next bytes cannot be executed, or after a store
                         * in memory that is executable and writable or shared */
    TBD_END_JUMP = 2,   /* direct jmp */
    TBD_END_BRANCH = 3, /* jcc, jrcxz, loop */
    TBD_END_CALL = 4,   /* direct call */
    TBD_END_CALL_INDIRECT = 5,
    TBD_END_JUMP_INDIRECT = 6,
    TBD_END_RETURN = 7,
    TBD_END_SYSCALL = 8,
    TBD_END_SPECIAL = 9, /* executed by the engine: enum tbd_special in the message */
    TBD_END_FAULT = 10,  /* the bytes do not decode or cannot be fetched: entering it raises a
                              signal */
};

#define TBD_BLOCK_MAX_INSNS 64u
/* The longest instruction (Intel SDM volume 2, 2.3.11). */
#define TBD_INSN_MAX_BYTES 15u

struct tbd_block_def {
    uint64_t start;         /*  0: application address of the first instruction */
    uint64_t code_hash;     /*  8: tbd_hash64() of the code bytes */
    uint64_t code_offset;   /* 16: heap offset of the code bytes */
    uint64_t ops_offset;    /* 24: heap offset of struct tbd_op[op_count], 8-aligned */
    uint32_t code_bytes;    /* 32: 1 .. 64*15 (0 for TBD_END_FAULT) */
    uint32_t operand_bytes; /* 36: length of the record; at most TBD_RECORD_MAX_BYTES */
    uint16_t op_count;      /* 40 */
    uint16_t insn_count;    /* 42 */
    uint8_t end;            /* 44: enum tbd_end */
    uint8_t flags;          /* 45: 0 */
    uint16_t last_insn;     /* 46: offset of the last instruction in the code bytes */
};
_Static_assert(sizeof(struct tbd_block_def) == 48, "tbd_block_def is 48 bytes");

/* Events inside a block, in program order.  A pure function of the block and the hook set. */
enum tbd_op_kind {
    TBD_OP_STORE = 1, /* old bytes[size] at `data` */
    TBD_OP_CALL = 2,  /* function entry: uint64_t sp, rdi, rsi, rdx, rcx, r8, r9 before the call
                         instruction (56 bytes at `data`); from = this instruction, to = start of
                         the next block entered.  A call's push of the return address is a
                         TBD_OP_STORE of its own, after this op.  Also on `jmp *[rip+x]` and `jmp
                         *%r11` (import stubs): flag TBD_OPF_TAIL. */
    TBD_OP_RET = 3,   /* function exit: uint64_t sp (where the return address lies), rax (16
                         bytes) */
    TBD_OP_LOAD = 4,  /* no data */
    TBD_OP_NOTE = 5,  /* replay only: the registers of the mask `add` (TBD_NOTE_*) before the
                         instruction, `size` bytes at `data`: the general ones in order, then the
                         vector ones, then what is at rsp */
};

/* Registers that a replay is asked to report before the instruction at `pc` (TBD_HOOK_NOTES). */
struct tbd_note_site {
    uint64_t pc;        /* 0 */
    uint64_t registers; /* 8: TBD_NOTE_* */
};
_Static_assert(sizeof(struct tbd_note_site) == 16, "tbd_note_site is 16 bytes");
#define TBD_NOTE_GENERAL 0x0000ffffull  /* bit r: register r, 8 bytes */
#define TBD_NOTE_VECTOR  0xffff0000ull  /* bit 16 + n: the low 16 bytes of vector register n */
#define TBD_NOTE_TOP     0x100000000ull /* the 8 bytes at rsp, which can be read */
#define TBD_NOTE_ALL     0x1ffffffffull
static inline uint32_t tbd_note_bytes(uint64_t registers)
{
    uint32_t bytes = 0;

    for (; registers; registers &= registers - 1)
        bytes += registers & -registers & TBD_NOTE_VECTOR ? 16 : 8;
    return bytes;
}

struct tbd_op {
    uint8_t kind;  /* 0: enum tbd_op_kind */
    uint8_t flags; /* 1: TBD_OPF_* */
    uint16_t insn; /* 2: index of the instruction in the block: the K of TIME+K */
    uint32_t size; /* 4: bytes accessed (STORE, LOAD); for CALL and RET 0 */
    uint32_t data; /* 8: record offset of its data; for LOAD 0 */
    uint32_t base; /* 12: record offset of a uint64_t the address is relative to, or
                             TBD_BASE_NONE: the address is `add` itself */
    int64_t add;   /* 16: address = base + add.  (CALL, RET: base = TBD_BASE_NONE, add = 0) */
};
_Static_assert(sizeof(struct tbd_op) == 24, "tbd_op is 24 bytes");

#define TBD_BASE_NONE 0xffffffffu
#define TBD_OPF_TAIL  1u /* CALL: control left by a jump, the stack pointer is the caller's */
#define TBD_OPF_RMW   2u /* LOAD or STORE: the instruction reads and writes this place */

#endif
