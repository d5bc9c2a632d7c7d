// SPDX-License-Identifier: MIT
/* ring_memory.h - the memory of a program's rings (mode=crash), to post a request to its engine
 *
 * The collector has it open; who may look at the collector's descriptors may map it.  The program can write
 * anything there at any time. */
#ifndef TBD_QUERY_RING_MEMORY_H
#define TBD_QUERY_RING_MEMORY_H

#include "format/probe/trigger.h"
#include "query/text/query_error.h"

#include <sys/types.h>

struct tbd_ring_memory {
    int fd;
    void *stream;
    size_t bytes;
    const struct tbd_crash *crash;     /* in it */
    struct tbd_crash_request *request; /* the same */
};

/* Finds that of process `pid`, which runs under `tbd crash`. */
bool tbd_ring_memory_find(struct tbd_ring_memory *memory, pid_t pid, struct tbd_query_error *error);
/* The one whose stream this process has inherited from the collector. */
bool tbd_ring_memory_reopen(struct tbd_ring_memory *memory, int stream_fd,
                            struct tbd_query_error *error);
void tbd_ring_memory_close(struct tbd_ring_memory *memory);

/* Puts the request there.  One asker at a time: waits for others. */
bool tbd_ring_memory_post(struct tbd_ring_memory *memory, const struct tbd_crash_request *request,
                          struct tbd_query_error *error);
/* Waits for the engine's answer, at most `ms` milliseconds. */
bool tbd_ring_memory_await(struct tbd_ring_memory *memory, int ms, struct tbd_query_error *error);
/* Tells process `pid` that there is a request, and waits for its answer. */
bool tbd_ring_memory_tell(struct tbd_ring_memory *memory, pid_t pid, int ms,
                          struct tbd_query_error *error);

#endif
