// SPDX-License-Identifier: MIT
/* userfault.h - memory whose pages somebody else fills when they are used (userfaultfd)
 *
 * A thread that accesses such a page before it is there waits in the page fault for whoever reads
 * the descriptor: another thread, or another process.  It must not hold the baton meanwhile, and
 * what it is given must be in the log.  So translated code does not touch such memory as long as
 * pages of it are missing: the touch map's cells are guarded as those of shared memory
 * (hooks/memory/shared.h), and before the engine executes an instruction there
 *
 *     missing?   the block is left in front of the instruction; without the baton the page is touched, as the
 *                instruction would, from user mode at the same address, until it is there; then the
 *                block is entered anew
 *     new?       a page that has come since it was looked at last holds what others wrote: logged as such (zeros
 *                before), unless this process's own UFFDIO_COPY has logged it
 *
 * The kernel's accesses in a system call: the call is made without the baton (hooks/calls/waiting.c).
 *
 * A page is `logged` when the log knows that it is there and what it holds.  Write-protected pages
 * are looked at before each store.  What comes of the file descriptor is seen in this process only:
 * ranges that another process registers through a descriptor it was given are not known.
 *
 * Contexts: APP; in a replay process there is no such memory. */
#ifndef TBD_HOOKS_USERFAULT_H
#define TBD_HOOKS_USERFAULT_H

#include "hooks/calls/call_families.h"
#include "hooks/instructions/special.h"

/* How many ranges are registered; 0: nothing below is needed. */
extern uint32_t tbd_userfault_count;

/* Pages in [start, end) are not what they were: gone, unmapped, or given back. */
void tbd_userfault_dropped(uint64_t start, uint64_t end);
void tbd_userfault_unregister(uint64_t start, uint64_t end);
/* What is at `from` is about to move, or to grow; is it registered?  Then, afterwards: it is
 * at [to, to_end). */
bool tbd_userfault_move(uint64_t from);
void tbd_userfault_moved(uint64_t from, uint64_t to, uint64_t to_end);
/* In a forked child: its memory is its own. */
void tbd_userfault_reset(void);
/* Do calls that change mappings, or fork, wait until somebody has read of it? */
bool tbd_userfault_waits_for_events(void);
bool tbd_userfault_follows_forks(void);

/* Does a page of the touch map (an index, modulo their number) stand for memory that translated
 * code must not use? */
bool tbd_userfault_needs_guard(uint64_t index);

/* Is any byte of [start, end) registered? */
bool tbd_userfault_holds(uint64_t start, uint64_t end);
/* How many of the bytes, from the front, can be read without waiting. */
size_t tbd_userfault_readable(uint64_t address, size_t bytes);
/* Would the access wait?  The first byte at which. */
bool tbd_userfault_misses(const struct tbd_sys_range *range, bool is_write, uint64_t *address);
/* Pages that have come are logged: writes of others, added to `effects`. */
void tbd_userfault_adopt(struct tbd_effects *effects, const struct tbd_sys_range *range,
                         uint32_t *others);

/* Before an instruction that is executed by the engine.  True: its block has been left and the
 * thread has waited; it is not to be executed now.  False: all pages are there, and logged. */
bool tbd_userfault_leaves(struct tbd_special_run *s, const struct tbd_sys_range *ranges,
                          size_t count, bool is_write);
void tbd_userfault_leave_block(struct tbd_special_run *s, uint64_t address, bool is_write);

/* Without the baton: waits until the range can be written. */
void tbd_userfault_fill(struct tbd_seat *seat, uint64_t address, uint64_t bytes);
/* Does the call name memory that may be missing? */
bool tbd_userfault_has_pointer(const struct tbd_sys_call *sys);
/* May the kernel, too, wait for a page?  Else it fails. */
bool tbd_userfault_is_for_kernel(void);

#endif
