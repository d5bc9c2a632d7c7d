// SPDX-License-Identifier: MIT
/* call_families.h - the program's system calls during play, by family: what they need of each other
 *
 * Context: APP. */
#ifndef TBD_HOOKS_CALL_FAMILIES_H
#define TBD_HOOKS_CALL_FAMILIES_H

#include "hooks/calls/call_run.h"
#include "hooks/threads/threads.h"

/* What boot has decided; borrowed for ever. */
struct tbd_call_policy {
    /* In a forked child, as boot/child.h says. */
    bool (*record_child)(struct tbd_thread *thread);
    bool children; /* forked children get traces of their own */
    bool threads;  /* several threads are recorded */
};
extern const struct tbd_call_policy *tbd_call_policy; /* special_calls.c */

/* waiting.c: makes the call while other threads run; its effects are noted afterwards.  False: no
 * memory for it, nothing was done.  TBD_CALL_INTERRUPTED possible. */
bool tbd_call_wait(struct tbd_call *call);
/* The same for a call that writes nothing. */
void tbd_call_wait_plainly(struct tbd_call *call);
/* The same, made as `sys`. */
void tbd_call_wait_as(struct tbd_call *call, const struct tbd_sys_call *sys);
/* The program was let go while the thread made its call (result INTERRUPTED: it is
 * made natively). */
_Noreturn void tbd_call_leave(const struct tbd_call *call, struct tbd_saved_context *saved);
/* The same for one that had stepped out (threads.h) with these registers. */
_Noreturn void tbd_call_stolen(struct tbd_call *call, struct tbd_saved_context *saved,
                               const struct tbd_regs *regs);
/* The same for one that the engine makes before the program's own is to be made again. */
void tbd_call_pause(struct tbd_call *call);
void tbd_call_pause_as(struct tbd_call *call, const struct tbd_sys_call *sys);

/* What clone, clone3, fork or vfork asks for. */
struct tbd_clone {
    uint64_t flags;
    uint64_t parent_tid;
    uint64_t child_tid;
    uint64_t stack; /* its end; 0: the caller's */
    uint64_t tls;
};
/* special_calls.c; false: the kernel would not take it. */
bool tbd_call_read_clone(const struct tbd_call *call, struct tbd_clone *out);

/* A futex word, which other processes may share: `now` if it still is `was`, recorded as
 * the kernel's doing.  False: it has changed meanwhile.  A word that cannot be written
 * stays as it is. */
bool tbd_call_exchange_word(struct tbd_call *call, uint64_t address, uint32_t was, uint32_t now);

/* thread_calls.c: clone with CLONE_THREAD, exit with others left. */
void tbd_call_thread(struct tbd_call *call, const struct tbd_clone *arguments);
void tbd_call_thread_exit(struct tbd_call *call);
/* Others are left: a filter for system calls ends this one alone. */
void tbd_call_thread_killed(struct tbd_call *call);

/* Performs a call without giving way to other threads; its effects are noted, nothing is sent. */
void tbd_call_perform_here(struct tbd_call *call);
/* Performs and records a call that the engine has no part in: by the table, or by comparison. */
void tbd_call_plain(struct tbd_call *call);

/* The same for a call whose effects the table describes, without the message: result, effects, flags. */
void tbd_call_described(struct tbd_call *call);

/* What syscalls.def says MAP and SPECIAL about: tbd_call_mmap(), ...  MAP: memory_calls.c; SPECIAL: special_calls.c
 * and the files of families (futex_calls.c, seccomp.c, userfault_calls.c, organizer_children.c, thread_calls.c). */
#define X(number, name, mode, ...)                                                                 \
    TBD_SYS_IF_OWN(mode, void tbd_call_##name(struct tbd_call *call);)
#include "hooks/table/syscalls.def"
#undef X

/* struct robust_list_head of the kernel. */
struct tbd_robust_list {
    uint64_t next; /* bit 0 of these addresses: a futex with priority inheritance */
    int64_t offset;
    uint64_t pending;
};
_Static_assert(sizeof(struct tbd_robust_list) == sizeof(struct robust_list_head), "linux/futex.h");

#endif
