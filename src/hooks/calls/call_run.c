// SPDX-License-Identifier: MIT
/* call_run.c - see call_run.h
 *
 * After a call the registers are as the kernel leaves them: rax = result, rcx = address after the
 * instruction, r11 = rflags.  If a signal comes before the call, the call is not made: rip stays on
 * the instruction, and the block is reported as interrupted before it.  A restarted call looks the
 * same. */
#include "hooks/calls/call_run.h"

#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/calls/waiting_mask.h"
#include "hooks/memory/effects.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/stream/wall_clock.h"
#include "hooks/stream/leaving.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/program_call.h"
#include "hooks/threads/threads.h"

static bool has_signalfd;

/* Does the call find signals that wait, or could one that must wait cut it short?  Calls that only
 * wait are not worth two more system calls each as long as nobody sends such signals: the first one
 * that is held interrupts the call, which is made again. */
static bool meets_signals(uint64_t number)
{
    switch (number) {
    case __NR_rt_sigpending:
    case __NR_rt_sigtimedwait:
    case __NR_rt_sigsuspend:
    case __NR_ppoll:
    case __NR_pselect6:
    case __NR_epoll_pwait:
    case __NR_epoll_pwait2: return true;
    default:
        return (has_signalfd || tbd_signals_were_held()) &&
               (tbd_syscall_flags(number) & TBD_SYS_BLOCKS);
    }
}

/* The signals that the call's own mask lets in.  In free run not those that the call does not let in either: the thread is
 * called in by one of them (waiting_mask.h). */
static uint64_t let_in(const struct tbd_signals *signals)
{
    if (!tbd_threads.is_free)
        return ~0ull;
    return signals->has_temporary ? ~signals->temporary_mask : 0;
}

/* The signals that the call can bring or show though the thread blocks them. */
static uint64_t wanted_signals(const struct tbd_signals *signals, const struct tbd_sys_call *sys)
{
    uint64_t set = 0;

    switch (sys->number) {
    case __NR_rt_sigtimedwait: tbd_copy_from_program(&set, sys->args[0], sizeof(set)); return set;
    case __NR_rt_sigpending: return ~0ull;
    case __NR_rt_sigsuspend: /* these wait with a mask of their own */
    case __NR_ppoll:
    case __NR_pselect6:
    case __NR_epoll_pwait:
    case __NR_epoll_pwait2: return let_in(signals);
    case __NR_read:
    case __NR_readv:
    case __NR_poll:
    case __NR_select:
    case __NR_epoll_wait: return has_signalfd ? ~0ull : 0;
    default: return 0;
    }
}

/* A call that was interrupted for nothing is made again. */
static int64_t without_dropped(const struct tbd_signals *signals, int64_t result)
{
    if (result != -EINTR || !signals->has_dropped || tbd_signals_come(signals))
        return result;
    return TBD_CALL_INTERRUPTED;
}

static int64_t perform(struct tbd_signals *signals, const struct tbd_sys_call *sys)
{
    struct tbd_waiting_mask open;
    int64_t result;

    switch (sys->number) {
    case __NR_tkill:
    case __NR_tgkill:
    case __NR_rt_tgsigqueueinfo:
        signals->directs = true;
        result = tbd_program_syscall(sys, signals);
        signals->directs = false;
        return result;
    case __NR_signalfd:
    case __NR_signalfd4: has_signalfd = true; return tbd_program_syscall(sys, signals);
    default: return tbd_program_syscall(tbd_waiting_mask_open(signals, sys, &open), signals);
    }
}

/* The program gets the signals, and not the nudges by which other threads say that there are some. */
static int64_t wait_for_signal(struct tbd_signals *signals, const struct tbd_sys_call *sys)
{
    struct tbd_sys_call own = *sys;
    uint8_t info[TBD_SIGINFO_BYTES];
    int64_t result;

    own.args[1] = tbd_sys_pointer(info);
    do
        result = tbd_program_syscall(&own, signals);
    while (result > 0 && tbd_signals_was_nudge(signals, (uint32_t)result, info));
    if (result > 0 && tbd_signals_was_for_engine(signals, (int)result, info))
        return -EINTR; /* without_dropped() makes it again */
    if (result > 0 && sys->args[1] && !tbd_copy_to_program(sys->args[1], info, sizeof(info)))
        return -EFAULT;
    return result;
}

static int64_t read_signals(struct tbd_signals *signals, const struct tbd_sys_call *sys)
{
    int64_t result, rest;

    do {
        result = tbd_program_syscall(sys, signals);
        rest = result > 0 ? tbd_signals_without_nudges(signals, sys->args[0], sys->args[1], result)
                          : result;
    } while (result > 0 && !rest);
    return rest;
}

static int64_t perform_lent(struct tbd_signals *signals, const struct tbd_sys_call *sys)
{
    switch (sys->number) {
    case __NR_rt_sigtimedwait: return wait_for_signal(signals, sys);
    case __NR_read: return read_signals(signals, sys);
    default: return perform(signals, sys);
    }
}

int64_t tbd_call_perform_for(struct tbd_signals *signals, const struct tbd_sys_call *sys)
{
    bool lends =
        meets_signals(sys->number) && tbd_signals_lend(signals, wanted_signals(signals, sys));
    int64_t result;

    signals->has_dropped = false;
    result = without_dropped(signals, lends ? perform_lent(signals, sys) : perform(signals, sys));
    if (result != -EINTR)
        signals->has_temporary = false;
    if (lends)
        tbd_signals_lend_end(signals);
    return result;
}

int64_t tbd_call_perform(const struct tbd_sys_call *sys)
{
    return tbd_call_perform_for(tbd_signals_now(), sys);
}

void tbd_call_send(struct tbd_call *call)
{
    struct tbd_msg_syscall message = {
        .number = call->sys.number,
        .result = (uint64_t)call->result,
        .flags = call->flags,
    };
    struct tbd_effect_head head = {
        .kind = TBD_MSG_SYSCALL,
        .data = &message,
        .bytes = sizeof(message),
        .write_count = &message.write_count,
        .flags = &message.flags,
        .more = TBD_SYSCALL_MORE,
        .continued = TBD_SYSCALL_CONTINUED,
    };

    memcpy(message.args, call->sys.args, sizeof(message.args));
    tbd_effects_send(call->effects, &tbd_recording.ring, call->thread, &tbd_memory.pages, &head,
                     NULL, 0);
}

/* The last thing that the call does. */
static bool is_late(const void *data, uint64_t address, size_t bytes)
{
    struct tbd_late_answer *late = tbd_context_now()->late_answer;

    if (!late || late->bytes || bytes > sizeof(late->data))
        return false;
    late->address = address;
    late->bytes = bytes;
    memcpy(late->data, data, bytes);
    return true;
}

bool tbd_call_answer(struct tbd_call *call, uint64_t address, const void *data, size_t bytes)
{
    struct tbd_sys_range range = { address, bytes };

    if (is_late(data, address, bytes))
        return true;
    tbd_effects_watch(call->effects, &range, 1);
    if (!tbd_copy_to_program(address, data, bytes)) {
        tbd_effects_compare(call->effects); /* up to the page that is not there */
        return false;
    }
    tbd_effects_written(call->effects, &range, 1);
    return true;
}

void tbd_call_finish(struct tbd_call *call)
{
    struct tbd_regs *regs = &call->thread->regs;

    if (call->result == TBD_CALL_INTERRUPTED) {
        tbd_recording_interrupted(call->insns_before);
        return;
    }
    regs->rip += call->insn_bytes;
    regs->gpr[TBD_RAX] = (uint64_t)call->result;
    regs->gpr[TBD_RCX] = regs->rip;
    regs->gpr[TBD_R11] = regs->rflags;
    TBD_LOG(TBD_LOG_DEBUG, "syscall", "%s(%lx, %lx, %lx) = %ld",
            tbd_syscall_name(call->sys.number) ? tbd_syscall_name(call->sys.number) : "?",
            call->sys.args[0], call->sys.args[1], call->sys.args[2], (long)call->result);
    tbd_call_send(call);
    if (tbd_threads.chaos.is_on)
        tbd_arrivals_called(&call->sys, call->result);
    tbd_wall_clock_note(call->thread);
}

void tbd_call_detach(struct tbd_call *call, const char *why)
{
    tbd_detach(call->thread, why, call->insns_before);
}

/* The trace gets the effects that the call has had so far, and no later ones. */
static void close_stolen(void *stolen)
{
    struct tbd_call call = *(const struct tbd_call *)stolen;

    call.result = 0;
    call.flags |= TBD_SYSCALL_NORETURN;
    tbd_effects_compare(call.effects);
    tbd_call_finish(&call);
}

void tbd_call_step_out(struct tbd_call *call)
{
    tbd_threads_step_out(call->thread, &(struct tbd_outside_call){ close_stolen, call });
}
