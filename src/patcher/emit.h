// SPDX-License-Identifier: MIT
/* emit.h - bytes: one function per instruction shape the translator uses
 *
 * Registers are hardware registers here (enum tbd_reg); addresses are struct tbd_ea with hardware
 * registers.  Nothing here knows blocks, options or the program.  Overflow is sticky: past the end
 * nothing is written and `overflow` stays true; the caller asks once per block.
 *
 * EMIT-1  No function emits an instruction that changes flags, except the ones that jump away, and adox (target_check.c). (not
 *     checked: test_patcher_random compares registers, flags and records with the processor's)
 * EMIT-2  `at` may be a buffer elsewhere: the code will run at at + delta. (not checked:
 *     test_patcher_emit does)
 */
#ifndef TBD_PATCHER_EMIT_H
#define TBD_PATCHER_EMIT_H

#include "patcher/decode.h"

struct tbd_emit {
    uint8_t *at;   /* next byte */
    uint8_t *end;  /* one past the buffer */
    int64_t delta; /* where it runs = at + delta */
    bool overflow;
};

static inline uint64_t tbd_emit_pc(const struct tbd_emit *e)
{
    return (uint64_t)((int64_t)(uintptr_t)e->at + e->delta);
}

void tbd_emit_bytes(struct tbd_emit *e, const void *bytes, size_t count);
void tbd_emit_u8(struct tbd_emit *e, unsigned byte);
void tbd_emit_u32(struct tbd_emit *e, uint32_t value);
void tbd_emit_u64(struct tbd_emit *e, uint64_t value);

/* Can an instruction of at most 16 bytes at the current place name `address` rip-relative, or as a
 * sign-extended 32-bit displacement? */
bool tbd_emit_reaches(const struct tbd_emit *e, uint64_t address);
/* Rip-relative only. */
bool tbd_emit_reaches_rip(const struct tbd_emit *e, uint64_t address);

/* mov r64, gs:[disp]      65 REX.W 8B /r sib disp32 */
void tbd_emit_load_gs(struct tbd_emit *e, unsigned dst, int32_t disp);
/* mov gs:[disp], r64      65 REX.W 89 /r sib disp32 */
void tbd_emit_store_gs(struct tbd_emit *e, unsigned src, int32_t disp);
/* adox r64, gs:[disp]     65 F3 REX.W 0F 38 F6 /r sib disp32: of the flags it reads and writes OF alone */
void tbd_emit_adox_gs(struct tbd_emit *e, unsigned dst, int32_t disp);
/* adox r64, r64           F3 REX.W 0F 38 F6 /r */
void tbd_emit_adox(struct tbd_emit *e, unsigned dst, unsigned src);
/* mov dword gs:[disp], imm32 */
void tbd_emit_store_gs_imm(struct tbd_emit *e, int32_t disp, uint32_t imm);

/* mov r64, imm64; shorter forms where they fit */
void tbd_emit_mov_imm(struct tbd_emit *e, unsigned dst, uint64_t imm);
void tbd_emit_mov(struct tbd_emit *e, unsigned dst, unsigned src);

/* lea r64, [ea]; no segment.  With addr32 the result is zero-extended. */
void tbd_emit_lea(struct tbd_emit *e, unsigned dst, const struct tbd_ea *ea);
/* mov of 1, 2, 4 or 8 bytes; narrow loads are zero-extended */
void tbd_emit_load(struct tbd_emit *e, unsigned dst, const struct tbd_ea *ea, unsigned size);
void tbd_emit_store(struct tbd_emit *e, unsigned src, const struct tbd_ea *ea, unsigned size);
/* movups [ea], xmm        0F 11 /r */
void tbd_emit_store_vector(struct tbd_emit *e, unsigned src, const struct tbd_ea *ea);
/* movsxd r64, r32; movsx r64, r16 */
void tbd_emit_movsx(struct tbd_emit *e, unsigned dst, unsigned src, unsigned size);
/* movzx r32, r8 for al */
void tbd_emit_movzx_al(struct tbd_emit *e, unsigned dst);
/* mov dword [r64], imm32 without displacement; base is not rsp, rbp, r12, r13 */
void tbd_emit_store_imm32(struct tbd_emit *e, unsigned base, uint32_t imm);
/* mov qword [base], imm32   REX.W C7 /0 id; imm is below 2^31; base is not rsp, rbp, r12, r13 */
void tbd_emit_store_imm64(struct tbd_emit *e, unsigned base, uint32_t imm);

/* rorx r64, r64, count    VEX.LZ.F2.0F3A.W1 F0 /r ib */
void tbd_emit_rorx(struct tbd_emit *e, unsigned dst, unsigned src, unsigned count);
/* sarx r64, r64, count_reg VEX.LZ.F3.0F38.W1 F7 /r */
void tbd_emit_sarx(struct tbd_emit *e, unsigned dst, unsigned src, unsigned count_reg);

/* pext dst, src, mask     VEX.LZ.F3.0F38.W1 F5 /r;  pdep: F2 */
void tbd_emit_pext(struct tbd_emit *e, unsigned dst, unsigned src, unsigned mask);
void tbd_emit_pdep(struct tbd_emit *e, unsigned dst, unsigned src, unsigned mask);
/* mulx high, low, src     VEX.LZ.F2.0F38.W1 F6 /r: rdx * src */
void tbd_emit_mulx(struct tbd_emit *e, unsigned high, unsigned low, unsigned src);
/* not r64                 REX.W F7 /2: flags stay */
void tbd_emit_not(struct tbd_emit *e, unsigned reg);

/* mov byte gs:[cell32 * 2 + which], 1 with 32-bit address arithmetic */
void tbd_emit_mark(struct tbd_emit *e, unsigned cell, unsigned which);
/* mov byte gs:[offset], 1 with a constant, zero-extended offset */
void tbd_emit_mark_at(struct tbd_emit *e, uint32_t offset);

void tbd_emit_push(struct tbd_emit *e, unsigned reg);
void tbd_emit_push_imm(struct tbd_emit *e, int32_t imm);
void tbd_emit_pop(struct tbd_emit *e, unsigned reg);

/* One instruction of `count` bytes, at most TBD_EMIT_NOP_MOST, that does nothing. */
#define TBD_EMIT_NOP_MOST 3u
void tbd_emit_nop(struct tbd_emit *e, unsigned count);

#define TBD_JUMP_BYTES       5u /* of tbd_emit_jmp() */
#define TBD_JCC_OPCODE_BYTES 2u
/* jmp rel32 / jcc rel32 to `target`, which must be in reach.  The displacement does not straddle a
 * cache line: one store can replace it while the code runs.  Returns the displacement's address. */
uint8_t *tbd_emit_jmp(struct tbd_emit *e, uint64_t target);
uint8_t *tbd_emit_jcc(struct tbd_emit *e, unsigned condition, uint64_t target);
/* A jump whose displacement has one byte, the one at `disp8`, leads to what is emitted next. */
void tbd_emit_land8(const struct tbd_emit *e, uint8_t *disp8);
/* jmp qword [rip + 0]; dq target */
void tbd_emit_jmp_far(struct tbd_emit *e, uint64_t target);

#endif
