// SPDX-License-Identifier: MIT
/* signals_private.h - numbers of the kernel's signal interface, and what the three files of signals.h share:
 * signals_catch.c (SIG), signals_deliver.c (APP), signals_calls.c (BOOT, APP) */
#ifndef TBD_HOOKS_SIGNALS_PRIVATE_H
#define TBD_HOOKS_SIGNALS_PRIVATE_H

#include "hooks/boot/runtime.h"
#include "hooks/threads/sigframe.h"

enum {
    SIGILL_ = 4,
    SIGTRAP_ = 5,
    SIGBUS_ = 7,
    SIGFPE_ = 8,
    SIGKILL_ = 9,
    SIGSEGV_ = 11,
    SIGCHLD_ = 17,
    SIGSTOP_ = 19,
    SYS_RT_SIGACTION = 13,
    SYS_RT_SIGPROCMASK = 14,
    SYS_SIGALTSTACK = 131,
    SYS_TGKILL = 234,
    SYS_RT_TGSIGQUEUEINFO = 297,
    SIG_BLOCK_ = 0,
    SIG_UNBLOCK_ = 1,
    SIG_SETMASK_ = 2,
    SS_ONSTACK_ = 1,
    SS_DISABLE_ = 2,
    EINVAL_ = -22,
    EPERM_ = -1,
    ENOMEM_ = -12,
    INFO_CODE_AT = 8,
    INFO_ADDRESS_AT = 16,
    ERROR_WRITE = 2,
    TRAP_PAGE_FAULT = 14,
};
#define SS_AUTODISARM_ 0x80000000u
#define SA_ONSTACK_    0x08000000ull
#define SA_SIGINFO_    4ull
#define SA_RESTORER_   0x04000000ull
#define SA_RESTART_    0x10000000ull
#define SA_NODEFER_    0x40000000ull
#define SA_RESETHAND_  0x80000000ull
#define SA_KNOWN       0xdc000807ull /* what the kernel keeps of sa_flags */
#define SA_PASSED      0x10000003ull /* RESTART, NOCLDSTOP, NOCLDWAIT: the kernel's business */
#define UC_FLAGS       7ull          /* XSTATE, SIGCONTEXT_SS, STRICT_RESTORE_SS */
#define FLAG_RF        0x10000ull
#define FLAGS_CLEARED  0x10500ull /* RF DF TF */

#define BIT(signo)  (1ull << ((signo)-1))
#define UNBLOCKABLE (BIT(SIGKILL_) | BIT(SIGSTOP_))
/* The processor raises them; the engine must get its own. */
#define ALWAYS_OURS (BIT(SIGILL_) | BIT(SIGTRAP_) | BIT(SIGBUS_) | BIT(SIGFPE_) | BIT(SIGSEGV_))

/* End the program when nobody says otherwise (signal(7)), so that the trace can say how it ended. */
#define ENDS_BY_DEFAULT                                                                            \
    (BIT(1) | BIT(2) | BIT(3) | BIT(6) | BIT(10) | BIT(12) | BIT(13) | BIT(14) | BIT(15) |         \
     BIT(16) | BIT(24) | BIT(25) | BIT(26) | BIT(27) | BIT(29) | BIT(30) | BIT(31) |               \
     ~((1ull << 31) - 1))

/* Is the engine's handler installed for it in the kernel? */
static inline bool tbd_signals_is_ours(uint64_t signo)
{
    uint64_t handler = tbd_runtime.actions[signo].handler;

    return (ALWAYS_OURS & BIT(signo)) || handler > 1 ||
           /* which they do not end */
           (handler == 0 && (ENDS_BY_DEFAULT & BIT(signo)) && tbd_runtime.pid != 1);
}

static inline bool tbd_altstack_holds(const struct tbd_altstack *stack, uint64_t sp)
{
    return sp > stack->sp && sp - stack->sp <= stack->bytes;
}

#endif
