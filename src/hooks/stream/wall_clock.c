// SPDX-License-Identifier: MIT
/* wall_clock.c - see wall_clock.h
 *
 * Where entries of the kernel are dear, its clock takes as long as all the rest that is done for a system call.  So it is asked once in 10 ms only;
 * what has passed since then is read off the time-stamp counter, whose rate follows from the last two answers. */
#include "hooks/stream/wall_clock.h"

#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/stream/cycles.h"
#include "hooks/stream/recording.h"

#define INTERVAL_CYCLES 60000u       /* of the counter: some 20 us */
#define INTERVAL_CALLS  32u          /* where there is no counter */
#define ASK_CYCLES      (1ull << 25) /* after which the kernel's clock is asked again: some 10 ms */
/* A rate follows from answers that are as far apart as this. */
#define LEAST_APART_NS 4000000u
#define MOST_APART_NS  1000000000u
/* Nanoseconds in 2^32 cycles: of 10 and of 1 GHz.  Beyond, the clock was set meanwhile. */
#define LEAST_RATE ((1ull << 32) / 10)
#define MOST_RATE  (1ull << 32)
#define STEP_NS                                                                                    \
    1000000u /* a rate is not exact, so time may seem to go back; by more than this it really does */

static uint64_t last;    /* the counter's value, or a number of calls */
static uint64_t last_ns; /* what the clock said then */
static bool is_begun;    /* a call began so soon after that it was not noted */

static void send(struct tbd_thread *thread, uint64_t realtime_ns)
{
    struct tbd_msg_clock message = { .realtime_ns = realtime_ns };
    struct tbd_part part = { &message, sizeof(message) };

    tbd_ring_send(&tbd_recording.ring, thread, TBD_MSG_CLOCK, &part, 1);
}

/* What the kernel's clock said last, and the counter then. */
static struct {
    uint64_t ns, cycles;
    uint64_t rate; /* 0: not known */
} asked;

/* 0: there is none. */
static uint64_t ask(void)
{
    int64_t now[2] = { 0, 0 };

    if (tbd_sys3(__NR_clock_gettime, CLOCK_REALTIME, tbd_sys_pointer(now), 0) != 0)
        return 0;
    return (uint64_t)now[0] * 1000000000ull + (uint64_t)now[1];
}

static void find_rate(uint64_t apart_ns, uint64_t apart_cycles)
{
    uint64_t rate;

    if (apart_ns < LEAST_APART_NS || apart_ns > MOST_APART_NS || !apart_cycles)
        return;
    rate = (apart_ns << 32) / apart_cycles;
    asked.rate = rate >= LEAST_RATE && rate <= MOST_RATE ? rate : 0;
}

static uint64_t time_at(uint64_t cycles)
{
    uint64_t since = cycles - asked.cycles;
    uint64_t ns;

    if (asked.rate && since < ASK_CYCLES) {
        ns = asked.ns + (since * asked.rate >> 32);
        return ns < last_ns && last_ns - ns < STEP_NS ? last_ns : ns;
    }
    ns = ask();
    if (asked.ns && !asked.rate && ns - asked.ns < LEAST_APART_NS)
        return ns; /* the answer before stays, from which a rate will follow */
    find_rate(ns - asked.ns, since);
    asked.ns = ns;
    asked.cycles = cycles;
    return ns;
}

static void note_time(struct tbd_thread *thread, uint64_t ns)
{
    if (!ns)
        return;
    if (is_begun && last_ns != 0)
        send(thread, last_ns); /* else the call would have the time of its end */
    is_begun = false;
    last_ns = ns;
    send(thread, last_ns);
}

static bool is_on(void)
{
    return tbd_recording.is_on && !tbd_recording.ring.discard;
}

void tbd_wall_clock_note_now(struct tbd_thread *thread)
{
    if (is_on())
        note_time(thread, ask());
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
    if (is_on())
        note_time(thread, has_counter ? time_at(now) : ask());
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
