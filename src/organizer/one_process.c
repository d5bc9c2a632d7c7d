// SPDX-License-Identifier: MIT
/* one_process.c - see one_process.h
 *
 * Organizers of one process share the lock of a byte of an empty file in the folder of traces, from before its program runs until the
 * trace is written.  The kernel gives it back when an organizer dies.  Processes of other machines, and of other
 * namespaces, that have the same number have another byte.
 *
 * ONE_PROCESS-1  Who waits has given its own lock back: so none waits for one that waits for it. (not checked: say_done() in organize.c) */
#include "organizer/one_process.h"

#include "base/hash.h"
#include "format/files/trace_dir.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOCKS_NAME ".recording"
#define PAUSE_NS   (2 * 1000 * 1000)
#define BOOT_ID    "/proc/sys/kernel/random/boot_id"
#define PIDS       "/proc/self/ns/pid"

/* Not negative, and far from the largest one. */
static off_t position_of(pid_t pid)
{
    struct {
        char boot[64];
        uint64_t pids; /* the namespace */
        uint64_t pid;
    } who = { .pid = (uint64_t)pid };
    int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
    struct stat space;

    if (fd >= 0) {
        (void)!read(fd, who.boot, sizeof(who.boot));
        close(fd);
    }
    if (!stat(PIDS, &space))
        who.pids = space.st_ino;
    return (off_t)(tbd_hash64(&who, sizeof(who)) >> 2);
}

static struct flock lock_of(const struct tbd_one_process *process, short type)
{
    return (struct flock){
        .l_type = type, .l_whence = SEEK_SET, .l_start = process->position, .l_len = 1
    };
}

/* Another user's, or what is no file, is none. */
static int open_locks(const char *root)
{
    int dir = tbd_dir_open(root), locks;
    struct stat info;

    if (dir < 0)
        return -1;
    locks = openat(dir, LOCKS_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    close(dir);
    if (locks >= 0 && !fstat(locks, &info) && S_ISREG(info.st_mode) && info.st_uid == geteuid())
        return locks;
    if (locks >= 0)
        close(locks);
    return -1;
}

void tbd_one_process_begin(struct tbd_one_process *out, const char *root, pid_t pid)
{
    struct flock lock;

    *out = (struct tbd_one_process){ open_locks(root), position_of(pid) };
    lock = lock_of(out, F_RDLCK);
    if (out->fd >= 0 && fcntl(out->fd, F_OFD_SETLK, &lock))
        tbd_one_process_free(out);
}

void tbd_one_process_wait(const struct tbd_one_process *process)
{
    const struct timespec pause = { .tv_nsec = PAUSE_NS };

    while (process->fd >= 0) {
        struct flock lock = lock_of(process, F_WRLCK);

        if (fcntl(process->fd, F_OFD_GETLK, &lock) || lock.l_type == F_UNLCK)
            return;
        nanosleep(&pause, NULL);
    }
}

void tbd_one_process_end(const struct tbd_one_process *process)
{
    struct flock lock = lock_of(process, F_UNLCK);

    if (process->fd >= 0)
        (void)fcntl(process->fd, F_OFD_SETLK, &lock);
}

void tbd_one_process_free(struct tbd_one_process *process)
{
    if (process->fd >= 0)
        close(process->fd);
    process->fd = -1;
}
