// SPDX-License-Identifier: MIT
/* thread.h - the per-thread block, which ends at gs base
 *
 * gs base G is fixed per thread (base/layout.h); the struct ends exactly at G, so its fields have
 * negative displacements from gs that translated code and the .S files encode.  The touch map
 * begins at G.
 *
 * In translated code that reports: r15 = next entry, r14 = next operand; the program's r14 and r15 live
 * in regs.gpr[]; any other program register may be spilled to its regs.gpr[] slot inside a block; at
 * block boundaries all but those of `at_home` are in place.
 *
 * Only the owning thread writes, except `kick`; in free run, where every thread has a block of its own,
 * the owner of the engine lock also takes targets out of `ibl` and `second`.
 *
 * THREAD-1  `mark` keeps its value: the program can reach this memory, and after a stray store here
 *     no register can be relied on.
 */
#ifndef TBD_PATCHER_THREAD_H
#define TBD_PATCHER_THREAD_H

#include "base/layout.h"
#include "format/stream/stream.h"

#include <stddef.h>

#define TBD_IBL_BITS    16
#define TBD_IBL_ENTRIES (1u << TBD_IBL_BITS)

/* The second table's slot for an indirect target that another one replaced in `ibl`. */
struct tbd_second_target {
    uint64_t minus_target; /* 0 - application address; 1 = empty */
    uint64_t entry;        /* cache address, all registers in place */
};
#define TBD_SECOND_BITS    14
#define TBD_SECOND_ENTRIES (1u << TBD_SECOND_BITS)
#define TBD_THREAD_MARK    0x6b72616d20646274ull /* "tbd mark" */
#define TBD_SECOND_SHIFT   8                     /* index = these bits of the application address */

struct tbd_thread {
    uint64_t asked_address; /* what is about to be loaded (patcher/asked_loads.h), */
    uint64_t asked_bytes;   /* and how many bytes; 0: no load is asked about */
    uint64_t
        branch_value; /* of a chosen function, while its rsp changes (hooks/memory/branches.h) */
    struct tbd_second_target second[TBD_SECOND_ENTRIES];
    /* Indirect-branch targets: slot = low 16 bits of the application address; the value is a cache
     * address whose first code checks that the target (in r11) is its own. */
    uint64_t ibl[TBD_IBL_ENTRIES];

    /* Constants of the check (tbd_translate_tag()), near `left`, which each indirect branch writes. */
    uint64_t minus_two;
    uint64_t one;
    uint64_t record_in; /* 0 - r15 from which on TBD_EXIT_RECORD is due (patcher/record_code.c) */
    uint64_t
        left; /* index of the block whose indirect branch was executed last, of those that say so
                             (struct tbd_translation); the tables above begin at a multiple of 16 */
    struct tbd_regs regs;      /* the program's registers when they are not in the processor */
    uint64_t scratch[6];       /* for hand-written entry and exit code */
    uint64_t exit_kind;        /* why translated code left: enum tbd_exit (patcher.h) */
    uint64_t exit_arg;         /* struct tbd_exit_site *, application pc, ... by kind */
    uint64_t entry_next;       /* r15 while the engine runs */
    uint64_t operand_next;     /* r14 while the engine runs */
    uint64_t engine_stack;     /* top of this thread's engine stack */
    uint64_t calling_value;    /* of the calls that have not returned (base/calling.h) */
    uint64_t calling_distance; /* hooks/memory/calling_memory.h */
    uint64_t resume;           /* cache address to continue at */
    uint64_t self;             /* address of this struct */
    uint64_t context;          /* its saved context (hooks/threads/threads.h) */
    uint32_t in_code;          /* it may be in translated code (patcher/engine_lock.h) */
    uint16_t is_stepping; /* one instruction runs without alignment checks (tbd_patcher_step) */
    uint16_t at_home;     /* registers that are in `regs` between blocks (patcher/translate.h) */
    uint32_t tid;
    uint32_t kick; /* set by signal handlers: leave at the next block boundary */
    uint64_t mark; /* TBD_THREAD_MARK */
};

#define TBD_THREAD_GS(field)                                                                       \
    ((int32_t)offsetof(struct tbd_thread, field) - (int32_t)sizeof(struct tbd_thread))
/* The slot of general register `r`. */
#define TBD_THREAD_GS_GPR(r) (TBD_THREAD_GS(regs.gpr) + (int32_t)((r) * sizeof(uint64_t)))

/* The block of the thread that runs; the processor's gs base must be the engine's. */
static inline struct tbd_thread *tbd_thread_now(void)
{
    struct tbd_thread *thread;

    __asm__ volatile("mov %%gs:(%1), %0" : "=r"(thread) : "r"((int64_t)TBD_THREAD_GS(self)));
    return thread;
}

_Static_assert(sizeof(struct tbd_thread) < TBD_THREAD_GS_OFFSET, "fits below gs base");
/* gs base begins a line, as it begins a page. */
#define TBD_LINE_BYTES 64
_Static_assert(-TBD_THREAD_GS(calling_value) / TBD_LINE_BYTES * TBD_LINE_BYTES ==
                       -TBD_THREAD_GS(calling_value) &&
                   TBD_THREAD_GS(calling_distance) == TBD_THREAD_GS(calling_value) + 8,
               "each call and return uses both: they lie in one line of the cache");

#endif
