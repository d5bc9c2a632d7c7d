// SPDX-License-Identifier: MIT
/* process.h - one replay process and the memory shared with it
 *
 * Context: ORG.  One struct is used by one thread at a time. */
#ifndef TBD_REPLAY_PROCESS_H
#define TBD_REPLAY_PROCESS_H

#include "base/status.h"
#include "replay/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct tbd_process {
    pid_t pid; /* 0: none */
    int plan_fd;
    int stream_fd;
    struct tbd_plan_head *plan; /* TBD_PLAN_MAX_BYTES mapped, file_bytes of it usable */
    uint64_t plan_at;           /* next free byte while a plan is written */
    uint64_t plan_bytes;        /* size of the file */
    uint32_t seen_published;    /* of the stream, when the consumer last looked */
    const uint32_t *published;  /* futex word of the stream, NULL until known */
};

/* Starts a process and waits until it is ready for a plan. */
TBD_MUST_CHECK enum tbd_status tbd_process_start(struct tbd_process *process,
                                                 struct tbd_error *why);
/* Ends the process and frees what belongs to it; fine if there is none. */
void tbd_process_stop(struct tbd_process *process);

/* Starts a new plan: everything behind the head is free again. */
void tbd_process_plan_clear(struct tbd_process *process);
/* Offset of `bytes` bytes in the plan, 64-aligned, with old contents; 0 when it cannot grow. */
uint64_t tbd_process_plan_alloc(struct tbd_process *process, uint64_t bytes);
static inline void *tbd_process_plan_at(const struct tbd_process *process, uint64_t offset)
{
    return (char *)process->plan + offset;
}

enum tbd_process_event {
    TBD_PROCESS_STREAM, /* chunks were published, or time passed */
    TBD_PROCESS_PAGE,   /* it waits for a page */
    TBD_PROCESS_DONE,   /* the window is over */
    TBD_PROCESS_DEAD,   /* killed, crashed or hung; `why` says which */
};
/* Lets the process take its turn. */
void tbd_process_go(struct tbd_process *process);
/* Waits for the next thing to do. */
enum tbd_process_event tbd_process_wait(struct tbd_process *process, struct tbd_error *why);

/* Fills `why`: the replay process is its object. */
enum tbd_status tbd_process_error(struct tbd_error *why, enum tbd_status status, const char *format,
                                  ...) __attribute__((format(printf, 3, 4)));

#endif
