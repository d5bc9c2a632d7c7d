// SPDX-License-Identifier: MIT
/* take_threads.c - see take_threads.h */
#include "hooks/boot/take_threads.h"

#include "hooks/instructions/processor.h"
#include "hooks/stream/crash_ring.h"
#include "hooks/threads/free_threads.h"

/* The first function of the engine in the thread: on its engine stack, with every signal blocked. */
static void go_on(void *context)
{
    struct tbd_saved_context *saved = context;
    struct tbd_thread *thread = tbd_free_block_of(saved);

    tbd_set_gs_base(saved->gs_base);
    tbd_signals_take_stack(tbd_free_stack_top(saved));
    tbd_rseq_take(&saved->rseq, &thread->regs);
    tbd_threads_begin(thread);
}

static void describe(struct tbd_saved_context *saved, struct tbd_takeover_thread *given)
{
    struct tbd_thread *thread = tbd_free_block_of(saved);

    thread->regs = given->regs;
    thread->tid = given->regs.thread;
    saved->tid = thread->tid;
    saved->resumes = given->resumes;
    saved->can_resume = true;
    saved->signals.mask = given->mask;
    saved->rseq = (struct tbd_rseq){ .area = given->rseq,
                                     .bytes = given->rseq_bytes,
                                     .signature = given->rseq_signature };
    tbd_crash_note_thread(saved->index, thread->tid);
    given->entry = (uint64_t)(uintptr_t)go_on;
    given->argument = (uint64_t)(uintptr_t)saved;
    given->stack = tbd_free_stack_top(saved);
    given->gs_base = saved->gs_base;
}

bool tbd_takeover_threads(struct tbd_thread *first, struct tbd_takeover *takeover)
{
    struct tbd_saved_context *saved = tbd_context_now();

    for (uint32_t i = 0; i < takeover->thread_count; i++) {
        if (i)
            saved = tbd_free_new_context(first, &takeover->threads[i].regs);
        if (!saved)
            return false;
        describe(saved, &takeover->threads[i]);
    }
    return true;
}
