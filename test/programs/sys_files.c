// SPDX-License-Identifier: MIT
/* File system calls: open, read, write, vectors, positions, stat, directories, links, locks. */
#define _GNU_SOURCE
#include "check.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

static char dir[] = "/tmp/tbd-files-XXXXXX";

static void check_vectors(int fd)
{
    char a[7], b[1], c[100], text[] = "one,two,three,four,five,six";
    struct iovec in[3] = { { text, 4 }, { text + 4, 4 }, { text + 8, 19 } };
    void *volatile nowhere = (void *)16;
    struct iovec out[3] = { { a, 7 }, { b, 1 }, { c, 100 } };

    CHECK(writev(fd, in, 3) == 27 && lseek(fd, 0, SEEK_SET) == 0);
    memset(c, 'z', 100);
    CHECK(readv(fd, out, 3) == 27 && memcmp(a, "one,two", 7) == 0 && b[0] == ',' && memcmp(c, "three", 5) == 0);
    CHECK(c[19] == 'z');
    CHECK(pread(fd, c, 100, 14) == 13 && memcmp(c, "four", 4) == 0);
    CHECK(pwrite(fd, "FOUR", 4, 14) == 4 && preadv(fd, out, 3, 10) == 17 && a[4] == 'F');
    lseek(fd, 0, SEEK_SET);
    CHECK(read(fd, nowhere, 5) == -1 && errno == EFAULT);
    CHECK(read(-1, a, 5) == -1 && errno == EBADF);
}

static unsigned check_directory(void)
{
    char name[64];
    unsigned sum = 0, count = 0;
    struct dirent *entry;
    DIR *d;

    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "file-%d", i * i);
        close(open(name, O_CREAT | O_WRONLY, 0600));
    }
    d = opendir(".");
    CHECK(d != NULL);
    while ((entry = readdir(d)) != NULL)
        if (sscanf(entry->d_name, "file-%u", &count) == 1)
            sum += count;
    closedir(d);
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "file-%d", i * i);
        CHECK(unlink(name) == 0);
    }
    return sum;
}

int main(void)
{
    char path[4096], target[32] = "";
    struct stat st;
    struct statx sx;
    struct statvfs vfs;
    struct timespec times[2] = { { 1000, 5 }, { 2000, 6 } };
    off_t offset = 4;
    int fd, other;

    CHECK(mkdtemp(dir) != NULL && chdir(dir) == 0 && getcwd(path, sizeof(path)) != NULL);
    CHECK(strcmp(path, dir) == 0);
    fd = open("data", O_RDWR | O_CREAT | O_EXCL, 0640);
    CHECK(fd >= 0);
    check_vectors(fd);
    CHECK(futimens(fd, times) == 0 && fstat(fd, &st) == 0 && st.st_size == 27 && st.st_mtim.tv_sec == 2000);
    CHECK(statx(AT_FDCWD, "data", 0, STATX_ALL, &sx) == 0 && sx.stx_size == 27);
    CHECK(symlink("data", "link") == 0 && readlink("link", target, sizeof(target)) == 4 && strcmp(target, "data") == 0);
    CHECK(lstat("link", &st) == 0 && S_ISLNK(st.st_mode) && link("data", "hard") == 0 && rename("hard", "soft") == 0);
    CHECK(stat("nothing", &st) == -1 && errno == ENOENT && access("soft", R_OK) == 0);
    other = open("soft", O_RDWR);
    CHECK(flock(fd, LOCK_EX) == 0 && flock(other, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK);
    CHECK(fcntl(fd, F_GETFL) == (O_RDWR | 0100000) || (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR);
    close(other);
    other = open("copy", O_RDWR | O_CREAT, 0600);
    CHECK(sendfile(other, fd, &offset, 10) == 10 && offset == 14);
    CHECK(copy_file_range(fd, &offset, other, NULL, 100, 0) == 13 && fstat(other, &st) == 0 && st.st_size == 23);
    CHECK(ftruncate(other, 5) == 0 && statvfs(".", &vfs) == 0 && vfs.f_bsize > 0);
    printf("%u %ld %o\n", check_directory(), (long)lseek(other, 0, SEEK_END), (unsigned)(st.st_mode & 0777));
    CHECK(unlink("data") == 0 && unlink("link") == 0 && unlink("soft") == 0 && unlink("copy") == 0 && rmdir(dir) == 0);
    return 0;
}
