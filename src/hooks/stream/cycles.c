// SPDX-License-Identifier: MIT
/* cycles.c - see cycles.h */
#include "hooks/stream/cycles.h"

#include "base/linux_abi.h"
#include "base/sys.h"
#include "base/sys_clock.h"

static bool can_be_read, is_known;
static uint64_t read_last;

bool tbd_cycles_can_be_read(void)
{
    int mode = PR_TSC_SIGSEGV;

    if (!is_known)
        can_be_read = tbd_sys3(__NR_prctl, PR_GET_TSC, tbd_sys_pointer(&mode), 0) == 0 &&
                      mode == PR_TSC_ENABLE;
    is_known = true;
    return can_be_read;
}

uint64_t tbd_cycles_now(void)
{
    read_last = tbd_cycles_can_be_read() ? __builtin_ia32_rdtsc() : tbd_sys_clock_ns();
    return read_last;
}

uint64_t tbd_cycles_read_last(void)
{
    return read_last;
}

void tbd_cycles_forbid(void)
{
    is_known = true;
    can_be_read = false;
}
