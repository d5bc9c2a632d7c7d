// SPDX-License-Identifier: MIT
/* decode.h - one decoded instruction, for the translator
 *
 * The decoder library's answer, reduced to the needs of block definitions and lowering: which
 * general registers are read and written, where memory is touched, where in the bytes registers are
 * named, and whether control leaves.  A pure function of the bytes and the address. */
#ifndef TBD_PATCHER_DECODE_H
#define TBD_PATCHER_DECODE_H

#include "format/stream/stream.h"

#include <stdbool.h>
#include <stddef.h>

#define TBD_NO_REG   0xffu
#define TBD_BIT(reg) ((uint16_t)(1u << (reg)))

/* A memory address in terms of registers.  Without base and index `disp` is the address itself
 * (rip-relative operands are resolved). */
struct tbd_ea {
    int64_t disp;
    uint8_t base; /* enum tbd_reg or TBD_NO_REG */
    uint8_t index;
    uint8_t scale; /* 1, 2, 4, 8 */
    bool fs;       /* relative to fs base */
    bool gs;       /* relative to the program's gs base, which is not the processor's */
    bool addr32;   /* truncated to 32 bits before the segment base is added */
};

enum tbd_access_flag {
    TBD_ACCESS_READ = 1,
    TBD_ACCESS_WRITE = 2,
    TBD_ACCESS_ALIGNED = 4, /* faults or cannot straddle when not aligned to its size */
    TBD_ACCESS_XLAT = 8,    /* index is al, zero-extended */
    TBD_ACCESS_BITS = 16,   /* plus size * (signed bit number in bit_reg / bits of size) */
};

struct tbd_access {
    struct tbd_ea ea;
    uint16_t size;
    uint8_t flags;
    uint8_t bit_reg;
};

enum tbd_insn_kind {
    TBD_INSN_PLAIN,
    TBD_INSN_NOP, /* no effect at all: not emitted */
    TBD_INSN_JUMP,
    TBD_INSN_BRANCH,     /* jcc */
    TBD_INSN_BRANCH_RCX, /* jrcxz, loop, loope, loopne: short displacement only */
    TBD_INSN_CALL,
    TBD_INSN_CALL_INDIRECT,
    TBD_INSN_JUMP_INDIRECT,
    TBD_INSN_RETURN,
    TBD_INSN_SYSCALL,
    TBD_INSN_SPECIAL,
    TBD_INSN_BAD, /* raises a signal when executed, or does not decode */
};

/* Places in the bytes that name a general register. */
enum tbd_reg_field {
    TBD_FIELD_REG,    /* ModRM.reg */
    TBD_FIELD_RM,     /* ModRM.rm, register form */
    TBD_FIELD_BASE,   /* ModRM.rm or SIB.base, memory form */
    TBD_FIELD_INDEX,  /* SIB.index */
    TBD_FIELD_OPCODE, /* low bits of the opcode */
    TBD_FIELD_VVVV,   /* VEX, EVEX */
    TBD_FIELD_COUNT
};

#define TBD_INSN_MAX_ACCESSES 2

struct tbd_insn {
    uint64_t pc;
    uint64_t target;                                 /* direct transfers */
    const uint8_t *bytes;                            /* borrowed: the program's code */
    struct tbd_access access[TBD_INSN_MAX_ACCESSES]; /* loads before stores */
    uint8_t access_count;
    uint8_t length;
    uint8_t kind;     /* enum tbd_insn_kind */
    uint8_t special;  /* enum tbd_special */
    uint8_t transfer; /* TBD_SPECIAL_SHARED: the kind according to its bytes */
    uint16_t reads;   /* registers whose value matters, also partly */
    uint16_t writes;
    uint16_t kills;     /* writes that replace all 64 bits, always; not in reads */
    uint16_t pop_bytes; /* ret imm16 */
    /* the effect on one register, for addresses relative to a recorded one: dst = src + add */
    int64_t copy_add;
    uint8_t copy_dst; /* TBD_NO_REG: nothing known */
    uint8_t copy_src;
    int8_t stack_add; /* push, pop: rsp changes by that */
    /* bytes */
    uint8_t field[TBD_FIELD_COUNT]; /* register named there, TBD_NO_REG if none */
    uint8_t opcode;                 /* its last byte */
    uint8_t modrm_at;               /* 0 = none */
    uint8_t opcode_at;              /* for TBD_FIELD_OPCODE */
    uint8_t prefix_at;              /* of REX, VEX or EVEX; TBD_NO_REG if none */
    uint8_t prefix_bytes;           /* 1 REX, 2 or 3 VEX, 4 EVEX, 0 none */
    uint8_t slot_form; /* r14 or r15, named once, where a memory operand could stand with the same
                             effect; TBD_NO_REG otherwise */
    uint8_t disp_at;   /* of the rip-relative displacement */
    bool rip_relative;
    bool gs;           /* an access is relative to gs base: plain ones are emitted with the address
                         in a register */
    bool uses_vectors; /* x87, MMX, SSE, AVX, AMX, masks, or their control registers */
    bool cuts_target; /* the same, but the address is truncated to 32 bits: it reaches any memory */
};

/* The library's functions; see tbd_patcher_set_decoder(). */
struct tbd_decoder_api;
void tbd_decode_set_api(const struct tbd_decoder_api *api);
/* Once, inside with_vector_state. */
void tbd_decode_init(void);

/* Decodes the instruction at `pc` from `bytes` (at most `limit` of them).  False if they are no
 * instruction.  Inside with_vector_state. */
bool tbd_decode(struct tbd_insn *out, uint64_t pc, const uint8_t *bytes, size_t limit);
/* The same, much faster where the same bytes have been decoded before.  One thread at a time. */
bool tbd_decode_known(struct tbd_insn *out, uint64_t pc, const uint8_t *bytes, size_t limit);
/* Makes the pages that it uses: nearly all, also in a short run. */
void tbd_decode_known_populate(void);
/* Only its length, in less than half the time; 0: it is none. */
uint32_t tbd_decode_length(const uint8_t *bytes, size_t limit);

/* By its bytes: does it need registers of AVX-512 (an EVEX prefix, or mask registers)? */
bool tbd_decode_is_wide(const uint8_t *bytes, size_t limit);
/* Is it an instruction of AMX, but for those with registers of APX? */
bool tbd_decode_is_tile(const uint8_t *bytes, size_t limit);
/* xrstor, xrstor64. */
bool tbd_decode_is_xrstor(const uint8_t *bytes, size_t limit);
/* A popf of any size? */
bool tbd_decode_is_popf(const uint8_t *bytes, size_t limit);
/* fnstenv, fnsave, fxsave, fxsave64: they store where the last x87 instruction was.  `limit` is at least the length. */
bool tbd_decode_stores_x87(const uint8_t *bytes, size_t limit);
/* lsl, rdpru: a descriptor's limit may be the number of the processor, a counter differs in each run.  `limit` likewise. */
bool tbd_decode_reads_processor(const uint8_t *bytes, size_t limit);
/* Does no program have such an instruction?  It is invalid, not for user mode, a far transfer, or two zeros.  Random bytes
 * have many. */
bool tbd_decode_is_odd(const uint8_t *bytes, size_t limit, uint32_t *out_length);

/* Length of SIB and displacement after a ModRM byte of a memory operand. */
uint32_t tbd_decode_operand_bytes(const uint8_t *modrm);

/* Is this a legacy prefix?  They come before REX, VEX and the opcode. */
bool tbd_decode_is_prefix(uint8_t byte);

#endif
