// SPDX-License-Identifier: MIT
// libs: pthread
/* Threads that wait for each other in the kernel: pipes, sockets with messages and addresses, poll, epoll, select,
 * eventfd, large reads, readv. */
#define _GNU_SOURCE
#include "check.h"
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 200
#define LARGE (300 << 10)

static int there[2], back[2], pair[2], event;
static void *volatile nowhere = (void *)16;

static void *echo(void *argument)
{
    unsigned value;

    for (unsigned i = 0; i < ROUNDS; i++) {
        CHECK(read(there[0], &value, sizeof(value)) == sizeof(value));
        value *= 3;
        CHECK(write(back[1], &value, sizeof(value)) == sizeof(value));
    }
    return argument;
}

static void ping_pong(void)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned value = i;

        CHECK(write(there[1], &value, sizeof(value)) == sizeof(value));
        CHECK(read(back[0], &value, sizeof(value)) == sizeof(value) && value == 3 * i);
    }
}

static void *send_messages(void *argument)
{
    char text[2][8] = { "message", "parts" };
    struct iovec parts[2] = { { text[0], 8 }, { text[1], 6 } };
    struct msghdr header = { .msg_iov = parts, .msg_iovlen = 2 };
    uint64_t one = 1;
    char *large = malloc(LARGE);

    usleep(1000);
    CHECK(sendmsg(pair[1], &header, 0) == 14);
    usleep(1000);
    CHECK(write(event, &one, sizeof(one)) == sizeof(one));
    usleep(1000);
    CHECK(write(there[1], "poll", 4) == 4);
    usleep(1000);
    CHECK(write(back[1], "select", 6) == 6);
    memset(large, 'L', LARGE);
    for (unsigned sent = 0; sent < LARGE;) {
        ssize_t some = write(there[1], large + sent, LARGE - sent);

        CHECK(some > 0);
        sent += (unsigned)some;
    }
    free(large);
    return argument;
}

static void receive_message(void)
{
    char text[2][8] = { { 0 }, { 0 } }, control[64];
    struct iovec parts[2] = { { text[0], 8 }, { text[1], 8 } };
    struct msghdr header = { .msg_iov = parts, .msg_iovlen = 2, .msg_control = control,
                             .msg_controllen = sizeof(control) };

    CHECK(recvmsg(pair[0], &header, 0) == 14);
    CHECK(!strcmp(text[0], "message") && !strcmp(text[1], "parts") && header.msg_controllen == 0);
    CHECK(header.msg_iov == parts && header.msg_control == control);
}

static void wait_in_all_ways(void)
{
    struct pollfd poll_fd = { .fd = there[0], .events = POLLIN };
    struct epoll_event wanted = { .events = EPOLLIN, .data.u64 = 77 }, got = { 0 };
    struct timeval limit = { 5, 0 };
    uint64_t value = 0;
    char text[8] = { 0 };
    fd_set set;
    int epoll = epoll_create1(0);

    epoll_ctl(epoll, EPOLL_CTL_ADD, event, &wanted);
    CHECK(epoll_wait(epoll, &got, 1, 5000) == 1 && got.data.u64 == 77);
    CHECK(read(event, &value, sizeof(value)) == sizeof(value) && value == 1);
    CHECK(poll(&poll_fd, 1, 5000) == 1 && poll_fd.revents == POLLIN);
    CHECK(read(there[0], text, 4) == 4 && !strcmp(text, "poll"));
    FD_ZERO(&set);
    FD_SET(back[0], &set);
    CHECK(select(back[0] + 1, &set, NULL, NULL, &limit) == 1 && FD_ISSET(back[0], &set));
    CHECK(read(back[0], text, 6) == 6 && !strcmp(text, "select"));
    close(epoll);
}

static void read_much(void)
{
    char *large = calloc(1, LARGE);
    struct iovec parts[3];
    unsigned got = 0;

    while (got < LARGE) {
        unsigned rest = LARGE - got;
        ssize_t some;

        for (unsigned i = 0; i < 3; i++)
            parts[i] = (struct iovec){ large + got + i * (rest / 3), i < 2 ? rest / 3 : rest - rest / 3 * 2 };
        some = readv(there[0], parts, 3);
        CHECK(some > 0);
        got += (unsigned)some;
    }
    for (unsigned i = 0; i < LARGE; i++)
        CHECK(large[i] == 'L');
    free(large);
}

static void bad_pointer(void)
{
    char text[4] = { 0 };

    CHECK(write(there[1], "bad", 3) == 3);
    CHECK(read(there[0], nowhere, 3) == -1);
    CHECK(read(there[0], text, 3) == 3 && !strcmp(text, "bad"));
}

int main(void)
{
    pthread_t thread;

    CHECK(pipe(there) == 0 && pipe(back) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
    event = eventfd(0, 0);
    pthread_create(&thread, NULL, echo, NULL);
    ping_pong();
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, send_messages, NULL);
    receive_message();
    wait_in_all_ways();
    read_much();
    bad_pointer();
    pthread_join(thread, NULL);
    puts("talked");
    return 0;
}
