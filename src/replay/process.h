// SPDX-License-Identifier: MIT
/* process.h - one replay process and the memory shared with it
 *
 * The process runs code from a trace, which may be hostile: the code may write anything to the
 * shared memory at any time, and do all that the kernel permits (stub/confine.c).  Nothing here
 * relies on the process' data; impossible values end the process.
 *
 * Context: ORG.  One struct is used by one thread at a time. */
#ifndef TBD_REPLAY_PROCESS_H
#define TBD_REPLAY_PROCESS_H

#include "base/status.h"
#include "replay/plan.h"
#include "replay/replay.h"
#include "replay/watch.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct tbd_process {
    pid_t pid; /* 0: none */
    int plan_fd;
    int stream_fd;
    int life_fd; /* of a pipe; the process notices when it is closed */
    /* our own copy: head and tables of the plan that is being made, or was carried out;
     * TBD_PLAN_BULK mapped */
    struct tbd_plan_head *plan;
    /* the memory that the process sees, and may change at any time; TBD_PLAN_MAX_BYTES mapped */
    struct tbd_plan_head *shared;
    uint64_t plan_at;      /* next free byte of `plan` */
    uint64_t bulk_at;      /* next free byte after TBD_PLAN_BULK */
    uint64_t shared_bytes; /* size of the file */
    struct tbd_plan_report report;
    struct tbd_process_watch watch;
    uint64_t requests;         /* pages asked for since the plan began */
    uint32_t seen_published;   /* the stream's `published` when the consumer last read it */
    const uint32_t *published; /* futex word of the stream, NULL until known */
};

/* The isolation of the process started last. */
enum tbd_isolation tbd_process_isolation(void);
/* Starts a process and waits until it is ready for a plan. */
TBD_MUST_CHECK enum tbd_status tbd_process_start(struct tbd_process *process,
                                                 struct tbd_error *why);
/* Ends the process and frees its resources; does nothing if there is none. */
void tbd_process_stop(struct tbd_process *process);

/* ---- making a plan ---- */

/* Starts a new plan: everything after the head is free again. */
void tbd_process_plan_clear(struct tbd_process *process);
/* Allocates a table of `bytes` bytes, 64-aligned, with old contents.  Returns its offset; 0: no
 * space. */
uint64_t tbd_process_plan_alloc(struct tbd_process *process, uint64_t bytes);
/* The table, in our own copy. */
static inline void *tbd_process_plan_at(const struct tbd_process *process, uint64_t offset)
{
    return (char *)process->plan + offset;
}
/* Reserves `bytes` bytes that only the process writes, or puts a copy of those at `from`.  Returns
 * their offset; 0: no space. */
uint64_t tbd_process_plan_reserve(struct tbd_process *process, uint64_t bytes);
uint64_t tbd_process_plan_put(struct tbd_process *process, const void *from, uint64_t bytes);
void tbd_process_plan_write(struct tbd_process *process, uint64_t offset, const void *from,
                            uint64_t bytes);
/* Copies the present bytes at `offset`.  False: they are not in the file. */
TBD_MUST_CHECK bool tbd_process_plan_read(const struct tbd_process *process, uint64_t offset,
                                          void *out, uint64_t bytes);

/* ---- carrying it out ---- */

enum tbd_process_event {
    TBD_PROCESS_STREAM, /* chunks were published, or time passed */
    TBD_PROCESS_PAGE,   /* it waits for a page */
    TBD_PROCESS_DONE,   /* the window is over: `report` */
    TBD_PROCESS_DEAD,   /* killed, crashed, hung or not trusted any more; `why` says which */
};
/* Hands over the plan in `plan`. */
void tbd_process_go(struct tbd_process *process);
/* Waits for the next event. */
enum tbd_process_event tbd_process_wait(struct tbd_process *process, struct tbd_error *why);

struct tbd_page_wanted {
    uint64_t address; /* of a page of the program */
    uint64_t order;   /* as in struct tbd_plan_request */
};
/* After TBD_PROCESS_PAGE: the page.  False: the request is impossible; `why` says how. */
TBD_MUST_CHECK bool tbd_process_wanted(struct tbd_process *process, struct tbd_page_wanted *out,
                                       struct tbd_error *why);
/* `contents`: NULL unless the answer is TBD_PAGE_GIVEN. */
void tbd_process_answer(struct tbd_process *process, enum tbd_page_answer answer,
                        const uint8_t *contents);

/* Fills `why`, with the replay process as its object. */
enum tbd_status tbd_process_error(struct tbd_error *why, enum tbd_status status, const char *format,
                                  ...) __attribute__((format(printf, 3, 4)));

#endif
