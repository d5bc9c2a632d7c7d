// SPDX-License-Identifier: MIT
/* layout.h - where the engine lives in an address space
 *
 * The engine is one image, linked at a fixed address, that runs in two places:
 * inside the traced program (play) and inside a replay process.  Everything it
 * owns sits in [TBD_ENGINE_BASE, TBD_ENGINE_END), the same in both, so that
 * neither ever collides with the program.  It lies just below where the kernel puts
 * position-independent programs (0x5555_5555_4000 and above), so that 80 TiB below it
 * stay free in one piece, for programs that reserve 64.  The patch areas (translated code)
 * sit near the program's own code, so that rip-relative operands keep their
 * 32-bit reach, and are recorded in the trace.
 *
 *   BASE + 0            engine image (text, data, bss)
 *   BASE + 64 MiB       private copy of the decoder library (Zydis)
 *   BASE + 128 MiB      engine stacks and signal stacks, one slot per thread
 *   BASE + 5 GiB        arenas
 *   BASE + 16 GiB       the stream: memory shared with the organizer
 *   BASE + 40 GiB       replay only: the plan (replay/plan.h), 8 GiB at most
 *   BASE + 56 GiB       play: the second touch map (hooks/memory/shared.h); replay: one bit a page, present or not
 *   BASE + 60 GiB       play: one bit a page: logged (hooks/memory/userfault.h); replay: what nobody reads (replay/stub/unread.c)
 *   BASE + 64 GiB       the thread area; gs base = area + 2 GiB
 *   BASE + 72 GiB       scratch memory for system calls that wait, 4 GiB a thread (hooks/calls/exchange.c);
 *                       in free run: struct tbd_thread of the second thread and all others
 *   BASE + 4 TiB        end
 *
 * With mode=context also [TBD_CALLING_BASE, TBD_CALLING_END), far below: for each address that may be a stack's, the
 * 8 bytes at a constant distance (hooks/memory/calling_memory.h).
 *
 * With chosen functions (option `branches`) also [TBD_BRANCHES_BASE, + TBD_BRANCHES_BYTES), below the engine: for each
 * depth of a stack, 8 bytes (hooks/memory/branches.h).
 *
 * The thread area holds, relative to its gs base G (one for all threads that take turns, hooks/threads/threads.h;
 * in free run for the first thread, while the block of each other one ends at a gs base of its own):
 *
 *   [G - 2 MiB, G)      struct tbd_thread (patcher/thread.h) with the table of
 *                       indirect-branch targets
 *   [G, G + 4 GiB)      touch map: two bytes a page (see TBD_TOUCH_*)
 */
#ifndef TBD_BASE_LAYOUT_H
#define TBD_BASE_LAYOUT_H

#include <stdint.h>

#define TBD_PAGE_SIZE  4096ull
#define TBD_PAGE_SHIFT 12

#define TBD_ENGINE_BASE 0x500000000000ull
#define TBD_ENGINE_END  (TBD_ENGINE_BASE + (4ull << 40))

/* In free run with a calling context: memory for stacks at [HIGH, TBD_USER_END), and at [0, LOW_END). */
#define TBD_STACKS_HIGH    0x540000000000ull
#define TBD_STACKS_LOW_END (2ull << 40)
#define TBD_CALLING_BASE   0x140000000000ull
#define TBD_CALLING_LOW    (TBD_CALLING_BASE + (TBD_USER_END - TBD_STACKS_HIGH))
#define TBD_CALLING_END    (TBD_CALLING_LOW + TBD_STACKS_LOW_END + TBD_PAGE_SIZE)
/* Stacks whose addresses differ by a multiple of this would share it: above and below 2^45 there are none so far apart
 * (programs and their heaps from 0x55 or 0x56, mappings and stacks from 0x7e or 0x7f, fixed addresses from 0x00). */
#define TBD_BRANCHES_BYTES (1ull << 43)
#define TBD_BRANCHES_BASE  (TBD_ENGINE_BASE - TBD_BRANCHES_BYTES)
/* Addresses that are equal but for whole pages are taken for each other by processors (4K aliasing). */
#define TBD_CALLING_SKEW 2112u

#define TBD_DECODER_BASE     (TBD_ENGINE_BASE + (64ull << 20))
#define TBD_STACKS_BASE      (TBD_ENGINE_BASE + (128ull << 20))
#define TBD_STACK_SLOT_BYTES (1ull << 20)
#define TBD_ARENAS_BASE      (TBD_ENGINE_BASE + (5ull << 30))
#ifndef TBD_STREAM_BASE /* unit tests of a ring have it elsewhere where this is a sanitizer's */
#define TBD_STREAM_BASE (TBD_ENGINE_BASE + (16ull << 30))
#endif
#define TBD_PLAN_BASE         (TBD_ENGINE_BASE + (40ull << 30))
#define TBD_PRESENT_BASE      (TBD_ENGINE_BASE + (56ull << 30)) /* 4 GiB */
#define TBD_SECOND_TOUCH_BASE TBD_PRESENT_BASE                  /* 4 GiB */
#define TBD_USERFAULT_BASE    (TBD_ENGINE_BASE + (60ull << 30))
#define TBD_UNREAD_BASE       TBD_USERFAULT_BASE
#define TBD_USERFAULT_BYTES   (TBD_USER_END >> TBD_PAGE_SHIFT >> 3) /* 4 GiB */
#define TBD_THREADS_BASE      (TBD_ENGINE_BASE + (64ull << 30))
#define TBD_THREAD_AREA_BYTES (8ull << 30)
#define TBD_THREAD_GS_OFFSET  (2ull << 30)
#define TBD_SCRATCH_BASE      (TBD_THREADS_BASE + TBD_THREAD_AREA_BYTES)
#define TBD_SCRATCH_BYTES     (4ull << 30)
#define TBD_FREE_THREADS_BASE TBD_SCRATCH_BASE
#define TBD_FREE_BLOCK_BYTES  (1ull << 20)

/* The touch map has two bytes for a page with address A, at
 *     G + ((A >> 12) * 2 mod 2^32)        read since the window began
 *     G + ((A >> 12) * 2 mod 2^32) + 1    written since the window began
 * Addresses 8 TiB apart share a cell.  Readers of the map resolve that by the list of mapped
 * regions (all candidates that are mapped count as touched), and clear such a cell only after all
 * candidates were processed.
 *
 * A load marks only the page of its first byte: readers of the map count the page after a page read
 * as read, too (if it is mapped).  A store that may straddle marks both its pages; written pages
 * are exact.  A page written counts as read. */
#define TBD_TOUCH_BYTES (4ull << 30)
#define TBD_TOUCH_SPAN  (TBD_TOUCH_BYTES / 2 * TBD_PAGE_SIZE) /* of addresses: 8 TiB */

/* User addresses on x86-64 with four-level paging end here. */
#define TBD_USER_END 0x800000000000ull

/* Not an address: the value of the SIGTRAP that `tbd dump` sends a program. */
#define TBD_CRASH_ASKED (TBD_ENGINE_BASE + 0x7eae)
/* The same for `tbd set`: a request is posted (format/probe/trigger.h). */
#define TBD_CRASH_SET (TBD_ENGINE_BASE + 0x7ec0)
/* The same for `tbd stop`: the program is to go on natively. */
#define TBD_STOP_VALUE (TBD_ENGINE_BASE + 0x7ec1)

#endif
