// SPDX-License-Identifier: MIT
/* collect.c - see collect.h
 *
 * The collector holds the rings' memory, which so outlives the program however it ends; until then it
 * sleeps. */
#include "organizer/collect.h"

#include "format/files/crash_file.h"
#include "format/files/file.h"
#include "format/files/trace_dir.h"
#include "format/trace/trace.h"
#include "format/writer/system_facts.h"
#include "format/writer/trace_folder.h"
#include "organizer/lap_worker.h"
#include "organizer/organize_private.h"
#include "organizer/place_triggers.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 250 }; /* whether the program has become another one */

struct memory {
    struct tbd_stream_head *head;
    size_t bytes;
};

static bool map(int fd, struct memory *out)
{
    struct stat info;
    void *at;

    if (fstat(fd, &info) || (size_t)info.st_size < sizeof(struct tbd_stream_head))
        return false;
    at = mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    *out = (struct memory){ at, (size_t)info.st_size };
    return at != MAP_FAILED;
}

static void say_state(struct tbd_stream_head *head, uint32_t state)
{
    __atomic_store_n(&head->organizer_state, state, __ATOMIC_RELEASE);
    syscall(SYS_futex, &head->organizer_state, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static bool has_ended(const struct tbd_stream_head *head)
{
    return __atomic_load_n(&head->engine_state, __ATOMIC_ACQUIRE) == TBD_ENGINE_ENDED;
}

static bool has_executed(const struct tbd_stream_head *head)
{
    return __atomic_load_n(&head->engine_state, __ATOMIC_ACQUIRE) == TBD_ENGINE_EXEC &&
           (__atomic_load_n(&head->engine_lock, __ATOMIC_ACQUIRE) & FUTEX_OWNER_DIED);
}

static bool is_sending(const struct tbd_stream_head *head)
{
    return __atomic_load_n(&head->published, __ATOMIC_ACQUIRE) !=
           __atomic_load_n(&head->released, __ATOMIC_ACQUIRE);
}

/* Until something is sent, or LOOK_MS have passed. */
static void wait_for_chunk(struct tbd_stream_head *head)
{
    const struct timespec most = { .tv_nsec = LOOK_MS * 1000000L };

    syscall(SYS_futex, &head->published, FUTEX_WAIT,
            __atomic_load_n(&head->released, __ATOMIC_ACQUIRE), &most, NULL, 0);
}

/* How often the program has gone on after a dump. */
static uint32_t resumed(const struct memory *memory)
{
    const struct tbd_crash *crash = tbd_crash_area(memory->head, memory->bytes);

    return crash ? __atomic_load_n(&crash->resumed, __ATOMIC_ACQUIRE) : 0;
}

/* After a dump: does the program go on, and so may leave others?  It may send the next one before we look. */
static bool goes_on(const struct memory *memory, int pidfd, uint32_t before)
{
    struct pollfd fd = { .fd = pidfd, .events = POLLIN };
    const struct tbd_crash *crash = tbd_crash_area(memory->head, memory->bytes);

    if (!crash ||
        (!__atomic_load_n(&crash->goes_on, __ATOMIC_ACQUIRE) && resumed(memory) == before))
        return false;
    while (resumed(memory) == before && pidfd >= 0 && poll(&fd, 1, 1) != 1)
        ;
    return true;
}

struct over {
    const struct tbd_stream_head *head;
    int pidfd;
};

static bool is_over(void *context)
{
    const struct over *over = context;
    struct pollfd fd = { .fd = over->pidfd, .events = POLLIN };

    return is_sending(over->head) || has_ended(over->head) || has_executed(over->head) ||
           poll(&fd, 1, 0) == 1;
}

/* A thread waits in the dynamic loader until places have been looked for again.  Another one may have a dump made meanwhile, or die. */
static void look_if_asked(const struct tbd_organize_options *options, const struct memory *memory,
                          int pidfd)
{
    struct over over = { memory->head, pidfd };
    const struct tbd_crash *crash = tbd_crash_area(memory->head, memory->bytes);
    struct tbd_crash_look *look = crash ? (struct tbd_crash_look *)(uintptr_t)&crash->look
                                        : NULL; /* the memory is writable */
    uint32_t wanted = look ? __atomic_load_n(&look->wanted, __ATOMIC_ACQUIRE) : 0;

    if (!look || wanted == __atomic_load_n(&look->done, __ATOMIC_RELAXED) ||
        !tbd_place_triggers_again(options->stream_fd, options->pid, options->parts, is_over, &over))
        return;
    __atomic_store_n(&look->done, wanted, __ATOMIC_RELEASE);
    syscall(SYS_futex, &look->done, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

enum end { HAS_ENDED, HAS_DIED, SENDS_STATE };

static enum end wait_for_end(const struct tbd_organize_options *options,
                             const struct memory *memory, int pidfd)
{
    struct tbd_stream_head *head = memory->head;
    struct pollfd fd = { .fd = pidfd, .events = POLLIN };

    /* without a descriptor it was gone before we looked */
    while (pidfd >= 0 && !is_sending(head) && poll(&fd, 1, 0) != 1) {
        if (has_ended(head) || has_executed(head))
            return HAS_ENDED;
        wait_for_chunk(head);
        look_if_asked(options, memory, pidfd);
    }
    if (is_sending(head))
        return SENDS_STATE;
    return has_ended(head) || has_executed(head) ? HAS_ENDED : HAS_DIED;
}

/* The rings, into a folder that is there. */
static enum tbd_status add_rings(const struct tbd_organize_options *options,
                                 const struct memory *memory, int dir, const char *path,
                                 struct tbd_error *why)
{
    enum tbd_status status =
        tbd_crash_write(dir, (const uint8_t *)memory->head, memory->bytes, (uint32_t)options->pid);

    return status ? tbd_error_set(why, status, path, 0, "%s", tbd_status_text(status)) : TBD_OK;
}

/* As a trace that was begun now: all commands then look at this dump, not at an older one.  A failure is no harm. */
static void set_latest(const struct tbd_trace_folder *folder)
{
    const char *name = strrchr(folder->path, '/');
    struct timespec now;

    if (name && clock_gettime(CLOCK_REALTIME, &now) == 0)
        (void)!tbd_dir_set_latest(folder->root_dir, name + 1,
                                  (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec);
}

static enum tbd_status dump(const struct tbd_organize_options *options, const struct memory *memory,
                            const char *root, const char *program, struct tbd_error *why)
{
    struct tbd_trace_folder folder;
    enum tbd_status status = tbd_trace_folder_make(root, program, &folder);

    if (status)
        tbd_error_set(why, status, folder.path ? folder.path : root, 0, "%s",
                      tbd_status_text(status));
    else
        status = add_rings(options, memory, folder.dir, folder.path, why);
    if (!status)
        set_latest(&folder);
    if (folder.dir >= 0)
        close(folder.dir);
    if (folder.root_dir >= 0)
        close(folder.root_dir);
    free(folder.path);
    return status;
}

/* ---- the state at the end, a trace of its own ---- */

struct state_writing {
    const struct tbd_organize_options *options;
    const struct memory *memory;
    bool has_folder;
};

/* The trace's folder is there: the rings go first, because the program dies when the trace is written. */
static void put_rings(void *context, const char *path)
{
    struct state_writing *state = context;
    int dir = tbd_dir_open(path);
    struct tbd_error why;

    if (dir < 0)
        return;
    state->has_folder = true;
    (void)!add_rings(state->options, state->memory, dir, path, &why);
    (void)!tbd_facts_write(dir, (uint32_t)state->options->pid, state->options->facts);
    close(dir);
}

/* The rings are kept even if the state cannot be written. */
static enum tbd_status take_state(const struct tbd_organize_options *options,
                                  const struct memory *memory, const char *root,
                                  const char *program, struct tbd_error *why)
{
    struct state_writing state = { options, memory, false };
    struct tbd_organize_options own = *options;
    enum tbd_status status;

    own.root = root;
    own.program = program;
    own.ready = put_rings;
    own.context = &state;
    own.lean = TBD_ORGANIZE_LEAN_NEVER;
    status = tbd_organize(&own, why);
    return state.has_folder ? status : dump(options, memory, root, program, why);
}

static void say_unknown_fact(const char *wanted)
{
    size_t length;
    const char *name = tbd_facts_unknown(wanted, &length);

    if (name != NULL)
        fprintf(stderr, "tbd: there is no fact of the system called '%.*s': man tbd, --facts\n",
                (int)length, name);
}

enum tbd_status tbd_collect(const struct tbd_organize_options *options, struct tbd_error *why)
{
    char root[4096], program[4096];
    enum tbd_status status = tbd_organizer_place(options, root, program, why);
    struct memory memory;
    int pidfd;

    if (!map(options->stream_fd, &memory))
        return tbd_error_set(why, TBD_SYSTEM, "", 0, "stream: %s", strerror(errno));
    if (status) {
        say_state(memory.head, TBD_ORGANIZER_FAILED);
        return status;
    }
    pidfd = (int)syscall(SYS_pidfd_open, options->pid, 0);
    if (!options->is_placed && options->facts)
        say_unknown_fact(options->facts);
    if (!options->is_placed && (options->triggers || options->parts))
        tbd_place_triggers(options->stream_fd, options->pid, options->triggers, options->parts);
    if (options->ready)
        options->ready(options->context, root);
    tbd_lap_worker_begin(memory.head, memory.bytes);
    say_state(memory.head, TBD_ORGANIZER_READY);
    for (enum end end = SENDS_STATE; end == SENDS_STATE;) {
        uint32_t before = resumed(&memory);

        end = wait_for_end(options, &memory, pidfd);
        /* who is killed right after a fork has nothing to show */
        if (end == HAS_DIED && !tbd_crash_is_empty(memory.head, memory.bytes))
            status = dump(options, &memory, root, program, why);
        if (end != SENDS_STATE)
            break;
        status = take_state(options, &memory, root, program, why);
        if (!goes_on(&memory, pidfd, before))
            break;
    }
    tbd_place_triggers_end();
    if (pidfd >= 0)
        close(pidfd);
    if (tbd_lap_worker_end())
        munmap(memory.head, memory.bytes);
    return status;
}
