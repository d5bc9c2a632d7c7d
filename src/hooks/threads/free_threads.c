// SPDX-License-Identifier: MIT
/* free_threads.c - see free_threads.h */
#include "hooks/threads/free_threads.h"

#include "base/assert.h"
#include "base/layout.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/instructions/processor.h"
#include "hooks/memory/calling_memory.h"
#include "hooks/memory/effects.h"
#include "hooks/stream/crash_ring.h"
#include "hooks/stream/recording.h"
#include "patcher/engine_lock.h"
#include "patcher/patcher.h"

_Static_assert(sizeof(struct tbd_thread) <= TBD_FREE_BLOCK_BYTES, "base/layout.h");

/* threads_x86_64.S: the child calls begin(saved context) on the stack that the call names. */
int64_t tbd_free_clone_call(const struct tbd_sys_call *call, void (*begin)(void *),
                            struct tbd_saved_context *saved);

void tbd_free_init(void)
{
    tbd_threads.is_free = true;
    tbd_effects_off();
}

/* ---- the lock ---- */

void tbd_free_lock(struct tbd_thread *thread)
{
    struct tbd_saved_context *saved = tbd_context_now();

    tbd_engine_lock(thread);
    tbd_threads.runner = saved;
    __atomic_store_n(&tbd_threads.holder, saved, __ATOMIC_RELAXED);
}

void tbd_free_unlock(struct tbd_thread *thread)
{
    TBD_INVARIANT("FREE_THREADS-1", tbd_threads.holder == tbd_context_now());
    tbd_engine_unlock(thread);
}

/* ---- contexts ---- */

struct tbd_thread *tbd_free_block_of(const struct tbd_saved_context *saved)
{
    return (struct tbd_thread *)(saved->gs_base - sizeof(struct tbd_thread));
}

/* The first thread's is at TBD_THREADS_BASE. */
static bool map_block(struct tbd_saved_context *saved)
{
    uint64_t at = TBD_FREE_THREADS_BASE + saved->index * TBD_FREE_BLOCK_BYTES;
    struct tbd_thread *block;

    if (tbd_sys_mmap(at, TBD_FREE_BLOCK_BYTES, TBD_PROT_RW, TBD_MAP_MEMORY | MAP_FIXED_NOREPLACE,
                     -1, 0) != (long)at)
        return false;
    tbd_sys_madvise(at, TBD_FREE_BLOCK_BYTES, MADV_DONTDUMP);
    saved->gs_base = at + TBD_FREE_BLOCK_BYTES;
    block = tbd_free_block_of(saved);
    tbd_patcher_populate_thread(block);
    block->self = tbd_sys_pointer(block);
    block->context = tbd_sys_pointer(saved);
    block->engine_stack = tbd_free_stack_top(saved);
    block->mark = TBD_THREAD_MARK;
    return true;
}

struct tbd_saved_context *tbd_free_new_context(struct tbd_thread *thread,
                                               const struct tbd_regs *regs)
{
    const struct tbd_saved_context *own = tbd_context_now();
    struct tbd_saved_context *saved;
    struct tbd_thread *block;

    for (uint32_t i = 0; i < tbd_threads.saved_contexts; i++) {
        saved = tbd_saved_context_at(i);
        if (!saved->tid && saved->alive &&
            tbd_sys3(__NR_tgkill, tbd_recording.pid, saved->alive, 0) == -ESRCH)
            saved->alive = 0;
    }
    saved = tbd_threads_new_context();
    if (!saved || (saved->gs_base == tbd_processor.gs_base && saved->index && !map_block(saved)))
        return NULL;
    saved->tid = own->tid; /* until it is known */
    saved->seccomp = own->seccomp;
    saved->rseq = (struct tbd_rseq){ 0 };
    saved->user_dispatch = (struct tbd_user_dispatch){ 0 };
    saved->signals =
        (struct tbd_signals){ .mask = own->signals.mask, .altstack = { .flags = SS_DISABLE } };
    block = tbd_free_block_of(saved);
    block->regs = *regs;
    block->kick = 0;
    block->is_stepping = 0;
    block->entry_next = thread->entry_next;
    block->operand_next = thread->operand_next;
    tbd_crash_give_ring(block, saved->index, 0);
    tbd_calling_begin_thread(block);
    return saved;
}

void tbd_free_end(struct tbd_saved_context *saved, uint32_t tid)
{
    saved->alive = tid;
    __atomic_store_n(&saved->tid, 0, __ATOMIC_RELEASE);
}

bool tbd_free_is_over(void)
{
    for (uint32_t i = 0; i < tbd_threads.saved_contexts; i++)
        if (tbd_saved_context_at(i)->tid)
            return false;
    return true;
}

void tbd_free_after_fork(struct tbd_thread *thread)
{
    tbd_threads_after_fork(thread);
    tbd_threads.runner = tbd_context_now();
    tbd_patcher_after_fork();
}

/* ---- a thread begins ---- */

int64_t tbd_free_clone(const struct tbd_sys_call *call, struct tbd_saved_context *saved,
                       void (*begin)(void *saved))
{
    return tbd_free_clone_call(call, begin, saved);
}

void tbd_free_begin(void *context)
{
    struct tbd_saved_context *saved = context;
    struct tbd_thread *thread = tbd_free_block_of(saved);
    struct tbd_altstack none;

    tbd_set_gs_base(saved->gs_base);
    tbd_signals_set_stack(tbd_free_stack_top(saved), &none);
    thread->tid = (uint32_t)tbd_sys_gettid();
    thread->regs.thread = thread->tid;
    tbd_crash_note_thread(saved->index, thread->tid);
    __atomic_store_n(&saved->tid, thread->tid, __ATOMIC_RELEASE);
    tbd_threads_begin(thread);
}
