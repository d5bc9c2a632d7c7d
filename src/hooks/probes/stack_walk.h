// SPDX-License-Identifier: MIT
/* stack_walk.h - the calls that have not returned, from a thread's registers and its stack
 *
 * Frames follow from the unwinding tables of the files (base/caller_rule.h), whose rules are kept for each
 * address.  Where there is no rule, a stack's addresses are looked for by frame pointers, as a guess; a context
 * value is never a guess.  Cannot fault.
 * Contexts: keeper to begin; SIG to walk. */
#ifndef TBD_HOOKS_STACK_WALK_H
#define TBD_HOOKS_STACK_WALK_H

#include "hooks/threads/sigframe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_WALK_CALLS 512u /* a context of more calls is not known */

struct tbd_walk_start {
    const uint64_t *registers; /* in the kernel's order */
    uint64_t pc;
    /* Reads what can be read of the program's memory, up to `bytes`: how much that is. */
    size_t (*read)(void *context, uint64_t address, void *out, size_t bytes);
    void *context;
};

/* False: no memory.  Once. */
bool tbd_walk_begin(void);

/* The instruction's address, then return addresses, zeros after the last. */
void tbd_walk_stack(struct tbd_walk_start *start, uint64_t *out, uint32_t frames);

/* A handler of the program is about to be called: whose stack it has is seen later by a mark in the frame, in a word that
 * the kernel does not use.  Without it the signal's number is not known. */
void tbd_walk_note_signal(int signal, struct tbd_ucontext *context);

/* The value of the calls (base/calling.h, the order scheme).  False: it is not known. */
bool tbd_walk_context(struct tbd_walk_start *start, uint64_t *out);

#endif
