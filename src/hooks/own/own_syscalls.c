// SPDX-License-Identifier: MIT
/* own_syscalls.c - see own.h: a system call of the program's own code, and what native play has to do beside it */
#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/calls/call_run.h"
#include "hooks/calls/map_changes.h"
#include "hooks/memory/code_traps.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/memory/shared.h"
#include "hooks/memory/written_pages.h"
#include "hooks/own/own.h"
#include "hooks/own/own_blocks.h"
#include "hooks/own/own_cut.h"
#include "hooks/own/own_window.h"
#include "hooks/threads/detach.h"

#define SYSCALL_BYTES 2u
#define FLAG_RF       0x10000ull

static const char *old_call(const uint8_t *code)
{
    if (code[0] == 0xcd && code[1] == 0x80)
        return "it makes system calls of 32-bit programs (int 0x80)";
    return code[0] == 0x0f && code[1] == 0x34
               ? "it makes system calls of 32-bit programs (sysenter)"
               : NULL;
}

/* The kernel's user dispatch stops for these, too, or they are a fault. */
void tbd_own_leave_old_calls(struct tbd_thread *thread)
{
    uint8_t code[SYSCALL_BYTES];
    const char *why =
        tbd_copy_from_program(code, thread->regs.rip, sizeof(code)) ? old_call(code) : NULL;

    if (!why)
        return;
    thread->regs.rflags &= ~FLAG_RF;
    tbd_detach(thread, why, 0);
}

static bool is_followed_again(uint64_t advice)
{
    return advice == MADV_DONTNEED || advice == MADV_HUGEPAGE;
}

/* What a call has mapped, or made accessible. */
static void look_after_call(struct tbd_thread *thread, const struct tbd_regs *before,
                            uint64_t brk_before)
{
    uint64_t result = thread->regs.gpr[TBD_RAX], number = before->gpr[TBD_RAX];
    uint64_t start = before->gpr[TBD_RDI], bytes = before->gpr[TBD_RSI];
    bool is_new = true;

    if (tbd_syscall_mode(number) != TBD_SYS_MAP || tbd_sys_failed((long)result))
        return;
    switch (number) {
    case __NR_mmap:
        start = result;
        tbd_code_traps_forget(start, tbd_map_page_up(start + bytes));
        break;
    case __NR_mremap:
        tbd_code_traps_forget(start, tbd_map_page_up(start + bytes));
        is_new = start == result; /* what has moved is only known by its old address */
        start = is_new ? tbd_map_page_up(start + bytes) : result;
        bytes = tbd_map_page_up(result + before->gpr[TBD_RDX]) - start;
        bytes = (int64_t)bytes > 0 ? bytes : 0;
        break;
    case __NR_brk:
        start = brk_before;
        bytes = result > brk_before ? result - brk_before : 0;
        break;
    case __NR_mprotect:
    case __NR_pkey_mprotect: is_new = false; break;
    case __NR_madvise: bytes = is_followed_again(before->gpr[TBD_RDX]) ? bytes : 0; break;
    case __NR_munmap: tbd_code_traps_forget(start, tbd_map_page_up(start + bytes)); return;
    default: start = bytes = 0;
    }
    if (bytes)
        tbd_own_look(start & ~(TBD_PAGE_SIZE - 1), tbd_map_page_up(start + bytes), is_new);
}

/* Does the call make a process that is not recorded, and so knows nothing of traps?  A child that is to be recorded has
 * them as its parent has. */
static bool makes_untraced(const struct tbd_regs *regs)
{
    const uint64_t untraced = CLONE_VM | CLONE_NEWPID;
    uint64_t flags;

    switch (regs->gpr[TBD_RAX]) {
    case __NR_vfork: return true;
    case __NR_clone: flags = regs->gpr[TBD_RDI]; break;
    case __NR_clone3:
        if (!tbd_copy_from_program(&flags, regs->gpr[TBD_RDI], sizeof(flags)))
            return false;
        break;
    default: return false;
    }
    return (flags & untraced) && !(flags & CLONE_THREAD);
}

static bool moves_code(const struct tbd_regs *regs)
{
    uint64_t start = regs->gpr[TBD_RDI];

    return regs->gpr[TBD_RAX] == __NR_mremap &&
           tbd_code_traps_any(start, tbd_map_page_up(start + regs->gpr[TBD_RSI]));
}

static bool makes_userfaultfd(const struct tbd_regs *regs)
{
    return regs->gpr[TBD_RAX] == __NR_userfaultfd &&
           !(regs->gpr[TBD_RDI] & ~(uint64_t)(O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
}

/* What becomes code is not followed any more. */
static void collect_code(const struct tbd_regs *regs)
{
    uint64_t number = regs->gpr[TBD_RAX], start = regs->gpr[TBD_RDI], bytes = regs->gpr[TBD_RSI];

    if ((number == __NR_mprotect || number == __NR_pkey_mprotect) &&
        regs->gpr[TBD_RDX] & PROT_EXEC && bytes < TBD_USER_END && start < TBD_USER_END)
        tbd_written_collect(start, start + bytes);
}

/* What native play uses itself, and a thread or a range of memory has only once.  Switching dispatch off, too, would end ours. */
static void leave_own_means(const struct tbd_regs *regs)
{
    if (makes_userfaultfd(regs))
        tbd_own_translate_soon(
            "it handles page faults (userfaultfd), which native play cannot follow");
    if (regs->gpr[TBD_RAX] == __NR_prctl && regs->gpr[TBD_RDI] == PR_SET_SYSCALL_USER_DISPATCH)
        tbd_own_translate_soon(
            "it catches its own system calls (user dispatch), as native play does");
}

/* A call in which native play takes part. */
static void perform_own_call(struct tbd_thread *thread)
{
    struct tbd_regs before = thread->regs;
    uint64_t brk_before = tbd_memory.brk_end & ~(TBD_PAGE_SIZE - 1);
    bool lifts = makes_untraced(&before) || moves_code(&before);

    leave_own_means(&before);
    collect_code(&before);
    if (lifts)
        tbd_code_traps_lift(true);
    if (before.gpr[TBD_RAX] == __NR_exit)
        tbd_cut_end_thread();
    tbd_syscall_perform(thread, SYSCALL_BYTES);
    if (tbd_own_is_translated())
        return;                           /* since another thread's stop */
    if (before.gpr[TBD_RAX] == __NR_exit) /* a signal comes first */
        tbd_cut_begin(tbd_own_window_tick_ns());
    look_after_call(thread, &before, brk_before);
    if (lifts)
        tbd_code_traps_lift(false);
}

/* Most calls change no mapping and make no process. */
void tbd_own_perform_call(struct tbd_thread *thread, bool is_jump)
{
    uint64_t changes = tbd_shared_private_changes;

    tbd_own_enter_block(thread, SYSCALL_BYTES, TBD_END_SYSCALL);
    if (!is_jump) /* it was dispatched before, so it is known */
        tbd_own_leave_old_calls(thread);
    if (tbd_syscall_mode(thread->regs.gpr[TBD_RAX]) == TBD_SYS_EMULATE)
        tbd_syscall_perform(thread, SYSCALL_BYTES);
    else
        perform_own_call(thread);
    if (!tbd_own_is_translated() && tbd_shared_private_changes != changes)
        tbd_own_leave_changing_file();
}
