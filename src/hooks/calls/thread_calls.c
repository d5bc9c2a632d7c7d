// SPDX-License-Identifier: MIT
/* thread_calls.c - system calls by which threads begin and end
 *
 * Natively the kernel writes memory for a thread: its id at the places that clone names, the word
 * cleared at its end, the robust futexes that it still held.  The engine makes these writes
 * instead, while holding the turn lock, as implicit stores of the call: nobody could tell when the
 * kernel's own writes happen.
 *
 * Context: APP. */
#include "base/linux.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/calls/call_families.h"
#include "hooks/instructions/processor.h"
#include "hooks/memory/safe_copy.h"

/* ---- beginning ---- */

static void write_ids(struct tbd_call *call, const struct tbd_clone *arguments)
{
    uint32_t tid = (uint32_t)call->result;

    if (arguments->flags & CLONE_PARENT_SETTID)
        tbd_call_answer(call, arguments->parent_tid, &tid, sizeof(tid));
    if (arguments->flags & CLONE_CHILD_SETTID)
        tbd_call_answer(call, arguments->child_tid, &tid, sizeof(tid));
}

/* The registers of the new thread: the caller's, after the call. */
static struct tbd_regs first_registers(const struct tbd_call *call,
                                       const struct tbd_clone *arguments)
{
    struct tbd_regs regs = call->thread->regs;

    regs.gpr[TBD_RAX] = 0;
    if (arguments->stack)
        regs.gpr[TBD_RSP] = arguments->stack;
    if (arguments->flags & CLONE_SETTLS)
        regs.fs_base = arguments->tls;
    regs.thread = (uint32_t)call->result;
    return regs;
}

static void begin_thread(struct tbd_call *call, const struct tbd_clone *arguments,
                         struct tbd_saved_context *saved)
{
    uint64_t flags =
        arguments->flags & ~(uint64_t)(CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CSIGNAL);
    uint64_t mask = tbd_signals_block_all();
    struct tbd_regs regs;

    if (__atomic_load_n(&tbd_signals_now()->pending, __ATOMIC_ACQUIRE)) {
        call->result = TBD_CALL_INTERRUPTED; /* the signal is delivered first */
        tbd_call_finish(call);
        return;
    }
    call->result = tbd_threads_clone(saved, flags | CLONE_CHILD_CLEARTID, arguments->tls);
    if (call->result > 0) {
        saved->cleared = arguments->flags & CLONE_CHILD_CLEARTID ? arguments->child_tid : 0;
        write_ids(call, arguments);
    }
    tbd_call_finish(call);
    if (call->result > 0) {
        regs = first_registers(call, arguments);
        tbd_threads_started(call->thread, saved, &regs);
    }
    tbd_signals_set_kernel_mask(mask);
}

void tbd_call_thread(struct tbd_call *call, const struct tbd_clone *arguments)
{
    struct tbd_saved_context *saved;

    if (!tbd_call_policy->threads)
        tbd_call_detach(call, "it starts a second thread");
    if ((arguments->flags & CLONE_PIDFD) || arguments->flags >> 32) {
        call->result = -EINVAL; /* as in kernels before 6.9 */
        tbd_call_finish(call);
        return;
    }
    if (arguments->flags & CLONE_VFORK)
        tbd_call_detach(call, "it starts a thread and waits for its end (CLONE_VFORK)");
    saved = tbd_threads_new_context();
    if (!saved)
        tbd_call_detach(call, "it has too many threads");
    begin_thread(call, arguments, saved);
}

/* ---- ending ---- */

/* Does what the kernel does to a futex whose owner dies (handle_futex_death). */
static void give_up_futex(struct tbd_call *call, uint64_t address, bool is_pi, bool is_pending)
{
    uint32_t value;
    uint32_t left;

    do {
        if ((address & 3) || !tbd_copy_from_program(&value, address, sizeof(value)))
            return;
        if (is_pending && !is_pi && !value)
            tbd_arrivals_wake(address, 1);
        if ((value & FUTEX_TID_MASK) != call->thread->tid)
            return;
        left = (value & FUTEX_WAITERS) | FUTEX_OWNER_DIED;
    } while (!tbd_call_exchange_word(call, address, value, left));
    if (!is_pi && (value & FUTEX_WAITERS))
        tbd_arrivals_wake(address, 1);
}

static void give_up_entry(struct tbd_call *call, const struct tbd_robust_list *head, uint64_t entry,
                          bool is_pending)
{
    give_up_futex(call, (entry & ~1ull) + (uint64_t)head->offset, entry & 1, is_pending);
}

static void give_up_robust(struct tbd_call *call)
{
    struct tbd_robust_list head;
    uint64_t list = 0;
    uint64_t bytes = 0;
    uint64_t entry;

    tbd_sys3(__NR_get_robust_list, 0, tbd_sys_pointer(&list), tbd_sys_pointer(&bytes));
    if (!list || !tbd_copy_from_program(&head, list, sizeof(head)))
        return;
    entry = head.next;
    for (unsigned i = 0; i < ROBUST_LIST_LIMIT && (entry & ~1ull) != list; i++) {
        uint64_t next;
        bool readable = tbd_copy_from_program(&next, entry & ~1ull, sizeof(next));

        if (entry != head.pending)
            give_up_entry(call, &head, entry, false);
        if (!readable)
            return;
        entry = next;
    }
    if (head.pending)
        give_up_entry(call, &head, head.pending, true);
}

/* Threads that are woken find the turn lock taken, and later see the words as written here. */
static void end_thread(struct tbd_call *call, uint64_t status)
{
    const struct tbd_saved_context *saved = tbd_threads.holder;
    uint64_t cleared = saved->is_watched ? saved->cleared : 0;
    uint32_t zero = 0;

    tbd_signals_block_all(); /* a signal for the process must find another thread */
    if (__atomic_load_n(&tbd_signals_now()->pending, __ATOMIC_ACQUIRE)) {
        call->result = TBD_CALL_INTERRUPTED;
        tbd_call_finish(call);
        return;
    }
    give_up_robust(call);
    if (cleared && tbd_call_answer(call, cleared, &zero, sizeof(zero)))
        tbd_arrivals_wake(cleared, 1);
    call->flags |= TBD_SYSCALL_NORETURN;
    tbd_call_send(call);
    tbd_threads_end(call->thread, status);
}

void tbd_call_thread_exit(struct tbd_call *call)
{
    end_thread(call, call->sys.args[0]);
}

void tbd_call_thread_killed(struct tbd_call *call)
{
    call->flags |= TBD_SYSCALL_REFUSED;
    end_thread(call, 0);
}

/* While there is one thread, the kernel keeps the address. */
void tbd_call_set_tid_address(struct tbd_call *call)
{
    struct tbd_saved_context *saved = tbd_threads.holder;

    if (saved->is_watched) {
        saved->cleared = call->sys.args[0];
        call->result = (int64_t)call->thread->tid;
    } else {
        call->result = tbd_call_perform(&call->sys);
    }
    tbd_call_finish(call);
}
