// SPDX-License-Identifier: MIT
/* trace_dir.c - see trace_dir.h
 *
 * TRACE_DIR-1  A file written by tbd_dir_write() exists under its name only when it is complete.
 *     (not checked: test_crash lets each change of a file fail)
 * TRACE_DIR-2  A new file's first name has 64 random bits, and is made with O_EXCL: nothing that
 *     exists, and no link, is written to. (not checked: test_trace_dir does)
 * TRACE_DIR-3  `latest` leads to the trace that was started last, however late the others' writers
 *     come to set it. (not checked: test_trace_dir does) */
#include "format/files/trace_dir.h"

#include "base/open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int tbd_dir_open(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

enum tbd_status tbd_dir_failure(void)
{
    return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? TBD_NOSPACE : TBD_IO;
}

/* ---- reading ---- */

DIR *tbd_dir_list(int dir, const char *name)
{
    int fd = tbd_open_folder_below(dir, name);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);

    if (!list && fd >= 0)
        close(fd);
    return list;
}

FILE *tbd_dir_text(int dir, const char *name)
{
    int fd = tbd_open_below(dir, name, O_RDONLY);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "re");

    if (!file && fd >= 0)
        close(fd);
    return file;
}

/* ---- folders ---- */

enum tbd_status tbd_dir_make_folder(int dir, const char *name)
{
    enum tbd_status status = TBD_OK;
    const char *last;
    int parent = tbd_open_parent_below(dir, name, &last);

    if (parent < 0)
        return tbd_dir_failure();
    if (mkdirat(parent, last, 0700) && errno != EEXIST)
        status = tbd_dir_failure();
    close(parent);
    return status;
}

enum tbd_status tbd_dir_rename(int dir, const char *from, const char *to)
{
    return renameat(dir, from, dir, to) == 0 ? TBD_OK : tbd_dir_failure();
}

void tbd_dir_remove(int dir, const char *name)
{
    const char *last;
    int parent = tbd_open_parent_below(dir, name, &last);

    if (parent < 0)
        return;
    if (unlinkat(parent, last, 0) && errno == EISDIR)
        unlinkat(parent, last, AT_REMOVEDIR);
    close(parent);
}

/* ---- new files ---- */

enum tbd_status tbd_new_file(int dir, const char *name, struct tbd_new_file *out)
{
    enum tbd_status status;
    const char *last;
    uint64_t random;

    *out = (struct tbd_new_file){ .fd = -1, .folder = tbd_open_parent_below(dir, name, &last) };
    if (out->folder < 0)
        return tbd_dir_failure();
    /* tbd_dir_clean() reads the process id */
    if (strlen(last) < sizeof(out->name) &&
        getrandom(&random, sizeof(random), 0) == sizeof(random)) {
        strcpy(out->name, last);
        snprintf(out->temporary, sizeof(out->temporary), "new.%d.%016" PRIx64 ".part",
                 (int)getpid(), random);
        out->fd = openat(out->folder, out->temporary,
                         O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    }
    if (out->fd >= 0)
        return TBD_OK;
    status = tbd_dir_failure();
    close(out->folder);
    return status;
}

void tbd_new_file_drop(struct tbd_new_file *file)
{
    unlinkat(file->folder, file->temporary, 0);
    if (file->fd >= 0)
        close(file->fd);
    close(file->folder);
}

enum tbd_status tbd_new_file_finish(struct tbd_new_file *file)
{
    if (renameat(file->folder, file->temporary, file->folder, file->name)) {
        enum tbd_status status = tbd_dir_failure();

        tbd_new_file_drop(file);
        return status;
    }
    close(file->folder);
    return TBD_OK;
}

enum tbd_status tbd_dir_write(int dir, const char *name, const void *data, size_t bytes)
{
    struct tbd_new_file file;
    enum tbd_status status = tbd_new_file(dir, name, &file);

    if (status)
        return status;
    status = tbd_write_all(file.fd, data, bytes);
    if (close(file.fd) && !status)
        status = tbd_dir_failure();
    file.fd = -1;
    if (!status)
        return tbd_new_file_finish(&file);
    tbd_new_file_drop(&file);
    return status;
}

void tbd_dir_clean(int folder)
{
    DIR *list = tbd_dir_list(folder, ".");
    struct dirent *entry;

    while (list && (entry = readdir(list))) {
        int pid;

        if (sscanf(entry->d_name, "new.%d.", &pid) == 1 && pid > 0 && kill(pid, 0) &&
            errno == ESRCH)
            unlinkat(folder, entry->d_name, 0);
    }
    if (list)
        closedir(list);
}

enum tbd_status tbd_write_all(int fd, const void *data, size_t bytes)
{
    const uint8_t *at = data;

    while (bytes) {
        ssize_t done = write(fd, at, bytes);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return tbd_dir_failure();
        at += done;
        bytes -= (size_t)done;
    }
    return TBD_OK;
}

/* ---- the trace root ---- */

#define LATEST   "latest"
#define NS_PER_S UINT64_C(1000000000)

/* The link's own time of change says when the trace that it leads to was started. */
static enum tbd_status make_link(int root, const char *name, uint64_t started_ns, char *temporary,
                                 size_t bytes)
{
    struct timespec times[2];
    uint64_t random;

    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        return TBD_SYSTEM;
    snprintf(temporary, bytes, ".latest-%016" PRIx64, random);
    if (symlinkat(name, root, temporary))
        return tbd_dir_failure();
    times[0].tv_sec = times[1].tv_sec = (time_t)(started_ns / NS_PER_S);
    times[0].tv_nsec = times[1].tv_nsec = (long)(started_ns % NS_PER_S);
    (void)!utimensat(root, temporary, times, AT_SYMLINK_NOFOLLOW);
    return TBD_OK;
}

/* 0: no link, or one of a clock that has been set back since. */
static uint64_t link_time(int root, const char *name)
{
    struct timespec now;
    struct stat link;

    if (fstatat(root, name, &link, AT_SYMLINK_NOFOLLOW) || clock_gettime(CLOCK_REALTIME, &now) ||
        link.st_mtim.tv_sec < 0 || link.st_mtim.tv_sec > now.tv_sec)
        return 0;
    return (uint64_t)link.st_mtim.tv_sec * NS_PER_S + (uint64_t)link.st_mtim.tv_nsec;
}

/* Others do the same at the same time.  Whoever takes out a newer link than he put in puts it back,
 * so the newest of all is there in the end, in whatever order they come. */
static enum tbd_status exchange_links(int root, const char *temporary)
{
    uint64_t put;

    do {
        put = link_time(root, temporary);
        if (renameat2(root, temporary, root, LATEST, RENAME_EXCHANGE))
            return renameat(root, temporary, root, LATEST) ? tbd_dir_failure() : TBD_OK;
    } while (link_time(root, temporary) > put);
    return TBD_OK;
}

enum tbd_status tbd_dir_set_latest(int root, const char *name, uint64_t started_ns)
{
    enum tbd_status status;
    char temporary[64];

    status = make_link(root, name, started_ns, temporary, sizeof(temporary));
    if (status)
        return status;
    status = exchange_links(root, temporary);
    unlinkat(root, temporary, 0);
    return status;
}

enum tbd_status tbd_dir_remove_latest(int root)
{
    return unlinkat(root, LATEST, 0) && errno != ENOENT ? tbd_dir_failure() : TBD_OK;
}
