// SPDX-License-Identifier: MIT
/* call_families.h - the program's system calls during play, by family: functions that the families
 * share
 *
 * Context: APP. */
#ifndef TBD_HOOKS_CALL_FAMILIES_H
#define TBD_HOOKS_CALL_FAMILIES_H

#include "hooks/calls/call_run.h"
#include "hooks/threads/threads.h"

/* Decisions of boot; borrowed for ever. */
struct tbd_call_policy {
    /* In a forked child: the thread is the only one. */
    void (*alone)(struct tbd_thread *thread);
    /* In a forked child, as boot/child.h says. */
    bool (*record_child)(struct tbd_thread *thread);
    /* Goes on with the program's code; does not return. */
    void (*run)(struct tbd_thread *thread);
    /* A system call filter ends this thread alone; other threads remain. */
    void (*thread_killed)(struct tbd_call *call);
    /* Free run: the program is about to end with this exit status. */
    void (*ends)(struct tbd_thread *thread, uint32_t status);
    bool children; /* forked children get traces of their own */
    bool threads;  /* several threads are recorded */
};
extern const struct tbd_call_policy *tbd_call_policy; /* special_calls.c */

/* waiting.c: makes the call while other threads run, and notes its effects afterwards.  False:
 * there was no memory for it, and nothing was done.  The result can be TBD_CALL_INTERRUPTED. */
bool tbd_call_wait(struct tbd_call *call);
/* With chaos, before a call: another thread may have its turn first.  With one thread nothing is done. */
void tbd_call_offer_turn(struct tbd_call *call);
/* The same without giving way, for a call whose large buffers may stay almost empty; false for others
 * too. */
bool tbd_call_large(struct tbd_call *call);
/* Like tbd_call_wait(), for a call that writes nothing. */
void tbd_call_wait_plainly(struct tbd_call *call);
/* Like tbd_call_wait_plainly(), but makes the call `sys` in its place. */
void tbd_call_wait_as(struct tbd_call *call, const struct tbd_sys_call *sys);
/* The program was let go while the thread made its call (result INTERRUPTED: it is made
 * natively). */
_Noreturn void tbd_call_leave(const struct tbd_call *call, struct tbd_saved_context *saved);
/* Like tbd_call_leave(), for a thread that had stepped out (threads.h) with these registers. */
_Noreturn void tbd_call_stolen(struct tbd_call *call, struct tbd_saved_context *saved,
                               const struct tbd_regs *regs);
/* Like tbd_call_wait_plainly(), for a call of the engine after which the program's own call is made
 * again. */
void tbd_call_pause(struct tbd_call *call);
void tbd_call_pause_as(struct tbd_call *call, const struct tbd_sys_call *sys);

/* The request of clone, clone3, fork or vfork. */
struct tbd_clone {
    uint64_t flags;
    uint64_t parent_tid;
    uint64_t child_tid;
    uint64_t stack; /* end of the child's stack; 0: the caller's */
    uint64_t tls;
};
/* fork_calls.c; false: the kernel would refuse the request. */
bool tbd_call_read_clone(const struct tbd_call *call, struct tbd_clone *out);

/* Writes `now` to a futex word, which other processes may share, if the word still is `was`, and
 * records it as the kernel's write.  False: the word has changed meanwhile.  A word that cannot be
 * written stays as it is. */
bool tbd_call_exchange_word(struct tbd_call *call, uint64_t address, uint32_t was, uint32_t now);

/* thread_calls.c: clone with CLONE_THREAD; exit while other threads remain. */
void tbd_call_thread(struct tbd_call *call, const struct tbd_clone *arguments);
void tbd_call_thread_exit(struct tbd_call *call);
/* For struct tbd_call_policy. */
__attribute__((visibility("hidden"))) void tbd_call_thread_killed(struct tbd_call *call);

/* Performs a call without giving way to other threads; its effects are noted, nothing is sent. */
void tbd_call_perform_here(struct tbd_call *call);
/* Performs and records a call that the engine takes no part in: by the table, or by comparison. */
void tbd_call_plain(struct tbd_call *call);

/* The same for a call whose effects the table describes, without sending the message: sets result,
 * effects, flags. */
void tbd_call_described(struct tbd_call *call);

/* Functions for the rows MAP and SPECIAL of syscalls.def: tbd_call_mmap(), ...  MAP:
 * memory_calls.c; SPECIAL: special_calls.c and the files of families (futex_calls.c, lock_calls.c, seccomp.c,
 * userfault_calls.c, organizer_children.c, thread_calls.c). */
#define X(number, name, mode, ...)                                                                 \
    TBD_SYS_IF_OWN(mode, void tbd_call_##name(struct tbd_call *call);)
#include "hooks/table/syscalls.def"
#undef X

/* The kernel's struct robust_list_head. */
struct tbd_robust_list {
    uint64_t next; /* bit 0 of these addresses: a futex with priority inheritance */
    int64_t offset;
    uint64_t pending;
};
_Static_assert(sizeof(struct tbd_robust_list) == sizeof(struct robust_list_head), "linux/futex.h");

#endif
