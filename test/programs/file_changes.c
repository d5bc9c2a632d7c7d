// SPDX-License-Identifier: MIT
// options: window=1500
/* A file that is mapped privately changes by calls of the same program: written, cut, extended, a hole made,
 * cut by open.  Pages that were read before show the new contents, those that were written keep
 * theirs, and pages behind the file's end cannot be read. */
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE  4096l
#define PAGES 6

static sigjmp_buf before;
static char path[64];
static int file;
static volatile unsigned char *map;

static void leave(int signal)
{
    (void)signal;
    siglongjmp(before, 1);
}

/* Two bytes of each page; '-' if it cannot be read. */
static void look(const char *what)
{
    printf("%s:", what);
    for (volatile int i = 0; i < PAGES; i++) {
        if (sigsetjmp(before, 1) == 0)
            printf(" %d,%d", map[i * PAGE + 5], map[i * PAGE + 4000]);
        else
            printf(" -");
    }
    putchar('\n');
}

static void fill(int fd, int first)
{
    unsigned char page[PAGE];

    for (int i = 0; i < PAGES; i++) {
        memset(page, first + i, sizeof(page));
        CHECK(pwrite(fd, page, sizeof(page), i * PAGE) == PAGE);
    }
}

/* A mapping of the file, read in most pages, written in one.  The file looks old, and the mapping's descriptor
 * cannot write: so only the calls that follow tell that it changes. */
static void open_map(void)
{
    struct timespec old[2] = { { .tv_sec = 900000000 }, { .tv_sec = 900000000 } };
    int fd;

    if (map)
        CHECK(munmap((void *)map, PAGES * PAGE) == 0);
    if (file)
        CHECK(close(file) == 0 && unlink(path) == 0);
    strcpy(path, "/tmp/tbd-file_changes-XXXXXX");
    file = mkstemp(path);
    CHECK(file > 0);
    fill(file, 10);
    CHECK(futimens(file, old) == 0);
    fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    map = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    CHECK(map != MAP_FAILED && close(fd) == 0);
    CHECK(map[5] == 10 && map[PAGE + 5] == 11 && map[3 * PAGE + 4000] == 13);
    map[2 * PAGE + 4000] = 200;
}

static void write_it(void)
{
    struct iovec parts[2] = { { "abc", 3 }, { "defg", 4 } };

    open_map();
    CHECK(pwrite(file, "xyz", 3, 4) == 3);
    look("pwrite");
    CHECK(pwritev(file, parts, 2, 2 * PAGE + 3) ==
          7); /* this page was written, so it keeps its contents */
    CHECK(lseek(file, 3 * PAGE, SEEK_SET) == 3 * PAGE && writev(file, parts, 2) == 7);
    look("writev");
    map[5] = 100;
    CHECK(pwrite(file, "wwww", 4, 4) == 4);
    look("written on both sides");
}

static void cut_it(void)
{
    open_map();
    CHECK(ftruncate(file, 2 * PAGE + 50) == 0);
    look("ftruncate");
    CHECK(ftruncate(file, PAGES * PAGE) == 0);
    look("extended");
    fill(file, 30);
    look("filled again");
    CHECK(truncate(path, 100) == 0);
    look("truncate");
    fill(file, 50);
    CHECK(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 2 * PAGE) == 0);
    look("hole");
    close(open(path, O_RDWR | O_TRUNC));
    look("open");
}

static void copy_it(void)
{
    int other = memfd_create("other", 0);
    off_t from = 0;

    CHECK(other >= 0);
    fill(other, 70);
    open_map();
    CHECK(lseek(file, 0, SEEK_SET) == 0 && sendfile(file, other, &from, 2 * PAGE) == 2 * PAGE);
    look("sendfile");
    if (copy_file_range(file, &(off_t){ 0 }, file, &(off_t){ 4 * PAGE }, PAGE, 0) < 0)
        CHECK(pwrite(file, "F", 1, 4 * PAGE + 5) == 1); /* not on every file system */
    printf("copied: %d\n", map[4 * PAGE + 5] != 14);
    close(other);
}

int main(void)
{
    struct sigaction action = { .sa_handler = leave };

    CHECK(sigaction(SIGBUS, &action, NULL) == 0);
    write_it();
    cut_it();
    copy_it();
    CHECK(unlink(path) == 0);
    return 0;
}
