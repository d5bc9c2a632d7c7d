// SPDX-License-Identifier: MIT
/* stack.h - the call stack at a position
 *
 * Frames are found with the call frame information of the modules (.eh_frame, .debug_frame), so
 * prologues, epilogues, import stubs and signal frames are right.  Without it heuristics are used,
 * and the frames that they find are marked.
 *
 * One call from one thread.  Nothing here prints. */
#ifndef TBD_QUERY_STACK_H
#define TBD_QUERY_STACK_H

#include "query/debuginfo/frame.h"
#include "query/session/code/symbols.h"

/* Innermost first, up to `max` frames into `out`; *out_count >= 1 on TBD_OK.  Ends at the outermost
 * frame (_start, start of a thread), where memory is not known, or if no plausible frame
 * follows. */
TBD_MUST_CHECK enum tbd_status tbd_stack_unwind(struct tbd_symbols *symbols, uint32_t window,
                                                const struct tbd_regs *regs,
                                                const struct tbd_stack_memory *memory,
                                                struct tbd_frame *out, size_t max,
                                                size_t *out_count);

#endif
