// SPDX-License-Identifier: MIT
/* thread_registers.c - see threads.h: whose registers the engine has, and where those of the others are */
#include "hooks/threads/turn_lock.h"

#include "base/layout.h"
#include "base/sys.h"
#include "hooks/instructions/processor.h"
#include "hooks/stream/recording.h"

struct tbd_threads tbd_threads;

/* ---- saved contexts ---- */

struct tbd_saved_context *tbd_saved_context_of_sigsafe(const void *stack)
{
    return (struct tbd_saved_context *)(tbd_sys_pointer(stack) & ~(TBD_STACK_SLOT_BYTES - 1));
}

bool tbd_saved_context_is_holder_sigsafe(const struct tbd_saved_context *saved)
{
    return tbd_threads.is_free || __atomic_load_n(&tbd_threads.holder, __ATOMIC_RELAXED) == saved;
}

uint64_t tbd_threads_stack_top(const struct tbd_saved_context *saved)
{
    return tbd_sys_pointer(saved) + TBD_STACK_SLOT_BYTES / 2;
}

bool tbd_threads_are_many(void)
{
    return tbd_threads.count > 1;
}

/* ---- registers ---- */

void tbd_threads_use(struct tbd_thread *thread, struct tbd_saved_context *saved)
{
    tbd_threads.runner = saved;
    thread->context = tbd_sys_pointer(saved);
}

void tbd_threads_save(struct tbd_thread *thread, struct tbd_saved_context *saved)
{
    saved->regs = thread->regs;
    saved->image_bytes = tbd_vector_store(&tbd_processor.vector, saved->image);
}

void tbd_threads_send(struct tbd_thread *thread, const struct tbd_msg_thread *message)
{
    struct tbd_part part = { message, sizeof(*message) };

    tbd_ring_send(&tbd_recording.ring, thread, TBD_MSG_THREAD, &part, 1);
}

/* The saved context has the turn lock, so it gets the processor. */
void tbd_threads_load(struct tbd_thread *thread, struct tbd_saved_context *saved)
{
    struct tbd_threads *threads = &tbd_threads;
    struct tbd_msg_thread message = { .event = TBD_THREAD_SWITCH,
                                      .thread = saved->tid,
                                      .from = thread->tid,
                                      .reason = threads->reason,
                                      .block_time = saved->block_time };

    if (threads->runner == saved)
        return;
    tbd_threads_use(thread, saved);
    saved->rseq.is_preempted = true;
    thread->regs = saved->regs;
    thread->tid = saved->tid;
    thread->engine_stack = tbd_threads_stack_top(saved);
    tbd_threads_send(thread, &message);
}

void tbd_threads_send_regs(struct tbd_thread *thread)
{
    for (uint32_t i = 0; tbd_threads_are_many() && i < tbd_threads.saved_contexts; i++) {
        struct tbd_saved_context *saved = tbd_saved_context_at(i);
        struct tbd_part parts[2] = { { &saved->regs, sizeof(saved->regs) },
                                     { saved->image, saved->image_bytes } };

        if (!saved->tid || saved == tbd_threads.holder)
            continue;
        saved->regs.xsave_bytes = saved->image_bytes;
        saved->regs.thread = saved->tid;
        tbd_ring_send(&tbd_recording.ring, thread, TBD_MSG_REGS, parts, 2);
    }
}
