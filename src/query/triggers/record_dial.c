// SPDX-License-Identifier: MIT
/* record_dial.c - see record_dial.h */
#include "query/triggers/record_dial.h"

#include "format/files/crash_file.h"
#include "query/triggers/ring_memory.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool runs_program(const struct tbd_dialled *process, struct tbd_query_error *error)
{
    char link[64], path[PATH_MAX];
    ssize_t bytes;

    if (process->program == NULL)
        return true;
    snprintf(link, sizeof(link), "/proc/%d/exe", (int)process->pid);
    bytes = readlink(link, path, sizeof(path));
    return (bytes >= 0 && (size_t)bytes == strlen(process->program) &&
            memcmp(path, process->program, (size_t)bytes) == 0) ||
           tbd_query_wrong(error, TBD_NOTFOUND, 0, 0, "process %d does not run this program now",
                           (int)process->pid);
}

/* Close *memory all the same. */
static bool find(const struct tbd_dialled *process, struct tbd_ring_memory *memory,
                 struct tbd_query_error *error)
{
    *memory = (struct tbd_ring_memory){ .fd = -1, .stream = (void *)-1 };
    return runs_program(process, error) && tbd_ring_memory_find(memory, process->pid, error);
}

bool tbd_record_dial_read(const struct tbd_dialled *process, uint32_t *out,
                          struct tbd_query_error *error)
{
    struct tbd_ring_memory memory;
    bool done = find(process, &memory, error);
    const struct tbd_crash *crash = done ? tbd_crash_area(memory.stream, memory.bytes) : NULL;

    *out = 0;
    if (crash != NULL)
        *out = __atomic_load_n(&crash->record, __ATOMIC_RELAXED);
    if (done && (crash == NULL || *out > TBD_RECORD_MOST))
        done = tbd_query_wrong(error, TBD_CORRUPT, 0, 0, "its memory is not that of rings");
    tbd_ring_memory_close(&memory);
    return done;
}

bool tbd_record_dial_turn(const struct tbd_dialled *process, uint32_t setting, int ms,
                          struct tbd_query_error *error)
{
    struct tbd_crash_request *request = calloc(1, sizeof(*request));
    struct tbd_ring_memory memory;
    bool done = find(process, &memory, error);

    if (done && request == NULL)
        done = tbd_query_wrong(error, TBD_NOMEM, 0, 0, "no memory");
    if (done) {
        request->what = TBD_REQUEST_RECORD;
        request->record = setting;
        done = tbd_ring_memory_post(&memory, request, error) &&
               tbd_ring_memory_tell(&memory, process->pid, ms, error);
    }
    tbd_ring_memory_close(&memory);
    free(request);
    return done;
}
