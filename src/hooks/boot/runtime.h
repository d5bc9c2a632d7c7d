// SPDX-License-Identifier: MIT
/* runtime.h - what the engine knows while a program is being traced (play)
 *
 * One instance, tbd_runtime.  Written by the thread that holds the baton only (threads.h);
 * signal handlers read it and write `pending` and `queued` of their own thread's state and the
 * stream's protection.
 *
 * Between blocks the engine is in APP context.  Every callback ends with tbd_runtime_settle(), the
 * one place where a pending signal is delivered, a window ended, or the program let go. */
#ifndef TBD_HOOKS_RUNTIME_H
#define TBD_HOOKS_RUNTIME_H

#include "hooks/boot/options.h"
#include "hooks/memory/regions.h"
#include "hooks/stream/ring.h"
#include "hooks/threads/signals.h"
#include "hooks/threads/threads.h"
#include "hooks/instructions/vector.h"
#include "hooks/stream/window_end.h"
#include "patcher/patcher.h"

struct tbd_effects;

#define TBD_MAX_AREAS 256u

struct tbd_runtime {
    struct tbd_options options;
    struct tbd_thread *thread;
    struct tbd_ring ring;
    struct tbd_pages pages;
    struct tbd_vector_info vector;
    struct tbd_regions regions;
    struct tbd_threads threads;
    struct tbd_signals *signals; /* of the thread that holds the baton */
    struct tbd_action actions[TBD_SIGNAL_COUNT];
    struct tbd_range areas[TBD_MAX_AREAS]; /* patch areas */
    size_t area_count;
    uint64_t brk_start;
    uint64_t brk_end;
    uint64_t window_due;  /* time at which the window ends */
    uint64_t gs_base;     /* of the engine, in every thread */
    uint64_t decoder_tls; /* fs base for the decoder library; 0 without fsgsbase */
    uint64_t realtime_ns; /* when the trace began, as START says */
    uint32_t pid;
    bool recording; /* an organizer consumes the stream */
    bool has_fsgsbase;
    uint64_t unknown_calls; /* system calls whose writes were found by comparison */
    bool taken_over;        /* translated code runs: faults may be the program's */
    const struct tbd_patcher_callbacks *callbacks; /* NULL in play; the replay stub's */
    void (*instead_of_detach)(const char *why);    /* NULL in play; does not return */
    /* NULL in play; a replay process: makes the stores of others that the log has for the piece of
     * an instruction at hand, and adds them to the effects.  The message they are in, or NULL. */
    const struct tbd_msg_special *(*next_others)(struct tbd_effects *effects, uint32_t *others);
    /* why the program must be detached at the next boundary; NULL = it need not */
    const char *let_go;
    char **environment; /* as at boot: for organizers */
    char lib_dir[1024]; /* where libtbd.so is, ends with a slash */
};

extern struct tbd_runtime tbd_runtime;

/* Before translated code is entered again; registers exact.  May not return (detach). */
void tbd_runtime_settle(struct tbd_thread *thread);
/* What a replay of this window would miss if it ended here without a WINDOW_END. */
void tbd_runtime_send_unknown_pages(struct tbd_thread *thread);
/* NOTE in the trace; severity 1 = something is missing. */
void tbd_runtime_note(uint32_t severity, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* K of the block that was entered last, when its last instruction has not been executed. */
void tbd_runtime_send_interrupted(uint64_t instructions);

/* boundary.c */
const struct tbd_patcher_callbacks *tbd_runtime_callbacks(void);
/* image.c: START, regions, pages, registers. */
void tbd_image_send(uint64_t argc, char **argv);
/* The same for a forked child. */
void tbd_image_send_child(uint32_t parent_pid);
/* syscall.c, special.c: patcher callbacks. */
void tbd_syscall_perform(struct tbd_thread *thread, uint32_t insn_bytes);
void tbd_special_perform(struct tbd_thread *thread, enum tbd_special special, uint32_t insn_bytes);
/* END message, everything handed over.  `offset`: as in struct tbd_msg_end. */
void tbd_runtime_send_end(enum tbd_end_how how, uint32_t value, uint64_t offset, const char *text);
/* Waits until the organizer has written everything, or is gone. */
void tbd_runtime_wait_done(void);

/* detach.c: the program goes on natively at thread->regs, signal state and gs base
 * as it set them. */
_Noreturn void tbd_detach(struct tbd_thread *thread, const char *why, uint64_t offset);
/* The same, but for the caller's own thread, which is left to the caller. */
void tbd_let_go(const char *why, uint64_t offset);
/* Same without a word, after END was sent.  Other threads stay where they are. */
_Noreturn void tbd_detach_silently(struct tbd_thread *thread);
/* In a forked child (`shares_memory`: vfork; `clears_handlers`: CLONE_CLEAR_SIGHAND). */
_Noreturn void tbd_detach_child(struct tbd_thread *thread, bool shares_memory,
                                bool clears_handlers);

/* base of the thread's segment registers */
void tbd_set_gs_base(uint64_t base);
/* SIG: a handler begins, perhaps while an instruction of the program runs with the program's gs
 * base (slot.h).  What it was; to be set again when that instruction goes on. */
static inline uint64_t tbd_gs_base_take_sigsafe(void)
{
    uint64_t was = tbd_runtime.gs_base;

    if (tbd_runtime.has_fsgsbase)
        __asm__ volatile("rdgsbase %0" : "=r"(was));
    if (was != tbd_runtime.gs_base)
        tbd_set_gs_base(tbd_runtime.gs_base);
    return was;
}
void tbd_set_fs_base(uint64_t base);

#endif
