// SPDX-License-Identifier: MIT
/* open_file.c - see open_file.h
 *
 * Names are walked part by part, as openat2() is not everywhere (Linux 5.6; some sandboxes refuse
 * it).  A file is looked at before it is opened, as opening alone may start a device; what was
 * opened is looked at again. */
#include "base/open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART_BYTES   256
#define SPARSE_RATIO 64u /* as far as file systems compress */
#define SPARSE_FREE  ((uint64_t)1 << 20)

static int refuse(int fd, int error)
{
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

static bool is_upward(const char *part)
{
    return !*part || strcmp(part, ".") == 0 || strcmp(part, "..") == 0;
}

/* ---- folders ---- */

int tbd_open_parent_below(int dir, const char *name, const char **out_last)
{
    int at = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *slash;
    char part[PART_BYTES];

    while (at >= 0 && (slash = strchr(name, '/')) != NULL) {
        size_t length = (size_t)(slash - name);
        int next;

        if (length >= sizeof(part))
            return refuse(at, ENAMETOOLONG);
        memcpy(part, name, length);
        part[length] = '\0';
        if (is_upward(part))
            return refuse(at, EINVAL);
        next = openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            return refuse(at, errno);
        close(at);
        at = next;
        name = slash + 1;
    }
    if (at >= 0 && is_upward(name))
        return refuse(at, EINVAL);
    *out_last = name;
    return at;
}

int tbd_open_folder_below(int dir, const char *name)
{
    int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const char *last;
    int parent, fd;

    if (strcmp(name, ".") == 0)
        return openat(dir, name, how);
    parent = tbd_open_parent_below(dir, name, &last);
    if (parent < 0)
        return -1;
    fd = openat(parent, last, how);
    if (fd < 0)
        return refuse(parent, errno);
    close(parent);
    return fd;
}

bool tbd_stat_below(int dir, const char *name, struct stat *out)
{
    const char *last;
    int parent = tbd_open_parent_below(dir, name, &last);
    bool good = parent >= 0 && fstatat(parent, last, out, AT_SYMLINK_NOFOLLOW) == 0;

    if (parent >= 0)
        close(parent);
    return good;
}

/* ---- files ---- */

/* Opens what `seen` describes, if it still is that. */
static int open_seen(int dir, const char *name, int how, const struct stat *seen)
{
    struct stat info;
    int fd;

    if (!S_ISREG(seen->st_mode)) {
        errno = S_ISDIR(seen->st_mode) ? EISDIR : EINVAL;
        return -1;
    }
    fd = openat(dir, name, how | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &info) != 0)
        return refuse(fd, errno);
    if (!S_ISREG(info.st_mode))
        return refuse(fd, EINVAL);
    return fd;
}

int tbd_open_below(int dir, const char *name, int access)
{
    const char *last;
    struct stat seen;
    int parent = tbd_open_parent_below(dir, name, &last), fd;

    if (parent < 0)
        return -1;
    if (fstatat(parent, last, &seen, AT_SYMLINK_NOFOLLOW) != 0)
        return refuse(parent, errno);
    if (S_ISLNK(seen.st_mode))
        return refuse(parent, ELOOP);
    if (access != O_RDONLY && seen.st_nlink != 1)
        return refuse(parent, EMLINK);
    fd = open_seen(parent, last, access | O_NOFOLLOW, &seen);
    if (fd < 0)
        return refuse(parent, errno);
    close(parent);
    return fd;
}

bool tbd_is_private(const struct stat *info)
{
    return info->st_uid == geteuid() && (info->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool tbd_is_sparse(const struct stat *info)
{
    return (uint64_t)info->st_size / SPARSE_RATIO > (uint64_t)info->st_blocks * 512 + SPARSE_FREE;
}

uint64_t tbd_memory_most(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 2;
}

static bool is_ours(const struct stat *link)
{
    return link->st_uid == 0 || link->st_uid == geteuid();
}

/* Keeps the rule for links of tbd_open_named(); *out describes the file. */
static bool look_at(const char *path, struct stat *out, bool *out_is_link)
{
    if (lstat(path, out) != 0)
        return false;
    *out_is_link = S_ISLNK(out->st_mode);
    if (!*out_is_link)
        return true;
    if (!is_ours(out)) {
        errno = ELOOP;
        return false;
    }
    return stat(path, out) == 0;
}

int tbd_open_named(const char *path)
{
    struct stat seen;
    bool is_link;

    if (!look_at(path, &seen, &is_link))
        return -1;
    return open_seen(AT_FDCWD, path, O_RDONLY | (is_link ? 0 : O_NOFOLLOW), &seen);
}

bool tbd_is_openable(const char *path)
{
    struct stat seen;
    bool is_link;

    if (look_at(path, &seen, &is_link))
        return S_ISREG(seen.st_mode);
    return errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG;
}
