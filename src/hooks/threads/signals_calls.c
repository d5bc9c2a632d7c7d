// SPDX-License-Identifier: MIT
/* signals_calls.c - handlers, mask and signal stack, as the program sees them and as the kernel has
 * them
 *
 * Contexts: BOOT, APP; tbd_signals_restore() FORK_CHILD too. */
#include "hooks/threads/signals_private.h"

#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/instructions/processor.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/stream/leaving.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/threads.h"

extern const char tbd_signal_entry[], tbd_signal_restorer[];

int64_t tbd_sigreturn_perform(struct tbd_ucontext *context);

struct tbd_action tbd_actions[TBD_SIGNAL_COUNT];
static bool are_ours;
static uint64_t installed; /* the kernel has the engine's handler for these */

static uint64_t at(const char *label)
{
    return (uint64_t)(uintptr_t)label;
}

static void install(uint64_t signo, uint64_t flags)
{
    struct tbd_action ours = {
        .handler = at(tbd_signal_entry),
        .flags = SA_SIGINFO | SA_ONSTACK | SA_RESTORER | (flags & SA_PASSED),
        .restorer = at(tbd_signal_restorer),
        .mask = ~(BIT(SIGSEGV) | BIT(SIGBUS)),
    };

    tbd_sys4(__NR_rt_sigaction, signo, tbd_sys_pointer(&ours), 0, 8);
    installed |= BIT(signo);
}

static int64_t leave_to_kernel(uint64_t signo)
{
    installed &= ~BIT(signo);
    return tbd_sys4(__NR_rt_sigaction, signo, tbd_sys_pointer(&tbd_actions[signo]), 0, 8);
}

void tbd_signals_set_stack(uint64_t engine_stack, struct tbd_altstack *old)
{
    struct tbd_altstack ours = { .sp = engine_stack, .bytes = TBD_STACK_SLOT_BYTES / 2 };

    tbd_sys3(__NR_sigaltstack, tbd_sys_pointer(&ours), tbd_sys_pointer(old), 0);
}

bool tbd_signals_are_ours(void)
{
    return are_ours;
}

static void read_actions(void)
{
    for (uint64_t signo = 1; signo < TBD_SIGNAL_COUNT; signo++)
        tbd_sys4(__NR_rt_sigaction, signo, 0, tbd_sys_pointer(&tbd_actions[signo]), 8);
}

static void install_all(void)
{
    for (uint64_t signo = 1; signo < TBD_SIGNAL_COUNT; signo++)
        if (tbd_signals_is_ours(signo))
            install(signo, tbd_actions[signo].flags);
    are_ours = true;
}

void tbd_signals_take_stack(struct tbd_signals *signals, uint64_t engine_stack)
{
    struct tbd_altstack *stack = &signals->altstack;

    tbd_signals_set_stack(engine_stack, stack);
    if (!stack->bytes)
        stack->flags = 0; /* the kernel says SS_DISABLE only to sigaltstack */
}

bool tbd_signals_init(struct tbd_thread *thread, const struct tbd_signal_exits *exits)
{
    struct tbd_signals *signals = tbd_signals_now();

    tbd_signals_set_exits(exits);
    read_actions();
    tbd_sys4(__NR_rt_sigprocmask, SIG_BLOCK, 0, tbd_sys_pointer(&signals->mask), 8);
    tbd_signals_take_stack(signals, thread->engine_stack);
    install_all();
    tbd_signals_set_kernel_mask(signals->mask & ~tbd_signals_needed());
    return true;
}

void tbd_signals_take(const struct tbd_signal_exits *exits)
{
    tbd_signals_set_exits(exits);
    read_actions();
    install_all();
}

/* The kernel forgets a signal that waits, in every thread, when it is ignored. */
void tbd_signals_drop_calls(void)
{
    const struct tbd_action ignored = { .handler = 1 };

    tbd_sys4(__NR_rt_sigaction, SIGTRAP, tbd_sys_pointer(&ignored), 0, 8);
}

void tbd_signals_restore_handlers(void)
{
    for (uint64_t signo = 1; signo < TBD_SIGNAL_COUNT; signo++)
        if (installed & BIT(signo)) /* `installed` may be that of the parent of a vfork */
            tbd_sys4(__NR_rt_sigaction, signo, tbd_sys_pointer(&tbd_actions[signo]), 0, 8);
}

/* The kernel cannot go back to the time before the first sigaltstack: in a program that never had a
 * signal stack, frames have said 0 so far and say SS_DISABLE from here on. */
void tbd_signals_restore_thread(struct tbd_signals *signals)
{
    struct tbd_altstack none = { .flags = SS_DISABLE };
    const struct tbd_altstack *stack = signals->altstack.bytes ? &signals->altstack : &none;

    tbd_sys3(__NR_sigaltstack, tbd_sys_pointer(stack), 0, 0);
    tbd_signals_set_kernel_mask(~0ull); /* the handlers may be the program's by now */
    if (signals->pending) /* the program has not seen it yet: it comes again, natively */
        tbd_sys4(__NR_rt_tgsigqueueinfo, tbd_recording.pid, (uint64_t)tbd_sys_gettid(),
                 signals->queued.signo, tbd_sys_pointer(signals->queued.info));
    if (tbd_sys_getpid() == (long)tbd_recording.pid) /* not those of the parent of a vfork */
        tbd_signals_give_back_held(signals);
}

void tbd_signals_restore(void)
{
    tbd_signals_block_all();
    tbd_signals_restore_handlers();
    tbd_signals_restore_thread(tbd_signals_now());
}

/* The action that CLONE_CLEAR_SIGHAND leaves. */
static struct tbd_action cleared(const struct tbd_action *action)
{
    return (struct tbd_action){ .handler = action->handler == 1 };
}

void tbd_signals_restore_cleared(void)
{
    tbd_signals_block_all();
    for (uint64_t signo = 1; signo < TBD_SIGNAL_COUNT; signo++) {
        struct tbd_action action = cleared(&tbd_actions[signo]);

        tbd_sys4(__NR_rt_sigaction, signo, tbd_sys_pointer(&action), 0, 8);
    }
    tbd_signals_restore_thread(tbd_signals_now());
}

void tbd_signals_clear_handlers(void)
{
    for (uint64_t signo = 1; signo < TBD_SIGNAL_COUNT; signo++) {
        struct tbd_action *action = &tbd_actions[signo];

        *action = cleared(action);
        if (tbd_signals_is_ours(signo))
            install(signo, 0);
        else
            leave_to_kernel(signo);
    }
}

/* Signals that are ignored by default keep the engine's handler: the kernel would forget one that
 * waits, which it does not when it resets a handler itself. */
void tbd_signals_reset(uint32_t signo)
{
    tbd_actions[signo].handler = 0;
    if (!tbd_signals_is_ours(signo) && !(IGNORED_BY_DEFAULT & BIT(signo)))
        leave_to_kernel(signo);
}

/* Ignored signals stay ignored in the new program, and the mask is inherited. */
void tbd_signals_before_exec(void)
{
    const struct tbd_signals *signals = tbd_signals_now();

    for (uint64_t signo = 1; signo < TBD_SIGNAL_COUNT; signo++)
        if ((tbd_signals_needed() & BIT(signo)) && tbd_actions[signo].handler == 1)
            tbd_sys4(__NR_rt_sigaction, signo, tbd_sys_pointer(&tbd_actions[signo]), 0, 8);
    if (!(signals->mask & tbd_signals_needed()))
        return;
    tbd_sys4(__NR_rt_sigprocmask, SIG_SETMASK, tbd_sys_pointer(&signals->mask), 0, 8);
    tbd_signals_give_back_held(tbd_signals_now());
}

void tbd_signals_after_exec(void)
{
    struct tbd_signals *signals = tbd_signals_now();

    for (uint64_t signo = 1; signo < TBD_SIGNAL_COUNT; signo++)
        if ((tbd_signals_needed() & BIT(signo)) && tbd_actions[signo].handler == 1)
            install(signo, 0);
    if (signals->mask & tbd_signals_needed()) {
        tbd_signals_set_kernel_mask(signals->mask & ~tbd_signals_needed());
        signals->lent = 0;
    }
}

/* The kernel forgets a signal that waits when the program ignores it. */
static void forget_waiting(uint64_t signo)
{
    const struct tbd_action ignored = { .handler = 1 };

    if (!(tbd_signals_needed() & BIT(signo)))
        return;
    tbd_sys4(__NR_rt_sigaction, signo, tbd_sys_pointer(&ignored), 0, 8); /* what is lent */
    tbd_signals_drop_held((uint32_t)signo);
}

int64_t tbd_signals_action(uint64_t signo, const struct tbd_action *set, struct tbd_action *old)
{
    struct tbd_action *action;
    long result = 0;

    if (signo < 1 || signo >= TBD_SIGNAL_COUNT || (set && (UNBLOCKABLE & BIT(signo))))
        return -EINVAL;
    action = &tbd_actions[signo];
    *old = *action;
    if (!set)
        return 0;
    *action = *set;
    action->mask &= ~UNBLOCKABLE;
    action->flags &= SA_KNOWN;
    if (action->handler == 1)
        forget_waiting(signo);
    if (tbd_signals_is_ours(signo))
        install(signo, action->flags);
    else
        result = leave_to_kernel(signo);
    return result;
}

int64_t tbd_signals_procmask(uint64_t how, const uint64_t *set, uint64_t *old)
{
    uint64_t mask = tbd_signals_now()->mask;

    *old = mask;
    if (!set)
        return 0;
    switch (how) {
    case SIG_BLOCK: mask |= *set; break;
    case SIG_UNBLOCK: mask &= ~*set; break;
    case SIG_SETMASK: mask = *set; break;
    default: return -EINVAL;
    }
    tbd_signals_block_all();
    tbd_signals_now()->mask = mask & ~UNBLOCKABLE;
    /* While a signal is queued everything stays blocked; its delivery applies the mask. */
    if (!__atomic_load_n(&tbd_signals_now()->pending, __ATOMIC_ACQUIRE))
        tbd_signals_set_kernel_mask(tbd_signals_kernel_mask(mask));
    return 0;
}

/* What the kernel says to a signal stack of this length, and then to a request for tiles: how long stacks must be
 * depends on it.  Meanwhile the engine's own is that long. */
static int64_t try_stack(const struct tbd_thread *thread, uint64_t bytes, bool requests_tiles)
{
    struct tbd_altstack tried = { .sp = thread->engine_stack, .bytes = bytes }, ignored;
    uint64_t all = UINT64_MAX, mask;
    int64_t result;

    tbd_sys4(__NR_rt_sigprocmask, SIG_SETMASK, tbd_sys_pointer(&all), tbd_sys_pointer(&mask), 8);
    result = tbd_sys3(__NR_sigaltstack, tbd_sys_pointer(&tried), 0, 0);
    if (!result && requests_tiles)
        result = tbd_sys3(__NR_arch_prctl, ARCH_REQ_XCOMP_PERM, TBD_VECTOR_TILES, 0);
    tbd_signals_set_stack(thread->engine_stack, &ignored);
    tbd_sys4(__NR_rt_sigprocmask, SIG_SETMASK, tbd_sys_pointer(&mask), 0, 8);
    return result;
}

/* With tiles permitted, frames need more than 2048 bytes. */
static bool is_long_enough(const struct tbd_thread *thread, uint64_t bytes)
{
    const struct tbd_vector_layout *image = &tbd_processor.vector.image;

    return bytes >= 2048 && (image->bytes == image->short_bytes || bytes >= 2ull * image->bytes ||
                             !try_stack(thread, bytes, false));
}

int64_t tbd_signals_request_tiles(const struct tbd_thread *thread)
{
    uint64_t least = TBD_STACK_SLOT_BYTES / 2;

    for (uint32_t i = 0; i < tbd_threads.saved_contexts; i++) {
        const struct tbd_saved_context *saved = tbd_saved_context_at(i);

        if (saved->tid && saved->signals.altstack.bytes && saved->signals.altstack.bytes < least)
            least = saved->signals.altstack.bytes;
    }
    return try_stack(thread, least, true);
}

int64_t tbd_signals_altstack(const struct tbd_thread *thread, const struct tbd_altstack *set,
                             struct tbd_altstack *old)
{
    struct tbd_altstack *stack = &tbd_signals_now()->altstack;
    bool is_active = stack->bytes && tbd_altstack_holds(stack, thread->regs.gpr[TBD_RSP]);
    uint32_t mode;

    *old = *stack;
    old->pad = 0;
    old->flags = (stack->flags & SS_AUTODISARM) | (!stack->bytes ? (uint32_t)SS_DISABLE
                                                   : is_active   ? (uint32_t)SS_ONSTACK
                                                                 : 0);
    if (!set)
        return 0;
    if (is_active && !(stack->flags & SS_AUTODISARM))
        return -EPERM;
    mode = set->flags & ~SS_AUTODISARM;
    if (mode != 0 && mode != SS_ONSTACK && mode != SS_DISABLE)
        return -EINVAL;
    if (set->sp == stack->sp && set->bytes == stack->bytes && set->flags == stack->flags)
        return 0; /* even if it is none */
    if (mode != SS_DISABLE && !is_long_enough(thread, set->bytes))
        return -ENOMEM;
    *stack = *set;
    stack->pad = 0;
    if (mode == SS_DISABLE) {
        stack->sp = 0;
        stack->bytes = 0;
    }
    return 0;
}

/* What the kernel does where it does not accept a frame: rax is 0. */
static bool bad_frame(struct tbd_thread *thread)
{
    thread->regs.gpr[TBD_RAX] = 0;
    return false;
}

bool tbd_signals_return(struct tbd_thread *thread)
{
    struct tbd_regs *regs = &thread->regs;
    struct tbd_ucontext context;
    struct tbd_ucontext copy;
    struct tbd_altstack ignored;
    uint64_t flags = regs->rflags;
    bool is_bad;

    if (!tbd_copy_from_program(&context, regs->gpr[TBD_RSP], sizeof(context))) {
        tbd_signals_let_in();
        return bad_frame(thread);
    }
    copy = context;
    copy.altstack =
        (struct tbd_altstack){ .sp = thread->engine_stack, .bytes = TBD_STACK_SLOT_BYTES / 2 };
    copy.mask = tbd_signals_kernel_mask(context.mask);
    is_bad = tbd_sigreturn_perform(&copy); /* vector state and mask */
    tbd_signals_now()->mask = context.mask & ~UNBLOCKABLE;
    tbd_ucontext_get(&context, regs);
    regs->rflags = tbd_ucontext_merge_flags(flags, context.rflags);
    if (is_bad)
        return bad_frame(thread);
    tbd_signals_altstack(thread, &context.altstack, &ignored);
    if (regs->rflags & TBD_RFLAGS_TRAP && !tbd_signals_runs_own(regs->rip))
        tbd_leave_soon(TBD_STEPS_ITSELF);
    return true;
}
