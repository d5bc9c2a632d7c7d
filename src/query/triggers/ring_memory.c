// SPDX-License-Identifier: MIT
/* ring_memory.c - see ring_memory.h */
#include "query/triggers/ring_memory.h"

#include "base/layout.h"
#include "base/string.h"
#include "format/files/crash_file.h"
#include "query/attach/tell_engine.h"
#include "query/probe/probe_client.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { STEP_MS = 20, LOCK_MS = 3000 };

/* ---- finding the collector ---- */

/* The value after `name` in a command line, whose words end with NULs. */
static const char *word_after(const char *line, size_t bytes, const char *name)
{
    bool is_next = false;

    for (size_t at = 0; at < bytes; at += strlen(line + at) + 1) {
        if (is_next)
            return line + at;
        is_next = strcmp(line + at, name) == 0;
    }
    return NULL;
}

static bool has_word(const char *line, size_t bytes, const char *word)
{
    for (size_t at = 0; at < bytes; at += strlen(line + at) + 1)
        if (strcmp(line + at, word) == 0)
            return true;
    return false;
}

static bool is_number(const char *text, unsigned long value)
{
    char *end;

    return text && *text && strtoul(text, &end, 10) == value && !*end;
}

/* Its stream's descriptor, as a path; false: it is not the collector of this process. */
static bool is_collector(const char *number, unsigned long pid, char *path, size_t path_bytes)
{
    char line[8192] = "";
    const char *descriptor;
    size_t got = 0;
    FILE *file;

    snprintf(path, path_bytes, "/proc/%.16s/cmdline", number);
    file = fopen(path, "re");
    if (file) {
        got = fread(line, 1, sizeof(line) - 1, file);
        fclose(file);
    }
    line[got] = '\0';
    if (!got || strcmp(tbd_base_name(line), "tbd-organizer") != 0 ||
        !has_word(line, got, "--crash") || !is_number(word_after(line, got, "--pid"), pid))
        return false;
    descriptor = word_after(line, got, "--stream-fd");
    if (!descriptor || strspn(descriptor, "0123456789") != strlen(descriptor))
        return false;
    return (size_t)snprintf(path, path_bytes, "/proc/%.16s/fd/%.16s", number, descriptor) <
           path_bytes;
}

static int open_stream(pid_t pid)
{
    unsigned long inner = tbd_client_inner_pid(pid);
    DIR *all = opendir("/proc");
    struct dirent *entry;
    char path[64];
    int fd = -1;

    while (all && fd < 0 && (entry = readdir(all)) != NULL)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            is_collector(entry->d_name, inner, path, sizeof(path)))
            fd = open(path, O_RDWR | O_CLOEXEC);
    if (all)
        closedir(all);
    return fd;
}

/* ---- the memory ---- */

/* The descriptor belongs to *memory then. */
static bool map(struct tbd_ring_memory *memory, int fd, struct tbd_query_error *error)
{
    const struct tbd_crash *crash;
    struct stat info;

    *memory = (struct tbd_ring_memory){ .fd = fd, .stream = MAP_FAILED };
    if (fstat(fd, &info) == 0 && info.st_size > 0)
        memory->stream =
            mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory->stream == MAP_FAILED)
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "its rings cannot be mapped: %s",
                               strerror(errno));
    memory->bytes = (size_t)info.st_size;
    crash = tbd_crash_area(memory->stream, memory->bytes);
    if (!crash)
        return tbd_query_wrong(error, TBD_CORRUPT, 0, 0, "its memory is not that of rings");
    memory->crash = crash;
    memory->request = (struct tbd_crash_request *)((uint8_t *)(uintptr_t)crash + TBD_TRIGGER_AT);
    return true;
}

bool tbd_ring_memory_find(struct tbd_ring_memory *memory, pid_t pid, struct tbd_query_error *error)
{
    int fd = open_stream(pid);

    *memory = (struct tbd_ring_memory){ .fd = -1, .stream = MAP_FAILED };
    if (fd >= 0)
        return map(memory, fd, error);
    tbd_query_wrong(error, TBD_NOTFOUND, 0, 0,
                    "process %d does not run under `tbd crash`, or is not yours", (int)pid);
    return false;
}

/* The collector's description is shared with it: a lock on that would outlive this process. */
bool tbd_ring_memory_reopen(struct tbd_ring_memory *memory, int stream_fd,
                            struct tbd_query_error *error)
{
    char path[32];
    int fd;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", stream_fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    *memory = (struct tbd_ring_memory){ .fd = -1, .stream = MAP_FAILED };
    return fd >= 0 ? map(memory, fd, error)
                   : tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "its rings cannot be opened: %s",
                                     strerror(errno));
}

void tbd_ring_memory_close(struct tbd_ring_memory *memory)
{
    if (memory->stream != MAP_FAILED)
        munmap(memory->stream, memory->bytes);
    if (memory->fd >= 0)
        close(memory->fd);
}

/* Who asks has the lock until it has its answer.  Whoever can open the memory can hold it for ever. */
static bool lock(int fd, struct tbd_query_error *error)
{
    const struct timespec step = { .tv_nsec = STEP_MS * 1000000L };

    for (int waited = 0; waited < LOCK_MS; waited += STEP_MS) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return true;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "its rings cannot be locked: %s",
                                   strerror(errno));
        nanosleep(&step, NULL);
    }
    return tbd_query_wrong(error, TBD_BUSY, 0, 0, "another `tbd set` has not had its answer yet");
}

bool tbd_ring_memory_post(struct tbd_ring_memory *memory, const struct tbd_crash_request *request,
                          struct tbd_query_error *error)
{
    if (!lock(memory->fd, error))
        return false;
    __atomic_store_n(&memory->request->state, TBD_REQUEST_FILLING, __ATOMIC_RELEASE);
    memcpy((uint8_t *)memory->request + sizeof(request->state),
           (const uint8_t *)request + sizeof(request->state),
           sizeof(*request) - sizeof(request->state));
    __atomic_store_n(&memory->request->state, TBD_REQUEST_POSTED, __ATOMIC_RELEASE);
    /* where a thread waits in the dynamic loader (format/stream/crash.h) */
    syscall(SYS_futex, &memory->crash->look.done, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    return true;
}

static bool say_refused(const struct tbd_ring_memory *memory, struct tbd_query_error *error)
{
    uint32_t refused = memory->request->refused;

    if (memory->request->what & TBD_REQUEST_RING && !refused)
        return tbd_query_wrong(error, TBD_USAGE, 0, 0,
                               "rings of this length are not possible; they have %" PRIu64 " KiB",
                               memory->request->ring_bytes >> 10);
    if (memory->request->what & TBD_REQUEST_RECORD && !refused)
        return tbd_query_wrong(error, TBD_USAGE, 0, 0,
                               "nothing can be recorded beside its rings: it was started with "
                               "record=0, or memory or file sizes are limited");
    return tbd_query_wrong(error, TBD_NOTFOUND, 0, 0, "there is no code at place number %u",
                           refused);
}

bool tbd_ring_memory_await(struct tbd_ring_memory *memory, int ms, struct tbd_query_error *error)
{
    const struct timespec step = { .tv_nsec = STEP_MS * 1000000L };

    for (int waited = 0; waited < ms; waited += STEP_MS) {
        uint32_t state = __atomic_load_n(&memory->request->state, __ATOMIC_ACQUIRE);

        if (state == TBD_REQUEST_DONE)
            return true;
        if (state == TBD_REQUEST_REFUSED)
            return say_refused(memory, error);
        syscall(SYS_futex, &memory->request->state, FUTEX_WAIT, state, &step, NULL, 0);
    }
    return tbd_query_wrong(error, TBD_BUSY, 0, 0, "the program does not answer");
}

struct waiting {
    struct tbd_ring_memory *memory;
    struct tbd_query_error *error; /* TBD_BUSY: there is no answer yet */
    bool done;
};

static bool has_answer(void *context, int ms)
{
    struct waiting *waiting = context;

    *waiting->error = (struct tbd_query_error){ 0 };
    waiting->done = tbd_ring_memory_await(waiting->memory, ms, waiting->error);
    return waiting->done || waiting->error->status != TBD_BUSY;
}

bool tbd_ring_memory_tell(struct tbd_ring_memory *memory, pid_t pid, int ms,
                          struct tbd_query_error *error)
{
    struct waiting waiting = { .memory = memory, .error = error };

    return tbd_tell_engine_until(pid, TBD_CRASH_SET, has_answer, &waiting, ms, error) &&
           waiting.done;
}
