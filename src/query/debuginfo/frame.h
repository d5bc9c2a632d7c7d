// SPDX-License-Identifier: MIT
/* frame.h - one frame of a call stack, and the memory from which it is read
 *
 * Memory comes through a callback: a trace, a replay process, a core. */
#ifndef TBD_QUERY_FRAME_H
#define TBD_QUERY_FRAME_H

#include "format/stream/stream.h"

#include <stdbool.h>
#include <stddef.h>

/* Reads `bytes` bytes of the program's memory at `address`; false if they are not known. */
struct tbd_stack_memory {
    bool (*read)(void *context, uint64_t address, void *out, size_t bytes);
    void *context;
    uint32_t unknown; /* bit r: the innermost frame's gpr[r] is not known */
};

/* How the frame was found, from its callee. */
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

#endif
