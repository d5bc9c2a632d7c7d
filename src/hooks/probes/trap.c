// SPDX-License-Identifier: MIT
/* trap.c - see trap.h
 *
 * A thread whose instruction would fault does not carry it out here: it gets the signal that the
 * processor would have raised, at the place itself.
 *
 * TRAP-1  A hit is reported exactly once for each time that a thread comes to the place while the session
 *     is active. (not checked: test_probes compares with the program's own counts)
 * TRAP-2  The vector state of the program is in the signal frame; the processor has it only around a
 *     stub that needs it. (not checked: the engine is compiled without vector registers) */
#include "hooks/probes/trap.h"

#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "base/vector_layout.h"
#include "hooks/probes/guard.h"
#include "hooks/probes/jump_settle.h"
#include "hooks/probes/probe_code.h"
#include "hooks/probes/probe_session.h"
#include "hooks/probes/probe_table.h"
#include "hooks/threads/sigframe.h"
#include "patcher/native_patch.h"

#define FLAGS      (SA_SIGINFO | SA_ONSTACK | SA_RESTORER)
#define PAGE       4096ull
#define NEAR_STACK 16384u
#define INFO_BYTES 128u

#pragma GCC visibility push(hidden) /* addresses without a table: mode.h */
void tbd_probe_trap_entry(int signal, uint8_t *info, struct tbd_ucontext *context);
void tbd_probe_trap(int signal, uint8_t *info, struct tbd_ucontext *context);
void tbd_probe_jumped(uint64_t *registers, struct tbd_probe *probe);
extern const uint8_t tbd_signal_restorer[];
#pragma GCC visibility pop

static struct tbd_kernel_action before; /* what SIGTRAP did */

/* ---- signals ---- */

static uint64_t bit_of(int signal)
{
    return 1ull << (signal - 1);
}

static void set_action(int signal, const struct tbd_kernel_action *action,
                       struct tbd_kernel_action *was)
{
    tbd_sys4(__NR_rt_sigaction, (uint64_t)signal, tbd_sys_pointer(action), tbd_sys_pointer(was), 8);
}

/* The signal waits until the handler returns.  The kernel would kill a thread that blocks it. */
static void queue(struct tbd_ucontext *context, int signal, const uint8_t *info)
{
    const struct tbd_kernel_action usual = { 0 };

    if (context->mask & bit_of(signal)) {
        set_action(signal, &usual, NULL);
        context->mask &= ~bit_of(signal);
    }
    tbd_sys4(__NR_rt_tgsigqueueinfo, (uint64_t)tbd_sys_getpid(), (uint64_t)tbd_sys_gettid(),
             (uint64_t)signal, tbd_sys_pointer(info));
}

static void raise_fault(struct tbd_ucontext *context, int signal, int code, uint64_t address)
{
    _Alignas(8) uint8_t info[INFO_BYTES] = { 0 };
    const int32_t head[3] = { signal, 0, code };

    memcpy(info, head, sizeof(head));
    memcpy(info + 16, &address, sizeof(address));
    queue(context, signal, info);
}

/* ---- a SIGTRAP that is not ours ---- */

static void pass_on(int signal, uint8_t *info, struct tbd_ucontext *context)
{
    void (*handler)(int, uint8_t *, struct tbd_ucontext *);
    uint64_t mask = context->mask | before.mask | bit_of(SIGTRAP);
    int32_t code;

    memcpy(&code, info + 8, sizeof(code));
    if (before.handler <= 1) { /* SIG_DFL, SIG_IGN */
        const struct tbd_kernel_action usual = { 0 };

        if (before.handler == 1 && code <= 0)
            return; /* somebody has sent it, and it is ignored */
        set_action(signal, &usual, NULL);
        context->mask &= ~bit_of(signal);
        queue(context, signal, info);
        return;
    }
    tbd_sys4(__NR_rt_sigprocmask, SIG_SETMASK, tbd_sys_pointer(&mask), 0, 8);
    memcpy(&handler, &before.handler, sizeof(handler));
    handler(signal, info, context);
}

/* ---- the instruction ---- */

static uint64_t segment_base(const struct tbd_ea *ea)
{
    uint64_t base = 0;

    if (ea->fs || ea->gs)
        tbd_sys3(__NR_arch_prctl, ea->fs ? ARCH_GET_FS : ARCH_GET_GS, tbd_sys_pointer(&base), 0);
    return base;
}

/* 0, or -errno: pages that are not there, or must not be accessed so. */
static long try_pages(uint64_t address, uint64_t bytes, bool writes)
{
    uint64_t start = address & ~(PAGE - 1);
    uint64_t end = (address + bytes + PAGE - 1) & ~(PAGE - 1);
    long result =
        tbd_sys_madvise(start, end - start, writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);

    return result == -ENOMEM || result == -EFAULT ? result : 0;
}

static bool is_canonical(uint64_t address)
{
    return (int64_t)(address << 16) >> 16 == (int64_t)address;
}

/* The frame of this handler lies just below what the thread uses of its stack. */
static bool is_on_stack(const void *frame, uint64_t address)
{
    uint64_t low = tbd_sys_pointer(frame);

    return address >= low && address - low < NEAR_STACK;
}

static bool check_access(const struct tbd_access *access, struct tbd_ucontext *context)
{
    uint64_t address = tbd_step_address(access, context->gregs) + segment_base(&access->ea);
    bool writes = access->flags & TBD_ACCESS_WRITE;
    long wrong;

    if (is_on_stack(context, address))
        return true;
    if (!is_canonical(address)) {
        raise_fault(context, SIGSEGV, SI_KERNEL, 0);
        return false;
    }
    wrong = try_pages(address, access->size, writes);
    if (wrong)
        raise_fault(context, SIGSEGV, wrong == -ENOMEM ? SEGV_MAPERR : SEGV_ACCERR, address);
    return !wrong;
}

static bool can_run(const struct tbd_native_step *step, struct tbd_ucontext *context)
{
    for (unsigned i = 0; i < step->access_count; i++)
        if (!check_access(&step->access[i], context))
            return false;
    return true;
}

/* The components that the kernel has saved. */
static uint64_t saved_components(const uint8_t *image)
{
    struct _fpx_sw_bytes software;

    memcpy(&software, image + TBD_VECTOR_SOFTWARE, sizeof(software));
    return software.magic1 == FP_XSTATE_MAGIC1 ? software.xfeatures : 0;
}

static void run_with_vectors(const struct tbd_native_step *step, struct tbd_ucontext *context)
{
    uint8_t *image = (uint8_t *)(uintptr_t)context->fpstate;
    uint64_t mask = saved_components(image);
    uint32_t low = (uint32_t)mask, high = (uint32_t)(mask >> 32);

    if (!mask) {
        __asm__ volatile("fxrstor64 (%0)" : : "r"(image) : "memory");
        tbd_step_run(step, context->gregs);
        __asm__ volatile("fxsave64 (%0)" : : "r"(image) : "memory");
        return;
    }
    __asm__ volatile("xrstor64 (%0)" : : "r"(image), "a"(low), "d"(high) : "memory");
    tbd_step_run(step, context->gregs);
    __asm__ volatile("xsave64 (%0)" : : "r"(image), "a"(low), "d"(high) : "memory");
}

/* gregs, rip and rflags are one array, as tbd_step_run() wants them. */
_Static_assert(offsetof(struct tbd_ucontext, rip) ==
                   offsetof(struct tbd_ucontext, gregs) + 8 * TBD_NATIVE_RIP,
               "rip follows the general registers");

/* The call is made after the handler, with the program's own mask. */
static void run_syscall(const struct tbd_native_step *step, struct tbd_ucontext *context)
{
    if (!tbd_guard_call(step, context, &before))
        context->rip = tbd_step_syscall_entry(step);
}

void tbd_trap_run_instruction(const struct tbd_native_step *step, struct tbd_ucontext *context)
{
    context->rip = step->pc;
    if (!can_run(step, context))
        return;
    if (step->kind == TBD_STEP_SYSCALL)
        run_syscall(step, context);
    else if (step->is_vector && context->fpstate)
        run_with_vectors(step, context);
    else
        tbd_step_run(step, context->gregs);
}

/* ---- the probes ---- */

void tbd_probe_report(struct tbd_probe *probe, const uint64_t *registers)
{
    struct tbd_probe_session *session = &tbd_probe_session;
    struct tbd_probe_hit hit = {
        .context = registers,
        .pc = probe->step.pc,
        .shard = (uint32_t)(registers[TBD_FRAME_RSP] >> 16 ^ registers[TBD_FRAME_RSP] >> 23) %
                 TBD_PROBE_SHARDS,
    };
    uint64_t *inside = &session->shard[hit.shard].inside;

    __atomic_fetch_add(inside, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&session->active, __ATOMIC_SEQ_CST) &&
        !__atomic_load_n(&session->shared->closed, __ATOMIC_RELAXED)) {
        uint32_t use = __atomic_load_n(&probe->uses, __ATOMIC_ACQUIRE);

        for (; use; use = session->uses[use - 1].next) {
            __atomic_fetch_add(&session->shared->shard[hit.shard].hits, 1, __ATOMIC_RELAXED);
            if (!tbd_probe_run_code(session, session->uses[use - 1].code, &hit))
                __atomic_fetch_add(&session->shared->shard[hit.shard].unknown, 1, __ATOMIC_RELAXED);
        }
    }
    __atomic_fetch_sub(inside, 1, __ATOMIC_SEQ_CST);
}

/* From the code of a jump (jump_x86_64.S). */
void tbd_probe_jumped(uint64_t *registers, struct tbd_probe *probe)
{
    registers[TBD_NATIVE_RIP] = probe->step.pc;
    tbd_probe_report(probe, registers);
}

/* ---- code that changes ---- */

static bool copy_code(long call, uint64_t address, void *bytes, size_t count)
{
    struct {
        uint64_t base, length;
    } here = { tbd_sys_pointer(bytes), count }, there = { address, count };

    return tbd_sys6(call, (uint64_t)tbd_sys_getpid(), tbd_sys_pointer(&here), 1,
                    tbd_sys_pointer(&there), 1, 0) == (long)count;
}

/* The program has written another instruction that begins with the same byte, over what follows the trap. */
static bool has_changed(const struct tbd_probe *probe)
{
    uint8_t now[TBD_PROBE_INSN_BYTES];
    size_t rest = probe->step.length - 1u;

    return probe->may_change && rest &&
           copy_code(__NR_process_vm_readv, probe->step.pc + 1, now, rest) &&
           memcmp(now, probe->bytes + 1, rest) != 0;
}

/* The page need not be writable now. */
static void take_trap_away(const struct tbd_probe *probe)
{
    uint8_t first = probe->step.first;
    long memory;

    if (copy_code(__NR_process_vm_writev, probe->step.pc, &first, 1))
        return;
    memory = tbd_native_open();
    if (memory < 0)
        return;
    tbd_native_write((int)memory, probe->step.pc, first);
    tbd_sys_close((int)memory);
}

/* ---- the handler ---- */

void tbd_probe_trap(int signal, uint8_t *info, struct tbd_ucontext *context)
{
    struct tbd_probe *probe = tbd_probe_find(context->rip - 1);
    int32_t code;

    memcpy(&code, info + 8, sizeof(code));
    if (!probe || code != SI_KERNEL) {
        if (tbd_jump_settle(signal, info, context) == TBD_SETTLED_DEFERRED)
            tbd_sys4(__NR_rt_tgsigqueueinfo, (uint64_t)tbd_sys_getpid(), (uint64_t)tbd_sys_gettid(),
                     (uint64_t)signal, tbd_sys_pointer(info));
        else
            pass_on(signal, info, context);
        return;
    }
    if (has_changed(probe)) {
        take_trap_away(probe);
        context->rip = probe->step.pc;
        return;
    }
    tbd_probe_report(probe, context->gregs);
    tbd_trap_run_instruction(&probe->step, context);
}

/* ---- the handler's mask ---- */

/* Those that programs use least; SIGRTMAX is 64. */
static const int hole_signals[] = { SIGSTKFLT, SIGPWR, 64, 63, 62, 61 };
static uint64_t holes; /* atomic: the one that the mask has, and those it had */

static bool is_handled(int signal)
{
    struct tbd_kernel_action action = { 0 };

    set_action(signal, NULL, &action);
    return action.handler > 1;
}

/* The signal that the handler does not block; 0: there is none.  `taken`: one that gets a handler. */
static int find_hole(int taken)
{
    for (size_t i = 0; i < sizeof(hole_signals) / sizeof(hole_signals[0]); i++)
        if (hole_signals[i] != taken && !is_handled(hole_signals[i]))
            return hole_signals[i];
    return 0;
}

/* The keeper knows the mask before a thread has it. */
static uint64_t mask_with_hole(int hole)
{
    uint64_t open = hole ? bit_of(hole) : 0;

    __atomic_fetch_or(&holes, open, __ATOMIC_SEQ_CST);
    return ~open;
}

static bool is_ours(const struct tbd_kernel_action *action)
{
    return action->handler == (uint64_t)(uintptr_t)tbd_probe_trap_entry;
}

bool tbd_trap_is_handler_mask(uint64_t mask)
{
    const uint64_t never = bit_of(SIGKILL) | bit_of(SIGSTOP);
    uint64_t open = ~(mask | never);

    return open && !(open & (open - 1)) && (open & __atomic_load_n(&holes, __ATOMIC_SEQ_CST));
}

/* The process asks for its own action: a child of vfork has one, too.  Another thread may give the new hole a handler
 * meanwhile, which one of the two sees. */
void tbd_trap_block(int signal)
{
    struct tbd_kernel_action now = { 0 };
    int hole;

    set_action(SIGTRAP, NULL, &now);
    if (!is_ours(&now) || (now.mask & bit_of(signal)))
        return;
    do {
        hole = find_hole(signal);
        now.mask = mask_with_hole(hole);
        set_action(SIGTRAP, &now, NULL);
    } while (hole && is_handled(hole));
}

/* ---- beginning ---- */

void tbd_trap_begin(void)
{
    const struct tbd_kernel_action action = { .handler = (uint64_t)(uintptr_t)tbd_probe_trap_entry,
                                              .flags = FLAGS,
                                              .restorer = (uint64_t)(uintptr_t)tbd_signal_restorer,
                                              .mask = mask_with_hole(find_hole(0)) };
    struct tbd_kernel_action was = { 0 };

    set_action(SIGTRAP, NULL, &was);
    if (!is_ours(&was))
        before = was;
    set_action(SIGTRAP, &action, NULL);
    tbd_guard_handlers();
}

void tbd_trap_end(void)
{
    struct tbd_kernel_action now = { 0 };

    set_action(SIGTRAP, NULL, &now);
    if (is_ours(&now))
        set_action(SIGTRAP, &before, NULL);
}
