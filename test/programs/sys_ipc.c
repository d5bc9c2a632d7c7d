// SPDX-License-Identifier: MIT
/* Pipes, sockets with control data, poll, select, epoll, eventfd, timerfd, signalfd. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

static void check_messages(void)
{
    char control[CMSG_SPACE(sizeof(int))], text[16], c;
    struct iovec iov = { "hello", 5 };
    struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
    struct cmsghdr *header;
    struct sockaddr_un name;
    socklen_t length = sizeof(name);
    int pair[2], fd, pipes[2];

    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0 && pipe(pipes) == 0);
    memset(control, 0, sizeof(control));
    header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &pipes[1], sizeof(int));
    CHECK(sendmsg(pair[0], &message, 0) == 5);
    memset(control, 0, sizeof(control));
    iov.iov_base = text;
    iov.iov_len = sizeof(text);
    CHECK(recvmsg(pair[1], &message, 0) == 5 && memcmp(text, "hello", 5) == 0);
    header = CMSG_FIRSTHDR(&message);
    CHECK(header != NULL && header->cmsg_type == SCM_RIGHTS);
    memcpy(&fd, CMSG_DATA(header), sizeof(int));
    CHECK(write(fd, "x", 1) == 1 && read(pipes[0], &c, 1) == 1 && c == 'x');
    CHECK(getsockname(pair[0], (struct sockaddr *)&name, &length) == 0 && name.sun_family == AF_UNIX && length == 2);
    CHECK(send(pair[0], "abcdef", 6, 0) == 6 && recv(pair[1], text, 3, MSG_PEEK | MSG_TRUNC) == 6);
    length = sizeof(name);
    CHECK(recvfrom(pair[1], text, 16, 0, (struct sockaddr *)&name, &length) == 6 && memcmp(text, "abcdef", 6) == 0);
    close(fd), close(pair[0]), close(pair[1]), close(pipes[0]), close(pipes[1]);
}

static void check_waiting(void)
{
    struct pollfd polls[2];
    struct epoll_event events[4], event = { .events = EPOLLIN, .data.u64 = 0x1122334455667788u };
    struct timeval zero = { 0, 0 };
    struct itimerspec soon = { .it_value = { 0, 2000000 } };
    int pipes[2], available = 0, ep = epoll_create1(0), ev = eventfd(3, 0), tf = timerfd_create(CLOCK_MONOTONIC, 0);
    uint64_t value;
    fd_set set;

    CHECK(pipe2(pipes, O_CLOEXEC) == 0 && write(pipes[1], "12345", 5) == 5);
    polls[0] = (struct pollfd){ pipes[0], POLLIN, 0 };
    polls[1] = (struct pollfd){ pipes[1], POLLOUT, 0 };
    CHECK(poll(polls, 2, 1000) == 2 && polls[0].revents == POLLIN && polls[1].revents == POLLOUT);
    FD_ZERO(&set);
    FD_SET(pipes[0], &set);
    CHECK(select(pipes[0] + 1, &set, NULL, NULL, &zero) == 1 && FD_ISSET(pipes[0], &set));
    CHECK(ioctl(pipes[0], FIONREAD, &available) == 0 && available == 5);
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, pipes[0], &event) == 0 && epoll_wait(ep, events, 4, 1000) == 1);
    CHECK(events[0].data.u64 == 0x1122334455667788u);
    CHECK(read(ev, &value, 8) == 8 && value == 3);
    CHECK(timerfd_settime(tf, 0, &soon, NULL) == 0 && read(tf, &value, 8) == 8 && value == 1);
    CHECK(poll(polls + 1, 0, 1) == 0);
    close(ep), close(ev), close(tf), close(pipes[0]), close(pipes[1]);
}

/* While there is a signalfd, others are read as ever, whatever their bytes look like. */
static void check_reads_beside_signalfd(void)
{
    static const size_t lengths[] = { 1, 30, 127, 128, 129, 256, 300 };
    char in[300], out[300];
    int fds[2];

    CHECK(pipe(fds) == 0);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
        for (int fill = 0xfe; fill <= 0xff; fill++) { /* SI_TIMER and SI_QUEUE are -2 and -1 */
            memset(in, fill, sizeof(in));
            memset(in, 'a' + (int)i, 8);
            CHECK(write(fds[1], in, lengths[i]) == (ssize_t)lengths[i]);
            CHECK(read(fds[0], out, sizeof(out)) == (ssize_t)lengths[i]);
            CHECK(memcmp(in, out, lengths[i]) == 0);
        }
    close(fds[0]);
    close(fds[1]);
}

static void check_signalfd(void)
{
    struct signalfd_siginfo info;
    sigset_t set, all;
    int fd;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    fd = signalfd(-1, &set, 0);
    sigfillset(&all);
    CHECK(sigprocmask(SIG_BLOCK, &all, &set) == 0); /* also signals of the processor */
    check_reads_beside_signalfd();
    CHECK(sigprocmask(SIG_SETMASK, &set, NULL) == 0);
    CHECK(kill(getpid(), SIGUSR1) == 0 && read(fd, &info, sizeof(info)) == sizeof(info));
    CHECK(info.ssi_signo == SIGUSR1 && info.ssi_pid == (uint32_t)getpid());
    close(fd);
}

int main(void)
{
    check_messages();
    check_waiting();
    check_signalfd();
    puts("ipc ok");
    return 0;
}
