// SPDX-License-Identifier: MIT
/* jump.h - a probe that is reached by a jump, without a signal
 *
 *   place:   jmp entry                 5 bytes over the place's instruction, and perhaps some that follow it
 *   entry:   jmp *cell(%rip)           the cell has the address of the code
 *   code:    saves ax, cx, dx, flags; what the probe does; brings them back
 *            the instructions that the jump has replaced
 *            jmp after them
 *
 * JUMP-1  Where an instruction begins below the jump, the jump's byte there is a trap (int3), whose probe has no use:
 *     a thread that comes there in any way, or was there when the jump was written, has its instruction carried
 *     out as at every trap.  So nothing need be known about who jumps where.  The displacement is chosen so
 *     (hooks/probes/near_memory.h).
 * JUMP-2  A byte of the program's code that is no instruction's first changes only while the first bytes of all
 *     instructions around it are traps, and all processors have seen these (membarrier, SYNC_CORE; Intel SDM volume 3, 9.1.3).
 *     (not checked: tbd_jumps_put() and tbd_jumps_take() write in that order)
 * JUMP-3  Code is never changed nor given back: a thread may be in it for any time. (not checked: near memory
 *     only grows)
 *
 * Contexts: keeper to make, put and take; SIG to settle. */
#ifndef TBD_HOOKS_PROBES_JUMP_H
#define TBD_HOOKS_PROBES_JUMP_H

#include "hooks/probes/probe_table.h"
#include "patcher/emit.h"

#define TBD_JUMP_BYTES     5u
#define TBD_JUMP_MAX_INSNS 5u
#define TBD_JUMP_MAX_USES  4u /* without a call */

/* Where the program goes on from an address in the code. */
struct tbd_jump_piece {
    uint32_t at; /* from the code's start */
    uint64_t pc;
};

struct tbd_jump_code {
    struct tbd_jump *jump;
    uint64_t start;
    uint32_t flags_read; /* offsets: the frame is there before, registers are as they were */
    uint32_t body;       /* registers are saved */
    uint32_t check;      /* the last instruction of the body: is a signal deferred? */
    uint32_t left;       /* registers are the program's again */
    uint32_t tail;       /* for a deferred signal */
    uint32_t bytes;
    uint32_t piece_count;
    uint32_t session; /* whose uses it has; 0: it calls a function, for all uses */
    uint32_t use_count;
    uint32_t use[TBD_JUMP_MAX_USES]; /* indices of their code */
    struct tbd_jump_piece piece[TBD_JUMP_MAX_INSNS + 2];
};

/* An instruction under the jump. */
struct tbd_jump_insn {
    uint8_t at, length, kind, disp_at,
        condition; /* enum tbd_insn_kind; disp_at 0: not rip-relative */
    uint64_t target;
};

struct tbd_jump {
    struct tbd_probe *probe;
    uint64_t entry;
    struct tbd_jump_code *code; /* the latest */
    uint64_t *cell;
    uint8_t bytes[TBD_JUMP_BYTES];    /* of the jump */
    uint8_t original[TBD_JUMP_BYTES]; /* of the program */
    uint8_t program[32];              /* all instructions */
    uint8_t length;                   /* of these */
    uint8_t insn_count;
    struct tbd_jump_insn insn[TBD_JUMP_MAX_INSNS];
    struct tbd_probe *inner
        [TBD_JUMP_MAX_INSNS]; /* of the instructions below the jump, but for the first; NULL: beyond it */
};

/* The frame of the code on the program's stack, from rsp on. */
#define TBD_JUMP_FRAME 320 /* with the 128 bytes below rsp that are the program's */
#define TBD_JUMP_STATE 0   /* 1: a signal is deferred */
#define TBD_JUMP_MASK  8   /* of the thread, before that */
#define TBD_JUMP_FLAGS 16  /* lahf, seto al */
#define TBD_JUMP_RDX   24
#define TBD_JUMP_RCX   32
#define TBD_JUMP_RAX   40
#define TBD_JUMP_MAGIC                                                                             \
    56 /* while the engine's functions run: the frame's address plus TBD_JUMP_MAGIC_ADD */
#define TBD_JUMP_WORDS     64 /* registers of the code that a consumer has sent, 16 */
#define TBD_JUMP_MAGIC_ADD 0x6b1d0c35

#endif
