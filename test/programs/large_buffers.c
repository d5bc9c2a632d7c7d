// SPDX-License-Identifier: MIT
// libs: -pthread
// options: window=20000
/* Calls that are given far larger buffers than they fill, or none of which they can fill whole: nothing to read, a few
 * bytes, vectors, messages, memory that ends in the middle, a file's mapping that is longer than the file.  Alone and beside
 * another thread. */
#define _GNU_SOURCE
#include "check.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE  4096u
#define LARGE (100u << 20)

static unsigned char *large;
static int ends[2], pair[2];

/* What is around a transfer, and what it was: every byte counts. */
static void show(const char *what, long result, const unsigned char *at, size_t bytes)
{
    printf("%s: %ld %d %lx\n", what, result, result < 0 ? errno : 0, (long)check_hash(at, bytes));
}

static void fill(unsigned char *at, size_t bytes, unsigned char from)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)(from + i % 101);
}

static void feed(size_t bytes)
{
    unsigned char data[3 * PAGE];

    fill(data, bytes, 100);
    CHECK(write(ends[1], data, bytes) == (ssize_t)bytes);
}

static void drain(void)
{
    unsigned char data[PAGE];

    while (read(ends[0], data, sizeof(data)) > 0)
        ;
}

static void read_little(void)
{
    struct iovec parts[] = { { large + 10, 5 }, { large + (50 << 20), 40 << 20 }, { large + 100, 7 } };
    long result;

    fill(large, PAGE, 1);
    for (int i = 0; i < 200; i++)
        CHECK(read(ends[0], large, LARGE) == -1 && errno == EAGAIN);
    show("empty", -1, large, PAGE);
    feed(33);
    result = read(ends[0], large + 3, LARGE - 3);
    show("few", result, large, PAGE);
    feed(999);
    result = readv(ends[0], parts, 3);
    show("vectors", result, large, PAGE);
    show("second vector", result, parts[1].iov_base, 2 * PAGE);
}

static void read_across(void)
{
    unsigned char *at = large + LARGE; /* what follows is missing */
    struct iovec parts[] = { { large, 20000 }, { at - 40, 80 }, { large + 30000, 100 } };
    long result;

    fill(large, 40000, 2);
    fill(at - 3 * PAGE, 3 * PAGE, 3);
    feed(3 * PAGE);
    result = read(ends[0], at - 5000, 1 << 20);
    show("over the edge", result, at - 3 * PAGE, 3 * PAGE);
    drain();
    feed(3 * PAGE);
    result = readv(ends[0], parts + 1, 2);
    show("a vector over the edge", result, at - 3 * PAGE, 3 * PAGE);
    drain();
    CHECK(send(pair[1], large, 30000, 0) == 30000);
    parts[0].iov_len = 1000;
    result = readv(pair[0], parts, 3);
    show("a datagram over the edge", result, at - 3 * PAGE, 3 * PAGE);
    show("and before it", result, large, 40000);
}

static void read_past_the_file(void)
{
    int file = memfd_create("short", 0);
    unsigned char *at;
    long result;

    CHECK(file >= 0 && ftruncate(file, PAGE + 100) == 0);
    at = mmap(NULL, 20 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    CHECK(at != MAP_FAILED);
    feed(3 * PAGE);
    result = read(ends[0], at, 20 * PAGE);
    show("past the file", result, at, 2 * PAGE);
    drain();
    CHECK(munmap(at, 20 * PAGE) == 0 && close(file) == 0);
}

static void receive(void)
{
    char control[512];
    struct iovec part = { large, LARGE };
    struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
    struct mmsghdr two[2];
    struct sockaddr_storage name;
    socklen_t length = sizeof(name);
    long result;

    fill(large, PAGE, 5);
    CHECK(send(pair[1], "one", 3, 0) == 3 && send(pair[1], "four", 4, 0) == 4 && send(pair[1], "fives", 5, 0) == 5);
    result = recvmsg(pair[0], &header, 0);
    show("message", result, large, PAGE);
    memset(two, 0, sizeof(two));
    two[0].msg_hdr = two[1].msg_hdr = header;
    result = recvmmsg(pair[0], two, 2, MSG_DONTWAIT, NULL);
    show("messages", result, large, PAGE);
    errno = 0;
    result = recvfrom(pair[0], large, LARGE, MSG_DONTWAIT, (struct sockaddr *)&name, &length);
    show("no message", result, large, PAGE);
    CHECK(send(pair[1], "ignored", 7, 0) == 7);
    length = (socklen_t)-1;
    result = recvfrom(pair[0], large, LARGE, 0, (struct sockaddr *)&name, &length);
    show("a message, and a bad length", result, large, PAGE);
}

/* Bytes of a stream that are thrown away: counted, and not written. */
static void receive_nothing(void)
{
    struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof(name);
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = socket(AF_INET, SOCK_STREAM, 0), other;

    if (listener < 0 || bind(listener, (struct sockaddr *)&name, sizeof(name)) != 0)
        return;
    CHECK(listen(listener, 1) == 0 && getsockname(listener, (struct sockaddr *)&name, &length) == 0);
    CHECK(connect(one, (struct sockaddr *)&name, sizeof(name)) == 0);
    other = accept(listener, NULL, NULL);
    CHECK(other >= 0 && send(one, large, 2 * PAGE, 0) == 2 * PAGE);
    close(one);
    CHECK(recv(other, large, 2 * PAGE, MSG_PEEK | MSG_WAITALL) == 2 * PAGE);
    fill(large, PAGE, 6);
    show("thrown away", recv(other, large, LARGE, MSG_TRUNC), large, PAGE);
    close(other);
    close(listener);
}

/* Pages that the kernel reads, and buffers of which it writes less than it could. */
static void other_calls(void)
{
    struct iovec part = { large, 2 * PAGE };
    int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY);
    unsigned char back[2 * PAGE];

    fill(large, 2 * PAGE, 7);
    CHECK(vmsplice(ends[1], &part, 1, 0) == 2 * PAGE);
    CHECK(read(ends[0], back, sizeof(back)) == sizeof(back));
    show("spliced", 0, back, sizeof(back));
    CHECK(folder >= 0 && syscall(SYS_getdents64, folder, large, LARGE) > 0);
    CHECK(syscall(SYS_getdents64, folder, large, LARGE) == 0);
    show("path", readlink("/proc/self/cwd/none", (char *)large, LARGE), large, 0);
    CHECK(syscall(SYS_getrandom, large, 200, 0) == 200);
    close(folder);
}

static void try_all(void)
{
    read_little();
    read_across();
    read_past_the_file();
    receive();
    receive_nothing();
    other_calls();
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_it(void *arg)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(void)
{
    pthread_t other;

    large = mmap(NULL, LARGE + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(large != MAP_FAILED && munmap(large + LARGE, PAGE) == 0);
    CHECK(pipe2(ends, O_NONBLOCK) == 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
    try_all();
    pthread_mutex_lock(&lock);
    CHECK(pthread_create(&other, NULL, wait_for_it, NULL) == 0);
    try_all();
    pthread_mutex_unlock(&lock);
    CHECK(pthread_join(other, NULL) == 0);
    return 0;
}
