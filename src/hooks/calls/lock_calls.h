// SPDX-License-Identifier: MIT
/* lock_calls.h - what mlockall(MCL_FUTURE) says about mappings that are made later.  Contexts: APP;
 * tbd_lock_forget() FORK_CHILD. */
#ifndef TBD_HOOKS_LOCK_CALLS_H
#define TBD_HOOKS_LOCK_CALLS_H

#include <stdint.h>

/* For the flags of an mmap: the kernel may refuse it because of the limit. */
uint64_t tbd_lock_map_flags(void);
/* The program has this new memory. */
void tbd_lock_mapped(uint64_t start, uint64_t bytes);
/* A forked child begins without. */
void tbd_lock_forget(void);

#endif
