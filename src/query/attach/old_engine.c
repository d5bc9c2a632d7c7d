// SPDX-License-Identifier: MIT
/* old_engine.c - see old_engine.h */
#include "query/attach/old_engine.h"

#include "base/clock.h"
#include "base/layout.h"
#include "query/attach/attach_check.h"
#include "query/attach/engine_image.h"

#include <string.h>
#include <time.h>

#define TRIES      100
#define TRY_NS     5000000L
#define LONGEST_NS 320000000L /* between two looks for which all threads are stopped */
#define STOP_NS    2000000000ull
#define AWAIT_NS   30000000000L

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

/* Where a thread may put the engine into place, begin or leave it.  Empty: it has no library. */
static bool is_inside(uint64_t rip, const struct tbd_attach_range *library)
{
    return (rip >= TBD_ENGINE_BASE && rip < TBD_ENGINE_END) ||
           (rip >= library->start && rip < library->end);
}

/* The program has been made ready for `tbd probe` and others meanwhile: that is no old engine. */
static bool refuse_starting(pid_t pid, struct tbd_query_error *error)
{
    tbd_query_wrong(error, TBD_BUSY, 0, 0, "process %d is just starting under tbd", (int)pid);
    strcpy(error->hint, "try again");
    return false;
}

static bool refuse_inside(pid_t pid, struct tbd_query_error *error)
{
    return tbd_query_wrong(error, TBD_BUSY, 0, 0,
                           "a thread of process %d is in the engine still, or begins it", (int)pid);
}

bool tbd_old_engine_borrow(struct tbd_remote *out, pid_t pid, struct tbd_query_error *error)
{
    const struct timespec moment = { 0, TRY_NS };
    struct tbd_attach_range library;

    for (int i = 0; i < TRIES; i++) {
        if (!tbd_remote_borrow(out, pid, 0, error))
            return false;
        tbd_attach_find_library(pid, &library);
        if (!is_inside(out->saved.rip, &library)) {
            if (i == 0 || !tbd_attach_shares_memory(pid))
                return true;
            tbd_remote_let_go(out);
            return refuse_starting(pid, error);
        }
        tbd_remote_let_go(out);
        nanosleep(&moment, NULL);
    }
    return refuse_inside(pid, error);
}

static bool remove_unless_inside(struct tbd_remote *remote, struct tbd_held *io_before,
                                 bool *out_inside, struct tbd_query_error *error)
{
    struct tbd_held held = { 0 };
    struct tbd_attach_range library;

    if (!tbd_held_stop(&held, remote->pid, remote->tid, tbd_clock_ns() + STOP_NS, error)) {
        tbd_held_go_on(&held);
        return false;
    }
    tbd_attach_find_library(remote->pid, &library);
    *out_inside = false;
    for (size_t i = 0; i < held.count; i++)
        *out_inside |= is_inside(held.all[i].regs.rip, &library);
    if (!*out_inside)
        tbd_remote_unmap(remote, TBD_ENGINE_BASE, TBD_ENGINE_END - TBD_ENGINE_BASE);
    return tbd_held_let_run(&held, io_before, error);
}

/* Threads that were let go leave it in some microseconds when they get a processor, for which they must not be stopped all the time. */
bool tbd_old_engine_remove(struct tbd_remote *remote, struct tbd_held *io_before,
                           struct tbd_query_error *error)
{
    bool inside = tbd_attach_has_engine(remote->pid);
    struct timespec moment = { 0, TRY_NS };

    for (long waited = 0; inside && waited < AWAIT_NS; waited += moment.tv_nsec) {
        if (!remove_unless_inside(remote, io_before, &inside, error))
            return false;
        if (waited && moment.tv_nsec < LONGEST_NS)
            moment.tv_nsec *= 2;
        if (inside)
            nanosleep(&moment, NULL);
    }
    return !inside || refuse_inside(remote->pid, error);
}
