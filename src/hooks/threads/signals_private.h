// SPDX-License-Identifier: MIT
/* signals_private.h - numbers of the kernel's signal interface, and declarations that the files
 * of signals.h share: signals_catch.c (SIG), signals_held.c (SIG, APP), signals_deliver.c (APP),
 * signals_calls.c (BOOT, APP) */
#ifndef TBD_HOOKS_SIGNALS_PRIVATE_H
#define TBD_HOOKS_SIGNALS_PRIVATE_H

#include "hooks/stream/recording.h"

#include "base/linux_abi.h"
#include "hooks/threads/sigframe.h"
#include "hooks/threads/threads.h"

/* SIG, APP: is the program's own code there, in native play? */
bool tbd_signals_runs_own(uint64_t rip);

enum {
    INFO_CODE_AT = offsetof(siginfo_t, si_code),
    INFO_ADDRESS_AT = offsetof(siginfo_t, si_addr),
    ERROR_WRITE = 2,
    TRAP_PAGE_FAULT = 14,
};
#define SA_KNOWN                                                                                   \
    ((uint32_t)(SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | SA_EXPOSE_TAGBITS | SA_RESTORER |       \
                SA_ONSTACK | SA_RESTART | SA_NODEFER |                                             \
                SA_RESETHAND)) /* the kernel keeps these bits of sa_flags */
#define SA_PASSED     ((uint32_t)(SA_RESTART | SA_NOCLDSTOP | SA_NOCLDWAIT)) /* left to the kernel */
#define UC_FLAGS      (UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS)
#define FLAG_RF       0x10000ull
#define FLAGS_CLEARED 0x10500ull /* RF DF TF */

#define BIT(signo)  (1ull << ((signo)-1))
#define UNBLOCKABLE (BIT(SIGKILL) | BIT(SIGSTOP))
/* The processor raises them; the engine must receive those of its own code. */
#define ALWAYS_OURS (BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGSEGV))

/* These end the program by default (signal(7)): the engine catches them so that the trace can say
 * how it ended. */
#define ENDS_BY_DEFAULT                                                                            \
    (BIT(SIGHUP) | BIT(SIGINT) | BIT(SIGQUIT) | BIT(SIGABRT) | BIT(SIGUSR1) | BIT(SIGUSR2) |       \
     BIT(SIGPIPE) | BIT(SIGALRM) | BIT(SIGTERM) | BIT(SIGSTKFLT) | BIT(SIGXCPU) | BIT(SIGXFSZ) |   \
     BIT(SIGVTALRM) | BIT(SIGPROF) | BIT(SIGIO) | BIT(SIGPWR) | BIT(SIGSYS) |                      \
     ~(BIT(SIGRTMIN) - 1)) /* and the real-time signals */

#define IGNORED_BY_DEFAULT (BIT(SIGCHLD) | BIT(SIGCONT) | BIT(SIGURG) | BIT(SIGWINCH))

/* signals_calls.c: its handler has run once (SA_RESETHAND). */
void tbd_signals_reset(uint32_t signo);

/* signals_mask.c: the engine's handlers must get these at any time. */
uint64_t tbd_signals_needed(void);

/* signals_catch.c */
void tbd_signals_set_exits(const struct tbd_signal_exits *exits);
const struct tbd_signal_exits *tbd_signals_exits(void);

/* signals_held.c */
/* SIG: a signal of tbd_signals_needed() was sent to this thread.  True: it is held, as it must be if it
 * `is_later`.  `info` may be changed to that of another signal of this number, which is
 * to be delivered in its place. */
bool tbd_signals_hold_sigsafe(struct tbd_signals *signals, uint32_t signo, uint8_t *info,
                              bool is_later);
/* APP: the kernel's own SIGSEGV; it is taken next.  False: no handler would run for it. */
bool tbd_signals_hold_segv(void);
/* The program ignores it from now on. */
void tbd_signals_drop_held(uint32_t signo);
/* The kernel gets what is held for good; the five stay blocked. */
void tbd_signals_give_back_held(struct tbd_signals *signals);

/* Is the engine's handler installed for it in the kernel? */
static inline bool tbd_signals_is_ours(uint64_t signo)
{
    uint64_t handler = tbd_actions[signo].handler;

    return (tbd_signals_needed() & BIT(signo)) || handler > 1 ||
           /* which they do not end */
           (handler == 0 && (ENDS_BY_DEFAULT & BIT(signo)) && tbd_recording.pid != 1);
}

static inline bool tbd_signals_ignores(uint64_t signo)
{
    uint64_t handler = tbd_actions[signo].handler;

    return handler == 1 || (handler == 0 && (IGNORED_BY_DEFAULT & BIT(signo)));
}

static inline bool tbd_altstack_holds(const struct tbd_altstack *stack, uint64_t sp)
{
    return sp > stack->sp && sp - stack->sp <= stack->bytes;
}

#endif
