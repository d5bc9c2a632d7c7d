// SPDX-License-Identifier: MIT
/* old_engine.c - see old_engine.h */
#include "query/attach/old_engine.h"

#include "base/layout.h"
#include "query/attach/attach_check.h"
#include "query/attach/engine_image.h"

#include <time.h>

#define TRIES  100
#define TRY_NS 5000000L

bool tbd_old_engine_await_alone(pid_t pid, struct tbd_query_error *error)
{
    const struct timespec moment = { 0, TRY_NS };

    for (int i = 0; i < TRIES; i++) {
        if (!tbd_attach_shares_memory(pid))
            return true;
        nanosleep(&moment, NULL);
    }
    return tbd_query_wrong(error, TBD_BUSY, 0, 0, "another process shares the memory of process %d",
                           (int)pid);
}

static bool is_inside(uint64_t rip)
{
    return rip >= TBD_ENGINE_BASE && rip < TBD_ENGINE_END;
}

static bool is_anybody_inside(const struct tbd_remote *remote, const struct tbd_held *held)
{
    bool some = is_inside(remote->saved.rip);

    for (size_t i = 0; i < held->count; i++)
        some |= is_inside(held->all[i].regs.rip);
    return some;
}

static bool remove_unless_inside(struct tbd_remote *remote, struct tbd_held *io_before,
                                 bool *out_inside, struct tbd_query_error *error)
{
    struct tbd_held held = { 0 };

    if (!tbd_held_stop(&held, remote->pid, remote->tid, error)) {
        tbd_held_go_on(&held);
        return false;
    }
    *out_inside = is_anybody_inside(remote, &held);
    if (!*out_inside)
        tbd_remote_unmap(remote, TBD_ENGINE_BASE, TBD_ENGINE_END - TBD_ENGINE_BASE);
    return tbd_held_let_run(&held, io_before, error);
}

/* Threads that were let go leave it in some microseconds, if they have a processor. */
bool tbd_old_engine_remove(struct tbd_remote *remote, struct tbd_held *io_before,
                           struct tbd_query_error *error)
{
    const struct timespec moment = { 0, TRY_NS };
    bool inside = tbd_attach_has_engine(remote->pid);

    for (int i = 0; inside && i < TRIES; i++) {
        if (!remove_unless_inside(remote, io_before, &inside, error))
            return false;
        if (inside)
            nanosleep(&moment, NULL);
    }
    return !inside ||
           tbd_query_wrong(error, TBD_BUSY, 0, 0,
                           "a thread of process %d is still leaving the engine", (int)remote->pid);
}
