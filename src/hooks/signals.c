// SPDX-License-Identifier: MIT
/* signals.c - see signals.h.  First the SIG part, then the APP part, then the system calls. */
#include "hooks/signals.h"

#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/effects.h"
#include "hooks/runtime.h"
#include "hooks/safe_copy.h"
#include "hooks/sigframe.h"
#include "hooks/slot.h"

enum {
    SIGILL_ = 4, SIGTRAP_ = 5, SIGBUS_ = 7, SIGFPE_ = 8, SIGKILL_ = 9, SIGSEGV_ = 11,
    SIGSTOP_ = 19,
    SYS_RT_SIGACTION = 13, SYS_RT_SIGPROCMASK = 14, SYS_SIGALTSTACK = 131, SYS_TGKILL = 234,
    SIG_BLOCK_ = 0, SIG_UNBLOCK_ = 1, SIG_SETMASK_ = 2,
    SS_ONSTACK_ = 1, SS_DISABLE_ = 2,
    EINVAL_ = -22, EPERM_ = -1, ENOMEM_ = -12,
    INFO_CODE_AT = 8, INFO_ADDRESS_AT = 16,
    ERROR_WRITE = 2,
};
#define SS_AUTODISARM_ 0x80000000u
#define SA_ONSTACK_ 0x08000000ull
#define SA_SIGINFO_ 4ull
#define SA_RESTORER_ 0x04000000ull
#define SA_RESTART_ 0x10000000ull
#define SA_NODEFER_ 0x40000000ull
#define SA_RESETHAND_ 0x80000000ull
#define SA_KNOWN 0xdc000807ull /* what the kernel keeps of sa_flags */
#define SA_PASSED 0x10000003ull /* RESTART, NOCLDSTOP, NOCLDWAIT: the kernel's business */
#define UC_FLAGS 7ull /* XSTATE, SIGCONTEXT_SS, STRICT_RESTORE_SS */
#define FLAGS_CLEARED 0x10500ull /* RF DF TF */

#define BIT(signo) (1ull << ((signo) - 1))
#define UNBLOCKABLE (BIT(SIGKILL_) | BIT(SIGSTOP_))
/* The processor raises them; the engine must get its own. */
#define ALWAYS_OURS (BIT(SIGILL_) | BIT(SIGTRAP_) | BIT(SIGBUS_) | BIT(SIGFPE_) | BIT(SIGSEGV_))

/* End the program when nobody says otherwise (signal(7)), so that the trace can say how it ended. */
#define ENDS_BY_DEFAULT                                                                            \
    (BIT(1) | BIT(2) | BIT(3) | BIT(6) | BIT(10) | BIT(12) | BIT(13) | BIT(14) | BIT(15) |         \
     BIT(16) | BIT(24) | BIT(25) | BIT(26) | BIT(27) | BIT(29) | BIT(30) | BIT(31) |               \
     ~((1ull << 31) - 1))

extern const char tbd_program_syscall_check[], tbd_program_syscall_done[];
extern const char tbd_program_syscall_interrupted[];
extern const char tbd_copy_faultable_begin[], tbd_copy_faultable_end[];
extern const char tbd_fault_entry[], tbd_signal_entry[], tbd_signal_restorer[];

void tbd_signal_handle(int signo, uint8_t *info, struct tbd_ucontext *context);
int64_t tbd_sigreturn_perform(struct tbd_ucontext *context);

static uint64_t at(const char *label)
{
    return (uint64_t)(uintptr_t)label;
}

static bool is_between(uint64_t pc, const char *from, const char *to)
{
    return pc >= at(from) && pc < at(to);
}

/* Is the engine's handler installed for it in the kernel? */
static bool is_ours(uint64_t signo)
{
    uint64_t handler = tbd_runtime.signals.actions[signo].handler;

    return (ALWAYS_OURS & BIT(signo)) || handler > 1 ||
           (handler == 0 && (ENDS_BY_DEFAULT & BIT(signo)));
}

static int32_t code_of(const uint8_t *info)
{
    int32_t code;

    memcpy(&code, info + INFO_CODE_AT, sizeof(code));
    return code;
}

static void cpu_registers(const struct tbd_ucontext *context, struct tbd_regs *regs)
{
    *regs = tbd_runtime.thread->regs; /* bases, thread */
    tbd_ucontext_get(context, regs);
}

static void continue_at(struct tbd_ucontext *context, const char *label)
{
    context->rip = at(label);
}

/* ==== SIG: faults ==== */

static void fill_queued(struct tbd_queued_signal *queued, int signo, const uint8_t *info,
                        const struct tbd_ucontext *context)
{
    queued->signo = (uint32_t)signo;
    queued->is_sync = false;
    queued->insn = TBD_SIGNAL_NOT_IN_BLOCK;
    queued->error = context->error;
    queued->trap = context->trap;
    queued->address = context->cr2;
    memcpy(queued->info, info, TBD_SIGINFO_BYTES);
}

/* SIGILL, SIGFPE and SIGTRAP carry the instruction's address, which was ours. */
static void correct_address(struct tbd_queued_signal *fault, uint64_t cache_pc, uint64_t app_pc)
{
    uint64_t address;

    memcpy(&address, fault->info + INFO_ADDRESS_AT, sizeof(address));
    if (address == cache_pc)
        memcpy(fault->info + INFO_ADDRESS_AT, &app_pc, sizeof(app_pc));
}

/* Leaves the handler into tbd_signals_after_fault(), on the engine's stack. */
static void leave_to_engine(struct tbd_ucontext *context, struct tbd_thread *thread)
{
    struct tbd_regs regs = { .rip = at(tbd_fault_entry), .rflags = 0x202 };

    regs.gpr[TBD_RDI] = (uint64_t)(uintptr_t)thread;
    regs.gpr[TBD_RSP] = thread->engine_stack;
    tbd_ucontext_set(context, &regs);
}

/* A fault of the program in translated code: its exact registers. */
static bool take_cache_fault(struct tbd_queued_signal *fault, struct tbd_ucontext *context)
{
    struct tbd_thread *thread = tbd_runtime.thread;
    struct tbd_interruption where;
    struct tbd_regs cpu;
    struct tbd_regs state = thread->regs;

    cpu_registers(context, &cpu);
    where = tbd_patcher_interrupted(thread, &cpu, &state);
    if (where.where == TBD_INT_NOT_CACHE)
        return false;
    correct_address(fault, cpu.rip, state.rip);
    if (where.in_hook)
        fault->error |= ERROR_WRITE; /* old bytes are read just before the store */
    thread->entry_next = cpu.gpr[TBD_R15];
    thread->operand_next = cpu.gpr[TBD_R14];
    if (where.where == TBD_INT_INSIDE && tbd_runtime.options.hooks != TBD_HOOKS_NONE) {
        tbd_ring_close_record_sigsafe(&tbd_runtime.ring, thread, where.record_bytes);
        fault->insn = where.insn;
    }
    state.fs_base = thread->regs.fs_base;
    state.gs_base = thread->regs.gs_base;
    state.thread = thread->regs.thread;
    state.xsave_bytes = thread->regs.xsave_bytes;
    thread->regs = state;
    return true;
}

/* A fault in an instruction that runs in a slot (slot.c): its registers are the processor's. */
static void take_slot_fault(struct tbd_queued_signal *fault, const struct tbd_ucontext *context)
{
    struct tbd_thread *thread = tbd_runtime.thread;
    uint64_t rip = thread->regs.rip;

    correct_address(fault, context->rip, rip);
    tbd_ucontext_get(context, &thread->regs);
    thread->regs.rip = rip + tbd_slot_offset(context->rip); /* a trap comes behind its instruction */
    thread->regs.gpr[TBD_RCX] += thread->scratch[TBD_SLOT_REST];
    thread->scratch[TBD_SLOT_REST] = 0;
    fault->insn = tbd_slot_last_insn(thread);
}

_Noreturn static void engine_fault(int signo, const uint8_t *info, struct tbd_ucontext *context)
{
    uint64_t address;
    struct tbd_action none = { 0 };

    memcpy(&address, info + INFO_ADDRESS_AT, sizeof(address));
    tbd_say("internal error: signal %d in the engine at %p, address %p, program at %p", signo,
            (void *)context->rip, (void *)address, (void *)tbd_runtime.thread->regs.rip);
    tbd_sys4(SYS_RT_SIGACTION, (uint64_t)signo, tbd_sys_pointer(&none), 0, 8);
    tbd_sys3(SYS_TGKILL, tbd_runtime.pid, tbd_runtime.thread->tid, (uint64_t)signo);
    tbd_signals_unblock(0);
    tbd_sys_exit_group(86);
}

static void program_fault(int signo, const uint8_t *info, struct tbd_ucontext *context)
{
    struct tbd_queued_signal *fault = &tbd_runtime.signals.fault;

    fill_queued(fault, signo, info, context);
    fault->is_sync = true;
    if (tbd_slot_owns(context->rip))
        take_slot_fault(fault, context);
    else if (!take_cache_fault(fault, context))
        engine_fault(signo, info, context);
    leave_to_engine(context, tbd_runtime.thread);
}

/* ==== SIG: guard pages ==== */

/* The operand area is full: the unfinished record moves to the next chunk.  What was already stored of the
 * instruction at hand goes with it, so everything up to the area's end is copied. */
static void move_record(struct tbd_ucontext *context)
{
    uint64_t entry_next = context->gregs[7]; /* r15 */
    uint64_t operand_next = context->gregs[6];
    uint64_t end = (operand_next & ~(TBD_PAGE_SIZE - 1)) + 4 * TBD_PAGE_SIZE;
    uint32_t bytes = TBD_RECORD_MAX_BYTES;

    while (end > operand_next && tbd_ring_guard_sigsafe(&tbd_runtime.ring, end - 1) !=
                                     TBD_GUARD_OPERANDS)
        end -= TBD_PAGE_SIZE; /* now the guard page's end */
    if (end > operand_next + TBD_PAGE_SIZE && end - TBD_PAGE_SIZE - operand_next < bytes)
        bytes = (uint32_t)(end - TBD_PAGE_SIZE - operand_next);
    else if (end <= operand_next + TBD_PAGE_SIZE)
        bytes = 0;
    tbd_ring_move_record_sigsafe(&tbd_runtime.ring, &entry_next, &operand_next, bytes);
    context->gregs[7] = entry_next;
    context->gregs[6] = operand_next;
}

static bool handle_guard(const uint8_t *info, struct tbd_ucontext *context)
{
    struct tbd_ring *ring = &tbd_runtime.ring;
    bool in_cache = tbd_patcher_owns(context->rip);
    uint64_t address;

    memcpy(&address, info + INFO_ADDRESS_AT, sizeof(address));
    switch (tbd_ring_guard_sigsafe(ring, address)) {
    case TBD_GUARD_ENTRIES:
        if (in_cache)
            context->rip = tbd_patcher_boundary_exit(tbd_runtime.thread, context->rip);
        else if (!ring->is_protected)
            return false;
        tbd_ring_unprotect_sigsafe(ring); /* the engine's own store: it settles soon */
        return true;
    case TBD_GUARD_OPERANDS:
        if (in_cache)
            move_record(context);
        return in_cache;
    case TBD_GUARD_NONE:
        break;
    }
    return false;
}

/* ==== SIG: asynchronous ==== */

static void queue(int signo, const uint8_t *info, struct tbd_ucontext *context)
{
    struct tbd_signals *signals = &tbd_runtime.signals;

    if (signals->pending)
        return; /* one of ALWAYS_OURS sent by somebody while another signal waits */
    fill_queued(&signals->queued, signo, info, context);
    __atomic_store_n(&signals->pending, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&tbd_runtime.thread->kick, 1, __ATOMIC_RELAXED);
    context->mask |= ~ALWAYS_OURS;
    if (is_between(context->rip, tbd_program_syscall_check, tbd_program_syscall_done))
        continue_at(context, tbd_program_syscall_interrupted);
    if (tbd_runtime.options.hooks != TBD_HOOKS_NONE) {
        tbd_ring_protect_sigsafe(&tbd_runtime.ring);
    } else if (tbd_patcher_owns(context->rip)) {
        /* No entry store to stop at: between two instructions will do, as nothing is recorded. */
        tbd_runtime.signals.fault.signo = 0;
        if (take_cache_fault(&tbd_runtime.signals.fault, context))
            leave_to_engine(context, tbd_runtime.thread);
    }
}

static bool is_from_processor(int signo, const uint8_t *info)
{
    return (ALWAYS_OURS & BIT(signo)) && code_of(info) > 0;
}

void tbd_signal_handle(int signo, uint8_t *info, struct tbd_ucontext *context)
{
    if (!is_from_processor(signo, info)) {
        queue(signo, info, context);
        return;
    }
    if (is_between(context->rip, tbd_copy_faultable_begin, tbd_copy_faultable_end)) {
        continue_at(context, tbd_copy_faultable_end);
        return;
    }
    if (signo == SIGSEGV_ && handle_guard(info, context))
        return;
    program_fault(signo, info, context);
}

/* ==== APP: delivery ==== */

static void set_kernel_mask(uint64_t mask)
{
    tbd_sys4(SYS_RT_SIGPROCMASK, SIG_SETMASK_, tbd_sys_pointer(&mask), 0, 8);
}

uint64_t tbd_signals_block_all(void)
{
    uint64_t all = ~ALWAYS_OURS;
    uint64_t old = 0;

    tbd_sys4(SYS_RT_SIGPROCMASK, SIG_SETMASK_, tbd_sys_pointer(&all), tbd_sys_pointer(&old), 8);
    return old;
}

void tbd_signals_unblock(uint64_t kernel_mask)
{
    set_kernel_mask(kernel_mask);
}

static void apply_mask(uint64_t mask)
{
    tbd_runtime.signals.mask = mask & ~UNBLOCKABLE;
    set_kernel_mask(mask & ~ALWAYS_OURS);
}

static bool is_on(const struct tbd_altstack *stack, uint64_t sp)
{
    return sp > stack->sp && sp - stack->sp <= stack->bytes;
}

static uint64_t frame_top(const struct tbd_thread *thread, const struct tbd_action *action)
{
    const struct tbd_altstack *stack = &tbd_runtime.signals.altstack;
    uint64_t sp = thread->regs.gpr[TBD_RSP] - 128; /* red zone; the kernel asks with it taken off */

    if ((action->flags & SA_ONSTACK_) && stack->bytes && !is_on(stack, sp))
        return stack->sp + stack->bytes;
    return sp;
}

struct built {
    struct tbd_frame_place place;
    _Alignas(64) uint8_t bytes[TBD_VECTOR_MAX_BYTES + 1024];
};

static void read_segments(struct tbd_ucontext *context)
{
    __asm__ volatile("mov %%cs, %0" : "=r"(context->cs));
    __asm__ volatile("mov %%ss, %0" : "=r"(context->ss));
}

/* The bytes [place.frame, place.end) as the kernel would write them. */
static void build_frame(struct built *built, const struct tbd_thread *thread,
                        const struct tbd_queued_signal *queued, const struct tbd_action *action)
{
    const struct tbd_vector_info *vector = &tbd_runtime.vector;
    struct tbd_sigframe frame;
    _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES + 64];

    memset(&frame, 0, sizeof(frame));
    frame.restorer = action->restorer;
    frame.context.flags = UC_FLAGS;
    frame.context.altstack = tbd_runtime.signals.altstack;
    tbd_ucontext_set(&frame.context, &thread->regs);
    read_segments(&frame.context);
    frame.context.error = queued->error;
    frame.context.trap = queued->trap;
    frame.context.cr2 = queued->address;
    frame.context.old_mask = tbd_runtime.signals.mask;
    frame.context.mask = tbd_runtime.signals.mask;
    frame.context.fpstate = built->place.fpstate;
    memcpy(frame.info, queued->info, sizeof(frame.info));
    memset(built->bytes, 0, (size_t)(built->place.end - built->place.frame));
    memcpy(built->bytes, &frame, sizeof(frame));
    tbd_vector_store(vector, image);
    tbd_fpstate_mark(image, vector->bytes, vector->mask);
    memcpy(built->bytes + (built->place.fpstate - built->place.frame), image,
           vector->bytes + TBD_FPSTATE_MAGIC2_BYTES);
}

static void enter_handler(struct tbd_thread *thread, const struct tbd_queued_signal *queued,
                          const struct tbd_action *action, uint64_t frame)
{
    struct tbd_regs *regs = &thread->regs;

    regs->gpr[TBD_RDI] = queued->signo;
    regs->gpr[TBD_RSI] = frame + offsetof(struct tbd_sigframe, info);
    regs->gpr[TBD_RDX] = frame + offsetof(struct tbd_sigframe, context);
    regs->gpr[TBD_RAX] = 0;
    regs->gpr[TBD_RSP] = frame;
    regs->rip = action->handler;
    regs->rflags &= ~FLAGS_CLEARED;
    tbd_vector_clear(&tbd_runtime.vector);
}

static void send_signal(struct tbd_thread *thread, struct tbd_effects *effects,
                        const struct tbd_queued_signal *queued, uint64_t frame)
{
    struct tbd_msg_signal message = {
        .signo = queued->signo,
        .flags = queued->is_sync ? TBD_SIGNAL_SYNC : 0,
        .handler = thread->regs.rip,
        .frame = frame,
    };
    uint32_t ignored_flags = 0;
    struct tbd_effect_head head = {
        .kind = TBD_MSG_SIGNAL,
        .data = &message,
        .bytes = sizeof(message),
        .write_count = &message.write_count,
        .flags = &ignored_flags,
    };
    _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES];
    struct tbd_part tail[2] = { { &thread->regs, sizeof(thread->regs) },
                                { image, tbd_runtime.vector.bytes } };

    memcpy(message.siginfo, queued->info, sizeof(message.siginfo));
    thread->regs.xsave_bytes = tbd_runtime.vector.bytes;
    tbd_vector_store(&tbd_runtime.vector, image);
    tbd_effects_send(effects, &tbd_runtime.ring, thread, &tbd_runtime.pages, &head, tail, 2);
}

/* Dies as the kernel would have it: the trace is ended, then the signal taken natively. */
_Noreturn static void die(struct tbd_thread *thread, uint32_t signo, uint64_t offset, bool resend)
{
    tbd_runtime_send_end(TBD_ENDED_SIGNAL, signo, offset, "");
    tbd_runtime_wait_done();
    if (resend) {
        struct tbd_action none = { 0 };
        uint64_t unblocked = ~BIT(signo);

        tbd_sys4(SYS_RT_SIGACTION, signo, tbd_sys_pointer(&none), 0, 8);
        tbd_runtime.signals.actions[signo] = none;
        tbd_sys3(SYS_TGKILL, tbd_runtime.pid, thread->tid, signo);
        set_kernel_mask(unblocked);
    }
    tbd_detach_silently(thread, false); /* executes the faulting instruction again */
}

static void after_delivery(const struct tbd_queued_signal *queued, struct tbd_action *action)
{
    struct tbd_signals *signals = &tbd_runtime.signals;
    uint64_t mask = signals->has_temporary ? signals->temporary_mask : signals->mask;
    struct tbd_action none = { 0 };

    mask |= action->mask | (action->flags & SA_NODEFER_ ? 0 : BIT(queued->signo));
    signals->has_temporary = false;
    if (signals->altstack.flags & SS_AUTODISARM_)
        signals->altstack = (struct tbd_altstack){ .flags = SS_DISABLE_ };
    if (action->flags & SA_RESETHAND_) {
        action->handler = 0;
        if (!is_ours(queued->signo))
            tbd_sys4(SYS_RT_SIGACTION, queued->signo, tbd_sys_pointer(&none), 0, 8);
    }
    apply_mask(mask);
}

static void deliver(struct tbd_thread *thread, const struct tbd_queued_signal *queued)
{
    struct tbd_action *action = &tbd_runtime.signals.actions[queued->signo];
    struct tbd_effects *effects = tbd_effects_get();
    struct built built;
    struct tbd_sys_range range;

    if (!effects)
        tbd_detach(thread, "no memory for signal frames", TBD_END_WHOLE);
    built.place = tbd_sigframe_place(frame_top(thread, action),
                                     tbd_runtime.vector.bytes + TBD_FPSTATE_MAGIC2_BYTES);
    range = (struct tbd_sys_range){ built.place.frame, built.place.end - built.place.frame };
    build_frame(&built, thread, queued, action);
    tbd_effects_clear(effects);
    tbd_effects_watch(effects, &range, 1);
    if (!tbd_copy_to_program(range.address, built.bytes, (size_t)range.bytes))
        die(thread, SIGSEGV_, TBD_END_WHOLE, true); /* no stack: as the kernel does */
    tbd_effects_written(effects, &range, 1);
    enter_handler(thread, queued, action, range.address);
    send_signal(thread, effects, queued, range.address);
    after_delivery(queued, action);
    TBD_LOG(TBD_LOG_DEBUG, "signal", "%u delivered at time %lu", queued->signo,
            tbd_ring_time(&tbd_runtime.ring, thread));
}

void tbd_signals_deliver(struct tbd_thread *thread)
{
    struct tbd_signals *signals = &tbd_runtime.signals;
    struct tbd_queued_signal queued = signals->queued;
    uint64_t handler = signals->actions[queued.signo].handler;

    __atomic_store_n(&signals->pending, 0, __ATOMIC_RELEASE);
    if (handler > 1) {
        deliver(thread, &queued);
        return;
    }
    if (handler == 0)
        die(thread, queued.signo, TBD_END_WHOLE, true);
    apply_mask(signals->mask); /* ignored meanwhile */
}

bool tbd_signals_has_handler(uint32_t signo)
{
    return tbd_runtime.signals.actions[signo].handler > 1 &&
           !(tbd_runtime.signals.mask & BIT(signo));
}

void tbd_signals_raise(struct tbd_thread *thread, const struct tbd_queued_signal *fault)
{
    uint64_t offset = fault->insn == TBD_SIGNAL_NOT_IN_BLOCK ? TBD_END_WHOLE : fault->insn;

    if (!tbd_signals_has_handler(fault->signo))
        die(thread, fault->signo, offset, false);
    tbd_signals_block_all(); /* until the handler's mask is set */
    if (__atomic_load_n(&tbd_runtime.signals.pending, __ATOMIC_ACQUIRE))
        return; /* that one first; the instruction will fault again */
    deliver(thread, fault);
}

void tbd_signals_after_fault(struct tbd_thread *thread)
{
    const struct tbd_queued_signal *fault = &tbd_runtime.signals.fault;

    tbd_ring_unprotect_sigsafe(&tbd_runtime.ring);
    if (fault->signo) {
        if (fault->insn != TBD_SIGNAL_NOT_IN_BLOCK)
            tbd_runtime_send_interrupted(fault->insn);
        tbd_signals_raise(thread, fault);
    }
    tbd_runtime_settle(thread);
    tbd_patcher_run(thread);
}

/* ==== APP: set-up and the system calls ==== */

static void install(uint64_t signo, uint64_t flags)
{
    struct tbd_action ours = {
        .handler = at(tbd_signal_entry),
        .flags = SA_SIGINFO_ | SA_ONSTACK_ | SA_RESTORER_ | (flags & SA_PASSED),
        .restorer = at(tbd_signal_restorer),
        .mask = ~(BIT(SIGSEGV_) | BIT(SIGBUS_)),
    };

    tbd_sys4(SYS_RT_SIGACTION, signo, tbd_sys_pointer(&ours), 0, 8);
}

bool tbd_signals_init(struct tbd_thread *thread)
{
    struct tbd_signals *signals = &tbd_runtime.signals;
    struct tbd_altstack ours = { .sp = thread->engine_stack,
                                 .bytes = TBD_STACK_SLOT_BYTES / 2 };

    for (uint64_t signo = 1; signo < TBD_SIGNAL_COUNT; signo++)
        tbd_sys4(SYS_RT_SIGACTION, signo, 0, tbd_sys_pointer(&signals->actions[signo]), 8);
    tbd_sys4(SYS_RT_SIGPROCMASK, SIG_BLOCK_, 0, tbd_sys_pointer(&signals->mask), 8);
    tbd_sys3(SYS_SIGALTSTACK, tbd_sys_pointer(&ours), tbd_sys_pointer(&signals->altstack), 0);
    for (uint64_t signo = 1; signo < TBD_SIGNAL_COUNT; signo++)
        if (is_ours(signo))
            install(signo, signals->actions[signo].flags);
    set_kernel_mask(signals->mask & ~ALWAYS_OURS);
    return true;
}

void tbd_signals_restore(void)
{
    const struct tbd_signals *signals = &tbd_runtime.signals;
    struct tbd_altstack none = { .flags = SS_DISABLE_ };
    const struct tbd_altstack *stack = signals->altstack.bytes ? &signals->altstack : &none;

    tbd_signals_block_all();
    for (uint64_t signo = 1; signo < TBD_SIGNAL_COUNT; signo++)
        if (is_ours(signo))
            tbd_sys4(SYS_RT_SIGACTION, signo, tbd_sys_pointer(&signals->actions[signo]), 0, 8);
    tbd_sys3(SYS_SIGALTSTACK, tbd_sys_pointer(stack), 0, 0);
    if (signals->pending) /* nobody has seen it yet: it comes again, natively */
        tbd_sys4(129 /* rt_sigqueueinfo */, tbd_runtime.pid, signals->queued.signo,
                 tbd_sys_pointer(signals->queued.info), 0);
    set_kernel_mask(signals->mask);
}

/* Ignored signals stay ignored in the new program, and the mask is inherited. */
void tbd_signals_before_exec(void)
{
    const struct tbd_signals *signals = &tbd_runtime.signals;

    for (uint64_t signo = 1; signo < TBD_SIGNAL_COUNT; signo++)
        if ((ALWAYS_OURS & BIT(signo)) && signals->actions[signo].handler == 1)
            tbd_sys4(SYS_RT_SIGACTION, signo, tbd_sys_pointer(&signals->actions[signo]), 0, 8);
    if (signals->mask & ALWAYS_OURS)
        set_kernel_mask(signals->mask);
}

void tbd_signals_after_exec(void)
{
    const struct tbd_signals *signals = &tbd_runtime.signals;

    for (uint64_t signo = 1; signo < TBD_SIGNAL_COUNT; signo++)
        if ((ALWAYS_OURS & BIT(signo)) && signals->actions[signo].handler == 1)
            install(signo, 0);
    if (signals->mask & ALWAYS_OURS)
        set_kernel_mask(signals->mask & ~ALWAYS_OURS);
}

int64_t tbd_signals_action(uint64_t signo, const struct tbd_action *set, struct tbd_action *old)
{
    struct tbd_action *action;
    long result = 0;

    if (signo < 1 || signo >= TBD_SIGNAL_COUNT || (set && (UNBLOCKABLE & BIT(signo))))
        return EINVAL_;
    action = &tbd_runtime.signals.actions[signo];
    *old = *action;
    if (!set)
        return 0;
    *action = *set;
    action->mask &= ~UNBLOCKABLE;
    action->flags &= SA_KNOWN;
    if (is_ours(signo))
        install(signo, action->flags);
    else
        result = tbd_sys4(SYS_RT_SIGACTION, signo, tbd_sys_pointer(action), 0, 8);
    return result;
}

int64_t tbd_signals_procmask(uint64_t how, const uint64_t *set, uint64_t *old)
{
    uint64_t mask = tbd_runtime.signals.mask;

    *old = mask;
    if (!set)
        return 0;
    switch (how) {
    case SIG_BLOCK_:
        mask |= *set;
        break;
    case SIG_UNBLOCK_:
        mask &= ~*set;
        break;
    case SIG_SETMASK_:
        mask = *set;
        break;
    default:
        return EINVAL_;
    }
    tbd_signals_block_all();
    tbd_runtime.signals.mask = mask & ~UNBLOCKABLE;
    /* With a signal queued everything stays blocked; its delivery applies the mask. */
    if (!__atomic_load_n(&tbd_runtime.signals.pending, __ATOMIC_ACQUIRE))
        set_kernel_mask(mask & ~ALWAYS_OURS);
    return 0;
}

int64_t tbd_signals_altstack(const struct tbd_thread *thread, const struct tbd_altstack *set,
                             struct tbd_altstack *old)
{
    struct tbd_altstack *stack = &tbd_runtime.signals.altstack;
    bool is_active = stack->bytes && is_on(stack, thread->regs.gpr[TBD_RSP]);
    uint32_t mode;

    *old = *stack;
    old->pad = 0;
    old->flags = (stack->flags & SS_AUTODISARM_) |
                 (!stack->bytes ? (uint32_t)SS_DISABLE_ : is_active ? (uint32_t)SS_ONSTACK_ : 0);
    if (!set)
        return 0;
    if (is_active && !(stack->flags & SS_AUTODISARM_))
        return EPERM_;
    mode = set->flags & ~SS_AUTODISARM_;
    if (mode != 0 && mode != SS_ONSTACK_ && mode != SS_DISABLE_)
        return EINVAL_;
    if (mode != SS_DISABLE_ && set->bytes < 2048)
        return ENOMEM_;
    *stack = *set;
    stack->pad = 0;
    if (mode == SS_DISABLE_) {
        stack->sp = 0;
        stack->bytes = 0;
    }
    return 0;
}

bool tbd_signals_return(struct tbd_thread *thread)
{
    struct tbd_regs *regs = &thread->regs;
    struct tbd_ucontext context;
    struct tbd_ucontext copy;
    struct tbd_altstack ignored;
    uint64_t flags = regs->rflags;

    if (!tbd_copy_from_program(&context, regs->gpr[TBD_RSP], sizeof(context)))
        return false;
    copy = context;
    copy.altstack = (struct tbd_altstack){ .sp = thread->engine_stack,
                                           .bytes = TBD_STACK_SLOT_BYTES / 2 };
    copy.mask = context.mask & ~ALWAYS_OURS;
    tbd_sigreturn_perform(&copy); /* vector state and mask; a bad image is the program's SIGSEGV */
    tbd_runtime.signals.mask = context.mask & ~UNBLOCKABLE;
    tbd_ucontext_get(&context, regs);
    regs->rflags = tbd_ucontext_merge_flags(flags, context.rflags);
    tbd_signals_altstack(thread, &context.altstack, &ignored);
    return true;
}
