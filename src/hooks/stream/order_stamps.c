// SPDX-License-Identifier: MIT
/* order_stamps.c - see order_stamps.h
 *
 * The processor's counter (rdtsc) takes 10 ns, a system call ten times that, and a counter that all threads share goes from cache to cache.  Where the counter
 * says of itself that its rate never changes (cpuid, leaf 0x80000007), the kernel keeps those of all processors in step, and has its own clocks from them.
 * Elsewhere stamps are the kernel's monotonic clock.
 *
 * rdtsc is not ordered with what is before and after it: lfence waits for the instructions before it, and a locked one, which takes half as long as mfence, for their stores (Intel SDM, volume 2,
 * RDTSC; volume 3, 9.2.5).  A stamp `before` that is too late, and one `after` that is too early, tell less, but nothing that is false. */
#include "hooks/stream/order_stamps.h"

#include "base/cpuid.h"
#include "base/sys_clock.h"
#include "hooks/stream/cycles.h"

#define LEAF_HIGHEST   0x80000000u
#define LEAF_POWER     0x80000007u
#define EDX_STEADY_TSC (1u << 8)

static bool is_on, is_counter;

static bool is_steady(void)
{
    static bool is_asked, answer;
    uint32_t out[4];

    if (is_asked)
        return answer;
    is_asked = true;
    tbd_cpuid(LEAF_HIGHEST, 0, out);
    if (out[0] < LEAF_POWER)
        return false;
    tbd_cpuid(LEAF_POWER, 0, out);
    return answer = out[3] & EDX_STEADY_TSC;
}

static uint64_t now(void)
{
    if (is_counter)
        return tbd_cycles_can_be_read() ? __builtin_ia32_rdtsc() : 0;
    return tbd_sys_clock_ns();
}

void tbd_stamps_start(struct tbd_crash *crash)
{
    is_on = crash;
    is_counter = is_on && tbd_cycles_can_be_read() && is_steady();
    if (!is_on)
        return;
    crash->stamps_count_ns = !is_counter;
    crash->stamps_from_ns = tbd_sys_clock_ns();
    crash->stamps_from = now();
}

uint64_t tbd_stamp_before(void)
{
    if (!is_on)
        return 0;
    __asm__ volatile("lock orl $0, (%%rsp)\n\tlfence" : : : "memory", "cc");
    return now();
}

uint64_t tbd_stamp_after(void)
{
    uint64_t stamp;

    if (!is_on)
        return 0;
    stamp = now();
    __asm__ volatile("lfence" : : : "memory");
    return stamp;
}

uint64_t tbd_stamp_here(void)
{
    uint64_t stamp = tbd_stamp_before();

    if (is_on)
        __asm__ volatile("lfence" : : : "memory");
    return stamp;
}
