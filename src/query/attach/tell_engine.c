// SPDX-License-Identifier: MIT
/* tell_engine.c - see tell_engine.h */
#include "query/attach/tell_engine.h"

#include "query/attach/attach_check.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { AGAIN_MS = 1000, STEP_MS = 5, ALONE_MS = 5000 };

struct hearing {
    tbd_has_heard has_heard;
    void *context;
    int ms;
};

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

bool tbd_process_ends(pid_t pid, int descriptor, int ms)
{
    struct pollfd end = { .fd = descriptor, .events = POLLIN };

    return poll(&end, 1, ms) > 0 || (kill(pid, 0) != 0 && errno == ESRCH);
}

static bool tell_until(pid_t pid, int descriptor, uint64_t value, const struct hearing *hearing,
                       struct tbd_query_error *error)
{
    for (int waited = 0; waited < hearing->ms; waited += AGAIN_MS) {
        if (!tbd_tell_engine(pid, value, error))
            return false;
        if (hearing->has_heard(hearing->context, AGAIN_MS))
            return true;
        if (tbd_process_ends(pid, descriptor, 0))
            return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "process %d has ended", (int)pid);
    }
    return tbd_query_wrong(error, TBD_BUSY, 0, 0, "the program does not answer");
}

bool tbd_tell_engine_until(pid_t pid, uint64_t value, tbd_has_heard has_heard, void *context,
                           int ms, struct tbd_query_error *error)
{
    const struct hearing hearing = { has_heard, context, ms };
    int descriptor = (int)syscall(SYS_pidfd_open, pid, 0);
    bool heard = tell_until(pid, descriptor, value, &hearing, error);

    if (descriptor >= 0)
        close(descriptor);
    return heard;
}
