// SPDX-License-Identifier: MIT
// links: tbd_syscalls
/* test_syscalls.c - the system-call table against the kernel itself
 *
 * The oracle: an arena is filled with a pattern, a call is really made on it, and the changed bytes
 * are compared with the table.  Every changed byte must be in a did-range, every did-range inside a
 * may-range; where a case states the number of bytes, the table must say exactly that.  Each case
 * runs twice with different patterns, so that a byte written with its own value shows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hooks/table/sys_table.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <linux/netfilter_arp/arp_tables.h>
#include <linux/netfilter_ipv4/ip_tables.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define ARENA       0x110000000000ull
#define ARENA_BYTES (1u << 20)
#define A(offset)   (ARENA + (offset)) /* an address in the arena */
#define UNMAPPED    0x200000000000ull

/* Descriptors that set_up() opens. */
enum {
    FILE_FD = 100,
    PIPE_R,
    PIPE_W,
    DGRAM_A,
    DGRAM_B,
    UDP_A,
    UDP_B,
    TCP,
    DIR_FD,
    EPOLL,
    TIMER,
    EVENT,
    NOTIFY,
    MASTER,
    SLAVE,
    NULL_FD,
    ZERO_FD,
    DEVICE_FD
};

#define ANY     (-1) /* any number of bytes */
#define REFUSED 1u   /* the sandbox may refuse it, or the kernel lack it: then it is not counted */
#define FAILS   2u   /* must fail */

struct test_case {
    const char *name;
    uint64_t args[6];
    long bytes;            /* what did_write must add up to, or ANY */
    void (*prepare)(void); /* puts inputs into the arena, fills pipes */
    unsigned flags;
};

static uint8_t snapshot[ARENA_BYTES];
static uint8_t *const arena = (uint8_t *)ARENA;
static int semaphores, messages, shared;
static uint64_t timer_id, tid, root_device;
static char path[64], link_path[80];

static void put(uint64_t offset, const void *bytes, size_t count)
{
    memcpy(arena + offset, bytes, count);
}
static void put32(uint64_t offset, uint32_t value)
{
    put(offset, &value, sizeof(value));
}
static void put64(uint64_t offset, uint64_t value)
{
    put(offset, &value, sizeof(value));
}
static void put_string(uint64_t offset, const char *text)
{
    put(offset, text, strlen(text) + 1);
}

/* ---- inputs: path names at 0x8000, vectors at 0x9000, lengths at 0xa000 ---- */

static void with_path(void)
{
    put_string(0x8000, path);
}
static void with_link(void)
{
    put_string(0x8000, link_path);
}
static void with_empty_path(void)
{
    put_string(0x8000, "");
}
static void with_root(void)
{
    put_string(0x8000, "/");
}
static void with_xattr(void)
{
    with_path();
    put_string(0x8100, "user.tbd");
}
static void with_length(void)
{
    put32(0xa000, 300);
}
static void with_short_length(void)
{
    put32(0xa000, 3);
}
static void with_int_length(void)
{
    put32(0xa000, 4);
}
static void from_start(void)
{
    lseek(FILE_FD, 0, SEEK_SET);
}

static void vectors(uint64_t at, uint64_t buffers)
{
    const uint64_t sizes[4] = { 10, 0, 700, 50 };

    for (uint64_t i = 0; i < 4; i++) {
        put64(at + 16 * i, A(buffers + 0x1000 * i));
        put64(at + 16 * i + 8, sizes[i]);
    }
}
static void with_vectors(void)
{
    from_start();
    vectors(0x9000, 0x1000);
}
static void fill_pipe(void)
{
    char buffer[4096] = "";

    while (read(PIPE_R, buffer, sizeof(buffer)) > 0)
        ;
    memset(buffer, 'p', sizeof(buffer));
    assert_int_equal(write(PIPE_W, buffer, 100), 100);
}
static void with_piped_vectors(void)
{
    fill_pipe();
    vectors(0x9000, 0x1000);
}
static void send_datagram(void)
{
    char text[50];

    memset(text, 'd', sizeof(text));
    while (recv(DGRAM_A, text, sizeof(text), MSG_DONTWAIT) > 0)
        ;
    memset(text, 'd', sizeof(text));
    assert_int_equal(send(DGRAM_B, text, sizeof(text), 0), 50);
}
static void send_udp(void)
{
    struct sockaddr_in to;
    socklen_t bytes = sizeof(to);
    char text[60];

    while (recv(UDP_A, text, sizeof(text), MSG_DONTWAIT) > 0)
        ;
    memset(text, 'u', sizeof(text));
    assert_int_equal(getsockname(UDP_A, (struct sockaddr *)&to, &bytes), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(sendto(UDP_B, text, sizeof(text), 0, (struct sockaddr *)&to, bytes), 60);
    with_length();
}
static void header(uint64_t at, uint64_t buffers)
{
    struct msghdr h = { .msg_name = arena + buffers + 0x100,
                        .msg_namelen = 128,
                        .msg_iov = (struct iovec *)(arena + buffers + 0x200),
                        .msg_iovlen = 4,
                        .msg_control = arena + buffers + 0x300,
                        .msg_controllen = 200 };

    put(at, &h, sizeof(h));
    vectors(buffers + 0x200, buffers + 0x400);
}
static void with_header(void)
{
    int on = 1;

    send_udp();
    setsockopt(UDP_A, SOL_SOCKET, SO_TIMESTAMP, &on, sizeof(on)); /* makes control data */
    header(0x9000, 0x10000);
}
static void with_headers(void)
{
    with_header();
    for (uint64_t i = 0; i < 5; i++) {
        header(0x9000 + 64 * i, 0x10000 * (i + 1));
        put32(0x9000 + 64 * i + 56, 0);
    }
}
static void with_send_headers(void)
{
    struct sockaddr_in to;
    socklen_t bytes = sizeof(to);

    getsockname(UDP_A, (struct sockaddr *)&to, &bytes);
    for (uint64_t i = 0; i < 3; i++) {
        struct msghdr h = { .msg_name = arena + 0x100,
                            .msg_namelen = bytes,
                            .msg_iov = (struct iovec *)(arena + 0xb000),
                            .msg_iovlen = 1 };

        put(0x9000 + 64 * i, &h, sizeof(h));
        put32(0x9000 + 64 * i + 56, 0);
    }
    put(0x100, &to, sizeof(to));
    put64(0xb000, A(0x1000));
    put64(0xb008, 20);
}
static void with_connection(void)
{
    struct sockaddr_in to;
    socklen_t bytes = sizeof(to);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(getsockname(TCP, (struct sockaddr *)&to, &bytes), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, bytes), 0);
    close(fd);
    with_length();
}
static void with_polls(void)
{
    struct pollfd p[3] = { { .fd = PIPE_R, .events = POLLIN },
                           { .fd = PIPE_W, .events = POLLOUT },
                           { .fd = 99, .events = POLLIN } };

    fill_pipe();
    put(0x9000, p, sizeof(p));
    put64(0xa000, 0);
    put64(0xa008, 1000);
}
static void with_sets(void)
{
    fill_pipe();
    memset(arena + 0x1000, 0, 0x3000);
    arena[0x1000 + PIPE_R / 8] |= (uint8_t)(1u << PIPE_R % 8);
    arena[0x2000 + PIPE_W / 8] |= (uint8_t)(1u << PIPE_W % 8);
    arena[0x3000 + PIPE_W / 8] |= (uint8_t)(1u << PIPE_W % 8);
    put64(0xa000, 0);
    put64(0xa008, 5000);
}
static void with_time(void)
{
    put64(0xa000, 0);
    put64(0xa008, 1000);
}
static void with_interval(void)
{
    memset(arena + 0xa000, 0, 32);
}
static void with_event(void)
{
    eventfd_t value;

    if (eventfd_read(EVENT, &value) == 0 || errno == EAGAIN)
        eventfd_write(EVENT, 5);
}
static void with_expired_timer(void)
{
    struct itimerspec when = { .it_value.tv_nsec = 1 };
    struct pollfd expires = { .fd = TIMER, .events = POLLIN };

    timerfd_settime(TIMER, 0, &when, NULL);
    poll(&expires, 1, -1);
}
static void with_notification(void)
{
    close(open(path, O_RDONLY | O_CLOEXEC));
}
static void with_child(void)
{
    if (fork() == 0)
        _exit(3);
}
static void with_pending_signal(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR1);
    put(0x9000, &set, 8);
    with_time();
}
static void ignore_alarm(int signo)
{
    (void)signo;
}
/* Sends signals every 20 ms, however slowly the call is reached; 0: none. */
static void set_alarm(long microseconds)
{
    struct itimerval when = { { .tv_usec = microseconds }, { .tv_usec = microseconds } };

    setitimer(ITIMER_REAL, &when, NULL);
}
/* Times of five seconds; a descriptor with nothing to read. */
static void with_alarm(void)
{
    struct sigaction action = { .sa_handler = ignore_alarm };
    struct pollfd quiet = { .fd = DGRAM_B, .events = POLLIN };

    put64(0xa000, 5);
    put64(0xa008, 0);
    put64(0xa010, 5);
    put64(0xa018, 0);
    put(0x9000, &quiet, sizeof(quiet));
    sigaction(SIGALRM, &action, NULL);
    set_alarm(20000);
}
static void with_offset(void)
{
    put64(0xa000, 16);
}
static void with_offsets(void)
{
    fill_pipe();
    put64(0xa000, 16);
    put64(0xa100, 5000);
}
static void with_handle(void)
{
    with_path();
    put32(0x1000, 128);
}
static void with_small_handle(void)
{
    with_path();
    put32(0x1000, 0);
}
static void with_capabilities(void)
{
    put32(0x1000, 0x20080522);
    put32(0x1004, 0);
}
static void with_old_capabilities(void)
{
    put32(0x1000, 0x19980330);
    put32(0x1004, 0);
}
static void with_timex(void)
{
    memset(arena + 0x1000, 0, 208);
}
static void with_lock(void)
{
    struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    put(0x1000, &l, sizeof(l));
}
static void with_interface(void)
{
    memset(arena + 0x1000, 0, 40);
    put_string(0x1000, "lo");
}
static void with_interface_list(void)
{
    put32(0x1000, 400);
    put64(0x1008, A(0x2000));
}
static void with_extents(void)
{
    memset(arena + 0x1000, 0, 32);
    put64(0x1008, ~0ull);
    put32(0x1018, 4);
}
static void with_remote_vectors(void)
{
    vectors(0x9000, 0x1000);
    put64(0x9100, A(0x20000));
    put64(0x9108, 760);
}
static void with_message(void)
{
    struct {
        long type;
        char text[33];
    } m = { .type = 1, .text = "hello" };

    assert_int_equal(msgsnd(messages, &m, sizeof(m.text), 0), 0);
}
static void with_futexes(void)
{
    put32(0x1000, 0);
    put32(0x2000, 7);
}
static void with_free_futex(void)
{
    put32(0x1000, 0);
}
static void with_cachestat(void)
{
    put64(0x9000, 0);
    put64(0x9008, 8192);
}
static void with_modules_space(void)
{
    put32(0xa000, 800);
}
static void with_zero_tail(void)
{
    memset(arena + 0x1000, 0, 64);
}

/* ---- the cases ---- */

// clang-format off
static const struct test_case cases[] = {
    /* bytes by result */
    { "read", { FILE_FD, A(0x1000), 777 }, 777, from_start, 0 },
    { "read", { PIPE_R, A(0x1000), 4096 }, 100, fill_pipe, 0 },
    { "read", { NULL_FD, A(0x1000), 4096 }, 0, NULL, 0 },
    { "read", { EVENT, A(0x1000), 4096 }, 8, with_event, 0 },
    { "read", { TIMER, A(0x1000), 4096 }, 8, with_expired_timer, 0 },
    { "read", { NOTIFY, A(0x1000), 4096 }, ANY, with_notification, 0 },
    { "read", { 99, A(0x1000), 4096 }, 0, NULL, FAILS },
    { "read", { FILE_FD, UNMAPPED, 4096 }, ANY, from_start, FAILS },
    { "read", { ZERO_FD, A(ARENA_BYTES - 100), 4096 }, ANY, NULL, 0 },
    { "pread64", { FILE_FD, A(0x1000), 500, 9800 }, 200, NULL, 0 },
    { "readv", { FILE_FD, A(0x9000), 4 }, 760, with_vectors, 0 },
    { "readv", { PIPE_R, A(0x9000), 4 }, 100, with_piped_vectors, 0 },
    { "preadv", { FILE_FD, A(0x9000), 4, 9990 }, 10, with_vectors, 0 },
    { "preadv2", { FILE_FD, A(0x9000), 4, 9900, 0, 0 }, 100, with_vectors, 0 },
    { "getdents64", { DIR_FD, A(0x1000), 4096 }, ANY, NULL, 0 },
    { "getdents", { DIR_FD, A(0x1000), 4096 }, ANY, NULL, 0 },
    { "getcwd", { A(0x1000), 4096 }, ANY, NULL, 0 },
    { "readlink", { A(0x8000), A(0x1000), 20 }, 20, with_link, 0 },
    { "readlinkat", { (uint64_t)AT_FDCWD, A(0x8000), A(0x1000), 20 }, 20, with_link, 0 },
    { "getrandom", { A(0x1000), 333, 0 }, 333, NULL, 0 },
    { "getxattr", { A(0x8000), A(0x8100), A(0x1000), 100 }, 5, with_xattr, REFUSED },
    { "lgetxattr", { A(0x8000), A(0x8100), A(0x1000), 100 }, 5, with_xattr, REFUSED },
    { "fgetxattr", { FILE_FD, A(0x8100), A(0x1000), 100 }, 5, with_xattr, REFUSED },
    { "listxattr", { A(0x8000), A(0x1000), 100 }, ANY, with_xattr, REFUSED },
    { "flistxattr", { FILE_FD, A(0x1000), 100 }, ANY, NULL, REFUSED },
    { "llistxattr", { A(0x8000), A(0x1000), 100 }, ANY, with_xattr, REFUSED },
    { "syslog", { 3, A(0x1000), 100 }, ANY, NULL, REFUSED },
    { "getgroups", { 100, A(0x1000) }, ANY, NULL, 0 },
    { "getgroups", { 0, A(0x1000) }, 0, NULL, 0 },
    { "sched_getaffinity", { 0, 128, A(0x1000) }, ANY, NULL, 0 },
    { "modify_ldt", { 0, A(0x1000), 64 }, ANY, NULL, REFUSED },
    /* fixed structures */
    { "stat", { A(0x8000), A(0x1000) }, 144, with_path, 0 },
    { "fstat", { FILE_FD, A(0x1000) }, 144, NULL, 0 },
    { "lstat", { A(0x8000), A(0x1000) }, 144, with_path, 0 },
    { "stat", { A(0x8000), A(0x1000) }, 0, with_empty_path, FAILS },
    { "newfstatat", { FILE_FD, A(0x8000), A(0x1000), AT_EMPTY_PATH }, 144, with_empty_path, 0 },
    { "statx", { FILE_FD, A(0x8000), AT_EMPTY_PATH, 0xfff, A(0x1000) }, 256, with_empty_path, 0 },
    { "statfs", { A(0x8000), A(0x1000) }, 120, with_root, 0 },
    { "fstatfs", { FILE_FD, A(0x1000) }, 120, NULL, 0 },
    { "ustat", { 0, A(0x1000) }, ANY, NULL, REFUSED },
    { "pipe", { A(0x1000) }, 8, NULL, 0 },
    { "pipe2", { A(0x1000), O_CLOEXEC }, 8, NULL, 0 },
    { "socketpair", { AF_UNIX, SOCK_STREAM, 0, A(0x1000) }, 8, NULL, 0 },
    { "uname", { A(0x1000) }, 390, NULL, 0 },
    { "sysinfo", { A(0x1000) }, 112, NULL, 0 },
    { "times", { A(0x1000) }, 32, NULL, 0 },
    { "time", { A(0x1000) }, 8, NULL, 0 },
    { "gettimeofday", { A(0x1000), A(0x2000) }, 24, NULL, 0 },
    { "clock_gettime", { CLOCK_MONOTONIC, A(0x1000) }, 16, NULL, 0 },
    { "clock_gettime", { 77, A(0x1000) }, 0, NULL, FAILS },
    { "clock_getres", { CLOCK_MONOTONIC, A(0x1000) }, 16, NULL, 0 },
    { "clock_adjtime", { CLOCK_REALTIME, A(0x1000) }, 208, with_timex, REFUSED },
    { "adjtimex", { A(0x1000) }, 208, with_timex, REFUSED },
    { "getrusage", { RUSAGE_SELF, A(0x1000) }, 144, NULL, 0 },
    { "getrlimit", { RLIMIT_STACK, A(0x1000) }, 16, NULL, 0 },
    { "prlimit64", { 0, RLIMIT_STACK, 0, A(0x1000) }, 16, NULL, 0 },
    { "getresuid", { A(0x1000), A(0x2000), A(0x3000) }, 12, NULL, 0 },
    { "getresgid", { A(0x1000), A(0x2000), A(0x3000) }, 12, NULL, 0 },
    { "getcpu", { A(0x1000), A(0x2000), 0 }, 8, NULL, 0 },
    { "getitimer", { ITIMER_REAL, A(0x1000) }, 32, NULL, 0 },
    { "setitimer", { ITIMER_REAL, A(0xa000), A(0x1000) }, 32, with_interval, 0 },
    { "sched_getparam", { 0, A(0x1000) }, 4, NULL, 0 },
    { "sched_rr_get_interval", { 0, A(0x1000) }, 16, NULL, 0 },
    { "sched_getattr", { 0, A(0x1000), 48, 0 }, 48, NULL, 0 },
    { "sched_getattr", { 0, A(0x1000), 56, 0 }, 56, NULL, 0 },
    { "get_robust_list", { 0, A(0x1000), A(0x2000) }, 16, NULL, 0 },
    { "rt_sigaction", { SIGUSR2, 0, A(0x1000), 8 }, 32, NULL, 0 },
    { "rt_sigprocmask", { SIG_BLOCK, 0, A(0x1000), 8 }, 8, NULL, 0 },
    { "rt_sigpending", { A(0x1000), 8 }, 8, NULL, 0 },
    { "rt_sigtimedwait", { A(0x9000), A(0x1000), A(0xa000), 8 }, 128, with_pending_signal, 0 },
    { "rt_sigtimedwait", { A(0x9000), A(0x1000), A(0xa000), 8 }, 0, with_time, FAILS },
    { "sigaltstack", { 0, A(0x1000) }, 24, NULL, 0 },
    { "timer_gettime", { 0, A(0x1000) }, 32, NULL, 0 },
    { "timer_settime", { 0, 0, A(0xa000), A(0x1000) }, 32, with_interval, 0 },
    { "timer_create", { CLOCK_MONOTONIC, 0, A(0x1000) }, 4, NULL, 0 },
    { "timerfd_gettime", { TIMER, A(0x1000) }, 32, NULL, 0 },
    { "timerfd_settime", { TIMER, 0, A(0xa000), A(0x1000) }, 32, with_interval, 0 },
    { "capget", { A(0x1000), A(0x2000) }, 28, with_capabilities, 0 },
    { "capget", { A(0x1000), A(0x2000) }, 16, with_old_capabilities, 0 },
    { "mincore", { ARENA, 10 * 4096 + 1, A(0x1000) }, 11, NULL, 0 },
    { "get_mempolicy", { A(0x1000), A(0x2000), 1024, 0, 0 }, ANY, NULL, REFUSED },
    { "cachestat", { FILE_FD, A(0x9000), A(0x1000), 0 }, 40, with_cachestat, REFUSED },
    { "sysfs", { 2, 0, A(0x1000) }, ANY, NULL, REFUSED },
    { "file_getattr", { (uint64_t)AT_FDCWD, A(0x8000), A(0x1000), 24, 0 }, 24, with_path, REFUSED },
    { "lsm_list_modules", { A(0x1000), A(0xa000), 0 }, ANY, with_modules_space, REFUSED },
    { "perf_event_open", { A(0x1000), 0, (uint64_t)-1, (uint64_t)-1, 0 }, ANY, with_zero_tail, REFUSED },
    /* commands */
    { "fcntl", { FILE_FD, F_GETLK, A(0x1000) }, 32, with_lock, 0 },
    { "fcntl", { PIPE_R, F_GETOWN_EX, A(0x1000) }, 8, NULL, 0 },
    { "fcntl", { FILE_FD, F_GETFL, A(0x1000) }, 0, NULL, 0 },
    { "fcntl", { FILE_FD, F_GET_RW_HINT, A(0x1000) }, 8, NULL, REFUSED },
    { "prctl", { PR_GET_NAME, A(0x1000) }, 16, NULL, 0 },
    { "prctl", { PR_GET_PDEATHSIG, A(0x1000) }, 4, NULL, 0 },
    { "prctl", { PR_GET_TSC, A(0x1000) }, 4, NULL, 0 },
    { "prctl", { PR_GET_CHILD_SUBREAPER, A(0x1000) }, 4, NULL, 0 },
    { "prctl", { PR_GET_TID_ADDRESS, A(0x1000) }, 8, NULL, REFUSED },
    { "prctl", { 0x41555856, A(0x1000), 4096, 0, 0 }, ANY, NULL, REFUSED },
    { "arch_prctl", { 0x1003, A(0x1000) }, 8, NULL, 0 },
    { "arch_prctl", { 0x1021, A(0x1000) }, 8, NULL, REFUSED },
    { "ioctl", { MASTER, TIOCGWINSZ, A(0x1000) }, 8, NULL, 0 },
    { "ioctl", { SLAVE, TCGETS, A(0x1000) }, 36, NULL, 0 },
    { "ioctl", { SLAVE, 0x802c542a, A(0x1000) }, 44, NULL, 0 },
    { "ioctl", { SLAVE, 0x5405, A(0x1000) }, 18, NULL, 0 },
    { "ioctl", { MASTER, TIOCGPTN, A(0x1000) }, 4, NULL, 0 },
    { "ioctl", { SLAVE, TIOCOUTQ, A(0x1000) }, 4, NULL, 0 },
    { "ioctl", { SLAVE, TIOCGETD, A(0x1000) }, 4, NULL, 0 },
    { "ioctl", { SLAVE, 0x5456, A(0x1000) }, 36, NULL, 0 },
    { "ioctl", { FILE_FD, TCGETS, A(0x1000) }, 0, NULL, FAILS },
    { "ioctl", { PIPE_R, FIONREAD, A(0x1000) }, 4, fill_pipe, 0 },
    { "ioctl", { FILE_FD, 2 /* FIGETBSZ */, A(0x1000) }, 4, NULL, REFUSED },
    { "ioctl", { FILE_FD, 0x80086601 /* FS_IOC_GETFLAGS */, A(0x1000) }, ANY, NULL, REFUSED },
    { "ioctl", { FILE_FD, 0xc020660b /* FS_IOC_FIEMAP */, A(0x1000) }, ANY, with_extents, REFUSED },
    { "ioctl", { UDP_A, 0x8912 /* SIOCGIFCONF */, A(0x1000) }, ANY, with_interface_list, 0 },
    { "ioctl", { UDP_A, 0x8913 /* SIOCGIFFLAGS */, A(0x1000) }, 40, with_interface, REFUSED },
    { "ioctl", { UDP_A, 0x8921 /* SIOCGIFMTU */, A(0x1000) }, 40, with_interface, REFUSED },
    { "ioctl", { UDP_A, 0x8927 /* SIOCGIFHWADDR */, A(0x1000) }, 40, with_interface, REFUSED },
    { "ioctl", { UDP_A, 0x541b, A(0x1000) }, 4, send_udp, 0 },
    { "futex", { A(0x1000), FUTEX_WAKE_OP, 0, 0, A(0x2000), FUTEX_OP(0, 9, 0, 0) }, 4, with_futexes, 0 },
    { "futex", { A(0x1000), FUTEX_TRYLOCK_PI, 0, 0, 0, 0 }, 4, with_free_futex, REFUSED },
    { "futex", { A(0x1000), FUTEX_WAKE, 1, 0, 0, 0 }, 0, with_futexes, 0 },
    { "seccomp", { 3, 0, A(0x1000) }, 6, NULL, REFUSED },
    { "ptrace", { PTRACE_PEEKDATA, 1, 0, A(0x1000) }, 0, NULL, FAILS },
    /* sockets */
    { "recvfrom", { UDP_A, A(0x1000), 1000, 0, A(0x2000), A(0xa000) }, 60 + 16 + 4, send_udp, 0 },
    { "recvfrom", { UDP_A, A(0x1000), 10, MSG_TRUNC, A(0x2000), A(0xa000) }, 10 + 16 + 4, send_udp, 0 },
    { "recvfrom", { DGRAM_A, A(0x1000), 1000, 0, 0, 0 }, 50, send_datagram, 0 },
    { "recvmsg", { UDP_A, A(0x9000), 0 }, ANY, with_header, 0 },
    { "recvmmsg", { UDP_A, A(0x9000), 5, MSG_DONTWAIT, 0 }, ANY, with_headers, 0 },
    { "sendmmsg", { UDP_B, A(0x9000), 3, 0 }, 12, with_send_headers, 0 },
    { "accept", { TCP, A(0x1000), A(0xa000) }, 20, with_connection, 0 },
    { "accept4", { TCP, A(0x1000), A(0xa000), SOCK_CLOEXEC }, 20, with_connection, 0 },
    { "getsockname", { UDP_A, A(0x1000), A(0xa000) }, 20, with_length, 0 },
    { "getsockname", { UDP_A, A(0x1000), A(0xa000) }, 7, with_short_length, 0 },
    { "getpeername", { DGRAM_A, A(0x1000), A(0xa000) }, ANY, with_length, 0 },
    { "getsockopt", { UDP_A, SOL_SOCKET, SO_TYPE, A(0x1000), A(0xa000) }, 8, with_length, 0 },
    { "getsockopt", { UDP_A, SOL_SOCKET, SO_LINGER, A(0x1000), A(0xa000) }, 12, with_length, 0 },
    { "getsockopt", { DGRAM_A, SOL_SOCKET, SO_PEERCRED, A(0x1000), A(0xa000) }, 16, with_length, 0 },
    { "getsockopt", { UDP_A, SOL_SOCKET, SO_RCVBUF, A(0x1000), A(0xa000) }, 8, with_int_length, 0 },
    /* waiting */
    { "poll", { A(0x9000), 3, 10 }, 24, with_polls, 0 },
    { "ppoll", { A(0x9000), 3, A(0xa000), 0, 8 }, 24 + 16, with_polls, 0 },
    { "select", { 128, A(0x1000), A(0x2000), A(0x3000), A(0xa000) }, 48 + 16, with_sets, 0 },
    { "pselect6", { 128, A(0x1000), A(0x2000), 0, A(0xa000), 0 }, 32 + 16, with_sets, 0 },
    { "epoll_wait", { EPOLL, A(0x1000), 10, 10 }, 12, fill_pipe, 0 },
    { "epoll_pwait", { EPOLL, A(0x1000), 10, 10, 0, 8 }, 12, fill_pipe, 0 },
    { "epoll_pwait2", { EPOLL, A(0x1000), 10, A(0xa000), 0, 8 }, 12, with_polls, 0 },
    { "nanosleep", { A(0xa000), A(0x1000) }, 0, with_time, 0 },
    { "nanosleep", { A(0xa000), A(0x1000) }, 16, with_alarm, FAILS },
    { "clock_nanosleep", { CLOCK_MONOTONIC, 0, A(0xa000), A(0x1000) }, 0, with_time, 0 },
    { "clock_nanosleep", { CLOCK_MONOTONIC, 0, A(0xa000), A(0x1000) }, 16, with_alarm, FAILS },
    { "poll", { A(0x9000), 1, 5000 }, 8, with_alarm, FAILS },
    { "ppoll", { A(0x9000), 1, A(0xa000), 0, 8 }, 8 + 16, with_alarm, FAILS },
    { "select", { 128, 0, 0, 0, A(0xa010) }, 16, with_alarm, FAILS },
    { "pselect6", { 128, 0, 0, 0, A(0xa000), 0 }, 16, with_alarm, FAILS },
    { "wait4", { (uint64_t)-1, A(0x1000), 0, A(0x2000) }, 148, with_child, 0 },
    { "wait4", { (uint64_t)-1, A(0x1000), WNOHANG, A(0x2000) }, 0, NULL, FAILS },
    { "waitid", { P_ALL, 0, A(0x1000), WEXITED, A(0x2000) }, 28 + 144, with_child, 0 },
    { "waitid", { P_ALL, 0, A(0x1000), WEXITED | WNOHANG, A(0x2000) }, ANY, NULL, FAILS },
    /* moving data */
    { "sendfile", { NULL_FD, FILE_FD, A(0xa000), 100 }, 8, with_offset, REFUSED },
    { "copy_file_range", { FILE_FD, A(0xa000), FILE_FD, A(0xa100), 100 }, 16, with_offsets, REFUSED },
    { "splice", { FILE_FD, A(0xa000), PIPE_W, 0, 100, 0 }, 8, with_offsets, REFUSED },
    { "process_vm_readv", { 0, A(0x9000), 4, A(0x9100), 1, 0 }, 760, with_remote_vectors, REFUSED },
    { "process_vm_writev", { 0, A(0x9000), 4, A(0x9100), 1, 0 }, 760, with_remote_vectors, REFUSED },
    { "name_to_handle_at", { (uint64_t)AT_FDCWD, A(0x8000), A(0x1000), A(0x2000), 0 }, ANY, with_handle,
      REFUSED },
    { "name_to_handle_at", { (uint64_t)AT_FDCWD, A(0x8000), A(0x1000), A(0x2000), 0 }, ANY,
      with_small_handle, REFUSED },
    /* System V */
    { "semctl", { 0, 0, IPC_STAT, A(0x1000) }, 104, NULL, REFUSED },
    { "semctl", { 0, 0, GETALL, A(0x1000) }, 14, NULL, REFUSED },
    { "semctl", { 0, 0, IPC_INFO, A(0x1000) }, 40, NULL, REFUSED },
    { "shmctl", { 0, IPC_STAT, A(0x1000) }, 112, NULL, REFUSED },
    { "shmctl", { 0, IPC_INFO, A(0x1000) }, 72, NULL, REFUSED },
    { "shmctl", { 0, 14 /* SHM_INFO */, A(0x1000) }, 48, NULL, REFUSED },
    { "msgctl", { 0, IPC_STAT, A(0x1000) }, 120, NULL, REFUSED },
    { "msgctl", { 0, IPC_INFO, A(0x1000) }, 32, NULL, REFUSED },
    { "msgrcv", { 0, A(0x1000), 200, 0, IPC_NOWAIT }, 8 + 33, with_message, REFUSED },
    /* nothing is written */
    { "getpid", { A(0x1000), A(0x2000), A(0x3000), A(0x4000), A(0x5000), A(0x6000) }, 0, NULL, 0 },
    { "write", { NULL_FD, A(0x1000), 5000 }, 0, NULL, 0 },
    { "access", { A(0x8000), R_OK }, 0, with_path, 0 },
    { "lseek", { FILE_FD, 3, SEEK_SET }, 0, NULL, 0 },
    { "kill", { 0, 0 }, 0, NULL, 0 },
};
// clang-format on

/* ---- the oracle ---- */

/* The table of cases has 0 for handles that exist only at run time. */
static uint64_t handle_of(const struct test_case *t)
{
    if (strcmp(t->name, "semctl") == 0)
        return (uint64_t)semaphores;
    if (strncmp(t->name, "msg", 3) == 0)
        return (uint64_t)messages;
    if (strcmp(t->name, "shmctl") == 0)
        return (uint64_t)shared;
    if (strncmp(t->name, "timer_", 6) == 0 && strcmp(t->name, "timer_create") != 0)
        return timer_id;
    if (strncmp(t->name, "process_vm", 10) == 0)
        return (uint64_t)getpid();
    if (strcmp(t->name, "get_robust_list") == 0)
        return tid;
    if (strcmp(t->name, "ustat") == 0)
        return root_device;
    return t->args[0];
}

static bool is_inside(uint64_t address, const struct tbd_sys_range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (address >= ranges[i].address && address - ranges[i].address < ranges[i].bytes)
            return true;
    }
    return false;
}

static void check_page(const struct test_case *t, uint64_t page, const struct tbd_sys_range *did,
                       size_t count)
{
    for (uint64_t i = page; i < page + 4096; i++) {
        if (arena[i] != snapshot[i] && !is_inside(A(i), did, count))
            fail_msg("%s(%#lx, %#lx, ...): byte %#lx changed, and did_write does not say so",
                     t->name, t->args[0], t->args[1], i);
    }
}

static void check_changes(const struct test_case *t, const struct tbd_sys_range *did, size_t count)
{
    for (uint64_t page = 0; page < ARENA_BYTES; page += 4096) {
        if (memcmp(arena + page, snapshot + page, 4096) != 0)
            check_page(t, page, did, count);
    }
}

static void check_bounds(const struct test_case *t, const struct tbd_sys_range *did,
                         size_t did_count, const struct tbd_sys_range *may, size_t may_count)
{
    for (size_t i = 0; i < did_count; i++) {
        bool inside = false;

        for (size_t j = 0; j < may_count; j++)
            inside |= did[i].address >= may[j].address &&
                      did[i].address + did[i].bytes <= may[j].address + may[j].bytes;
        if (!inside)
            fail_msg("%s: did_write range %#lx+%lu is outside of may_write", t->name,
                     did[i].address, did[i].bytes);
    }
}

static uint64_t total(const struct tbd_sys_range *ranges, size_t count)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        bytes += ranges[i].bytes;
    return bytes;
}

static bool is_refused(const struct test_case *t, int64_t result)
{
    return (t->flags & REFUSED) && result < 0 && result != -EFAULT;
}

/* True if the call was made and did what the case expects of it. */
static bool run_case(const struct test_case *t, uint8_t pattern)
{
    static struct tbd_sys_range may[TBD_SYS_MAX_RANGES], did[TBD_SYS_MAX_RANGES];
    struct tbd_sys_call call = { .number = (uint64_t)tbd_syscall_number(t->name, strlen(t->name)) };
    size_t may_count, did_count;
    int64_t result;

    memset(arena, pattern, ARENA_BYTES);
    if (t->prepare)
        t->prepare();
    memcpy(call.args, t->args, sizeof(call.args));
    call.args[0] = handle_of(t);
    lseek(DIR_FD, 0, SEEK_SET);
    memcpy(snapshot, arena, ARENA_BYTES);
    may_count = tbd_syscall_may_write(&call, may, TBD_SYS_MAX_RANGES);
    result = syscall((long)call.number, call.args[0], call.args[1], call.args[2], call.args[3],
                     call.args[4], call.args[5]);
    if (result == -1)
        result = -errno;
    if (t->prepare == with_alarm)
        set_alarm(0);
    did_count = tbd_syscall_did_write(&call, result, may, may_count, did, TBD_SYS_MAX_RANGES);
    check_changes(t, did, did_count);
    check_bounds(t, did, did_count, may, may_count);
    if (is_refused(t, result)) {
        print_message("%s: refused here (%ld)\n", t->name, result);
        return false;
    }
    if ((result < 0) != ((t->flags & FAILS) != 0))
        fail_msg("%s(%#lx, %#lx, %#lx): result %ld", t->name, call.args[0], call.args[1],
                 call.args[2], result);
    if (t->bytes != ANY && total(did, did_count) != (uint64_t)t->bytes)
        fail_msg("%s(%#lx, %#lx, %#lx) = %ld: did_write gives %lu bytes, not %ld", t->name,
                 call.args[0], call.args[1], call.args[2], result, total(did, did_count), t->bytes);
    return true;
}

static void every_byte_the_kernel_changes_is_in_the_table(void **state)
{
    static bool seen[TBD_SYS_COUNT];
    unsigned calls = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t number = tbd_syscall_number(cases[i].name, strlen(cases[i].name));

        assert_true(number >= 0);
        if (run_case(&cases[i], 0xa5) && run_case(&cases[i], 0x5a) && !seen[number]) {
            seen[number] = true;
            calls++;
        }
    }
    print_message("%u calls checked against the kernel\n", calls);
    assert_true(calls >= 80);
}

static size_t may_write(const char *name, const uint64_t args[6], struct tbd_sys_range *out)
{
    struct tbd_sys_call call = { .number = (uint64_t)tbd_syscall_number(name, strlen(name)) };

    memcpy(call.args, args, sizeof(call.args));
    return tbd_syscall_may_write(&call, out, TBD_SYS_MAX_RANGES);
}

/* An array goes on in memory, but the call names only its first elements. */
static void elements_that_a_call_does_not_name_are_not_written(void **state)
{
    static const struct {
        const char *name;
        void (*prepare)(void);
        size_t ranges[5]; /* for 0 to 4 elements; the second vector is empty */
    } rows[] = {
        { "readv", with_vectors, { 0, 1, 1, 2, 3 } },
        { "recvmmsg", with_headers, { 0, 8, 16, 24, 32 } },
    };
    struct tbd_sys_range may[TBD_SYS_MAX_RANGES];

    (void)state;
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        uint64_t args[6] = { 0, A(0x9000) };

        rows[k].prepare();
        for (args[2] = 0; args[2] <= 4; args[2]++)
            assert_int_equal(may_write(rows[k].name, args, may), rows[k].ranges[args[2]]);
    }
}

static void a_message_for_which_nobody_wants_a_name_gets_no_length_of_it(void **state)
{
    const uint64_t args[6] = { UDP_A, A(0x9000), 0 };
    struct tbd_sys_range may[TBD_SYS_MAX_RANGES], did[TBD_SYS_MAX_RANGES];
    struct tbd_sys_call call = { .number = SYS_recvmsg, .args = { UDP_A, A(0x9000), 0 } };

    (void)state;
    for (int has_name = 0; has_name < 2; has_name++) {
        size_t may_count, did_count;

        header(0x9000, 0x10000);
        put64(0x9000, has_name ? A(0x10100) : 0);
        may_count = may_write("recvmsg", args, may);
        did_count = tbd_syscall_did_write(&call, 60, may, may_count, did, TBD_SYS_MAX_RANGES);
        assert_int_equal(is_inside(A(0x9008), did, did_count), has_name);
        did_count = tbd_syscall_did_write(&call, -EAGAIN, may, may_count, did, TBD_SYS_MAX_RANGES);
        assert_int_equal(total(did, did_count), 0);
    }
}

/* ---- the rest of the interface ---- */

static void names_and_numbers_agree(void **state)
{
    (void)state;
    for (uint64_t number = 0; number < TBD_SYS_COUNT; number++) {
        const char *name = tbd_syscall_name(number);

        if (name)
            assert_int_equal(tbd_syscall_number(name, strlen(name)), number);
        else
            assert_int_equal(tbd_syscall_mode(number), TBD_SYS_UNKNOWN);
    }
    assert_int_equal(tbd_syscall_number("no_such_call", 12), -1);
    assert_null(tbd_syscall_name(UINT64_MAX));
    assert_int_equal(tbd_syscall_number("openat2(", 6), SYS_openat);
    assert_int_equal(tbd_syscall_number("opena", 5), -1);
    assert_int_equal(tbd_syscall_arg_count(SYS_openat), 4);
    assert_int_equal(tbd_syscall_arg_count(SYS_mmap), 6);
    assert_int_equal(tbd_syscall_arg_count(SYS_getpid), 0);
    assert_int_equal(tbd_syscall_mode(SYS_mmap), TBD_SYS_MAP);
    assert_int_equal(tbd_syscall_mode(SYS_clone), TBD_SYS_SPECIAL);
    assert_true(tbd_syscall_flags(SYS_read) & TBD_SYS_BLOCKS);
}

static void commands_without_a_row_are_not_described(void **state)
{
    struct tbd_sys_call known = { SYS_ioctl, { 0, TCGETS, A(0) } };
    struct tbd_sys_call encoded = { SYS_ioctl, { 0, 0x80ff7a01, A(0) } };
    struct tbd_sys_call unknown = { 5000, { 0 } };
    struct tbd_sys_call bpf = { SYS_bpf, { 0 } };
    struct tbd_sys_range may[4];

    (void)state;
    assert_true(tbd_syscall_is_described(&known));
    assert_false(tbd_syscall_is_described(&encoded));
    assert_false(tbd_syscall_is_described(&unknown));
    assert_false(tbd_syscall_is_described(&bpf));
    assert_int_equal(tbd_syscall_may_write(&encoded, may, 4), 1);
    assert_int_equal(may[0].bytes, 0xff);
    assert_int_equal(tbd_syscall_may_write(&unknown, may, 4), 0);
}

/* Nobody has packet filters where tests run: the places alone are looked at. */
static void a_replaced_table_of_filters_gives_its_counters_back(void **state)
{
    struct xt_counters counters[7];
    struct ipt_replace request = { .num_counters = 7, .counters = counters };
    struct arpt_replace arp = { .num_counters = 3, .counters = counters };
    struct tbd_sys_call call = {
        SYS_setsockopt, { 3, IPPROTO_IP, IPT_SO_SET_REPLACE, (uint64_t)(uintptr_t)&request }
    };
    struct tbd_sys_range may[4], did[4];

    (void)state;
    assert_int_equal(tbd_syscall_may_write(&call, may, 4), 1);
    assert_int_equal(may[0].address, (uint64_t)(uintptr_t)counters);
    assert_int_equal(may[0].bytes, sizeof(counters));
    assert_int_equal(tbd_syscall_did_write(&call, 0, may, 1, did, 4), 1);
    assert_int_equal(did[0].bytes, sizeof(counters));
    assert_int_equal(tbd_syscall_did_write(&call, -EPERM, may, 1, did, 4), 0);
    call.args[2] = ARPT_SO_SET_REPLACE;
    call.args[3] = (uint64_t)(uintptr_t)&arp;
    assert_int_equal(tbd_syscall_may_write(&call, may, 4), 1);
    assert_int_equal(may[0].bytes, 3 * sizeof(counters[0]));
    call.args[1] = SOL_SOCKET;
    assert_int_equal(tbd_syscall_may_write(&call, may, 4), 0);
}

/* ---- modes and flags ---- */

/* Names of the rows that `is_one` picks, in order. */
static const char *names_of(bool (*is_one)(uint64_t number, uint32_t fact), uint32_t fact)
{
    static char text[2048];
    size_t length = 0;

    text[0] = '\0';
    for (uint64_t number = 0; number < TBD_SYS_COUNT; number++)
        if (tbd_syscall_name(number) && is_one(number, fact))
            length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s",
                                       length ? " " : "", tbd_syscall_name(number));
    return text;
}

static bool has_mode(uint64_t number, uint32_t mode)
{
    return tbd_syscall_mode(number) == (enum tbd_sys_mode)mode;
}

static bool has_flag(uint64_t number, uint32_t flag)
{
    return tbd_syscall_flags(number) & flag;
}

static bool has_argument(uint64_t number, uint32_t show)
{
    const struct tbd_sys_row *row = tbd_sys_row(number);

    for (unsigned i = 0; i < 6; i++)
        if (row->args[i].show == show)
            return true;
    return false;
}

static void gates_of_the_engine_are_flags_of_rows(void **state)
{
    (void)state;
    assert_string_equal(names_of(has_mode, TBD_SYS_REFUSED),
                        "io_setup io_destroy io_getevents io_submit io_cancel "
                        "io_pgetevents io_uring_setup io_uring_enter io_uring_register "
                        "map_shadow_stack");
    assert_string_equal(names_of(has_mode, TBD_SYS_MAP),
                        "mmap mprotect munmap brk mremap madvise shmat shmdt "
                        "pkey_mprotect mseal");
    assert_string_equal(names_of(has_flag, TBD_SYS_OPENS), "open creat openat openat2");
    assert_string_equal(names_of(has_flag, TBD_SYS_WRITES),
                        "write pwrite64 writev pwritev pwritev2");
    assert_string_equal(names_of(has_flag, TBD_SYS_YIELDS), "sched_yield");
    assert_string_equal(names_of(has_flag, TBD_SYS_ASYNC), "perf_event_open");
    assert_string_equal(names_of(has_flag, TBD_SYS_STRICT), "read write rt_sigreturn exit");
    assert_string_equal(names_of(has_flag, TBD_SYS_VDSO),
                        "gettimeofday time clock_gettime clock_getres getcpu");
    assert_string_equal(names_of(has_argument, TBD_SHOW_IOVEC), "writev pwritev pwritev2");
    assert_string_equal(names_of(has_argument, TBD_SHOW_MASK), "ppoll epoll_pwait epoll_pwait2");
    assert_string_equal(names_of(has_argument, TBD_SHOW_MASK_IN), "pselect6 io_pgetevents");
}

static void refused_calls_have_no_effects(void **state)
{
    struct tbd_sys_range may[4];

    (void)state;
    for (uint64_t number = 0; number < TBD_SYS_COUNT; number++) {
        struct tbd_sys_call call = { number, { A(0), A(64), A(128), A(192), A(256), A(320) } };

        if (tbd_syscall_mode(number) != TBD_SYS_REFUSED)
            continue;
        assert_int_equal(tbd_syscall_flags(number), 0);
        assert_int_equal(tbd_syscall_may_write(&call, may, 4), 0);
        assert_true(tbd_syscall_is_described(&call));
    }
}

/* own_memory.c reads from the row where a call's source memory is. */
static void calls_that_write_files_say_where_from(void **state)
{
    (void)state;
    for (uint64_t number = 0; number < TBD_SYS_COUNT; number++) {
        const struct tbd_sys_row *row = tbd_sys_row(number);

        if (!row || !(row->flags & TBD_SYS_WRITES))
            continue;
        assert_int_equal(row->args[0].show, TBD_SHOW_FD);
        assert_true(row->args[1].show == TBD_SHOW_DATA || row->args[1].show == TBD_SHOW_IOVEC);
        assert_int_equal(row->args[1].length, 2);
    }
}

static bool may_wait(uint64_t number, uint64_t command)
{
    struct tbd_sys_call call = { number, { A(0), command, A(64), A(128), A(192), 0 } };

    return tbd_syscall_may_wait(&call);
}

static void some_commands_wait_and_others_do_not(void **state)
{
    static const int waits[] = { FUTEX_WAIT, FUTEX_WAIT_BITSET, FUTEX_WAIT_REQUEUE_PI,
                                 FUTEX_LOCK_PI, FUTEX_LOCK_PI2 };
    static const int waits_not[] = { FUTEX_WAKE,        FUTEX_REQUEUE,       FUTEX_CMP_REQUEUE,
                                     FUTEX_WAKE_OP,     FUTEX_UNLOCK_PI,     FUTEX_TRYLOCK_PI,
                                     FUTEX_WAKE_BITSET, FUTEX_CMP_REQUEUE_PI };

    (void)state;
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
        assert_true(may_wait(SYS_futex, (uint64_t)waits[i] | FUTEX_PRIVATE_FLAG));
    for (size_t i = 0; i < sizeof(waits_not) / sizeof(waits_not[0]); i++)
        assert_false(may_wait(SYS_futex, (uint64_t)waits_not[i] | FUTEX_PRIVATE_FLAG));
    assert_false(may_wait(SYS_futex, 0x200 | FUTEX_WAIT)); /* not a command of the kernel */
    assert_true(may_wait(SYS_ioctl, TCSBRK));
    assert_false(may_wait(SYS_ioctl, TCGETS));
    assert_true(may_wait(SYS_read, 0));
    assert_true(may_wait(SYS_recvmsg, 0));
    assert_false(may_wait(SYS_getpid, 0));
    assert_false(may_wait(5000, 0));
}

static uint64_t random_state = 88172645463325252ull;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* An argument that hurts: arena addresses, edges, bad pointers, small and huge numbers. */
static uint64_t nasty_argument(void)
{
    uint64_t r = next_random();

    switch (r % 8) {
    case 0: return 0;
    case 1: return r >> 40;
    case 2: return UINT64_MAX - (r >> 56);
    case 3: return UNMAPPED;
    case 4: return 0x7ffffffff000ull + (r >> 50);
    case 5: return r;
    case 6: return A(ARENA_BYTES - (r >> 59));
    default: return A(r >> 45);
    }
}

static void no_argument_makes_ranges_leave_user_space_or_the_array(void **state)
{
    static struct tbd_sys_range may[TBD_SYS_MAX_RANGES + 1], did[TBD_SYS_MAX_RANGES + 1];
    const struct tbd_sys_range guard = { 1, 2 };

    (void)state;
    for (uint64_t i = 0; i < ARENA_BYTES; i += 8)
        put64(i, nasty_argument());
    for (unsigned i = 0; i < 40000; i++) {
        struct tbd_sys_call call = { .number = i % (TBD_SYS_COUNT + 2) };
        size_t max = next_random() % TBD_SYS_MAX_RANGES, may_count, did_count;

        for (unsigned a = 0; a < 6; a++)
            call.args[a] = nasty_argument();
        may[max] = did[max] = guard;
        may_count = tbd_syscall_may_write(&call, may, max);
        assert_true(may_count <= max);
        for (size_t r = 0; r < may_count; r++)
            assert_true(may[r].bytes && may[r].address + may[r].bytes <= 0x800000000000ull);
        for (size_t r = 0; r < ARENA_BYTES / 4096; r++)
            put64(next_random() % (ARENA_BYTES / 8) * 8,
                  nasty_argument()); /* written by the kernel */
        did_count =
            tbd_syscall_did_write(&call, (int64_t)nasty_argument(), may, may_count, did, max);
        assert_true(did_count <= max);
        for (size_t r = 0; r < did_count; r++)
            assert_true(is_inside(did[r].address, may, may_count) &&
                        is_inside(did[r].address + did[r].bytes - 1, may, may_count));
        assert_memory_equal(&may[max], &guard, sizeof(guard));
        assert_memory_equal(&did[max], &guard, sizeof(guard));
    }
}

/* ---- printing ---- */

static bool read_here(void *context, uint64_t address, void *out, size_t bytes)
{
    (void)context;
    if (address < ARENA || address + bytes > ARENA + ARENA_BYTES)
        return false;
    memcpy(out, (const void *)(uintptr_t)address, bytes);
    return true;
}

static void expect_line(uint64_t number, const uint64_t args[6], int64_t result,
                        const char *expected)
{
    struct tbd_sys_call call = { .number = number };
    char line[300];

    memcpy(call.args, args, sizeof(call.args));
    assert_int_equal(tbd_syscall_print(&call, result, read_here, NULL, line, sizeof(line)),
                     strlen(expected));
    assert_string_equal(line, expected);
}

#define ARGS(...) ((const uint64_t[6]){ __VA_ARGS__ })

static void lines_read_like_strace(void **state)
{
    char cut[8] = "xxxxxxx";
    struct tbd_sys_call call = { SYS_getpid, { 0 } };

    (void)state;
    put_string(0x100, "/etc/pass\"wd");
    put_string(0x200, "hello\nworld");
    expect_line(SYS_openat, ARGS((uint64_t)AT_FDCWD, A(0x100), O_RDONLY | O_CLOEXEC, 0), 3,
                "openat(AT_FDCWD, \"/etc/pass\\\"wd\", O_RDONLY|O_CLOEXEC, 000) = 3");
    expect_line(SYS_openat, ARGS((uint64_t)AT_FDCWD, 0, O_WRONLY | O_CREAT | O_TRUNC, 0644), -2,
                "openat(AT_FDCWD, NULL, O_WRONLY|O_CREAT|O_TRUNC, 0644) = -1 ENOENT "
                "(No such file or directory)");
    expect_line(SYS_write, ARGS(1, A(0x200), 11), 11, "write(1, \"hello\\nworld\", 11) = 11");
    expect_line(SYS_read, ARGS(0, A(0x200), 4096), 5, "read(0, \"hello\", 4096) = 5");
    expect_line(SYS_mmap,
                ARGS(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0),
                0x7f0000000000,
                "mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = "
                "0x7f0000000000");
    expect_line(SYS_mprotect, ARGS(0x1000, 4096, 0), 0, "mprotect(0x1000, 4096, PROT_NONE) = 0");
    expect_line(SYS_ioctl, ARGS(1, TCGETS, 0x1000), -25,
                "ioctl(1, TCGETS, 0x1000) = -1 ENOTTY (Inappropriate ioctl for device)");
    memset(arena + 0x1000 - 4, 'z', 100);
    expect_line(SYS_chdir, ARGS(A(0x1000 - 4)), 0,
                "chdir(\"zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\"...) = 0");
    memset(arena + ARENA_BYTES - 4, 'z', 4); /* the next page is not mapped */
    expect_line(SYS_chdir, ARGS(A(ARENA_BYTES - 4)), 0, "chdir(\"zzzz\") = 0");
    expect_line(SYS_chdir, ARGS(UNMAPPED), -14, "chdir(0x200000000000) = -1 EFAULT (Bad address)");
    expect_line(SYS_kill, ARGS(7, SIGTERM), 0, "kill(7, SIGTERM) = 0");
    expect_line(SYS_futex, ARGS(0x1000, FUTEX_WAIT_PRIVATE, 2, 0, 0, 0), 0,
                "futex(0x1000, FUTEX_WAIT|FUTEX_PRIVATE_FLAG, 2, 0, NULL, 0) = 0");
    expect_line(
        9999, ARGS(1, 2, 3, 4, 5, 6), -38,
        "syscall_9999(0x1, 0x2, 0x3, 0x4, 0x5, 0x6) = -1 ENOSYS (Function not implemented)");
    assert_int_equal(tbd_syscall_print(&call, 1, NULL, NULL, cut, sizeof(cut)),
                     strlen("getpid() = 1"));
    assert_string_equal(cut, "getpid(");
}

/* ---- descriptors and objects that cases use ---- */

static void move_fd(int from, int to)
{
    assert_true(from >= 0);
    assert_int_equal(dup2(from, to), to);
    close(from);
}

static int bound_socket(int type)
{
    struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, type, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
    return fd;
}

static void open_files(void)
{
    char text[10000];

    memset(text, 'f', sizeof(text));
    snprintf(path, sizeof(path), "/tmp/tbd-syscalls-XXXXXX");
    move_fd(mkstemp(path), FILE_FD);
    assert_int_equal(write(FILE_FD, text, sizeof(text)), sizeof(text));
    snprintf(link_path, sizeof(link_path), "%s.link", path);
    assert_int_equal(symlink("/a/long/target/of/a/symbolic/link", link_path), 0);
    fsetxattr(FILE_FD, "user.tbd", "value", 5, 0);
    move_fd(open("/etc", O_RDONLY | O_DIRECTORY), DIR_FD);
    move_fd(open("/dev/null", O_RDWR), NULL_FD);
    move_fd(open("/dev/zero", O_RDWR), ZERO_FD);
}

static void open_channels(void)
{
    int pair[2];
    struct epoll_event event = { .events = EPOLLIN };

    assert_int_equal(pipe2(pair, O_NONBLOCK), 0);
    move_fd(pair[0], PIPE_R);
    move_fd(pair[1], PIPE_W);
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
    move_fd(pair[0], DGRAM_A);
    move_fd(pair[1], DGRAM_B);
    move_fd(bound_socket(SOCK_DGRAM), UDP_A);
    move_fd(bound_socket(SOCK_DGRAM), UDP_B);
    move_fd(bound_socket(SOCK_STREAM), TCP);
    assert_int_equal(listen(TCP, 10), 0);
    move_fd(epoll_create1(0), EPOLL);
    assert_int_equal(epoll_ctl(EPOLL, EPOLL_CTL_ADD, PIPE_R, &event), 0);
}

static void open_others(void)
{
    struct sigevent event = { .sigev_notify = SIGEV_NONE };
    struct stat root;
    int id = 0;

    move_fd(timerfd_create(CLOCK_MONOTONIC, 0), TIMER);
    move_fd(eventfd(0, EFD_NONBLOCK), EVENT);
    move_fd(inotify_init1(IN_NONBLOCK), NOTIFY);
    assert_true(inotify_add_watch(NOTIFY, path, IN_OPEN) >= 0);
    move_fd(posix_openpt(O_RDWR | O_NOCTTY), MASTER);
    assert_int_equal(unlockpt(MASTER), 0);
    move_fd(open(ptsname(MASTER), O_RDWR | O_NOCTTY), SLAVE);
    assert_int_equal(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id), 0);
    timer_id = (uint64_t)id;
    tid = (uint64_t)getpid();
    assert_int_equal(stat("/dev", &root), 0);
    root_device = root.st_dev;
    semaphores = semget(IPC_PRIVATE, 7, 0600);
    messages = (int)syscall(SYS_msgget, IPC_PRIVATE, 0600);
    shared = (int)syscall(SYS_shmget, IPC_PRIVATE, 4096, 0600);
}

static int set_up(void **state)
{
    (void)state;
    if (mmap(arena, ARENA_BYTES, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != arena)
        return -1;
    open_files();
    open_channels();
    open_others();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    unlink(link_path);
    syscall(SYS_semctl, semaphores, 0, IPC_RMID, 0);
    syscall(SYS_msgctl, messages, IPC_RMID, 0);
    syscall(SYS_shmctl, shared, IPC_RMID, 0);
    return munmap(arena, ARENA_BYTES);
}

/* With an argument, makes only the calls: then the program is useful to trace. */
static bool has_terminals(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);

    return master >= 0 && close(master) == 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest calls[] = {
        cmocka_unit_test(every_byte_the_kernel_changes_is_in_the_table),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_that_a_call_does_not_name_are_not_written),
        cmocka_unit_test(a_message_for_which_nobody_wants_a_name_gets_no_length_of_it),
        cmocka_unit_test(names_and_numbers_agree),
        cmocka_unit_test(gates_of_the_engine_are_flags_of_rows),
        cmocka_unit_test(refused_calls_have_no_effects),
        cmocka_unit_test(calls_that_write_files_say_where_from),
        cmocka_unit_test(some_commands_wait_and_others_do_not),
        cmocka_unit_test(commands_without_a_row_are_not_described),
        cmocka_unit_test(a_replaced_table_of_filters_gives_its_counters_back),
        cmocka_unit_test(no_argument_makes_ranges_leave_user_space_or_the_array),
        cmocka_unit_test(lines_read_like_strace),
    };

    (void)argv;
    if (!has_terminals()) {
        puts("skipped: no pseudo-terminal");
        return 77;
    }
    if (cmocka_run_group_tests(calls, set_up, tear_down) != 0)
        return 1;
    return argc > 1 ? 0 : cmocka_run_group_tests(tests, set_up, tear_down);
}
