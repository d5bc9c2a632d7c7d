// SPDX-License-Identifier: MIT
/* userfault.h - memory whose pages somebody else fills when they are used (userfaultfd)
 *
 * A thread that accesses a missing page waits in the page fault until the reader of the descriptor,
 * another thread or process, fills it.  It must not hold the turn lock meanwhile, and the page's
 * contents must be in the log.  So translated code does not access such memory as long as pages of
 * it are missing: the touch map's cells are guarded like those of shared memory
 * (hooks/memory/shared.h), and before the engine executes an instruction there
 *
 *     missing?   the block is left before the instruction.  Without the turn lock, the thread
 *                accesses the page as the instruction would, from user mode and at the same
 *                address, until the page is present; then the block is entered again
 *     new?       a page that was filled since the last check has writes of others: they are logged
 *                (zeros before), unless this process' own UFFDIO_COPY has logged them
 *
 * A system call whose memory has missing pages is made without the turn lock
 * (hooks/calls/waiting.c).
 *
 * A page is `logged` if the log knows that it is present, and its contents.  Before each store, the
 * engine checks for write-protected pages.  Only this process' use of the descriptor is seen:
 * ranges that another process registers through a passed descriptor are not known.
 *
 * Contexts: APP; in a replay process there is no such memory. */
#ifndef TBD_HOOKS_USERFAULT_H
#define TBD_HOOKS_USERFAULT_H

#include "hooks/memory/effects.h"
#include "hooks/memory/userfault_ranges.h"

struct tbd_userfault_range {
    uint64_t start, end;
    uint64_t modes;
    uint64_t features; /* of the descriptor with which it is registered */
};

/* The missing page for which a thread must wait, without the turn lock.  Its registers are those
 * before the instruction that needs the page. */
struct tbd_page_wait {
    uint64_t address;
    bool is_write;
    bool is_needed;
};

/* Adds the range; replaces earlier ranges at its addresses. */
void tbd_userfault_register(const struct tbd_userfault_range *range);
void tbd_userfault_unregister(uint64_t start, uint64_t end);
/* Called after pages in [start, end) have lost their contents: they were unmapped, or given back
 * with madvise. */
void tbd_userfault_dropped(uint64_t start, uint64_t end);
/* Called before the memory at `from` is moved or grown; is it registered?  If so, the caller then
 * reports its new place, [to, to_end). */
bool tbd_userfault_move(uint64_t from);
void tbd_userfault_moved(uint64_t from, uint64_t to, uint64_t to_end);
/* Called in a forked child: its memory is not registered. */
void tbd_userfault_reset(void);

/* A descriptor of this process has asked for events; `for_kernel`: it handles page faults of the
 * kernel, too. */
void tbd_userfault_note_descriptor(uint64_t features, bool for_kernel);
/* Does a fork, or a call that changes mappings, wait until somebody has read the event? */
bool tbd_userfault_waits_for_events(void);
bool tbd_userfault_follows_forks(void);
/* May the kernel wait for a page?  If not, its access fails. */
bool tbd_userfault_is_for_kernel(void);

/* Adds the contents of pages that were filled to `effects`, as writes of others; then they are
 * logged. */
void tbd_userfault_adopt(struct tbd_effects *effects, const struct tbd_sys_range *range,
                         uint32_t *others);

#endif
