// SPDX-License-Identifier: MIT
/* own_window.c - see own_window.h */
#include "hooks/own/own_window.h"

#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/stream/cycles.h"

#define LEAST_NS        20000000u
#define MOST_NS         100000000u
#define TICK_NS         10000000u /* when other threads may get their turn, too */
#define COSTS_ARE       33u       /* one part in this many of a window's time */
#define KEEPING_NS      5000u     /* of a page, for the organizer: to compress and write it */
#define KEEPING_IS      10u       /* one part in this many of a window's time, */
#define KEEPING_MOST_NS 60000000u /* but no longer: what has many pages is replayed slowly, too */
#define TURN_PART       4u /* of a window, after which a thread that waits for its turn may get it */
#define MOST_END_NS     5000000u /* beyond, it was other threads' time */
/* Cycles of the time-stamp counter after which the processor time is asked at a stop: about 10 ms.  While others have the
 * processor, the window does not grow. */
#define LOOK_CYCLES (1ull << 25)

static uint64_t length_ns, tick_ns, first_write_ns;
static bool is_fixed;
static uint64_t look_cycles = LOOK_CYCLES;
static uint64_t began_used, looked; /* nanoseconds; cycles */

uint64_t tbd_own_window_now_ns(void)
{
    int64_t now[2] = { 0, 0 };

    tbd_sys3(__NR_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, tbd_sys_pointer(now), 0);
    return (uint64_t)now[0] * 1000000000ull + (uint64_t)now[1];
}

void tbd_own_window_begin(uint64_t fixed_ns, uint64_t page_ns)
{
    is_fixed = fixed_ns;
    length_ns = is_fixed ? fixed_ns : LEAST_NS;
    tick_ns = is_fixed ? fixed_ns : TICK_NS;
    look_cycles = is_fixed && fixed_ns < LEAST_NS ? fixed_ns : LOOK_CYCLES; /* of 1 GHz at least */
    first_write_ns = page_ns;
    tbd_own_window_next();
}

void tbd_own_window_set_page_ns(uint64_t page_ns)
{
    first_write_ns = page_ns;
}

uint64_t tbd_own_window_tick_ns(void)
{
    return tick_ns;
}

uint64_t tbd_own_window_used_ns(void)
{
    return tbd_own_window_now_ns() - began_used;
}

bool tbd_own_window_is_over_at_stop(uint64_t now)
{
    if (now - looked < look_cycles)
        return false;
    looked = now;
    return tbd_own_window_used_ns() >= length_ns;
}

/* The kernel's ticks are not exact. */
bool tbd_own_window_is_over_at_tick(void)
{
    return tbd_own_window_used_ns() + tick_ns / 2 >= length_ns;
}

bool tbd_own_window_pays(void)
{
    return tbd_own_window_used_ns() >= length_ns / TURN_PART;
}

void tbd_own_window_next(void)
{
    looked = tbd_cycles_now();
    began_used = tbd_own_window_now_ns();
}

void tbd_own_window_cost(uint64_t end_ns, uint64_t pages)
{
    uint64_t end = end_ns < MOST_END_NS ? end_ns : MOST_END_NS;
    uint64_t wanted = (end + pages * first_write_ns) * COSTS_ARE;
    uint64_t keeping = pages * KEEPING_NS * KEEPING_IS;

    if (keeping > KEEPING_MOST_NS)
        keeping = KEEPING_MOST_NS;
    if (wanted < keeping)
        wanted = keeping;
    if (!is_fixed)
        length_ns = wanted < LEAST_NS ? LEAST_NS : wanted > MOST_NS ? MOST_NS : wanted;
}
