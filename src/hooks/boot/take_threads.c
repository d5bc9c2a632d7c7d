// SPDX-License-Identifier: MIT
/* take_threads.c - see take_threads.h */
#include "hooks/boot/take_threads.h"

#include "hooks/instructions/processor.h"
#include "hooks/stream/crash_ring.h"
#include "hooks/threads/free_threads.h"

/* The first functions of the engine in a thread: on its engine stack, with every signal blocked. */

static void go_on_free(void *context)
{
    struct tbd_saved_context *saved = context;

    tbd_set_gs_base(saved->gs_base);
    tbd_signals_take_stack(&saved->signals, tbd_free_stack_top(saved));
    tbd_rseq_unregister(&saved->rseq);
    tbd_rseq_take(&saved->rseq);
    tbd_threads_begin(tbd_free_block_of(saved));
}

/* It has the turn lock, and its signal stack. */
static void go_on_first(void *context)
{
    struct tbd_saved_context *saved = context;

    tbd_set_gs_base(saved->gs_base);
    tbd_threads_begin(tbd_thread_now());
}

static void go_on_in_turn(void *context)
{
    struct tbd_saved_context *saved = context;

    tbd_set_gs_base(saved->gs_base);
    tbd_threads_come_in(saved);
}

static void answer(const struct tbd_saved_context *saved, struct tbd_takeover_thread *given,
                   void (*entry)(void *saved))
{
    given->entry = (uint64_t)(uintptr_t)entry;
    given->argument = (uint64_t)(uintptr_t)saved;
    given->stack = tbd_free_stack_top(saved);
    given->gs_base = saved->gs_base;
}

static struct tbd_rseq rseq_of(const struct tbd_takeover_thread *given)
{
    return (struct tbd_rseq){ .area = given->rseq,
                              .bytes = given->rseq_bytes,
                              .signature = given->rseq_signature };
}

/* ---- free run ---- */

static void describe(struct tbd_saved_context *saved, struct tbd_takeover_thread *given)
{
    struct tbd_thread *thread = tbd_free_block_of(saved);

    thread->regs = given->regs;
    thread->tid = given->regs.thread;
    saved->tid = thread->tid;
    saved->resumes = given->resumes;
    saved->can_resume = true;
    saved->signals.mask = given->mask;
    saved->rseq = rseq_of(given);
    tbd_rseq_end_section(&saved->rseq, &thread->regs);
    tbd_crash_note_thread(saved->index, thread->tid);
    answer(saved, given, go_on_free);
}

bool tbd_take_threads_free(struct tbd_thread *first, struct tbd_takeover *takeover)
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

/* ---- in turns ---- */

/* The kernel would resume a sleep for the rest of its time; a recording has the program's own call, whole. */
static void make_whole(struct tbd_takeover_thread *given)
{
    if (given->resumes)
        given->regs.gpr[TBD_RAX] = given->resumes;
    given->resumes = 0;
}

bool tbd_take_threads_prepare(struct tbd_thread *first, struct tbd_takeover *takeover)
{
    if (takeover->thread_count > TBD_MAX_THREADS)
        return false;
    for (uint32_t i = 0; i < takeover->thread_count; i++) {
        struct tbd_takeover_thread *given = &takeover->threads[i];
        struct tbd_saved_context *saved = i ? tbd_threads_new_context() : tbd_context_now();

        if (!saved)
            return false;
        make_whole(given);
        saved->rseq = rseq_of(given);
        tbd_rseq_end_section(&saved->rseq, &given->regs);
        tbd_rseq_take(&saved->rseq);
        saved->tid = given->regs.thread; /* in use */
        answer(saved, given, i ? go_on_in_turn : go_on_first);
    }
    first->regs = takeover->threads[0].regs;
    first->tid = takeover->threads[0].regs.thread;
    tbd_context_now()->signals.mask = takeover->threads[0].mask;
    tbd_signals_take_stack(&tbd_context_now()->signals, first->engine_stack);
    tbd_vector_load(&tbd_processor.vector, takeover->vectors);
    return true;
}

void tbd_take_threads_in_turn(struct tbd_thread *first, const struct tbd_takeover *takeover)
{
    for (uint32_t i = 1; i < takeover->thread_count; i++) {
        const struct tbd_takeover_thread *given = &takeover->threads[i];
        struct tbd_saved_context *saved = (void *)given->argument;
        struct tbd_regs regs = given->regs;
        struct tbd_rseq rseq = saved->rseq;

        tbd_threads_take_in(first, saved, &regs,
                            takeover->vectors + (uint64_t)i * TBD_TAKEOVER_VECTORS);
        saved->rseq = rseq;
        saved->signals.mask = given->mask;
    }
}
