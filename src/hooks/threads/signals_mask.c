// SPDX-License-Identifier: MIT
/* signals_mask.c - the kernel's signal mask of the calling thread (signals.h) */
#include "hooks/threads/signals_private.h"

#include "base/sys.h"
#include "hooks/threads/threads.h"

uint64_t tbd_signals_needed(void)
{
    const struct tbd_signal_exits *exits = tbd_signals_exits();

    return exits && exits->stops ? ALWAYS_OURS | BIT(SIGSYS) : ALWAYS_OURS;
}

void tbd_signals_set_native_mask(uint64_t mask)
{
    tbd_sys4(__NR_rt_sigprocmask, SIG_SETMASK, tbd_sys_pointer(&mask), 0, 8);
}

void tbd_signals_set_kernel_mask(uint64_t mask)
{
    const struct tbd_signal_exits *exits = tbd_signals_exits();

    if (exits && exits->stops)
        mask &= ~BIT(SIGSYS); /* a system call with the signal blocked would be the program's end */
    tbd_signals_set_native_mask(mask);
}

uint64_t tbd_signals_block_all(void)
{
    uint64_t all = ~tbd_signals_needed();
    uint64_t old = 0;

    tbd_sys4(__NR_rt_sigprocmask, SIG_SETMASK, tbd_sys_pointer(&all), tbd_sys_pointer(&old), 8);
    return old;
}

void tbd_signals_let_in(void)
{
    const struct tbd_signals *signals = tbd_signals_now();

    if (!__atomic_load_n(&signals->pending, __ATOMIC_ACQUIRE))
        tbd_signals_set_kernel_mask(tbd_signals_kernel_mask(signals->mask));
}
