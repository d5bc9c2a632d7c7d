// SPDX-License-Identifier: MIT
/* signals_deliver.c - delivers a signal to the program: builds the frame that the kernel would have
 * built, at a block boundary, or ends the program as the kernel would have done
 *
 * The frame is logged as implicit stores, together with the registers the handler starts with
 * (TBD_MSG_SIGNAL).  Context: APP. */
#include "hooks/threads/signals_private.h"

#include "base/linux_abi.h"
#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/instructions/processor.h"
#include "hooks/memory/calling_memory.h"
#include "hooks/memory/effects.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/memory/shared.h"
#include "hooks/stream/crash_ring.h"
#include "hooks/stream/wall_clock.h"
#include "hooks/stream/leaving.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/native.h"
#include "hooks/threads/window_end.h"

static void apply_mask(uint64_t mask)
{
    tbd_signals_now()->mask = mask & ~UNBLOCKABLE;
    tbd_signals_set_kernel_mask(tbd_signals_kernel_mask(mask));
}

/* The kernel's frames have tiles from a thread's first use of them on. */
static uint32_t frame_image_bytes(void)
{
    const struct tbd_vector_info *vector = &tbd_processor.vector;
    struct tbd_signals *signals = tbd_signals_now();

    signals->has_tiles = signals->has_tiles || tbd_vector_uses_tiles(vector);
    return signals->has_tiles ? vector->image.bytes : vector->image.short_bytes;
}

/* False where the frame would begin below the signal stack that it is for (get_sigframe() of the
 * kernel). */
static bool place_frame(const struct tbd_thread *thread, const struct tbd_action *action,
                        struct tbd_frame_place *out)
{
    const struct tbd_altstack *stack = &tbd_signals_now()->altstack;
    bool has_stack = stack->bytes && !(stack->flags & SS_AUTODISARM);
    uint64_t sp = thread->regs.gpr[TBD_RSP];
    bool is_within = has_stack && tbd_altstack_holds(stack, sp);

    sp -= 128; /* below the red zone, as the kernel does */
    if ((action->flags & SA_ONSTACK) && stack->bytes &&
        !(has_stack && tbd_altstack_holds(stack, sp))) {
        sp = stack->sp + stack->bytes;
        is_within = true;
    }
    *out = tbd_sigframe_place(sp, frame_image_bytes() + TBD_FPSTATE_MAGIC2_BYTES);
    return !is_within || tbd_altstack_holds(stack, out->frame);
}

/* Each page is touched: nothing of a frame is written that does not fit. */
static bool can_write(const struct tbd_sys_range *range)
{
    static const uint32_t never;
    uint64_t end = range->address + range->bytes;

    for (uint64_t at = range->address; at < end; at = (at | (TBD_PAGE_SIZE - 1)) + 1)
        if (tbd_touch_faultable(at, true, &never))
            return false;
    return true;
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
    const struct tbd_vector_info *vector = &tbd_processor.vector;
    struct tbd_sigframe frame;
    _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES + 64];
    uint32_t bytes = frame_image_bytes(), stored;
    uint64_t mask = vector->image.mask;

    memset(&frame, 0, sizeof(frame));
    frame.restorer = action->restorer;
    frame.context.flags = UC_FLAGS;
    frame.context.altstack = tbd_signals_now()->altstack;
    tbd_ucontext_set(&frame.context, &thread->regs);
    if (queued->is_sync && queued->trap == TRAP_PAGE_FAULT)
        /* faults that the engine raises for the program do not have it */
        frame.context.rflags |= FLAG_RF;
    read_segments(&frame.context);
    frame.context.error = tbd_signals_now()->last_error;
    frame.context.trap = tbd_signals_now()->last_trap;
    frame.context.cr2 = tbd_signals_now()->last_address;
    frame.context.old_mask = tbd_signals_now()->mask;
    frame.context.mask = tbd_signals_now()->mask;
    frame.context.fpstate = built->place.fpstate;
    memcpy(frame.info, queued->info, sizeof(frame.info));
    memset(built->bytes, 0, (size_t)(built->place.end - built->place.frame));
    memcpy(built->bytes, &frame, sizeof(frame));
    stored = tbd_vector_store(vector, image);
    if (stored < bytes) /* tiles that are zeros */
        memset(image + stored, 0, bytes - stored);
    if (bytes < vector->image.bytes)
        mask &= ~(1ull << TBD_VECTOR_TILES);
    memcpy(image + TBD_VECTOR_LEGACY, &mask, sizeof(mask));
    tbd_fpstate_mark(image, bytes, mask);
    memcpy(built->bytes + (built->place.fpstate - built->place.frame), image,
           bytes + TBD_FPSTATE_MAGIC2_BYTES);
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
    tbd_vector_clear(&tbd_processor.vector);
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
    struct tbd_part tail[2] = { { &thread->regs, sizeof(thread->regs) }, { image, 0 } };

    memcpy(message.siginfo, queued->info, sizeof(message.siginfo));
    tail[1].bytes = thread->regs.xsave_bytes = tbd_vector_store(&tbd_processor.vector, image);
    tbd_effects_send(effects, &tbd_recording.ring, thread, &tbd_memory.pages, &head, tail, 2);
    tbd_wall_clock_note(thread);
}

/* Dies as the kernel would end it: first the trace is ended, then the signal is taken natively. */
_Noreturn static void die(struct tbd_thread *thread, uint32_t signo, uint64_t offset,
                          const uint8_t *info, bool resend)
{
    bool leaves_dump;

    tbd_crash_dies(thread, signo, info);
    leaves_dump = tbd_signals_exits()->dies && tbd_signals_exits()->dies(thread);
    tbd_window_send_fatal(signo, leaves_dump ? 0 : offset, info);
    tbd_recording_wait_done();
    if (leaves_dump)
        tbd_signals_exits()->dumped();
    if (resend) {
        struct tbd_action none = { 0 };
        uint64_t unblocked = ~BIT(signo);

        tbd_sys4(__NR_rt_sigaction, signo, tbd_sys_pointer(&none), 0, 8);
        tbd_actions[signo] = none;
        tbd_sys3(__NR_tgkill, tbd_recording.pid, thread->tid, signo);
        tbd_signals_set_kernel_mask(unblocked);
    }
    tbd_context_now()->rseq.area = 0; /* its instruction is not to be left for another */
    tbd_detach_silently(thread);      /* executes the instruction again */
}

void tbd_signals_die_again(struct tbd_thread *thread, uint32_t signo, uint64_t offset)
{
    die(thread, signo, offset, NULL, false);
}

/* The SIGSEGV that the kernel forces on a thread has no address. */
_Noreturn static void die_of_forced_segv(struct tbd_thread *thread)
{
    siginfo_t info = { .si_signo = SIGSEGV, .si_code = SI_KERNEL };

    die(thread, SIGSEGV, TBD_END_WHOLE, (const uint8_t *)&info, true);
}

static void after_delivery(const struct tbd_queued_signal *queued, const struct tbd_action *action)
{
    struct tbd_signals *signals = tbd_signals_now();
    uint64_t mask = signals->has_temporary ? signals->temporary_mask : signals->mask;

    mask |= action->mask | (action->flags & SA_NODEFER ? 0 : BIT(queued->signo));
    signals->has_temporary = false;
    if (signals->altstack.flags & SS_AUTODISARM)
        signals->altstack = (struct tbd_altstack){ .flags = SS_DISABLE };
    if (action->flags & SA_RESETHAND)
        tbd_signals_reset(queued->signo);
    apply_mask(mask);
}

/* The kernel's memory of the last fault may hold one of the engine's own: the program's is kept
 * here. */
static void remember_fault(const struct tbd_queued_signal *fault)
{
    struct tbd_signals *signals = tbd_signals_now();

    if (!fault->is_sync)
        return;
    signals->last_error = fault->error;
    signals->last_trap = fault->trap;
    if (fault->trap == TRAP_PAGE_FAULT)
        signals->last_address = fault->address;
}

/* The kernel cannot build the frame: its SIGSEGV takes the signal's place, or ends the program
 * (signal_setup_done()). */
static void fail(struct tbd_thread *thread, uint32_t signo)
{
    const struct tbd_signals *signals = tbd_signals_now();

    if (tbd_actions[signo].flags & SA_RESETHAND)
        tbd_signals_reset(signo);
    if (signo == SIGSEGV || !tbd_signals_hold_segv())
        die_of_forced_segv(thread);
    tbd_signals_set_kernel_mask(
        tbd_signals_kernel_mask(signals->has_temporary ? signals->temporary_mask : signals->mask));
}

void tbd_signals_force_segv(struct tbd_thread *thread)
{
    if (!tbd_signals_hold_segv())
        die_of_forced_segv(thread);
}

static void deliver(struct tbd_thread *thread, const struct tbd_queued_signal *queued)
{
    const struct tbd_action *action = &tbd_actions[queued->signo];
    struct tbd_effects *effects = tbd_effects_get();
    struct built built;
    struct tbd_sys_range range;

    if (!effects)
        tbd_detach(thread, "no memory for signal frames", TBD_END_WHOLE);
    if (tbd_signals_exits()->delivers)
        tbd_signals_exits()->delivers(thread, queued->signo);
    remember_fault(queued);
    if (!place_frame(thread, action, &built.place)) {
        fail(thread, queued->signo);
        return;
    }
    range = (struct tbd_sys_range){ built.place.frame, built.place.end - built.place.frame };
    tbd_effects_clear(effects);
    if (!can_write(&range) || !tbd_rseq_leave_section(thread, effects)) {
        fail(thread, queued->signo);
        return;
    }
    build_frame(&built, thread, queued, action);
    tbd_effects_watch(effects, &range, 1);
    if (!tbd_copy_to_program(range.address, built.bytes, (size_t)range.bytes)) {
        fail(thread, queued->signo);
        return;
    }
    tbd_effects_written(effects, &range, 1);
    enter_handler(thread, queued, action, range.address);
    tbd_calling_enter_handler(thread, range.address, queued->signo);
    send_signal(thread, effects, queued, range.address);
    after_delivery(queued, action);
    if (tbd_crash_is_on()) /* the frame says where the program was interrupted; no ring tells */
        tbd_crash_note_values(thread, tbd_context_now()->index, true);
    TBD_LOG(TBD_LOG_DEBUG, "signal", "%u delivered at time %lu", queued->signo,
            tbd_ring_time(&tbd_recording.ring, thread));
}

void tbd_signals_deliver(struct tbd_thread *thread)
{
    struct tbd_signals *signals = tbd_signals_now();
    struct tbd_queued_signal queued = signals->queued;
    uint64_t handler = tbd_actions[queued.signo].handler;

    __atomic_store_n(&signals->pending, 0, __ATOMIC_RELEASE);
    if (handler > 1) {
        deliver(thread, &queued);
        return;
    }
    if (handler == 0 && !tbd_signals_ignores(queued.signo))
        die(thread, queued.signo, TBD_END_WHOLE, queued.info, true);
    apply_mask(signals->mask); /* the program has ignored it meanwhile */
}

bool tbd_signals_has_handler(uint32_t signo)
{
    return tbd_actions[signo].handler > 1 && !(tbd_signals_now()->mask & BIT(signo));
}

void tbd_signals_raise(struct tbd_thread *thread, const struct tbd_queued_signal *fault)
{
    uint64_t offset = fault->insn == TBD_SIGNAL_NOT_IN_BLOCK ? TBD_END_WHOLE : fault->insn;

    if (!tbd_signals_has_handler(fault->signo))
        /* a trap comes after its instruction */
        die(thread, fault->signo, offset, fault->info, fault->signo == SIGTRAP);
    tbd_signals_block_all(); /* until the handler's mask is set */
    if (__atomic_load_n(&tbd_signals_now()->pending, __ATOMIC_ACQUIRE))
        return; /* the queued signal first; the instruction will fault again */
    deliver(thread, fault);
}
