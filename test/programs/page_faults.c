// SPDX-License-Identifier: MIT
// libs: pthread
// flags: -mavx2
// cpu: avx2
/* Pages that the program itself fills when they are used (userfaultfd): by a thread, by another process, in a signal handler; missing,
 * write-protected and shared ones; used by loads, stores, string and vector instructions, calls through them, and by system
 * calls. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <fcntl.h>
#include <immintrin.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096ul

struct filler {
    int fd;
    int stop[2];
    pthread_t thread;
    unsigned char *area;    /* what was registered */
    unsigned char *source;  /* other mapping of it, for minor faults */
    atomic_uint missing, minor, protected;
    atomic_uint round;
    void (*before)(void);   /* called before a page is filled */
};

/* Page n holds this. */
static unsigned char value_of(const struct filler *f, size_t n, size_t at)
{
    return (unsigned char)(n * 7 + at * 3 + f->round + 1);
}

static int open_faults(uint64_t features)
{
    struct uffdio_api api = { .api = UFFD_API, .features = features };
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

    if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0) {
        printf("no userfaultfd here\n");
        exit(77);
    }
    return fd;
}

static void watch(int fd, void *at, size_t bytes, uint64_t modes)
{
    struct uffdio_register what = { .range = { (uintptr_t)at, bytes }, .mode = modes };

    CHECK(ioctl(fd, UFFDIO_REGISTER, &what) == 0);
}

static void fill_page(struct filler *f, uint64_t address, uint64_t mode)
{
    static __thread unsigned char bytes[PAGE] __attribute__((aligned(4096)));
    size_t n = (address - (uintptr_t)f->area) / PAGE;
    struct uffdio_copy copy = { .dst = address & ~(PAGE - 1), .src = (uintptr_t)bytes, .len = PAGE, .mode = mode };

    for (size_t i = 0; i < PAGE; i++)
        bytes[i] = value_of(f, n, i);
    CHECK(ioctl(f->fd, UFFDIO_COPY, &copy) == 0 && copy.copy == (int64_t)PAGE);
}

static void answer(struct filler *f, const struct uffd_msg *message)
{
    uint64_t address = message->arg.pagefault.address & ~(PAGE - 1);
    uint64_t flags = message->arg.pagefault.flags;
    struct uffdio_range page = { address, PAGE };

    if (f->before)
        f->before();
    if (flags & UFFD_PAGEFAULT_FLAG_WP) {
        struct uffdio_writeprotect off = { .range = page };

        f->protected++;
        CHECK(ioctl(f->fd, UFFDIO_WRITEPROTECT, &off) == 0);
    } else if (flags & UFFD_PAGEFAULT_FLAG_MINOR) {
        struct uffdio_continue go = { .range = page };

        f->minor++;
        CHECK(ioctl(f->fd, UFFDIO_CONTINUE, &go) == 0);
    } else {
        f->missing++;
        fill_page(f, address, 0);
    }
}

static void *fill(void *argument)
{
    struct filler *f = argument;
    struct pollfd wait[2] = { { f->fd, POLLIN, 0 }, { f->stop[0], POLLIN, 0 } };
    struct uffd_msg message;

    while (poll(wait, 2, -1) > 0 || errno == EINTR) {
        if (wait[1].revents)
            return NULL;
        if (read(f->fd, &message, sizeof(message)) != sizeof(message))
            continue;
        CHECK(message.event == UFFD_EVENT_PAGEFAULT);
        answer(f, &message);
    }
    return NULL;
}

static void start(struct filler *f, void *area, size_t bytes, uint64_t features, uint64_t modes)
{
    f->fd = open_faults(features);
    f->area = area;
    CHECK(fcntl(f->fd, F_SETFL, O_NONBLOCK) == 0 && pipe(f->stop) == 0);
    watch(f->fd, area, bytes, modes);
    CHECK(pthread_create(&f->thread, NULL, fill, f) == 0);
}

static void finish(struct filler *f)
{
    CHECK(write(f->stop[1], "x", 1) == 1);
    CHECK(pthread_join(f->thread, NULL) == 0);
    close(f->stop[0]);
    close(f->stop[1]);
    close(f->fd);
}

static unsigned char *map(size_t pages)
{
    unsigned char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(at != MAP_FAILED);
    return at;
}

static void check_page(const struct filler *f, const unsigned char *area, size_t n)
{
    for (size_t i = 0; i < PAGE; i += 61)
        CHECK(area[n * PAGE + i] == value_of(f, n, i));
}

/* ---- a thread fills ---- */

static void loads_and_stores(void)
{
    static struct filler f;
    unsigned char *area = map(64);

    start(&f, area, 64 * PAGE, 0, UFFDIO_REGISTER_MODE_MISSING);
    for (size_t n = 0; n < 16; n++)
        check_page(&f, area, n);
    CHECK(f.missing == 16);
    for (size_t n = 16; n < 20; n++)
        area[n * PAGE + 5] = 9;
    for (size_t n = 16; n < 20; n++)
        CHECK(area[n * PAGE + 5] == 9 && area[n * PAGE + 6] == value_of(&f, n, 6));
    __atomic_fetch_add((uint64_t *)(area + 20 * PAGE), 1, __ATOMIC_SEQ_CST);
    CHECK(f.missing == 21);
    memset(area + 21 * PAGE + 100, 1, 2 * PAGE); /* the first and the last keep what is beside */
    CHECK(area[21 * PAGE + 99] == value_of(&f, 21, 99) && area[23 * PAGE + 100] == value_of(&f, 23, 100));
    CHECK(area[22 * PAGE] == 1 && f.missing == 24);
    CHECK(madvise(area, 4 * PAGE, MADV_DONTNEED) == 0);
    f.round = 50;
    check_page(&f, area, 0);
    check_page(&f, area, 3);
    CHECK(f.missing == 26);
    finish(&f);
    CHECK(area[40 * PAGE] == 0); /* nobody's any more */
    munmap(area, 64 * PAGE);
}

static void strings(void)
{
    static struct filler f;
    unsigned char *area = map(40), *other = malloc(8 * PAGE);
    void *to = area + 100;
    const void *from = area + 8 * PAGE;
    size_t count = 5 * PAGE;
    unsigned char found;

    start(&f, area, 40 * PAGE, 0, UFFDIO_REGISTER_MODE_MISSING);
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(0x5a) : "memory");
    CHECK(count == 0 && f.missing == 6 && area[99] == value_of(&f, 0, 99) && area[5 * PAGE + 99] == 0x5a);
    to = other;
    count = 3 * PAGE / 8;
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    CHECK(count == 0 && f.missing == 9 && other[2 * PAGE + 8] == value_of(&f, 10, 8));
    to = area + 16 * PAGE;
    count = 3 * PAGE;
    memset(area + 14 * PAGE, 0, 1);
    __asm__ volatile("repne scasb" : "+D"(to), "+c"(count), "=@ccz"(found) : "a"((int)value_of(&f, 17, 10)) : "memory");
    CHECK(found);
    to = area + 20 * PAGE;
    from = area + 24 * PAGE;
    count = 3 * PAGE;
    f.round = 0;
    __asm__ volatile("std\n\trep movsb\n\tcld" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    CHECK(count == 0 && area[20 * PAGE] == value_of(&f, 24, 0) && area[20 * PAGE - 1] == value_of(&f, 23, PAGE - 1));
    finish(&f);
    free(other);
    munmap(area, 40 * PAGE);
}

static int seven(void)
{
    return 7;
}

static void vectors_and_jumps(void)
{
    static struct filler f;
    unsigned char *area = map(40);
    int (*volatile *slot)(void) = (int (*volatile *)(void))(area + 30 * PAGE);
    __m256i sum = _mm256_loadu_si256((__m256i *)area);
    __m256i index = _mm256_setr_epi32(0, 1024, 2048, 3072, 4096, 5120, 6144, 7168);
    unsigned char out[32];
    uint32_t words[8];

    munmap(area, 40 * PAGE);
    area = map(40);
    slot = (int (*volatile *)(void))(area + 30 * PAGE);
    start(&f, area, 40 * PAGE, 0, UFFDIO_REGISTER_MODE_MISSING);
    sum = _mm256_add_epi8(sum, _mm256_loadu_si256((__m256i *)(area + PAGE - 16))); /* two pages */
    _mm256_storeu_si256((__m256i *)out, sum);
    CHECK(out[0] == value_of(&f, 0, PAGE - 16) && out[16] == value_of(&f, 1, 0) && f.missing == 2);
    _mm256_storeu_si256((__m256i *)words, _mm256_i32gather_epi32((int *)(area + 2 * PAGE), index, 4));
    CHECK((words[7] & 0xff) == value_of(&f, 9, 0) && f.missing == 10);
    _mm256_maskstore_epi32((int *)(area + 12 * PAGE), _mm256_set1_epi32(-1), index);
    CHECK(*(uint32_t *)(area + 12 * PAGE + 4) == 1024 && area[12 * PAGE + 32] == value_of(&f, 12, 32));
    *slot = seven;
    CHECK((*slot)() == 7 && f.missing == 12);
    finish(&f);
    munmap(area, 40 * PAGE);
}

static void system_calls(void)
{
    static struct filler f;
    unsigned char *area = map(40), byte;
    char *path = (char *)area + 20 * PAGE;
    int ends[2];

    CHECK(pipe(ends) == 0);
    start(&f, area, 40 * PAGE, 0, UFFDIO_REGISTER_MODE_MISSING);
    CHECK(write(ends[1], area + 3 * PAGE + 7, 1) == 1 && read(ends[0], &byte, 1) == 1);
    CHECK(byte == value_of(&f, 3, 7));
    CHECK(write(ends[1], "hello", 5) == 5 && read(ends[0], area + 6 * PAGE - 2, 100) == 5);
    CHECK(!memcmp(area + 6 * PAGE - 2, "hello", 5) && area[6 * PAGE + 3] == value_of(&f, 6, 3));
    CHECK(access(path, F_OK) == -1); /* whatever it names */
    CHECK(gettimeofday((struct timeval *)(area + 22 * PAGE), NULL) == 0);
    CHECK(getcwd(path + 4 * PAGE, PAGE) && area[24 * PAGE] == '/');
    CHECK(madvise(area, 40 * PAGE, MADV_DONTNEED) == 0);
    CHECK(syscall(SYS_getrandom, area + 30 * PAGE, 2 * PAGE, 0) == 2 * PAGE);
    finish(&f);
    close(ends[0]);
    close(ends[1]);
    munmap(area, 40 * PAGE);
}

static void write_protection(void)
{
    static struct filler f;
    unsigned char *area = map(16);

    memset(area, 3, 16 * PAGE);
    start(&f, area, 16 * PAGE, UFFD_FEATURE_PAGEFAULT_FLAG_WP, UFFDIO_REGISTER_MODE_WP);
    struct uffdio_writeprotect on = { .range = { (uintptr_t)area, 16 * PAGE }, .mode = UFFDIO_WRITEPROTECT_MODE_WP };

    CHECK(ioctl(f.fd, UFFDIO_WRITEPROTECT, &on) == 0);
    for (size_t n = 0; n < 16; n++)
        CHECK(area[n * PAGE] == 3);
    CHECK(f.protected == 0);
    for (size_t n = 0; n < 16; n += 2)
        area[n * PAGE + n] = 4;
    for (size_t n = 0; n < 16; n += 2)
        area[n * PAGE + n + 1] = 5;
    CHECK(f.protected == 8 && f.missing == 0);
    memset(area, 6, 4 * PAGE);
    CHECK(f.protected == 10 && area[3 * PAGE] == 6);
    finish(&f);
    munmap(area, 16 * PAGE);
}

static void shared_pages(void)
{
    static struct filler f;
    int fd = memfd_create("pages", MFD_CLOEXEC);
    unsigned char *area, *other;

    CHECK(fd >= 0 && ftruncate(fd, 8 * PAGE) == 0);
    area = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    other = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(area != MAP_FAILED && other != MAP_FAILED);
    start(&f, area, 8 * PAGE, UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MINOR_SHMEM,
          UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR);
    memset(other, 8, 2 * PAGE);
    CHECK(area[0] == 8 && area[PAGE] == 8 && f.minor == 2);
    check_page(&f, area, 5);
    CHECK(f.missing == 1 && other[5 * PAGE + 1] == value_of(&f, 5, 1));
    area[6 * PAGE] = 11;
    CHECK(other[6 * PAGE] == 11 && f.missing == 2);
    finish(&f);
    close(fd);
    munmap(area, 8 * PAGE);
    munmap(other, 8 * PAGE);
}

static struct filler common;

static void *sum(void *argument)
{
    uint64_t total = 0;

    for (size_t n = 0; n < 32; n++)
        total += common.area[n * PAGE + (uintptr_t)argument];
    return (void *)(uintptr_t)total;
}

static void many_threads(void)
{
    unsigned char *area = map(32);
    pthread_t threads[6];

    start(&common, area, 32 * PAGE, 0, UFFDIO_REGISTER_MODE_MISSING);
    for (uintptr_t i = 0; i < 6; i++)
        CHECK(pthread_create(&threads[i], NULL, sum, (void *)(i * 8)) == 0);
    for (uintptr_t i = 0; i < 6; i++) {
        void *result;
        uint64_t total = 0;

        CHECK(pthread_join(threads[i], &result) == 0);
        for (size_t n = 0; n < 32; n++)
            total += value_of(&common, n, i * 8);
        CHECK((uint64_t)(uintptr_t)result == total);
    }
    finish(&common);
    munmap(area, 32 * PAGE);
}

/* ---- signals ---- */

static pthread_t faulting;
static atomic_uint signals;

static void on_signal(int signo)
{
    (void)signo;
    signals++;
}

/* The one who waits for the page handles a signal first. */
static void send_and_wait(void)
{
    unsigned before = signals;

    CHECK(pthread_kill(faulting, SIGUSR1) == 0);
    while (signals == before)
        sched_yield();
}

static void interrupted(void)
{
    static struct filler f;
    unsigned char *area = map(8);
    struct sigaction action = { .sa_handler = on_signal };

    f.before = send_and_wait;
    faulting = pthread_self();
    sigaction(SIGUSR1, &action, NULL);
    start(&f, area, 8 * PAGE, 0, UFFDIO_REGISTER_MODE_MISSING);
    check_page(&f, area, 2);
    area[3 * PAGE] = 1;
    CHECK(signals >= 2 && area[3 * PAGE + 1] == value_of(&f, 3, 1));
    finish(&f);
    munmap(area, 8 * PAGE);
}

static struct filler here;
static volatile unsigned buses;

static void on_bus(int signo, siginfo_t *info, void *context)
{
    (void)signo;
    (void)context;
    buses++;
    CHECK((unsigned char *)info->si_addr >= here.area && (unsigned char *)info->si_addr < here.area + 8 * PAGE);
    fill_page(&here, (uintptr_t)info->si_addr & ~(PAGE - 1), 0);
}

static void by_signal(void)
{
    struct sigaction action = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO };

    sigaction(SIGBUS, &action, NULL);
    here.fd = open_faults(UFFD_FEATURE_SIGBUS);
    here.area = map(8);
    watch(here.fd, here.area, 8 * PAGE, UFFDIO_REGISTER_MODE_MISSING);
    for (size_t n = 0; n < 8; n++)
        check_page(&here, here.area, n);
    CHECK(buses == 8);
    close(here.fd);
    munmap(here.area, 8 * PAGE);
}

/* ---- another process fills ---- */

static void other_process(void)
{
    static struct filler f;
    unsigned char *area = map(16);
    int status;
    pid_t child;

    f.fd = open_faults(0);
    f.area = area;
    watch(f.fd, area, 16 * PAGE, UFFDIO_REGISTER_MODE_MISSING);
    child = fork();
    if (child == 0) {
        struct uffd_msg message;

        for (unsigned i = 0; i < 12; i++) {
            CHECK(read(f.fd, &message, sizeof(message)) == sizeof(message));
            answer(&f, &message);
        }
        _exit(area[0] == 0 ? 5 : 6); /* its own memory is its own */
    }
    for (size_t n = 0; n < 10; n++)
        check_page(&f, area, n);
    area[11 * PAGE + 1] = 3;
    CHECK(area[11 * PAGE] == value_of(&f, 11, 0) && area[11 * PAGE + 1] == 3);
    CHECK(getcwd((char *)area + 12 * PAGE, 100) && area[12 * PAGE] == '/');
    CHECK(area[12 * PAGE + 200] == value_of(&f, 12, 200));
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
    close(f.fd);
    munmap(area, 16 * PAGE);
}

int main(void)
{
    loads_and_stores();
    strings();
    vectors_and_jumps();
    system_calls();
    write_protection();
    shared_pages();
    many_threads();
    interrupted();
    by_signal();
    other_process();
    puts("all pages filled");
    return 0;
}
