// SPDX-License-Identifier: MIT
/* calling_memory.h - where translated code keeps the calling context of callers (base/calling.h)
 *
 * In mode=context thread->calling_value has the value of the thread's calls, and calling_distance the distance from a return address
 * on the program's stack to the 8 bytes that keep the value before its call.  Any memory can be a stack; so the distance
 * is a constant, one for addresses from TBD_STACKS_HIGH on, one for those below TBD_STACKS_LOW_END.  All of the
 * places are reserved (base/layout.h), or are no addresses at all for the other distance: so a use with the wrong
 * distance, and the first one of a page, is a fault, which is handled here.
 *
 *     stack                  high distance          low distance
 *     [0, 2 TiB)             no address             reserved
 *     [84 TiB, 128 TiB)      reserved               no address
 *
 * CALLING_MEMORY-1  What is kept for a return address is right as long as the call has not returned, whatever
 *     thread runs on that stack. (not checked: test_context compares with stacks that are walked)
 *
 * Contexts: BOOT; _sigsafe SIG; the others APP. */
#ifndef TBD_HOOKS_CALLING_MEMORY_H
#define TBD_HOOKS_CALLING_MEMORY_H

#include "base/calling.h"
#include "patcher/thread.h"

#include <stdbool.h>

/* False: the address space is taken or limited. */
bool tbd_calling_memory_init(enum tbd_calling_scheme scheme);
/* Does the range touch the memory, if there is any? */
bool tbd_calling_memory_overlaps(uint64_t start, uint64_t end);

/* A thread's first block is next: it has made no call yet. */
void tbd_calling_begin_thread(struct tbd_thread *thread);
/* The kernel has called a handler of signal `signo`, whose frame begins at `frame`. */
void tbd_calling_enter_handler(struct tbd_thread *thread, uint64_t frame, uint32_t signo);
/* The stack may have been switched, and `target` is jumped to: by longjmp, for an exception, to another coroutine;
 * or a function is jumped to that returns to the caller. */
void tbd_calling_find(struct tbd_thread *thread, uint64_t target);
/* The number of a call (base/calling.h). */
uint64_t tbd_calling_number_of(uint64_t return_address);

/* Translated code has faulted with these registers.  True: it was at the memory, and goes on with what is changed in them and in
 * the thread's distance. */
bool tbd_calling_fault_sigsafe(uint64_t address, struct tbd_thread *thread, struct tbd_regs *cpu);

#endif
