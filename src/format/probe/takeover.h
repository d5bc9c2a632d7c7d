// SPDX-License-Identifier: MIT
/* takeover.h - what `tbd crash -p` and the engine that it brings into a running process say to each other
 *
 * Both are always built together.  The boot function (boot.h) is called twice in one borrowed thread:
 *
 *     PREPARE   all other threads run natively: the engine makes its memory, its stream, its collector
 *     TAKE      all threads are stopped: the engine installs its handlers, makes a context for each thread, and says
 *               where each has to go on
 *     GIVE_UP   in place of TAKE: the collector ends
 *
 * Then every thread goes on where the engine has said, with all signals blocked.
 *
 * TAKEOVER-1  A thread's registers are those with which it would go on natively.  Where that is a system call that was
 *     interrupted by the stop, rip is on the call's instruction.  (not checked: test_takeover.py waits in calls of all kinds) */
#ifndef TBD_FORMAT_TAKEOVER_H
#define TBD_FORMAT_TAKEOVER_H

#include "format/stream/messages.h"

#define TBD_TAKEOVER_TEXT_BYTES 1024u
#define TBD_TAKEOVER_THREADS    4000u /* at most */
#define TBD_TAKEOVER_VECTORS    12288u /* bytes of a thread's vector state: XSAVE's standard format */

enum tbd_takeover_phase { TBD_TAKEOVER_PREPARE, TBD_TAKEOVER_TAKE, TBD_TAKEOVER_GIVE_UP };

struct tbd_takeover_thread {
    struct tbd_regs regs; /* .thread: its id */
    uint64_t mask;        /* its signal mask */
    uint64_t rseq; /* its registered area, 0: none.  For a recording the kernel knows it no more */
    uint32_t rseq_bytes;
    uint32_t rseq_signature;
    uint64_t resumes; /* rax is restart_syscall, for this call; 0: it is not */
    /* the engine's answer: the thread calls entry(argument) there */
    uint64_t entry;
    uint64_t argument;
    uint64_t stack;
    uint64_t gs_base;
};

struct tbd_takeover {
    uint32_t phase; /* enum tbd_takeover_phase */
    uint32_t thread_count;
    struct tbd_takeover_thread *threads; /* the first one is the caller */
    const uint8_t *
        vectors; /* TBD_TAKEOVER_VECTORS for each thread, aligned to 64; NULL: as the kernel has them */
    uint64_t
        until_ns; /* TAKE: if CLOCK_MONOTONIC is past it before the handlers change, nothing changes */
    uint64_t is_late;                      /* the engine's answer: it was */
    char lib_dir[TBD_TAKEOVER_TEXT_BYTES]; /* where libtbd.so is; ends with a slash */
    char why[TBD_TAKEOVER_TEXT_BYTES];     /* the engine's answer: what it has said */
};

#endif
