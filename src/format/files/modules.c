// SPDX-License-Identifier: MIT
/* modules.c - copies of the files a program has mapped
 *
 * Invariants
 * MODULES-1  A file below .modules is complete under its name (written under another one, then
 *     renamed) and never changed; its name identifies the version: device, inode, size, and both
 *     times. (not checked: test_crash lets each change of a file fail)
 * MODULES-2  .modules is used only if it is ours and nobody else may write to it; else the trace
 *     gets a copy of its own. (not checked: it is what decoding checks of its input) */
#include "format/files/modules.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define DIGEST_PIECES      32u
#define DIGEST_PIECE_BYTES 4096u

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

static bool is_private(int fd)
{
    struct stat st;

    return !fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & 0022);
}

static int open_shared(int root)
{
    int fd;

    if (root < 0 || (mkdirat(root, ".modules", 0700) && errno != EEXIST))
        return -1;
    fd = openat(root, ".modules", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && is_private(fd))
        return fd;
    close_fd(fd);
    return -1;
}

void tbd_modules_clean(int root)
{
    int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = root < 0 ? -1 : openat(root, ".modules", how);
    DIR *dir = fd >= 0 && is_private(fd) ? fdopendir(fd) : NULL;
    struct dirent *entry;
    struct stat st;

    if (!dir) {
        close_fd(fd);
        return;
    }
    /* A file that is just being made has no second link either, and is deleted, too: its maker then
     * makes a copy of its own. */
    while ((entry = readdir(dir)))
        if (!fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
            st.st_nlink == 1)
            unlinkat(fd, entry->d_name, 0);
    closedir(dir);
}

static bool copy_bytes(int from, int to, off_t bytes)
{
    if (!ioctl(to, FICLONE, from))
        return true;
    while (bytes > 0) {
        ssize_t done = copy_file_range(from, NULL, to, NULL, (size_t)bytes, 0);

        if (done < 0 &&
            (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP))
            done = sendfile(to, from, NULL, (size_t)bytes);
        if (done <= 0)
            return false;
        bytes -= done;
    }
    return true;
}

static bool copy_to(int from, off_t bytes, int dir, const char *name)
{
    int to = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool good;
    int why;

    if (to < 0)
        return false;
    good = lseek(from, 0, SEEK_SET) == 0 && copy_bytes(from, to, bytes);
    if (!close(to) && good)
        return true;
    why = errno;
    unlinkat(dir, name, 0);
    errno = why;
    return false;
}

static void shared_name(const struct stat *st, char *out, size_t bytes)
{
    snprintf(out, bytes, "%lx-%lx-%lx-%lx.%09lx-%lx.%09lx", (unsigned long)st->st_dev,
             (unsigned long)st->st_ino, (unsigned long)st->st_size,
             (unsigned long)st->st_mtim.tv_sec, (unsigned long)st->st_mtim.tv_nsec,
             (unsigned long)st->st_ctim.tv_sec, (unsigned long)st->st_ctim.tv_nsec);
}

/* Links the shared copy into the trace; makes it if it does not exist yet. */
static bool link_shared(int shared, int from, const struct stat *st, int trace, const char *name)
{
    char own[160];
    char part[200];

    shared_name(st, own, sizeof(own));
    if (!linkat(shared, own, trace, name, 0))
        return true;
    snprintf(part, sizeof(part), "%s.%d.part", own, getpid());
    if (!copy_to(from, st->st_size, shared, part))
        return false;
    if (linkat(shared, part, trace, name, 0) || renameat(shared, part, shared, own)) {
        unlinkat(trace, name, 0);
        unlinkat(shared, part, 0);
        return false;
    }
    return true;
}

/* ---- which file it is ---- */

/* XXH3 of DIGEST_PIECES pieces, the first one at the file's begin, the last one at its end. */
static bool digest_of(int fd, uint64_t bytes, uint32_t *out)
{
    static const uint64_t piece = DIGEST_PIECE_BYTES;
    uint64_t last = bytes > piece ? bytes - piece : 0, sum = bytes;
    uint8_t buffer[DIGEST_PIECE_BYTES];

    for (uint64_t i = 0; i < DIGEST_PIECES; i++) {
        uint64_t at = bytes <= piece * DIGEST_PIECES ? i * piece : last / (DIGEST_PIECES - 1) * i;
        ssize_t got;

        if (i == DIGEST_PIECES - 1 && at < last)
            at = last;
        if (at >= bytes)
            break;
        got = pread(fd, buffer, sizeof(buffer), (off_t)at);
        if (got <= 0)
            return false;
        sum = XXH3_64bits_withSeed(buffer, (size_t)got, sum);
    }
    *out = (uint32_t)sum ? (uint32_t)sum : 1;
    return true;
}

bool tbd_module_is(int fd, const struct tbd_disk_module *disk)
{
    struct stat st;
    uint32_t digest;

    if (fstat(fd, &st) || (uint64_t)st.st_size != disk->bytes)
        return false;
    return !disk->digest || (digest_of(fd, disk->bytes, &digest) && digest == disk->digest);
}

bool tbd_modules_keep(int root, int trace, const char *path, const char *name,
                      struct tbd_disk_module *disk)
{
    int from = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int shared = open_shared(root);
    bool good = false;
    int why = ENOENT;
    struct stat st;
    char full[300];

    snprintf(full, sizeof(full), "modules/%s", name);
    if (from >= 0 && !fstat(from, &st) && S_ISREG(st.st_mode) && st.st_ino == disk->inode) {
        disk->bytes = (uint64_t)st.st_size;
        disk->mtime_ns = st.st_mtim.tv_sec * 1000000000ll + st.st_mtim.tv_nsec;
        good = (shared >= 0 && link_shared(shared, from, &st, trace, full)) ||
               copy_to(from, st.st_size, trace, full);
        why = errno;
        if (good && !digest_of(from, disk->bytes, &disk->digest))
            disk->digest = 0;
    }
    close_fd(from);
    close_fd(shared);
    errno = why;
    return good;
}

static const struct tbd_kept_module *find_kept(const struct tbd_kept_modules *kept,
                                               const char *path, const struct tbd_disk_module *disk)
{
    for (; kept; kept = __atomic_load_n(&kept->more, __ATOMIC_ACQUIRE))
        for (size_t i = 0; i < kept->count; i++) {
            const struct tbd_kept_module *module = &kept->list[i];

            if (module->disk.inode == disk->inode && module->disk.device == disk->device &&
                strcmp(module->path, path) == 0)
                return module;
        }
    return NULL;
}

bool tbd_modules_take(const struct tbd_kept_modules *kept, int trace, const char *path,
                      const char *name, struct tbd_disk_module *disk)
{
    const struct tbd_kept_module *module = find_kept(kept, path, disk);
    char full[300];

    snprintf(full, sizeof(full), "modules/%s", name);
    if (!module || linkat(kept->trace, module->copy, trace, full, 0))
        return false;
    *disk = module->disk;
    return true;
}
