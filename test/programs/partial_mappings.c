// SPDX-License-Identifier: MIT
// options: window=2000
/* Mapping calls that fail after part of their effect, and those whose effect is not what their arguments say: holes and locked
 * pages in the range, descriptors that cannot be mapped, segments of which the first page is gone, memory that is mapped
 * twice.  What is there afterwards is looked at page by page. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE  4096ul
#define PAGES 8u

static sigjmp_buf before;

static void leave(int signal)
{
    (void)signal;
    siglongjmp(before, 1);
}

/* What is at each page: its first byte, '-' if it cannot be read, and '!' if it cannot be written. */
static void look(const char *what, long result, unsigned char *at, unsigned pages)
{
    int error = errno;

    printf("%s: %ld %s:", what, result == -1 ? -1l : 0l, result == -1 ? strerrorname_np(error) : "ok");
    for (volatile unsigned i = 0; i < pages; i++) {
        volatile int value = -1;

        if (sigsetjmp(before, 1) == 0) {
            value = at[i * PAGE];
            at[i * PAGE] = (unsigned char)value;
            printf(" %d", value);
        } else if (value >= 0) {
            printf(" %d!", value);
        } else {
            printf(" -");
        }
    }
    putchar('\n');
}

static unsigned char *make_at(void *at, int flags, int fd)
{
    unsigned char *made = mmap(at, PAGES * PAGE, PROT_READ | PROT_WRITE, (at ? MAP_FIXED : 0) | flags, fd, 0);

    CHECK(made != MAP_FAILED);
    for (unsigned i = 0; i < PAGES; i++)
        memset(made + i * PAGE, (int)i + 1, 64);
    return made;
}

static unsigned char *make(void)
{
    return make_at(NULL, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void drop(unsigned char *at)
{
    CHECK(munmap(at, PAGES * PAGE) == 0);
}

static int make_file(void)
{
    int fd = memfd_create("file", 0);

    CHECK(fd >= 0 && ftruncate(fd, PAGES * PAGE) == 0);
    return fd;
}

static void try_madvise(void)
{
    static const struct {
        const char *name;
        int advice;
    } advices[] = { { "dontneed", MADV_DONTNEED }, { "remove", MADV_REMOVE },
                    { "dontneed locked", 24 }, { "cold", 20 }, { "willneed", MADV_WILLNEED } };
    int fd = make_file();

    for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++) {
        unsigned char *at = make();

        munmap(at + 3 * PAGE, PAGE);
        look(advices[i].name, madvise(at, PAGES * PAGE, advices[i].advice), at, PAGES);
        drop(at);
        at = make();
        if (mlock(at + 4 * PAGE, PAGE) == 0)
            look("a locked page", madvise(at, PAGES * PAGE, advices[i].advice), at, PAGES);
        drop(at);
        at = make();
        make_at(at, MAP_SHARED, fd);
        CHECK(mmap(at, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
        at[0] = at[PAGE] = 77;
        look("a file behind", madvise(at, PAGES * PAGE, advices[i].advice), at, PAGES);
        look("out of line", madvise(at + 1, PAGES * PAGE, advices[i].advice), at, PAGES);
        drop(at);
    }
    close(fd);
}

/* Pages that are freed may keep their contents: only the results are looked at. */
static void try_free(void)
{
    unsigned char *at = make();
    int fd = make_file();

    printf("free: %d\n", madvise(at, PAGES * PAGE, MADV_FREE));
    make_at(at, MAP_SHARED, fd);
    errno = 0;
    printf("free a file: %d", madvise(at, PAGES * PAGE, MADV_FREE));
    printf(" %d\n", errno);
    look("it stays", 0, at, PAGES);
    drop(at);
    at = make_at(NULL, MAP_PRIVATE, fd);
    errno = 0;
    printf("free a private file: %d", madvise(at, PAGES * PAGE, MADV_FREE));
    printf(" %d\n", errno);
    look("it stays, too", 0, at, PAGES);
    drop(at);
    close(fd);
}

static void try_mprotect(void)
{
    char name[] = "/tmp/tbd-partial-XXXXXX";
    int fd = mkstemp(name), reader;
    unsigned char *at = make();

    munmap(at + 3 * PAGE, PAGE);
    look("mprotect", mprotect(at, PAGES * PAGE, PROT_READ), at, PAGES);
    munmap(at + 6 * PAGE, PAGE);
    look("mprotect none", mprotect(at + 4 * PAGE, 4 * PAGE, PROT_NONE), at, PAGES);
    drop(at);
    CHECK(fd >= 0 && ftruncate(fd, PAGES * PAGE) == 0);
    reader = open(name, O_RDONLY);
    CHECK(reader >= 0 && unlink(name) == 0);
    at = make();
    CHECK(mprotect(at, PAGES * PAGE, PROT_READ) == 0);
    CHECK(mmap(at + 2 * PAGE, 2 * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, reader, 0) == at + 2 * PAGE);
    look("mprotect of a file", mprotect(at, PAGES * PAGE, PROT_READ | PROT_WRITE), at, PAGES);
    drop(at);
    close(fd);
    close(reader);
}

/* Whether what was there is gone depends on the kernel; natively and recorded it is the same. */
static void try_replacing(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    unsigned char *at = make(), *from = make();

    look("map a socket", (long)mmap(at + PAGE, 3 * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0), at, PAGES);
    look("map nothing", (long)mmap(at + PAGE, 3 * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, 999, 0), at, PAGES);
    close(fd);
    munmap(from + 2 * PAGE, PAGE);
    look("move a hole", (long)mremap(from, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at + 4 * PAGE), at, PAGES);
    look("from", 0, from, PAGES);
    look("move over itself", (long)mremap(from, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, from + PAGE), from, PAGES);
    look("grow", (long)mremap(from, PAGE, 6 * PAGE, 0), from, PAGES);
    drop(at);
    drop(from);
}

static void try_segments(void)
{
    int id = shmget(IPC_PRIVATE, PAGES * PAGE, 0600), other = shmget(IPC_PRIVATE, PAGES * PAGE, 0600);
    unsigned char *place = make(), *at;

    CHECK(id >= 0 && other >= 0);
    look("shmat in use", (long)shmat(id, place, 0), place, PAGES);
    place[5] = 9;
    look("shmat out of line", (long)shmat(id, place + 1, 0), place, PAGES);
    look("shmat over", (long)shmat(id, place, SHM_REMAP), place, PAGES);
    memset(place, 5, PAGES * PAGE);
    CHECK(munmap(place, PAGE) == 0 && munmap(place + 4 * PAGE, PAGE) == 0);
    look("two pages are gone", 0, place, PAGES);
    look("shmdt", shmdt(place), place, PAGES);
    look("shmdt again", shmdt(place), place, PAGES);
    at = shmat(id, NULL, 0);
    CHECK(at != (void *)-1 && at[7] == 5);
    look("a second time", 0, at, PAGES);
    look("in its middle", shmdt(at + PAGE), at, PAGES);
    CHECK(shmdt(at) == 0);
    CHECK(shmctl(id, IPC_RMID, NULL) == 0 && shmctl(other, IPC_RMID, NULL) == 0);
}

static void try_mapped_twice(void)
{
    int fd = make_file();
    unsigned char *one = make_at(NULL, MAP_SHARED, fd), *two = make_at(NULL, MAP_SHARED, fd), *three;

    CHECK(pwrite(fd, "written", 7, 2 * PAGE) == 7);
    one[3 * PAGE] = 100;
    two[4 * PAGE] = 101;
    CHECK(mremap(one, PAGES * PAGE, PAGES * PAGE, 0) == one);
    look("in place", 0, one, PAGES);
    CHECK(mremap(one, PAGES * PAGE, 5 * PAGE, 0) == one);
    CHECK(pwrite(fd, "again", 5, 3 * PAGE) == 5);
    two[PAGE] = 102;
    look("shorter", 0, one, PAGES);
    three = mremap(two, 0, PAGES * PAGE, MREMAP_MAYMOVE);
    CHECK(three != MAP_FAILED);
    three[6 * PAGE] = 103;
    CHECK(pwrite(fd, "third", 5, 7 * PAGE) == 5);
    look("a third", 0, three, PAGES);
    look("the second", 0, two, PAGES);
    CHECK(mremap(one, 5 * PAGE, PAGES * PAGE, MREMAP_MAYMOVE) != MAP_FAILED);
    drop(two);
    drop(three);
    close(fd);
}

/* The same for several ranges at once, of the process itself; kernels before 6.13 refuse most of it. */
static void try_process_madvise(void)
{
    static const int advices[] = { MADV_DONTNEED, MADV_REMOVE, MADV_WILLNEED, 20, 21, 24 };
    int self = (int)syscall(SYS_pidfd_open, getpid(), 0);

    for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++) {
        unsigned char *at = make();
        struct iovec ranges[3] = { { at, 2 * PAGE }, { at + 3 * PAGE, PAGE + 1 }, { at + 6 * PAGE, PAGE } };
        long done = syscall(SYS_process_madvise, self, ranges, 3, advices[i], 0);

        look("process_madvise", done < 0 ? -1 : 0, at, PAGES);
        munmap(at + 4 * PAGE, PAGE);
        printf("%ld, ", done);
        done = syscall(SYS_process_madvise, self, ranges, 3, advices[i], 0);
        look("with a hole", done < 0 ? -1 : 0, at, PAGES);
        printf("%ld, ", done);
        done = syscall(SYS_process_madvise, self, ranges, 3, advices[i], 1);
        look("with flags", done < 0 ? -1 : 0, at, PAGES);
        drop(at);
    }
    close(self);
}

static void try_remap_file_pages(void)
{
    int fd = make_file();
    unsigned char *at = make_at(NULL, MAP_SHARED, fd), *anonymous = make();

    look("two pages of the file elsewhere", remap_file_pages(at, 2 * PAGE, 0, 4, 0), at, PAGES);
    at[PAGE] = 50;
    look("one again", remap_file_pages(at + 3 * PAGE, PAGE, 0, 5, 0), at, PAGES);
    look("with a protection", remap_file_pages(at, PAGE, PROT_READ, 0, 0), at, PAGES);
    look("no file", remap_file_pages(anonymous, PAGE, 0, 0, 0), anonymous, PAGES);
    drop(at);
    drop(anonymous);
    close(fd);
}

int main(void)
{
    static char buffer[1 << 16]; /* nothing is allocated: it might come to lie in a hole */

    setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
    signal(SIGSEGV, leave);
    signal(SIGBUS, leave);
    try_free();
    try_madvise();
    try_mprotect();
    try_replacing();
    try_segments();
    try_mapped_twice();
    try_process_madvise();
    try_remap_file_pages();
    return 0;
}
