// SPDX-License-Identifier: MIT
/* wall_clock.c - see wall_clock.h */
#include "hooks/stream/wall_clock.h"

#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/stream/recording.h"

#define INTERVAL_CYCLES 60000u /* of the counter: some 20 us */
#define INTERVAL_CALLS  32u    /* where there is no counter */

static struct {
    uint64_t last; /* the counter's value, or a number of calls */
    bool has_counter;
    bool is_known; /* has_counter is */
} clock;

static bool may_read_counter(void)
{
    int mode = PR_TSC_SIGSEGV;

    if (!clock.is_known)
        clock.has_counter = tbd_sys3(__NR_prctl, PR_GET_TSC, tbd_sys_pointer(&mode), 0) == 0 &&
                            mode == PR_TSC_ENABLE;
    clock.is_known = true;
    return clock.has_counter;
}

void tbd_wall_clock_forbid_counter(void)
{
    clock.is_known = true;
    clock.has_counter = false;
}

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
    uint64_t now, interval = INTERVAL_CYCLES;

    if (!tbd_recording.is_on)
        return;
    if (may_read_counter()) {
        now = __builtin_ia32_rdtsc();
    } else {
        now = clock.last + 1;
        interval = INTERVAL_CALLS;
    }
    if (now - clock.last < interval) {
        clock.last = clock.has_counter ? clock.last : now;
        return;
    }
    clock.last = clock.has_counter ? now : 0;
    tbd_wall_clock_note_now(thread);
}
