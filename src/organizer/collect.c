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
#include "format/writer/trace_folder.h"
#include "organizer/organize_private.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

/* True: the program died. */
static bool wait_for_death(const struct tbd_stream_head *head, int pidfd)
{
    struct pollfd fd = { .fd = pidfd, .events = POLLIN };

    /* without a descriptor it was gone before we looked */
    while (pidfd >= 0 && poll(&fd, 1, LOOK_MS) != 1)
        if (has_ended(head) || has_executed(head))
            return false;
    return !has_ended(head) && !has_executed(head);
}

static enum tbd_status dump(const struct tbd_organize_options *options, const struct memory *memory,
                            const char *root, const char *program, struct tbd_error *why)
{
    struct tbd_trace_folder folder;
    enum tbd_status status = tbd_trace_folder_make(root, program, &folder);

    if (!status)
        status = tbd_crash_write(folder.dir, (const uint8_t *)memory->head, memory->bytes,
                                 (uint32_t)options->pid);
    if (status)
        tbd_error_set(why, status, folder.path ? folder.path : root, 0, "%s",
                      tbd_status_text(status));
    if (folder.dir >= 0)
        close(folder.dir);
    if (folder.root_dir >= 0)
        close(folder.root_dir);
    free(folder.path);
    return status;
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
    if (options->ready)
        options->ready(options->context, root);
    say_state(memory.head, TBD_ORGANIZER_READY);
    if (wait_for_death(memory.head, pidfd))
        status = dump(options, &memory, root, program, why);
    if (pidfd >= 0)
        close(pidfd);
    munmap(memory.head, memory.bytes);
    return status;
}
