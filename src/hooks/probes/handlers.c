// SPDX-License-Identifier: MIT
/* handlers.c - see handlers.h
 *
 * Our handler runs with all signals blocked, and sets the mask that the program's handler would have as the last thing: a
 * signal that comes then is delivered at one address, which tbd_jump_settle() knows.
 *
 * HANDLERS-1  An action's place in the table is written before the kernel knows our handler for its signal. (not
 *     checked: wrap() does it in that order)
 * HANDLERS-2  Only the program itself changes the table: a child of vfork shares its memory, not its handlers. (not
 *     checked: tbd_handlers_change() asks for the process)
 * HANDLERS-3  An action is read, wrapped and set by one thread at a time, the keeper's among them: otherwise ours could be
 *     set when they have ended, and an older one of the program's over a newer. (not checked: claim()) */
#include "hooks/probes/handlers.h"

#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/probes/jump_settle.h"
#include "hooks/probes/stack_walk.h"

#define MASK_BYTES 8u
#define SIGNALS    64u
#define TRIES      5000 /* of a millisecond: who has the lock may have been killed */

/* What tbd_handlers_entry (handlers_x86_64.S) keeps on the stack. */
struct tbd_handlers_frame {
    uint64_t arguments[3];
    uint64_t mask;
    uint64_t handler;
};

#pragma GCC visibility push(hidden) /* addresses without a table: mode.h */
bool tbd_handlers_settle(int signal, const uint8_t *info, struct tbd_ucontext *context,
                         struct tbd_handlers_frame *frame);
extern const uint8_t tbd_handlers_entry[], tbd_signal_restorer[];
#pragma GCC visibility pop

static struct {
    uint32_t owner; /* the program; in a child of it: another */
    uint32_t lock;  /* atomic */
    bool wraps;     /* under the lock */
    struct tbd_kernel_action kept[SIGNALS + 1];
} handlers;

static uint64_t own_handler(void)
{
    return tbd_sys_pointer(tbd_handlers_entry);
}

static long set_action(uint64_t signal, const struct tbd_kernel_action *action,
                       struct tbd_kernel_action *was)
{
    return tbd_sys4(__NR_rt_sigaction, signal, tbd_sys_pointer(action), tbd_sys_pointer(was),
                    MASK_BYTES);
}

static bool is_fault(uint64_t signal)
{
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL;
}

/* ---- a signal ---- */

static void send_again(int signal, const uint8_t *info)
{
    tbd_sys4(__NR_rt_tgsigqueueinfo, (uint64_t)tbd_sys_getpid(), (uint64_t)tbd_sys_gettid(),
             (uint64_t)signal, tbd_sys_pointer(info));
}

/* The kernel has set the default when it called the handler. */
static void keep_once(int signal)
{
    struct tbd_kernel_action again = handlers.kept[signal];

    if (!(again.flags & SA_RESETHAND))
        return;
    again.handler = own_handler();
    again.mask = UINT64_MAX;
    set_action((uint64_t)signal, &again, NULL);
}

/* No handler: the program dies where it stands now. */
static void die(int signal, const uint8_t *info, struct tbd_ucontext *context)
{
    const struct tbd_kernel_action usual = { 0 };

    set_action((uint64_t)signal, &usual, NULL);
    context->mask &= ~(1ull << (signal - 1));
    send_again(signal, info);
}

/* False: there is nothing to call.  All signals are blocked here. */
bool tbd_handlers_settle(int signal, const uint8_t *info, struct tbd_ucontext *context,
                         struct tbd_handlers_frame *frame)
{
    const struct tbd_kernel_action *action = &handlers.kept[signal];

    if (tbd_jump_settle(signal, info, context) == TBD_SETTLED_DEFERRED) {
        keep_once(signal);
        send_again(signal, info);
        return false;
    }
    if (action->handler <= 1) {
        die(signal, info, context);
        return false;
    }
    frame->handler = action->handler;
    frame->mask = context->mask | action->mask;
    if (!(action->flags & SA_NODEFER))
        frame->mask |= 1ull << (signal - 1);
    tbd_walk_note_signal(signal, context);
    return true;
}

/* ---- one at a time ---- */

/* Nobody is interrupted with it: the program's threads are in the handler of SIGTRAP.  False: nothing is to be released. */
static bool claim(void)
{
    for (int i = 0; i < TRIES; i++) {
        if (!__atomic_exchange_n(&handlers.lock, 1, __ATOMIC_ACQUIRE))
            return true;
        tbd_sys_pause_ms(1);
    }
    return false;
}

static void release(bool claimed)
{
    if (claimed)
        __atomic_store_n(&handlers.lock, 0, __ATOMIC_RELEASE);
}

/* ---- actions ---- */

/* The action for the kernel. */
static struct tbd_kernel_action wrap(uint64_t signal, const struct tbd_kernel_action *action)
{
    struct tbd_kernel_action ours = *action;

    if (action->handler <= 1 && !(is_fault(signal) && action->handler == 0))
        return ours;
    handlers.kept[signal] = *action;
    ours.handler = own_handler();
    ours.mask = UINT64_MAX;
    if (action->handler == 0) {
        ours.flags = SA_SIGINFO | SA_ONSTACK | SA_RESTORER;
        ours.restorer = (uint64_t)(uintptr_t)tbd_signal_restorer;
    }
    return ours;
}

static void wrap_all(void)
{
    for (uint64_t signal = 1; signal <= SIGNALS; signal++) {
        struct tbd_kernel_action now, ours;

        if (signal == SIGTRAP || set_action(signal, NULL, &now) != 0 ||
            now.handler == own_handler())
            continue;
        ours = wrap(signal, &now);
        if (ours.handler == own_handler())
            set_action(signal, &ours, NULL);
    }
}

static void unwrap_all(void)
{
    for (uint64_t signal = 1; signal <= SIGNALS; signal++) {
        struct tbd_kernel_action now;

        if (signal != SIGTRAP && set_action(signal, NULL, &now) == 0 &&
            now.handler == own_handler())
            set_action(signal, &handlers.kept[signal], NULL);
    }
}

void tbd_handlers_prepare(uint32_t program)
{
    handlers.lock = 0;
    handlers.wraps &= handlers.owner == program; /* not in a child with a keeper of its own */
    handlers.owner = program;
}

void tbd_handlers_begin(void)
{
    bool claimed;

    if (handlers.wraps)
        return;
    claimed = claim();
    handlers.wraps = true;
    wrap_all();
    release(claimed);
}

void tbd_handlers_end(void)
{
    bool claimed;

    if (!handlers.wraps)
        return;
    claimed = claim();
    handlers.wraps = false;
    unwrap_all();
    release(claimed);
}

static long change(uint64_t signal, const struct tbd_kernel_action *wanted, bool wraps,
                   struct tbd_kernel_action *old)
{
    struct tbd_kernel_action before = handlers.kept[signal], ours;
    long result;

    if (wanted && wraps) {
        ours = wrap(signal, wanted);
        wanted = &ours;
    }
    result = set_action(signal, wanted, old);
    if (result == 0 && old->handler == own_handler())
        *old = before;
    return result;
}

long tbd_handlers_change(uint64_t signal, const struct tbd_kernel_action *wanted,
                         struct tbd_kernel_action *old)
{
    bool claimed;
    long result;

    if (signal > SIGNALS)
        return set_action(signal, wanted, old);
    if (handlers.owner != (uint32_t)tbd_sys_getpid())
        return change(signal, wanted, false, old);
    claimed = claim();
    result = change(signal, wanted, handlers.wraps, old);
    release(claimed);
    return result;
}
