// SPDX-License-Identifier: MIT
/* old_engine.h - what an engine has left in a process from which it went
 *
 * Its memory stays, and is in the state of what it did last: probes, or a recording.  Before another one comes it is taken away. */
#ifndef TBD_QUERY_OLD_ENGINE_H
#define TBD_QUERY_OLD_ENGINE_H

#include "query/attach/held_threads.h"
#include "query/attach/remote_thread.h"

/* A keeper that was sent away, or a child of vfork, is gone soon: waits until nobody shares the memory of the process. */
bool tbd_old_engine_await_alone(pid_t pid, struct tbd_query_error *error);
/* tbd_remote_borrow() of a thread that is not in the engine, nor in the library that puts it into place: a program that is
 * just starting under tbd is refused, or waited for. */
bool tbd_old_engine_borrow(struct tbd_remote *out, pid_t pid, struct tbd_query_error *error);
/* By the borrowed thread `remote`, when no thread is inside; none there is no error.  *io_before: what is remembered of the
 * threads' stops (tbd_held_let_run()); it is the caller's to free. */
bool tbd_old_engine_remove(struct tbd_remote *remote, struct tbd_held *io_before,
                           struct tbd_query_error *error);

#endif
