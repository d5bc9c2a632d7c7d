// SPDX-License-Identifier: MIT
/* A signal interrupts each kind of call that waits, with SA_RESTART and without, with a handler and without: what it
 * returns is what signal(7) says.  A timer ticks; for a call that is restarted, a later tick brings what it waits for. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t ticks, ends, is_inside;
static int empty[2], full[2], sockets[2], event_fd, epoll, notify, queue, semaphore, listener;
static uint32_t word;
static const struct timespec second = { 20, 0 };

/* What brings each call its end: it is called from the handler. */
static void (*bring)(void);

static void on_tick(int signo)
{
    int saved = errno;

    (void)signo;
    ticks++;
    if (is_inside && ends && ticks >= 3) {
        ends = 0;
        bring();
    }
    errno = saved;
}

static void tick(int signo, int flags, int comes)
{
    struct sigaction action = { .sa_handler = on_tick, .sa_flags = flags };
    struct itimerval timer = { { 0, 4000 }, { 0, 4000 } };

    CHECK(sigaction(signo, &action, NULL) == 0);
    ticks = 0;
    ends = comes;
    is_inside = 1;
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void quiet(void)
{
    struct itimerval off = { { 0, 0 }, { 0, 0 } };

    CHECK(setitimer(ITIMER_REAL, &off, NULL) == 0);
    is_inside = 0;
}

static void write_byte(void)
{
    CHECK(write(empty[1], "x", 1) == 1);
}

static void drain(void)
{
    char some[65536];

    CHECK(read(full[0], some, sizeof(some)) > 0);
}

static void write_socket(void)
{
    CHECK(write(sockets[1], "x", 1) == 1);
}

static void write_event(void)
{
    CHECK(eventfd_write(event_fd, 1) == 0);
}

static void wake(void)
{
    CHECK(syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0) >= 0);
    word = 1;
}

static char path[100];

static void make_file(void)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0600);

    CHECK(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
}

static void nothing(void) {}

static volatile pid_t child; /* 0: fork() has not returned yet */

static void end_child(void)
{
    if (child)
        CHECK(kill(child, SIGKILL) == 0);
    else
        ends = 1; /* a later tick ends it */
}

static void connect_to(void)
{
    struct sockaddr_un address;
    socklen_t bytes = sizeof(address);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    CHECK(getsockname(listener, (struct sockaddr *)&address, &bytes) == 0);
    CHECK(connect(fd, (struct sockaddr *)&address, bytes) == 0 && close(fd) == 0);
}

static long do_read(void)
{
    char c;

    return read(empty[0], &c, 1);
}

static long do_readv(void)
{
    char c[2];
    struct iovec parts[2] = { { c, 1 }, { c + 1, 1 } };

    return readv(empty[0], parts, 2);
}

static long do_write(void)
{
    static char some[65536];

    return write(full[1], some, sizeof(some)) > 0 ? 1 : -1;
}

static long do_recv(void)
{
    char c;

    return recv(sockets[0], &c, 1, 0);
}

static long do_recvmsg(void)
{
    char c;
    struct iovec part = { &c, 1 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

    return recvmsg(sockets[0], &message, 0);
}

static long do_recv_timeout(void)
{
    struct timeval limit = { 20, 0 }, never = { 0, 0 };
    char c;
    long result;

    CHECK(setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0);
    result = recv(sockets[0], &c, 1, 0);
    CHECK(setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &never, sizeof(never)) == 0);
    return result;
}

static long do_accept(void)
{
    int fd = accept(listener, NULL, NULL);

    return fd < 0 ? -1 : close(fd) + 1;
}

static long do_event(void)
{
    uint64_t value;

    return read(event_fd, &value, 8);
}

static long do_inotify(void)
{
    char some[4096];
    long bytes = read(notify, some, sizeof(some));

    return bytes > 0 ? 1 : bytes;
}

static long do_poll(void)
{
    struct pollfd one = { empty[0], POLLIN, 0 };

    return poll(&one, 1, 20000);
}

static long do_ppoll(void)
{
    struct pollfd one = { empty[0], POLLIN, 0 };
    struct timespec limit = second;

    return ppoll(&one, 1, &limit, NULL);
}

static long do_select(void)
{
    fd_set set;
    struct timeval limit = { 20, 0 };

    FD_ZERO(&set);
    FD_SET(empty[0], &set);
    return select(empty[0] + 1, &set, NULL, NULL, &limit);
}

static long do_epoll(void)
{
    struct epoll_event event;

    return epoll_wait(epoll, &event, 1, 20000);
}

static long do_nanosleep(void)
{
    struct timespec left = { 0, 0 };
    long result = nanosleep(&second, &left);

    CHECK(result == 0 || left.tv_sec == 19);
    return result;
}

static long do_clock_nanosleep(void)
{
    struct timespec left = { 0, 0 };
    int error = clock_nanosleep(CLOCK_MONOTONIC, 0, &second, &left);

    CHECK(error == 0 || left.tv_sec == 19);
    errno = error;
    return error ? -1 : 0;
}

static long do_futex(void)
{
    word = 0;
    return syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static long do_futex_timeout(void)
{
    word = 0;
    return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &second, NULL, 0);
}

static long do_msgrcv(void)
{
    struct {
        long type;
        char text[4];
    } message;

    return msgrcv(queue, &message, 4, 0, 0);
}

static long do_semop(void)
{
    struct sembuf down = { 0, -1, 0 };

    return semop(semaphore, &down, 1);
}

static long do_semtimedop(void)
{
    struct sembuf down = { 0, -1, 0 };

    return semtimedop(semaphore, &down, 1, &second);
}

static long do_sigtimedwait(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    return sigtimedwait(&set, NULL, &second);
}

static void start_child(void)
{
    pid_t made;

    child = 0;
    made = fork();
    if (made == 0)
        for (;;)
            pause();
    child = made;
}

static long do_wait(void)
{
    long result;

    start_child();
    result = waitpid(child, NULL, 0);
    if (result == child)
        return 1;
    CHECK(result == -1 && errno == EINTR && kill(child, SIGKILL) == 0);
    while (waitpid(child, NULL, 0) != child)
        CHECK(errno == EINTR);
    errno = EINTR;
    return -1;
}

static long do_waitid(void)
{
    siginfo_t info;
    long result;

    start_child();
    result = waitid(P_ALL, 0, &info, WEXITED);
    if (result == 0)
        return info.si_pid == child;
    CHECK(result == -1 && errno == EINTR && kill(child, SIGKILL) == 0);
    while (waitpid(child, NULL, 0) != child)
        CHECK(errno == EINTR);
    errno = EINTR;
    return -1;
}

static long do_pause(void)
{
    return pause();
}

static const struct {
    const char *name;
    long (*run)(void);
    void (*bring)(void); /* NULL: nothing restarts it */
} calls[] = {
    { "read", do_read, write_byte },
    { "readv", do_readv, write_byte },
    { "write", do_write, drain },
    { "recv", do_recv, write_socket },
    { "recvmsg", do_recvmsg, write_socket },
    { "recv with a timeout", do_recv_timeout, NULL },
    { "accept", do_accept, connect_to },
    { "eventfd", do_event, write_event },
    { "inotify", do_inotify, make_file },
    { "poll", do_poll, NULL },
    { "ppoll", do_ppoll, NULL },
    { "select", do_select, NULL },
    { "epoll_wait", do_epoll, NULL },
    { "nanosleep", do_nanosleep, NULL },
    { "clock_nanosleep", do_clock_nanosleep, NULL },
    { "futex", do_futex, wake },
    { "futex with a timeout", do_futex_timeout, wake },
    { "msgrcv", do_msgrcv, NULL },
    { "semop", do_semop, NULL },
    { "semtimedop", do_semtimedop, NULL },
    { "sigtimedwait", do_sigtimedwait, NULL },
    { "waitpid", do_wait, end_child },
    { "waitid", do_waitid, end_child },
    { "pause", do_pause, NULL },
};

static void run(size_t i, int flags)
{
    long result;
    int error;

    bring = calls[i].bring && flags ? calls[i].bring : nothing;
    tick(SIGALRM, flags, calls[i].bring && flags);
    errno = 0;
    result = calls[i].run();
    error = errno;
    quiet();
    printf("%s%s: %s\n", calls[i].name, flags ? ", restarted" : "", result >= 0 ? "done" : error == EINTR ? "EINTR" : strerror(error));
}

static void prepare(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct epoll_event event = { .events = EPOLLIN };
    static char some[65536];
    const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";

    CHECK(pipe(empty) == 0 && pipe(full) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    CHECK(fcntl(full[1], F_SETFL, O_NONBLOCK) == 0);
    while (write(full[1], some, sizeof(some)) > 0) {}
    CHECK(errno == EAGAIN && fcntl(full[1], F_SETFL, 0) == 0);
    event_fd = eventfd(0, 0);
    epoll = epoll_create1(0);
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, empty[0], &event) == 0);
    snprintf(path, sizeof(path), "%s/tbd-sig-calls-%d", folder, (int)getpid());
    CHECK(mkdtemp(strcat(path, "-XXXXXX")) != NULL);
    notify = inotify_init1(0);
    CHECK(notify >= 0 && inotify_add_watch(notify, path, IN_CREATE) >= 0);
    strcat(path, "/file");
    queue = msgget(IPC_PRIVATE, 0600);
    semaphore = semget(IPC_PRIVATE, 1, 0600);
    CHECK(queue >= 0 && semaphore >= 0);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof(address.sun_family)) == 0 && listen(listener, 1) == 0);
}

int main(void)
{
    prepare();
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        for (int restarts = 0; restarts < 2; restarts++)
            run(i, restarts ? SA_RESTART : 0);
    *strrchr(path, '/') = '\0';
    CHECK(rmdir(path) == 0 && msgctl(queue, IPC_RMID, NULL) == 0 && semctl(semaphore, 0, IPC_RMID) == 0);
    return 0;
}
