// SPDX-License-Identifier: MIT
/* userfault.h - memory whose pages somebody else fills when they are used (userfaultfd)
 *
 * A thread that accesses such a page before it is there waits in the page fault for whoever reads
 * the descriptor: another thread, or another process.  It must not hold the turn lock meanwhile, and
 * what it is given must be in the log.  So translated code does not touch such memory as long as
 * pages of it are missing: the touch map's cells are guarded as those of shared memory
 * (hooks/memory/shared.h), and before the engine executes an instruction there
 *
 *     missing?   the block is left in front of the instruction; without the turn lock the page is touched, as the
 *                instruction would, from user mode at the same address, until it is there; then the
 *                block is entered anew
 *     new?       a page that has come since it was looked at last holds what others wrote: logged as such (zeros
 *                before), unless this process's own UFFDIO_COPY has logged it
 *
 * The kernel's accesses in a system call: the call is made without the turn lock (hooks/calls/waiting.c).
 *
 * A page is `logged` when the log knows that it is there and what it holds.  Write-protected pages
 * are looked at before each store.  What comes of the file descriptor is seen in this process only:
 * ranges that another process registers through a descriptor it was given are not known.
 *
 * Contexts: APP; in a replay process there is no such memory. */
#ifndef TBD_HOOKS_USERFAULT_H
#define TBD_HOOKS_USERFAULT_H

#include "hooks/memory/effects.h"
#include "hooks/memory/userfault_ranges.h"

struct tbd_userfault_range {
    uint64_t start, end;
    uint64_t modes;
    uint64_t features; /* of the descriptor that it is registered with */
};

/* A thread's instruction met a missing page: what the thread must wait for, without the turn lock.
 * Its registers are those before the instruction. */
struct tbd_page_wait {
    uint64_t address;
    bool is_write;
    bool is_needed;
};

/* Replaces what is known of these addresses. */
void tbd_userfault_register(const struct tbd_userfault_range *range);
void tbd_userfault_unregister(uint64_t start, uint64_t end);
/* Pages in [start, end) have lost their contents: they are gone, unmapped, or given back. */
void tbd_userfault_dropped(uint64_t start, uint64_t end);
/* What is at `from` is about to move, or to grow; is it registered?  Then, afterwards: it is
 * at [to, to_end). */
bool tbd_userfault_move(uint64_t from);
void tbd_userfault_moved(uint64_t from, uint64_t to, uint64_t to_end);
/* In a forked child: its memory is its own. */
void tbd_userfault_reset(void);

/* A descriptor of this process's has asked for events; it is for the kernel's page faults, too. */
void tbd_userfault_note_descriptor(uint64_t features, bool for_kernel);
/* Do calls that change mappings, or fork, wait until somebody has read the event? */
bool tbd_userfault_waits_for_events(void);
bool tbd_userfault_follows_forks(void);
/* May the kernel wait for a page too?  If not, its access fails. */
bool tbd_userfault_is_for_kernel(void);

/* Pages that have come are logged: writes of others, added to `effects`. */
void tbd_userfault_adopt(struct tbd_effects *effects, const struct tbd_sys_range *range,
                         uint32_t *others);

#endif
