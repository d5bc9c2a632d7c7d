// SPDX-License-Identifier: MIT
/* wall_clock.c - see wall_clock.h */
#include "hooks/stream/wall_clock.h"

#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/stream/cycles.h"
#include "hooks/stream/recording.h"

#define INTERVAL_CYCLES 60000u /* of the counter: some 20 us */
#define INTERVAL_CALLS  32u    /* where there is no counter */

static uint64_t last;    /* the counter's value, or a number of calls */
static uint64_t last_ns; /* what the clock said then */
static bool is_begun;    /* a call began so soon after that it was not noted */

static void send(struct tbd_thread *thread, uint64_t realtime_ns)
{
    struct tbd_msg_clock message = { .realtime_ns = realtime_ns };
    struct tbd_part part = { &message, sizeof(message) };

    tbd_ring_send(&tbd_recording.ring, thread, TBD_MSG_CLOCK, &part, 1);
}

void tbd_wall_clock_note_now(struct tbd_thread *thread)
{
    int64_t now[2] = { 0, 0 };

    if (!tbd_recording.is_on || tbd_recording.ring.discard ||
        tbd_sys3(__NR_clock_gettime, CLOCK_REALTIME, tbd_sys_pointer(now), 0) != 0)
        return;
    if (is_begun && last_ns != 0)
        send(thread, last_ns); /* else the call would have the time of its end */
    is_begun = false;
    last_ns = (uint64_t)now[0] * 1000000000ull + (uint64_t)now[1];
    send(thread, last_ns);
}

/* False: it is too soon. */
static bool note(struct tbd_thread *thread)
{
    bool has_counter = tbd_cycles_can_be_read();
    uint64_t interval = has_counter ? INTERVAL_CYCLES : INTERVAL_CALLS;
    uint64_t now;

    if (!tbd_recording.is_on)
        return true;
    now = has_counter ? tbd_cycles_now() : last + 1;
    if (now - last < interval) {
        last = has_counter ? last : now;
        return false;
    }
    last = has_counter ? now : 0;
    tbd_wall_clock_note_now(thread);
    return true;
}

void tbd_wall_clock_note_begin(struct tbd_thread *thread)
{
    is_begun = false;
    is_begun = !note(thread) && tbd_cycles_can_be_read();
}

void tbd_wall_clock_note(struct tbd_thread *thread)
{
    (void)note(thread);
    is_begun = false;
}
