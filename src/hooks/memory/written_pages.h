// SPDX-License-Identifier: MIT
/* written_pages.h - which pages were written, from the kernel: where stores are not seen (native play)
 *
 * Private memory of the program is registered with a userfaultfd of the engine's own, in its asynchronous
 * write-protection mode: the first write to a page costs one page fault, the kernel's own writes count too, and
 * PAGEMAP_SCAN gives the pages written since the last scan (Linux 6.7; without privilege).
 *
 * The program must not see the descriptor among its own: the organizer has it, and this process borrows it (pidfd_getfd)
 * for each new mapping.  Where that is forbidden (Yama's scope 2 and above, some containers) it stays here, with a high
 * number.  When the program closes it, or memory is no longer registered for another reason, a scan says so, and `is_lost`
 * becomes true.  From then on all pages count as written: a replay says which are not.
 *
 * Contexts: BOOT, APP, FORK_CHILD. */
#ifndef TBD_HOOKS_WRITTEN_PAGES_H
#define TBD_HOOKS_WRITTEN_PAGES_H

#include <stdbool.h>
#include <stdint.h>

/* The image is linked above 2 GiB: without "hidden", the address of a function would need a
 * table. */
#pragma GCC visibility push(hidden)

/* False: this kernel cannot do it, or does not let this process. */
bool tbd_written_begin(void);
/* Before the organizer starts: the descriptor, of which it gets a copy with the number TBD_WRITTEN_HELD; -1: none. */
int tbd_written_descriptor(void);
#define TBD_WRITTEN_HELD 4
/* It runs: this process closes its own, if it can borrow the copy.  Not before the organizer has executed its program. */
void tbd_written_leave_to(uint32_t organizer);
/* Pages of private mappings in the range are followed from now on, as not written; `is_new` false: they may have been
 * before, and those written meanwhile are marked.  Without begin() nothing happens. */
void tbd_written_follow(uint64_t start, uint64_t end, bool is_new);
/* Marks the pages of [start, end) that were written in the touch map; from now on they count as not written. */
void tbd_written_collect(uint64_t start, uint64_t end);
/* How many pages were marked since the last call. */
uint64_t tbd_written_take_count(void);
/* BOOT: how long a first write to a page takes here; some 0.1 ms. */
uint64_t tbd_written_measure_ns(void);
bool tbd_written_is_lost(void);
/* Nothing is followed any more. */
void tbd_written_end(void);

#pragma GCC visibility pop

#endif
