// SPDX-License-Identifier: MIT
/* fault.c - signals raised by the code that a replay process runs
 *
 * The handler tests for these causes, in this order: the entries guard (something is due), the
 * operand guard (the chunk is full), a page that is not present yet, the program's own fault, a bug
 * of the engine.
 *
 * The handler runs on its own stack with all signals blocked.  If the window ends because of the
 * fault, the handler changes the frame so that C code continues on the engine stack
 * (after_fault). */
#include "replay/stub/logged_events.h"

#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/instructions/processor.h"
#include "hooks/instructions/registers.h"
#include "hooks/instructions/slot.h"
#include "hooks/memory/program_memory.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/sigframe.h"
#include "patcher/patcher.h"
#include "replay/stub/memory.h"
#include "replay/stub/vectors.h"

#define PAGE_FAULT_WRITE   2u
#define FLAG_RESUME        0x10000ull
#define SIGNAL_STACK_BYTES (64u << 10)

/* In start.S. "hidden" because otherwise their addresses need a table. */
__attribute__((visibility("hidden"))) void tbd_stub_restorer(void);
__attribute__((visibility("hidden"))) void tbd_stub_after_fault(void);
__attribute__((visibility("hidden"))) void tbd_stub_signal_entry(int, siginfo_t *, void *);
__attribute__((visibility("hidden"))) void tbd_stub_signal(int, siginfo_t *, void *);
void tbd_stub_after_fault_c(void);
__attribute__((visibility("hidden"))) extern const char tbd_copy_faultable_begin[],
    tbd_copy_faultable_end[];

static _Alignas(64) uint8_t signal_stack[SIGNAL_STACK_BYTES];
static struct {
    uint32_t insn;
    int signo;
    uint64_t address;
    bool is_ours;
} fault;

/* ---- frame and registers ---- */

static void regs_from_frame(const struct tbd_ucontext *frame, struct tbd_regs *out)
{
    memset(out, 0, sizeof(*out));
    tbd_ucontext_get(frame, out);
    out->fs_base = tbd_thread_now()->regs.fs_base;
    out->gs_base = tbd_thread_now()->regs.gs_base;
}

static void continue_at(struct tbd_ucontext *frame, uint64_t address)
{
    frame->rip = address;
}

/* ---- kinds ---- */

/* The fault may have interrupted a store in its middle: moves all bytes of the record up to the
 * guard page, in which `address` lies. */
static void operand_guard(struct tbd_ucontext *frame, uint64_t address)
{
    uint64_t entry = frame->gregs[TBD_FRAME_R15];
    uint64_t operand = frame->gregs[TBD_FRAME_R14];
    uint64_t end = address & ~(TBD_PAGE_SIZE - 1);
    uint64_t bytes = end > operand ? end - operand : 0;

    if (bytes > TBD_RECORD_MAX_BYTES)
        bytes = TBD_RECORD_MAX_BYTES;
    tbd_ring_move_record_sigsafe(&tbd_recording.ring, &entry, &operand, (uint32_t)bytes);
    frame->gregs[TBD_FRAME_R15] = entry;
    frame->gregs[TBD_FRAME_R14] = operand;
}

/* A copy from or to program memory that faults ends there (hooks/memory/safe_copy.h). */
static bool end_copy(struct tbd_ucontext *frame)
{
    uint64_t rip = frame->rip;

    if (rip < (uint64_t)(uintptr_t)tbd_copy_faultable_begin ||
        rip >= (uint64_t)(uintptr_t)tbd_copy_faultable_end)
        return false;
    continue_at(frame, (uint64_t)(uintptr_t)tbd_copy_faultable_end);
    return true;
}

static uint32_t access_of(const struct tbd_ucontext *frame)
{
    return frame->error & PAGE_FAULT_WRITE ? PROT_WRITE : PROT_READ;
}

/* The program's own fault in translated code: finds the program's registers, and closes the
 * record. */
static bool take_cache_fault(const struct tbd_regs *cpu)
{
    struct tbd_thread *thread = tbd_thread_now();
    struct tbd_regs state = thread->regs;
    struct tbd_interruption where = tbd_patcher_interrupted(thread, cpu, &state);

    if (where.where == TBD_INT_NOT_CACHE)
        return false;
    thread->entry_next = where.entry_next;
    thread->operand_next = where.operand_next;
    fault.insn = where.insn;
    if (where.where == TBD_INT_INSIDE)
        tbd_ring_close_record_sigsafe(&tbd_recording.ring, thread, where.record_bytes);
    state.fs_base = thread->regs.fs_base;
    state.gs_base = thread->regs.gs_base;
    state.thread = thread->regs.thread;
    state.xsave_bytes = thread->regs.xsave_bytes;
    thread->regs = state;
    return true;
}

/* A fault of an instruction in a slot (hooks/instructions/slot.h): the registers are the
 * program's. */
static bool take_slot_fault(const struct tbd_regs *cpu)
{
    struct tbd_thread *thread = tbd_thread_now();
    uint64_t rip = thread->regs.rip;

    if (!tbd_slot_owns(cpu->rip))
        return false;
    memcpy(thread->regs.gpr, cpu->gpr, sizeof(cpu->gpr));
    thread->regs.rflags = cpu->rflags;
    thread->regs.rip = rip + tbd_slot_offset(cpu->rip);
    thread->regs.gpr[TBD_RCX] += thread->scratch[TBD_SLOT_REST];
    thread->scratch[TBD_SLOT_REST] = 0;
    fault.insn = tbd_slot_last_insn(thread);
    return true;
}

/* Not a fault of the engine: C code continues on the engine's stack. */
static void leave_to_engine(struct tbd_ucontext *frame, int signo, uint64_t address)
{
    struct tbd_regs cpu;

    regs_from_frame(frame, &cpu);
    tbd_memory_scan_all();
    fault.signo = signo;
    fault.address = address;
    fault.is_ours = !take_slot_fault(&cpu) && !take_cache_fault(&cpu);
    if (fault.is_ours)
        fault.address = cpu.rip;
    frame->gregs[TBD_FRAME_RSP] = tbd_thread_now()->engine_stack;
    frame->rflags = 0x202;
    continue_at(frame, (uint64_t)(uintptr_t)tbd_stub_after_fault);
}

static bool step(struct tbd_ucontext *frame)
{
    struct tbd_regs cpu;

    regs_from_frame(frame, &cpu);
    if (!tbd_patcher_step(tbd_thread_now(), &cpu, frame->trap))
        return false;
    frame->rflags = cpu.rflags;
    return true;
}

/* Has play logged a fault at this place? */
static bool is_logged(const struct tbd_ucontext *frame)
{
    struct tbd_thread *thread = tbd_thread_now();
    struct tbd_regs cpu, state = thread->regs;
    uint64_t entry_next = thread->entry_next, time;
    bool is_logged;

    regs_from_frame(frame, &cpu);
    if (!tbd_slot_owns(cpu.rip)) {
        struct tbd_interruption where = tbd_patcher_interrupted(thread, &cpu, &state);

        if (where.where != TBD_INT_NOT_CACHE)
            thread->entry_next = where.entry_next;
    }
    time = tbd_stub_log_time() + (tbd_stub.plan->counts_stops && !tbd_stub.is_in_special);
    is_logged = tbd_log_is_next(TBD_MSG_INTERRUPTED, time);
    thread->entry_next = entry_next;
    return is_logged;
}

/* The kernel raises SIGILL for instructions with tiles until it is asked to permit them, which cannot be taken back.  In
 * play the process has asked, perhaps long before this window: if it did not have the fault. */
static bool permits_tiles(int signo, const struct tbd_ucontext *frame)
{
    return signo == SIGILL && (tbd_patcher_owns(frame->rip) || tbd_slot_owns(frame->rip)) &&
           !is_logged(frame) && tbd_vector_permit_tiles(&tbd_processor.vector);
}

static void handle(int signo, const siginfo_t *info, struct tbd_ucontext *frame)
{
    uint64_t address = (uint64_t)(uintptr_t)info->si_addr;

    if (signo == SIGSEGV) {
        switch (tbd_ring_guard_sigsafe(&tbd_recording.ring, address)) {
        case TBD_GUARD_ENTRIES:
            continue_at(frame, tbd_patcher_boundary_exit(tbd_thread_now(), frame->rip));
            return;
        case TBD_GUARD_OPERANDS: operand_guard(frame, address); return;
        case TBD_GUARD_NONE: break;
        }
        if (info->si_code > 0 && info->si_code != SI_KERNEL &&
            tbd_memory_fault(address, access_of(frame)))
            return;
        if (end_copy(frame))
            return;
    }
    if ((signo == SIGBUS || signo == SIGTRAP) && step(frame))
        return;
    if (tbd_vectors_xrstor_sigsafe(signo, frame) || permits_tiles(signo, frame))
        return;
    leave_to_engine(frame, signo, address);
}

void tbd_stub_signal(int signo, siginfo_t *info, void *context)
{
    struct tbd_ucontext *frame = context;
    uint64_t rip = frame->rip;
    uint64_t gs_base = tbd_gs_base_take_sigsafe(tbd_processor.gs_base);

    handle(signo, info, frame);
    if (gs_base != tbd_processor.gs_base && frame->rip == rip)
        tbd_set_gs_base(gs_base);
}

void tbd_stub_after_fault_c(void)
{
    if (fault.is_ours)
        tbd_stub_fail(tbd_stub.plan, TBD_OUTCOME_FAILED, "signal %d in the engine at 0x%lx",
                      fault.signo, fault.address);
    tbd_stub_faulted(fault.insn, fault.signo, fault.address);
}

bool tbd_stub_catch_faults(void)
{
    static const int caught[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP };
    struct tbd_action action = {
        .handler = (uint64_t)(uintptr_t)tbd_stub_signal_entry,
        .restorer = (uint64_t)(uintptr_t)tbd_stub_restorer,
        .flags = SA_SIGINFO | SA_ONSTACK | SA_RESTORER,
        .mask = UINT64_MAX,
    };
    struct tbd_altstack stack = { .sp = (uint64_t)(uintptr_t)signal_stack,
                                  .bytes = sizeof(signal_stack) };

    if (tbd_sys3(__NR_sigaltstack, tbd_sys_pointer(&stack), 0, 0))
        return false;
    for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
        if (tbd_sys4(__NR_rt_sigaction, (uint64_t)caught[i], tbd_sys_pointer(&action), 0, 8))
            return false;
    return true;
}

/* ---- return from the program's signal handlers ---- */

/* The last bytes of the fxsave area: the kernel's magic number and the length of the extended
 * state. */
#define SOFTWARE_AT offsetof(struct _fpstate_64, sw_reserved)

/* Loads the frame's extended state; without the kernel's magic number it is the 512 bytes of
 * fxsave. */
static bool load_frame_vectors(uint64_t fpstate)
{
    _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES];
    struct _fpx_sw_bytes software;
    uint64_t present, legacy = 3;

    if (!fpstate) {
        tbd_vector_clear(&tbd_processor.vector);
        return true;
    }
    memset(image, 0, sizeof(image));
    if (!tbd_memory_read(fpstate + SOFTWARE_AT, &software, sizeof(software)))
        return false;
    if (software.magic1 != FP_XSTATE_MAGIC1)
        software.xstate_size = SOFTWARE_AT;
    if (software.xstate_size > tbd_processor.vector.image.bytes)
        software.xstate_size = tbd_processor.vector.image.bytes;
    if (!tbd_memory_read(fpstate, image, software.xstate_size))
        return false;
    memcpy(&present, image + 512, sizeof(present));
    present = software.magic1 == FP_XSTATE_MAGIC1
                  ? present & software.xfeatures & tbd_processor.vector.image.mask
                  : legacy;
    memset(image + 512, 0, 64);
    memcpy(image + 512, &present, sizeof(present));
    tbd_vector_load(&tbd_processor.vector, image);
    return true;
}

static void load_frame(struct tbd_regs *regs, const struct tbd_ucontext *frame)
{
    uint64_t flags = regs->rflags;

    tbd_ucontext_get(frame, regs);
    regs->rflags = tbd_ucontext_merge_flags(flags, frame->rflags);
}

void tbd_signal_return(struct tbd_thread *thread, bool is_bad)
{
    struct tbd_ucontext frame;
    bool is_there = tbd_memory_read(thread->regs.gpr[TBD_RSP], &frame, sizeof(frame));

    if (!is_bad && (!is_there || !load_frame_vectors(frame.fpstate)))
        tbd_stub_diverge(TBD_PLAN_LAST_INSN, "the signal frame at 0x%lx is not there",
                         thread->regs.gpr[TBD_RSP]);
    if (is_there)
        load_frame(&thread->regs, &frame);
    if (is_bad)
        thread->regs.gpr[TBD_RAX] = 0;
    if (is_bad && is_there)
        tbd_vector_clear(&tbd_processor.vector);
    if (!tbd_stub.is_partial)
        tbd_registers_send(&tbd_recording.ring, thread, &tbd_processor.vector);
}

/* ---- the program's own faults ---- */

static bool was_written_in_play(uint64_t page)
{
    const struct tbd_plan_section *dirty = &tbd_stub.plan->dirty;
    const uint64_t *pages = (const void *)((const char *)tbd_stub.plan + dirty->offset);

    for (uint64_t i = 0; i < dirty->count; i++)
        if (pages[i] == page)
            return true;
    return false;
}

/* Translated code marks a page before it stores to it. Traced play has done so, too; to native play, in which the kernel
 * says which pages were written, a store that faults has written none. */
static void forget_mark(uint64_t page)
{
    if (!tbd_stub.is_partial && page < TBD_USER_END && !was_written_in_play(page))
        tbd_pages_forget(&tbd_memory.pages, page, page + 1);
}

/* A store over the end of a page faults in the next one. */
static void forget_store(uint64_t address)
{
    uint64_t page = address & ~(TBD_PAGE_SIZE - 1);

    forget_mark(page);
    if (address == page && page)
        forget_mark(page - TBD_PAGE_SIZE);
}

/* Play logged the fault: INTERRUPTED, then the signal it led to. */
void tbd_stub_faulted(uint32_t insn, int signo, uint64_t address)
{
    const struct tbd_message *message;
    uint64_t logged;

    tbd_log_faulted();
    if (signo == SIGSEGV || signo == SIGBUS)
        forget_store(address);
    message = tbd_log_peek(TBD_MSG_INTERRUPTED);

    if (!message && signo == SIGILL)
        tbd_stub_need_registers(tbd_thread_now());
    if (!message) {
        /* The fault killed the program, so the window has no end. */
        if (!tbd_stub.plan->complete && tbd_stub_log_time() == tbd_stub.plan->blocks)
            tbd_stub_finish();
        tbd_stub_diverge(insn, "signal %d at 0x%lx, which play did not have", signo, address);
    }
    memcpy(&logged, message + 1, sizeof(logged));
    if (logged != insn && !tbd_stub.plan->counts_stops &&
        !tbd_stub.is_partial) /* a partial replay may enter a block in two parts */
        tbd_stub_diverge(insn, "fault after %u instructions of the block, in play after %lu", insn,
                         logged);
    tbd_log_send_interrupted(message, insn);
    tbd_patcher_trap(tbd_thread_now(), 0);
    if (tbd_log_peek(TBD_MSG_SHARED))
        tbd_thread_now()->regs.rflags &= ~FLAG_RESUME; /* set by the trap; it was clear in play */
    if (!tbd_log_peek(TBD_MSG_SHARED) && !tbd_log_peek(TBD_MSG_SIGNAL) &&
        !tbd_log_peek(TBD_MSG_RSEQ)) /* fatal */
        tbd_stub_finish();
    if (tbd_stub.is_inside)
        tbd_stub_settle(tbd_thread_now());
    else
        tbd_stub_boundary(tbd_thread_now()); /* the next due time has changed */
    tbd_patcher_run(tbd_thread_now());
}
