// SPDX-License-Identifier: MIT
/* wall_clock.c - see wall_clock.h */
#include "hooks/stream/wall_clock.h"

#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/stream/cycles.h"
#include "hooks/stream/recording.h"

#define INTERVAL_CYCLES 60000u /* of the counter: some 20 us */
#define INTERVAL_CALLS  32u    /* where there is no counter */

static uint64_t last; /* the counter's value, or a number of calls */

void tbd_wall_clock_note_now(struct tbd_thread *thread)
{
    struct tbd_msg_clock message;
    struct tbd_part part = { &message, sizeof(message) };
    int64_t now[2] = { 0, 0 };

    if (!tbd_recording.is_on || tbd_recording.ring.discard ||
        tbd_sys3(__NR_clock_gettime, CLOCK_REALTIME, tbd_sys_pointer(now), 0) != 0)
        return;
    message.realtime_ns = (uint64_t)now[0] * 1000000000ull + (uint64_t)now[1];
    tbd_ring_send(&tbd_recording.ring, thread, TBD_MSG_CLOCK, &part, 1);
}

void tbd_wall_clock_note(struct tbd_thread *thread)
{
    bool has_counter = tbd_cycles_can_be_read();
    uint64_t interval = has_counter ? INTERVAL_CYCLES : INTERVAL_CALLS;
    uint64_t now;

    if (!tbd_recording.is_on)
        return;
    now = has_counter ? tbd_cycles_now() : last + 1;
    if (now - last < interval) {
        last = has_counter ? last : now;
        return;
    }
    last = has_counter ? now : 0;
    tbd_wall_clock_note_now(thread);
}
