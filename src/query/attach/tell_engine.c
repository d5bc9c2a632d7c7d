// SPDX-License-Identifier: MIT
/* tell_engine.c - see tell_engine.h */
#include "query/attach/tell_engine.h"

#include "query/attach/attach_check.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

enum { AGAIN_MS = 1000, STEP_MS = 5, ALONE_MS = 5000 };

#define TRAP (1ull << (SIGTRAP - 1))

static bool catches_trap(pid_t pid)
{
    struct tbd_attach_thread first;

    tbd_attach_read_thread(pid, pid, &first);
    return first.caught & TRAP;
}

static void await_no_trap(pid_t pid)
{
    const struct timespec step = { .tv_nsec = STEP_MS * 1000000L };
    struct tbd_attach_thread first;

    for (int waited = 0; waited < ALONE_MS; waited += STEP_MS) {
        tbd_attach_read_thread(pid, pid, &first);
        if (!(first.shared_pending & TRAP))
            return;
        nanosleep(&step, NULL);
    }
}

bool tbd_tell_engine(pid_t pid, uint64_t value, struct tbd_query_error *error)
{
    const union sigval what = { .sival_ptr = (void *)(uintptr_t)value };

    await_no_trap(pid);
    if (!catches_trap(pid) || sigqueue(pid, SIGTRAP, what) == 0)
        return true;
    return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "process %d: %s", (int)pid, strerror(errno));
}

bool tbd_tell_engine_until(pid_t pid, uint64_t value, tbd_has_heard has_heard, void *context,
                           int ms, struct tbd_query_error *error)
{
    for (int waited = 0; waited < ms; waited += AGAIN_MS) {
        if (!tbd_tell_engine(pid, value, error))
            return false;
        if (has_heard(context, AGAIN_MS))
            return true;
    }
    return tbd_query_wrong(error, TBD_BUSY, 0, 0, "the program does not answer");
}
