// SPDX-License-Identifier: MIT
/* stack.h - the call stack at a position
 *
 * Frames are found with the call frame information of the modules (.eh_frame, .debug_frame), so
 * prologues, epilogues, import stubs and signal frames are right.  Where there is none, heuristics
 * follow, and frames found that way are marked.  Memory comes through a callback: a trace, a
 * replay process, a core.
 *
 * One call from one thread.  Nothing here prints. */
#ifndef TBD_QUERY_STACK_H
#define TBD_QUERY_STACK_H

#include "query/debuginfo/symbols.h"

/* Reads `bytes` bytes of the program's memory at `address`; false if they are not known. */
struct tbd_stack_memory {
    bool (*read)(void *context, uint64_t address, void *out, size_t bytes);
    void *context;
};

/* How the frame was found: what told us about it, read in its callee. */
enum tbd_frame_how {
    TBD_FRAME_REGS = 0, /* innermost: the registers themselves */
    TBD_FRAME_CFI,      /* call frame information */
    TBD_FRAME_ENTRY,    /* callee had pushed nothing yet: first instruction, import stub */
    TBD_FRAME_POINTER,  /* a guess: chain of frame pointers */
    TBD_FRAME_SCAN,     /* a guess: the next word on the stack that follows a call instruction */
};

struct tbd_frame {
    uint64_t pc;      /* innermost: next instruction; others: where the call returns to */
    uint64_t call_pc; /* inside the instruction being executed, to find function and line by:
                             pc itself where no call is under way, else pc - 1 */
    uint64_t sp;
    uint64_t cfa; /* stack pointer before the call that made this frame; 0 if not known */
    uint64_t gpr[TBD_REG_COUNT];
    uint32_t known; /* bit r: gpr[r] is known (callee-saved ones mostly) */
    enum tbd_frame_how how;
    bool is_signal_frame; /* this frame is the kernel's: it returns to the interrupted code */
};

static inline bool tbd_frame_is_guess(const struct tbd_frame *frame)
{
    return frame->how >= TBD_FRAME_POINTER;
}

/* Innermost first, up to `max` frames into `out`; *out_count >= 1 on TBD_OK.  Ends at the
 * outermost frame (_start, start of a thread), where memory is not known, or where nothing
 * plausible follows. */
TBD_MUST_CHECK enum tbd_status tbd_stack_unwind(struct tbd_symbols *symbols, uint32_t window,
                                                const struct tbd_regs *regs,
                                                const struct tbd_stack_memory *memory,
                                                struct tbd_frame *out, size_t max,
                                                size_t *out_count);

#endif
