// SPDX-License-Identifier: MIT
/* Values that go from process to process through pipes and sockets, by mode; without a mode, all.  What was read last is
 * in `got`; what was written comes from make() or twice(), so test_channels.py knows where it must lead. */
#define _GNU_SOURCE
#include "child.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int got, sent;
static int several[4];
static char self_path[4096];

__attribute__((noinline)) static int make(int seed)
{
    return seed * 3 + 1;
}

__attribute__((noinline)) static int twice(int value)
{
    return value + value;
}

static void write_all(int fd, const void *bytes, size_t count)
{
    CHECK(write(fd, bytes, count) == (ssize_t)count);
}

static void read_all(int fd, void *bytes, size_t count)
{
    CHECK(read(fd, bytes, count) == (ssize_t)count);
}

static void open_pipe(int *fds)
{
    CHECK(pipe(fds) == 0);
}

static void close_pipe(const int *fds)
{
    close(fds[0]);
    close(fds[1]);
}

/* The child sends the value of `seed`. */
static pid_t sender(int fd, int seed)
{
    pid_t child = new_process();

    if (child != 0)
        return child;
    sent = make(seed);
    write_all(fd, &sent, sizeof(sent));
    _exit(0);
}

static void mode_pipe(void)
{
    int fds[2];
    pid_t child;

    open_pipe(fds);
    child = sender(fds[1], 5);
    read_all(fds[0], &got, sizeof(got));
    wait_for(child, 0);
    close_pipe(fds);
}

/* What the child has read is not in the parent. */
static void mode_down(void)
{
    int fds[2];
    pid_t child;

    open_pipe(fds);
    child = new_process();
    if (child == 0) {
        read_all(fds[0], &got, sizeof(got));
        _exit(got == 19 ? 0 : 1);
    }
    sent = make(6);
    write_all(fds[1], &sent, sizeof(sent));
    wait_for(child, 0);
    close_pipe(fds);
    got = 0;
}

static void mode_self(void)
{
    int fds[2];

    open_pipe(fds);
    sent = make(7);
    write_all(fds[1], &sent, sizeof(sent));
    read_all(fds[0], &got, sizeof(got));
    close_pipe(fds);
}

/* The child moves the descriptor and becomes another program, which writes. */
static void mode_exec(void)
{
    int fds[2];
    pid_t child;

    CHECK(pipe2(fds, O_CLOEXEC) == 0);
    child = new_process();
    if (child == 0) {
        int moved = fcntl(fds[1], F_DUPFD, 50);

        CHECK(moved == 50 && dup2(moved, 9) == 9);
        execl(self_path, self_path, "writer", NULL);
        _exit(1);
    }
    read_all(fds[0], &got, sizeof(got));
    wait_for(child, 0);
    close_pipe(fds);
}

/* A question and its answer: the value goes to the child and comes back. */
static void mode_pair(void)
{
    int fds[2], mine;
    pid_t child;

    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    child = new_process();
    if (child == 0) {
        CHECK(recv(fds[1], &mine, sizeof(mine), 0) == sizeof(mine));
        sent = twice(mine);
        CHECK(send(fds[1], &sent, sizeof(sent), 0) == sizeof(sent));
        _exit(0);
    }
    sent = make(8);
    CHECK(send(fds[0], &sent, sizeof(sent), 0) == sizeof(sent));
    CHECK(recv(fds[0], &got, sizeof(got), MSG_PEEK) == sizeof(got));
    got = 0;
    CHECK(recv(fds[0], &got, sizeof(got), 0) == sizeof(got));
    wait_for(child, 0);
    close_pipe(fds);
}

/* Many reads of one write, then one read of many writes. */
static void mode_parts(void)
{
    int fds[2], values[3];
    pid_t child;

    open_pipe(fds);
    child = new_process();
    if (child == 0) {
        for (int i = 0; i < 3; i++)
            values[i] = make(10 + i);
        write_all(fds[1], values, sizeof(values));
        for (int i = 0; i < 4; i++) {
            sent = make(20 + i);
            write_all(fds[1], &sent, sizeof(sent));
        }
        _exit(0);
    }
    wait_for(child, 0);
    for (size_t i = 0; i < sizeof(values); i++)
        read_all(fds[0], (char *)values + i, 1);
    got = values[1];
    read_all(fds[0], several, sizeof(several));
    close_pipe(fds);
}

static void mode_vectors(void)
{
    struct iovec whole[2] = { { several, 3 }, { (char *)several + 3, 5 } };
    char one[3], other[5];
    struct iovec in[2] = { { one, 3 }, { other, 5 } }, out[2];
    struct msghdr message = { .msg_iov = in, .msg_iovlen = 2 };
    int fds[2], first, second;
    pid_t child;

    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    child = new_process();
    if (child == 0) {
        first = make(30);
        second = make(31);
        out[0] = (struct iovec){ &first, sizeof(first) };
        out[1] = (struct iovec){ &second, sizeof(second) };
        CHECK(writev(fds[1], out, 2) == 8);
        message = (struct msghdr){ .msg_iov = out, .msg_iovlen = 2 };
        CHECK(sendmsg(fds[1], &message, 0) == 8);
        _exit(0);
    }
    wait_for(child, 0);
    CHECK(readv(fds[0], whole, 2) == 8);
    CHECK(recvmsg(fds[0], &message, 0) == 8);
    memcpy(&got, other + 1, sizeof(got));
    close_pipe(fds);
}

static void mode_nonblock(void)
{
    struct pollfd ready = { .events = POLLIN };
    int fds[2];
    pid_t child;

    CHECK(pipe2(fds, O_NONBLOCK) == 0);
    CHECK(read(fds[0], &got, sizeof(got)) == -1 && errno == EAGAIN);
    child = sender(fds[1], 12);
    ready.fd = fds[0];
    CHECK(poll(&ready, 1, -1) == 1);
    read_all(fds[0], &got, sizeof(got));
    wait_for(child, 0);
    close_pipe(fds);
}

/* Datagrams: the first one is longer than what is read of it. */
static void mode_messages(void)
{
    int fds[2], values[2];
    pid_t child;

    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) == 0);
    child = new_process();
    if (child == 0) {
        values[0] = make(1);
        values[1] = make(2);
        write_all(fds[1], values, sizeof(values));
        sent = make(13);
        write_all(fds[1], &sent, sizeof(sent));
        _exit(0);
    }
    wait_for(child, 0);
    read_all(fds[0], &got, sizeof(got));
    read_all(fds[0], &got, sizeof(got));
    close_pipe(fds);
}

/* Two children write at the same time. */
static void two_writers(int seed, int other)
{
    int fds[2];
    pid_t children[2];

    open_pipe(fds);
    children[0] = sender(fds[1], seed);
    children[1] = sender(fds[1], other);
    read_all(fds[0], &several[0], sizeof(int));
    read_all(fds[0], &several[1], sizeof(int));
    wait_for(children[0], 0);
    wait_for(children[1], 0);
    got = 0; /* whose came first is not always the same */
    close_pipe(fds);
}

static void mode_writers(void)
{
    two_writers(14, 15);
}

static void mode_twins(void)
{
    two_writers(16, 16);
}

/* The second child is made when the first has ended: their order is known. */
static void mode_turns(void)
{
    int fds[2];

    open_pipe(fds);
    wait_for(sender(fds[1], 17), 0);
    wait_for(sender(fds[1], 17), 0);
    read_all(fds[0], &several[0], sizeof(int));
    read_all(fds[0], &got, sizeof(int));
    close_pipe(fds);
}

static void *read_in_thread(void *fd)
{
    read_all(*(int *)fd, &got, sizeof(got));
    return NULL;
}

/* A thread waits in read() while another one writes. */
static void mode_threads(void)
{
    pthread_t thread;
    int fds[2];

    open_pipe(fds);
    CHECK(pthread_create(&thread, NULL, read_in_thread, &fds[0]) == 0);
    sent = make(18);
    usleep(1000);
    write_all(fds[1], &sent, sizeof(sent));
    CHECK(pthread_join(thread, NULL) == 0);
    close_pipe(fds);
}

/* ---- what cannot be followed ---- */

static void mode_splice(void)
{
    int fds[2], others[2];
    pid_t child;

    open_pipe(fds);
    open_pipe(others);
    child = sender(others[1], 19);
    CHECK(splice(others[0], NULL, fds[1], NULL, sizeof(int), 0) == sizeof(int));
    read_all(fds[0], &got, sizeof(got));
    wait_for(child, 0);
    close_pipe(fds);
    close_pipe(others);
}

/* The descriptor that is read comes in a message. */
static void mode_passed(void)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    char byte = 'x';
    struct iovec vector = { &byte, 1 };
    struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control,
                              .msg_controllen = sizeof(control) };
    int fds[2], pair[2], passed;

    open_pipe(fds);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    control.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
                                     .cmsg_level = SOL_SOCKET,
                                     .cmsg_type = SCM_RIGHTS };
    memcpy(CMSG_DATA(&control.head), &fds[0], sizeof(int));
    CHECK(sendmsg(pair[0], &message, 0) == 1);
    CHECK(recvmsg(pair[1], &message, 0) == 1);
    memcpy(&passed, CMSG_DATA(&control.head), sizeof(int));
    sent = make(20);
    write_all(fds[1], &sent, sizeof(sent));
    read_all(passed, &got, sizeof(got));
    close(passed);
    close_pipe(pair);
    close_pipe(fds);
}

/* The writer is not recorded. */
static void mode_stranger(void)
{
    char *const argv[] = { (char *)"sh", (char *)"-c", (char *)"printf '\\075\\000\\000\\000'", NULL };
    char *const none[] = { NULL };
    posix_spawn_file_actions_t actions;
    pid_t child;
    int fds[2];

    open_pipe(fds);
    CHECK(posix_spawn_file_actions_init(&actions) == 0);
    CHECK(posix_spawn_file_actions_adddup2(&actions, fds[1], 1) == 0);
    CHECK(posix_spawn(&child, "/bin/sh", &actions, NULL, argv, none) == 0);
    posix_spawn_file_actions_destroy(&actions);
    wait_for(child, 0);
    read_all(fds[0], &got, sizeof(got));
    close_pipe(fds);
}

/* ---- by name: FIFOs, connections, files ---- */

static const char *in_folder(char *path, const char *name)
{
    const char *folder = getenv("CHANNELS_FOLDER");

    snprintf(path, 100, "%s/%s%d", folder == NULL ? "/tmp" : folder, name, (int)getpid());
    return path;
}

/* Both processes open the FIFO themselves, and again later. */
static void mode_fifo(void)
{
    char path[100];
    pid_t child;

    in_folder(path, "fifo");
    CHECK(mkfifo(path, 0600) == 0);
    for (int i = 0; i < 2; i++) {
        int fd;

        child = new_process();
        if (child == 0) {
            sent = make(41 + i);
            write_all(open(path, O_WRONLY), &sent, sizeof(sent));
            _exit(0);
        }
        fd = open(path, O_RDONLY);
        read_all(fd, &got, sizeof(got));
        close(fd);
        wait_for(child, 0);
    }
    CHECK(unlink(path) == 0);
}

/* Each client sends a number, and gets it back doubled. */
static void client_of(const struct sockaddr *address, socklen_t bytes, int seed)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(connect(fd, address, bytes) == 0);
    sent = make(seed);
    CHECK(send(fd, &sent, sizeof(sent), 0) == sizeof(sent));
    CHECK(recv(fd, &got, sizeof(got), MSG_WAITALL) == sizeof(got));
    close(fd);
}

static void serve(int listener, int count)
{
    for (int i = 0; i < count; i++) {
        int fd = i % 2 == 0 ? accept(listener, NULL, NULL) : accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        CHECK(fd >= 0);
        read_all(fd, &got, sizeof(got));
        sent = twice(got);
        write_all(fd, &sent, sizeof(sent));
        close(fd);
    }
}

/* Three connections one after the other, two of them by the process that asks at the end. */
static void clients_of(int family, struct sockaddr *address, socklen_t bytes)
{
    int listener = socket(family, SOCK_STREAM, 0);
    pid_t server, client;

    CHECK(listener >= 0 && bind(listener, address, bytes) == 0 && listen(listener, 5) == 0);
    CHECK(getsockname(listener, address, &bytes) == 0);
    server = new_process();
    if (server == 0) {
        serve(listener, 3);
        _exit(0);
    }
    client_of(address, bytes, 43);
    client = new_process();
    if (client == 0) {
        client_of(address, bytes, 44);
        _exit(0);
    }
    wait_for(client, 0);
    client_of(address, bytes, 45);
    wait_for(server, 0);
    close(listener);
}

static void mode_tcp(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET };

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    clients_of(AF_INET, (struct sockaddr *)&address, sizeof(address));
}

static void mode_unix(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    in_folder(address.sun_path, "socket");
    clients_of(AF_UNIX, (struct sockaddr *)&address, sizeof(address));
    CHECK(unlink(address.sun_path) == 0);
}

/* The client has gone before it is accepted. */
static void mode_gone(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), fd;

    snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "tbd-channels-%d", (int)getpid());
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK(listen(listener, 5) == 0);
    for (int i = 0; i < 2; i++) {
        pid_t child = new_process();

        if (child == 0) {
            int own = socket(AF_UNIX, SOCK_STREAM, 0);

            CHECK(connect(own, (struct sockaddr *)&address, sizeof(address)) == 0);
            sent = make(46 + i);
            write_all(own, &sent, sizeof(sent));
            _exit(0);
        }
        wait_for(child, 0);
    }
    for (int i = 0; i < 2; i++) {
        fd = accept(listener, NULL, NULL);
        read_all(fd, &got, sizeof(got));
        close(fd);
    }
    close(listener);
}

static void write_at(int fd, off_t at, int seed)
{
    sent = make(seed);
    CHECK(lseek(fd, at, SEEK_SET) == at);
    write_all(fd, &sent, sizeof(sent));
}

/* The first value is written twice; the second is read with the end of the first. */
static void mode_file(void)
{
    char path[100];
    pid_t child;
    int fd;

    in_folder(path, "file");
    child = new_process();
    if (child == 0) {
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        write_at(fd, 0, 50);
        write_at(fd, 4, 51);
        write_at(fd, 0, 52);
        _exit(0);
    }
    wait_for(child, 0);
    fd = open(path, O_RDONLY);
    read_all(fd, &got, sizeof(got));
    read_all(fd, &several[0], sizeof(int));
    CHECK(pread(fd, &several[2], 2 * sizeof(int), 0) == 2 * sizeof(int));
    close(fd);
    CHECK(unlink(path) == 0);
}

/* Two processes append; two others share a position. */
static void mode_append(void)
{
    char path[100];
    int shared, fd;

    in_folder(path, "file");
    shared = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (int i = 0; i < 4; i++) {
        pid_t child = new_process();

        if (child == 0) {
            fd = i < 2 ? shared : open(path, O_WRONLY | O_APPEND);
            sent = make(53 + i);
            write_all(fd, &sent, sizeof(sent));
            _exit(0);
        }
        wait_for(child, 0);
    }
    CHECK(lseek(shared, 0, SEEK_CUR) == 2 * sizeof(int));
    CHECK(pread(shared, several, sizeof(several), 0) == sizeof(several));
    read_all(shared, &got, sizeof(got));
    close(shared);
    CHECK(unlink(path) == 0);
}

/* Only the clock says that the child had written. */
static void mode_clock(void)
{
    char path[100];
    struct stat state;
    pid_t child;
    int fd;

    in_folder(path, "file");
    fd = open(path, O_RDONLY | O_CREAT | O_TRUNC, 0600);
    child = new_process();
    if (child == 0) {
        write_at(open(path, O_WRONLY), 0, 57);
        usleep(1000);
        for (;;)
            pause();
    }
    do {
        usleep(20000);
        CHECK(fstat(fd, &state) == 0);
    } while (state.st_size == 0);
    read_all(fd, &got, sizeof(got));
    CHECK(kill(child, SIGTERM) == 0 && waitpid(child, NULL, 0) == child);
    close(fd);
    CHECK(unlink(path) == 0);
}

/* A store through a mapping is no write. */
static void mode_mapped(void)
{
    char path[100];
    int fd, *memory;

    in_folder(path, "file");
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    write_at(fd, 0, 58);
    memory = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(memory != MAP_FAILED);
    *memory = make(58);
    CHECK(pread(fd, &got, sizeof(got), 0) == sizeof(got));
    CHECK(munmap(memory, sizeof(int)) == 0);
    close(fd);
    CHECK(unlink(path) == 0);
}

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {
    { "pipe", mode_pipe },         { "down", mode_down },         { "self", mode_self },
    { "exec", mode_exec },         { "pair", mode_pair },         { "parts", mode_parts },
    { "vectors", mode_vectors },   { "nonblock", mode_nonblock }, { "messages", mode_messages },
    { "writers", mode_writers },   { "twins", mode_twins },       { "turns", mode_turns },
    { "threads", mode_threads },   { "splice", mode_splice },     { "passed", mode_passed },
    { "stranger", mode_stranger }, { "fifo", mode_fifo },         { "tcp", mode_tcp },
    { "unix", mode_unix },         { "gone", mode_gone },         { "file", mode_file },
    { "append", mode_append },     { "clock", mode_clock },       { "mapped", mode_mapped },
};

int main(int argc, char **argv)
{
    ssize_t length = readlink("/proc/self/exe", self_path, sizeof(self_path) - 1);

    CHECK(length > 0);
    if (argc > 1 && strcmp(argv[1], "writer") == 0) {
        sent = make(40);
        write_all(9, &sent, sizeof(sent));
        return 0;
    }
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (argc < 2 || strcmp(argv[1], modes[i].name) == 0) {
            modes[i].run();
            printf("%s: %d\n", modes[i].name, got);
        }
    }
    return 0;
}
