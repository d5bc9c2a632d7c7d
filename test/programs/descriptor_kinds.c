// SPDX-License-Identifier: MIT
// end: exec
/* descriptor_kinds.c - opens, copies, passes, loses and closes descriptors, and prints which are open at three ends: of a forked
 * child, of this program, and of the program that it executes (this one, with an argument)
 *
 * test_fds compares `tbdq fds` with what it prints.  Line numbers matter to nobody. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* "end NAME 0:file 3:pipe ...", by the kernel's own names. */
static void print_open(const char *name)
{
    printf("end %s", name);
    for (int fd = 0; fd < 200; fd++) {
        char path[64], to[4096] = "";

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (readlink(path, to, sizeof(to) - 1) < 0)
            continue;
        if (strchr(to, ' ') != NULL)
            *strchr(to, ' ') = '\0';
        if (strncmp(to, "pipe:", 5) == 0 || strncmp(to, "socket:", 7) == 0)
            *strchr(to, '[') = '\0'; /* a number that is another one in each run */
        printf(" %d=%s", fd, to);
    }
    printf("\n");
    fflush(stdout);
}

__attribute__((noinline)) static int open_self(void)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        die("open");
    return fd;
}

__attribute__((noinline)) static void leak_in_a_loop(void)
{
    for (int i = 0; i < 7; i++) {
        (void)open_self();
        __asm__ volatile(""); /* no tail call */
    }
}

__attribute__((noinline)) static void close_it(int fd)
{
    (void)close(fd);
    __asm__ volatile(""); /* no tail call */
}

__attribute__((noinline)) static void mistakes(void)
{
    int fd = open_self();
    char byte;

    close_it(fd);
    for (int i = 0; i < 3; i++)
        close_it(fd); /* double close */
    if (read(fd, &byte, 1) >= 0)
        die("read");
    fd = open_self();
    if (write(fd, "x", 1) >= 0) /* open for reading only */
        die("write");
    (void)close(fd);
    (void)close(177); /* was never open */
    if (lseek(178, 0, SEEK_SET) >= 0)
        die("lseek");
}

/* A descriptor goes through a socket pair to this very process. */
static void pass_one(int sends, int receives, int fd)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { .head = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
    char byte = 'x';
    struct iovec data = { &byte, 1 };
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
    };

    control.head.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
    if (sendmsg(sends, &message, 0) != 1 || recvmsg(receives, &message, 0) != 1)
        die("sendmsg");
}

static void connect_to_itself(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t bytes = sizeof(address);
    int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (server < 0 || client < 0 || bind(server, (struct sockaddr *)&address, bytes) != 0 ||
        listen(server, 1) != 0 || getsockname(server, (struct sockaddr *)&address, &bytes) != 0 ||
        connect(client, (struct sockaddr *)&address, bytes) != 0 || accept(server, NULL, NULL) < 0)
        die("connect");
}

static void open_all_kinds(void)
{
    int pair[2], ends[2], fd = open_self();

    if (dup(fd) < 0 || dup2(fd, 100) != 100 || dup3(fd, 101, O_CLOEXEC) != 101 ||
        fcntl(fd, F_DUPFD, 120) < 0 || fcntl(fd, F_DUPFD_CLOEXEC, 130) < 0 || pipe2(ends, 0) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        die("dup");
    if (epoll_create1(EPOLL_CLOEXEC) < 0 || eventfd(0, 0) < 0 || memfd_create("mem", MFD_CLOEXEC) < 0 ||
        timerfd_create(CLOCK_MONOTONIC, 0) < 0 || open("/", O_RDONLY | O_DIRECTORY) < 0)
        die("epoll");
    pass_one(pair[0], pair[1], fd);
    connect_to_itself();
    for (int i = 140; i < 150; i++) {
        if (dup2(ends[1], i) != i)
            die("dup2");
    }
    if (syscall(SYS_close_range, 143, 146, 0) != 0)
        die("close_range");
    if (fcntl(149, F_SETFD, FD_CLOEXEC) != 0 || dup2(fd, 148) != 148)
        die("fcntl");
}

int main(int argc, char **argv)
{
    pid_t child;

    if (argc > 1) {
        print_open("exec");
        return 0;
    }
    open_all_kinds();
    leak_in_a_loop();
    mistakes();
    child = fork();
    if (child == 0) {
        (void)close(100);
        print_open("child");
        _exit(0);
    }
    if (child < 0 || waitpid(child, NULL, 0) != child)
        die("fork");
    print_open("parent");
    execl("/proc/self/exe", argv[0], "again", (char *)NULL);
    die("exec");
}
