// SPDX-License-Identifier: MIT
/* window_end.c - see window_end.h */
#include "hooks/threads/window_end.h"

#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/instructions/processor.h"
#include "hooks/instructions/registers.h"
#include "hooks/instructions/shared_set.h"
#include "hooks/memory/program_memory.h"
#include "hooks/stream/wall_clock.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/threads.h"

static uint64_t next_due(void)
{
    uint64_t tick = tbd_threads_next_tick();

    return tick < tbd_recording.window_due ? tick : tbd_recording.window_due;
}

static bool is_translated;

void tbd_window_translates(void)
{
    is_translated = true;
}

void tbd_window_send_translated(struct tbd_thread *thread)
{
    struct tbd_msg_translated message = { 0 };
    struct tbd_part part = { &message, sizeof(message) };

    tbd_ring_send(&tbd_recording.ring, thread, TBD_MSG_TRANSLATED, &part, 1);
}

static void end_window(struct tbd_thread *thread)
{
    struct tbd_ring *ring = &tbd_recording.ring;

    tbd_recording.window_due = tbd_ring_time(ring, thread) + tbd_recording.window;
    if (!tbd_recording.is_on)
        return;
    if (tbd_recording.hooks & TBD_HOOK_TOUCH)
        tbd_memory_send_touched(thread);
    tbd_wall_clock_note_now(thread);
    tbd_threads_send_regs(thread);
    tbd_registers_send(ring, thread, &tbd_processor.vector);
    tbd_window_send_end(ring, thread, &tbd_memory.pages, next_due());
    if (is_translated && ring->head->flags & TBD_STREAM_NATIVE)
        tbd_window_send_translated(thread);
    tbd_shared_begin_window(thread);
    TBD_LOG(TBD_LOG_DEBUG, "window", "ended at time %lu", tbd_ring_time(ring, thread));
}

/* A few blocks with system calls can log any number of bytes.  The consumer holds a window's bytes
 * in memory. */
#define WINDOW_MAX_BYTES (64u << 20)

static void end_large_window_now(struct tbd_ring *ring, struct tbd_thread *thread)
{
    uint64_t time = tbd_ring_time(ring, thread);

    if (ring->window_bytes < WINDOW_MAX_BYTES || !tbd_recording.is_on ||
        time <= tbd_recording.window_due - tbd_recording.window)
        return;
    if (time < tbd_recording.window_due)
        tbd_recording.window_due = time;
    if (time < ring->due)
        ring->due = time;
}

/* Ends the window and gives another thread its turn, if they are due.  The first turn of a second thread may be due
 * before what the open chunk ends for: the chunk is cut short then. */
void tbd_window_handle_due(struct tbd_thread *thread)
{
    struct tbd_ring *ring = &tbd_recording.ring;
    uint64_t due;

    if (ring->due == TBD_TIME_NEVER)
        return;
    end_large_window_now(ring, thread);
    due = next_due();
    if (tbd_ring_time(ring, thread) >= (ring->due < due ? ring->due : due)) {
        if (tbd_ring_time(ring, thread) >= tbd_recording.window_due)
            end_window(thread);
        tbd_threads_tick(thread);
        due = next_due();
    }
    if (ring->due != due)
        tbd_ring_set_due(ring, thread, due);
}

static bool is_cut;

void tbd_window_cut(void)
{
    is_cut = true;
}

static void end_stream(struct tbd_ring *ring)
{
    __atomic_store_n(&ring->head->engine_state, TBD_ENGINE_ENDED, __ATOMIC_RELEASE);
    tbd_sys_futex_wake(&ring->head->published);
}

/* As of a killed program, except that the trace knows how it ended. */
static void send_cut(struct tbd_ring *ring, const struct tbd_part *parts, uint32_t count)
{
    tbd_ring_send(ring, tbd_thread_now(), TBD_MSG_END, parts, count);
    tbd_ring_turn(ring, tbd_thread_now(), 0);
    end_stream(ring);
}

/* Closes the last window like every other, with the state that the program ended with. */
static void send_last(const struct tbd_part *parts, uint32_t count)
{
    struct tbd_ring *ring = &tbd_recording.ring;

    if (!tbd_recording.is_on || ring->discard)
        return;
    if (is_cut) {
        send_cut(ring, parts, count);
        return;
    }
    if (tbd_recording.hooks & TBD_HOOK_TOUCH)
        tbd_memory_send_touched(tbd_thread_now());
    if (tbd_recording.unknown_calls)
        tbd_recording_note(
            0, "%lu system calls were not described: their writes were found by comparison",
            tbd_recording.unknown_calls);
    tbd_wall_clock_note_now(tbd_thread_now());
    tbd_ring_send(ring, tbd_thread_now(), TBD_MSG_END, parts, count);
    tbd_threads_send_regs(tbd_thread_now());
    tbd_registers_send(ring, tbd_thread_now(), &tbd_processor.vector);
    tbd_window_send_end(ring, tbd_thread_now(), &tbd_memory.pages, TBD_TIME_NEVER);
    end_stream(ring);
}

void tbd_window_send_last(enum tbd_end_how how, uint32_t value, uint64_t offset, const char *text)
{
    struct tbd_msg_end end = { .how = (uint32_t)how, .value = value, .offset = offset };
    struct tbd_part parts[2] = { { &end, sizeof(end) }, { text, strlen(text) + 1 } };

    send_last(parts, 2);
}

void tbd_window_send_fatal(uint32_t signo, uint64_t offset, const uint8_t *siginfo)
{
    struct tbd_msg_end end = { .how = TBD_ENDED_SIGNAL, .value = signo, .offset = offset };
    struct tbd_part parts[3] = { { &end, sizeof(end) }, { "", 1 }, { siginfo, TBD_SIGINFO_BYTES } };

    send_last(parts, siginfo ? 3 : 2);
}
