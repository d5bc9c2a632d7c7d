// SPDX-License-Identifier: MIT
/* confine.c - restricts a replay process to computing
 *
 * A trace may come from anybody.  A replay runs the code in it, next to an engine that this code
 * can overwrite.  So before the first window the process closes its descriptors, and gives up all
 * system calls that the stub does not make itself (filter.h); any other one kills it, which the
 * driver reports.  It has no terminal: its messages are in the plan.
 *
 * CONFINE-1  Nothing is replayed unless all restrictions are in force.  (not checked:
 *     test_hostile.py does) */
#include "replay/stub/stub.h"

#include "base/linux_abi.h"
#include "base/log.h"
#include "base/sys.h"
#include "replay/stub/filter.h"

#include <linux/prctl.h>
#include <linux/seccomp.h>

#define POLL_HANGUP 0x10

static long process_control(unsigned option, uint64_t a, uint64_t b)
{
    return tbd_sys6(__NR_prctl, option, a, b, 0, 0, 0);
}

/* Makes the process end with the driver, even if the driver ended before this call. */
static bool ends_with_driver(void)
{
    struct {
        int fd;
        short events, returned;
    } life = { .fd = TBD_PLAN_LIFE_FD };

    if (process_control(PR_SET_PDEATHSIG, SIGKILL, 0))
        return false;
    if (tbd_sys_failed(tbd_sys3(__NR_poll, tbd_sys_pointer(&life), 1, 0)))
        return false;
    if (life.returned & POLL_HANGUP)
        tbd_sys_exit_group(0);
    return true;
}

/* The stub needs none of these resources.  Without them, code that gets past the filter can do
 * little. */
static bool give_up_resources(void)
{
    static const uint8_t none[] = { RLIMIT_CORE,    RLIMIT_FSIZE,    RLIMIT_NPROC, RLIMIT_NOFILE,
                                    RLIMIT_MEMLOCK, RLIMIT_MSGQUEUE, RLIMIT_NICE,  RLIMIT_RTPRIO };
    static const struct rlimit64 zero;

    for (size_t i = 0; i < sizeof(none); i++)
        if (tbd_sys4(__NR_prlimit64, 0, none[i], tbd_sys_pointer(&zero), 0))
            return false;
    return true;
}

static bool filter_calls(void)
{
    static struct sock_filter code[TBD_FILTER_CAPACITY];
    struct sock_fprog program = { .len = (unsigned short)tbd_filter_make(code), .filter = code };

    return !process_control(PR_SET_NO_NEW_PRIVS, 1, 0) &&
           !process_control(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, tbd_sys_pointer(&program));
}

const char *tbd_stub_confine(void)
{
    tbd_log_silent = true;
    if (!ends_with_driver())
        return "it cannot be confined: no signal at its parent's end";
    if (tbd_sys3(__NR_close_range, 0, UINT32_MAX, 0))
        return "it cannot be confined: descriptors cannot be closed (close_range: Linux 5.9)";
    if (!give_up_resources())
        return "it cannot be confined: limits cannot be set";
    if (!filter_calls())
        return "it cannot be confined: system calls cannot be filtered (seccomp)";
    return NULL;
}
