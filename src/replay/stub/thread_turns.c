// SPDX-License-Identifier: MIT
/* thread_turns.c - all threads of the program on the one thread of a replay process
 *
 * The thread in control is in the thread block, as in play.  The others' registers and vector state
 * are in slots of the plan (struct tbd_plan_thread); the driver provides enough slots for the
 * window.  Turns occur where play logged them: between two blocks, or in a system call that waits.
 *
 * THREAD_TURNS-1  The thread in control has no slot; every other living thread has exactly one. */
#include "replay/stub/logged_events.h"

#include "base/assert.h"
#include "base/string.h"
#include "hooks/instructions/processor.h"
#include "hooks/stream/recording.h"
#include "replay/stub/memory.h"

static struct tbd_plan_thread *slots(void)
{
    return (void *)((char *)tbd_stub.plan + tbd_stub.plan->threads.offset);
}

/* tid 0 finds a free slot. */
static struct tbd_plan_thread *find_slot(uint32_t tid)
{
    for (uint64_t i = 0; i < tbd_stub.plan->threads.count; i++)
        if (slots()[i].tid == tid)
            return &slots()[i];
    return NULL;
}

static void *image_of(const struct tbd_plan_thread *slot)
{
    return (char *)tbd_stub.plan + slot->xsave;
}

static struct tbd_plan_thread *take_slot(uint32_t tid, const struct tbd_regs *regs)
{
    struct tbd_plan_thread *slot = find_slot(0);

    if (!slot)
        tbd_stub_fail(tbd_stub.plan, TBD_OUTCOME_FAILED, "the plan has no slot for thread %u", tid);
    slot->tid = tid;
    slot->regs = *regs;
    slot->regs.thread = tid;
    return slot;
}

/* ---- logged turns ---- */

static void start_thread(const struct tbd_message *message, const struct tbd_msg_thread *event)
{
    const uint8_t *at = (const uint8_t *)(message + 1) + sizeof(*event);
    struct tbd_plan_thread *slot;
    struct tbd_regs regs;

    memcpy(&regs, at, sizeof(regs));
    if (!event->thread || find_slot(event->thread) || event->thread == tbd_thread_now()->tid)
        tbd_stub_diverge(TBD_PLAN_LAST_INSN, "thread %u begins, but it lives", event->thread);
    if (!tbd_vector_fits(&tbd_processor.vector, regs.xsave_bytes))
        tbd_stub_fail(tbd_stub.plan, TBD_OUTCOME_FAILED, "thread %u has other vector registers",
                      event->thread);
    slot = take_slot(event->thread, &regs);
    memcpy(image_of(slot), at + sizeof(regs), regs.xsave_bytes);
}

static void leave(const struct tbd_thread *thread)
{
    if (!tbd_stub.has_ended) {
        struct tbd_plan_thread *slot = take_slot(thread->tid, &thread->regs);

        slot->regs.xsave_bytes = tbd_vector_store(&tbd_processor.vector, image_of(slot));
    }
    tbd_stub.has_ended = false;
}

static void enter(struct tbd_thread *thread, struct tbd_plan_thread *slot)
{
    _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES];

    if (!tbd_vector_fits(&tbd_processor.vector, slot->regs.xsave_bytes))
        tbd_stub_fail(tbd_stub.plan, TBD_OUTCOME_FAILED, "thread %u has other vector registers",
                      slot->tid);
    thread->regs = slot->regs;
    thread->tid = slot->tid;
    memcpy(image, image_of(slot), slot->regs.xsave_bytes);
    tbd_vector_load(&tbd_processor.vector, image);
    tbd_stub_need_upper_halves();
    tbd_set_fs_base(thread->regs.fs_base);
    slot->tid = 0;
    TBD_INVARIANT("THREAD_TURNS-1", !find_slot(thread->tid));
}

static void switch_threads(struct tbd_thread *thread, const struct tbd_msg_thread *event)
{
    struct tbd_plan_thread *slot = event->thread ? find_slot(event->thread) : NULL;

    if (event->from != thread->tid)
        tbd_stub_diverge(TBD_PLAN_LAST_INSN, "thread %u gives way, in play it was thread %u",
                         thread->tid, event->from);
    if (!slot)
        tbd_stub_diverge(TBD_PLAN_LAST_INSN, "a turn of thread %u, which does not exist",
                         event->thread);
    leave(thread);
    enter(thread, slot);
}

/* The length of the call's instruction at which the thread waits: prefixes, then 0f 05. */
static uint32_t call_length(uint64_t rip)
{
    uint8_t byte, before = 0;

    for (uint32_t i = 0; i < TBD_INSN_MAX_BYTES && tbd_memory_read(rip + i, &byte, 1); i++) {
        if (before == 0x0f && byte == 0x05)
            return i + 1;
        before = byte;
    }
    tbd_stub_diverge(TBD_PLAN_LAST_INSN, "thread %u waits at 0x%lx, where no system call is",
                     tbd_thread_now()->tid, rip);
}

void tbd_stub_turn(struct tbd_thread *thread, const struct tbd_message *message)
{
    struct tbd_msg_thread event;

    memcpy(&event, message + 1, sizeof(event));
    switch (event.event) {
    case TBD_THREAD_START:
        start_thread(message, &event);
        tbd_log_send(message);
        return;
    case TBD_THREAD_SWITCH:
        switch_threads(thread, &event);
        tbd_log_send(message);
        if (event.block_time != TBD_NO_BLOCK_TIME)
            tbd_stub_go_on_with_call(thread, call_length(thread->regs.rip));
        return;
    default:
        if (event.thread != thread->tid)
            tbd_stub_diverge(TBD_PLAN_LAST_INSN, "thread %u ends, in play it was thread %u",
                             thread->tid, event.thread);
        tbd_stub.has_ended = true;
        tbd_log_send(message);
        if (!tbd_log_peek(TBD_MSG_THREAD)) /* no other thread follows */
            tbd_stub_finish();
    }
}

/* ---- state of the waiting threads ---- */

bool tbd_stub_thread_state(uint32_t tid, struct tbd_regs *regs, void *image)
{
    const struct tbd_plan_thread *slot = tid ? find_slot(tid) : NULL;

    if (!slot)
        return false;
    *regs = slot->regs;
    memcpy(image, image_of(slot), slot->regs.xsave_bytes);
    return true;
}

void tbd_stub_send_threads(struct tbd_thread *thread)
{
    for (uint64_t i = 0; i < tbd_stub.plan->threads.count; i++) {
        struct tbd_plan_thread *slot = &slots()[i];
        struct tbd_part parts[2] = { { &slot->regs, sizeof(slot->regs) },
                                     { image_of(slot), slot->regs.xsave_bytes } };

        if (slot->tid)
            tbd_ring_send(&tbd_recording.ring, thread, TBD_MSG_REGS, parts, 2);
    }
}
