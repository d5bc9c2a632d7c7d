// SPDX-License-Identifier: MIT
// libs: tbd_syscalls -pthread
// options: window=20000
// long_env: RANDOM_CALLS=40
/* Every row of the system-call table that takes a pointer, with many arguments of which most make it fail: descriptors
 * of every kind, numbers that are no descriptor, pointers to good, read-only, missing and partly mapped memory, and to the
 * vectors, headers and times that some calls expect there.
 *
 * Before each call memory is filled with a pattern; after it every byte is looked at.  So a byte that the kernel wrote and
 * the trace does not know makes the replay differ.  The program prints which errors each call had.  Calls that may
 * wait are tried once more beside a second thread.  With the name of a call as argument it tries that call alone. */
#include "check.h"
#include "hooks/table/sys_table.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE      4096u
#define ARENA     0x110000000000ull
#define AT(n)     (ARENA + (n))
#define EDGE      (ARENA + 3 * PAGE) /* pages 0 to 2 are writable, 3 is missing, 4 read-only, 5 missing */
#define READ_ONLY (ARENA + 4 * PAGE)
#define KERNEL    0xffff800000000000ull

/* What stands in the first page. */
enum {
    VECTORS = 0x100,   /* struct iovec[3]: good, missing, good */
    EDGES = 0x140,     /* struct iovec[2]: across the edge, good */
    HEADER = 0x180,    /* struct msghdr with these vectors */
    HEADERS = 0x200,   /* struct mmsghdr[2]: as above; a missing name */
    TIME = 0x300,      /* 1 ns */
    LENGTH = 0x340,    /* 16 as a number of any width */
    POLLS = 0x360,     /* struct pollfd[2] */
    ZEROS = 0x400,     /* 512 of them */
    DATA = 0x800,      /* a pattern */
};

enum { FILE_FD = 20, PIPE_R, PIPE_W, FOLDER, STREAM, STREAM_PEER, DATAGRAM, DATAGRAM_PEER, EVENT, TIMER, WATCH, POLLER,
       MEMORY, MASTER, FD_COUNT };

static unsigned char filled[3 * PAGE];
static int semaphores, messages, segment;

/* ---- values ---- */

static const uint64_t descriptors[] = { FILE_FD, PIPE_R, PIPE_W, FOLDER, STREAM, DATAGRAM, EVENT, TIMER, WATCH, POLLER,
                                        MEMORY, MASTER, (uint64_t)-1, 777, (uint64_t)AT_FDCWD };
static const uint64_t numbers[] = { 0, 1, 2, 3, 4, 5, 8, 16, 24, 48, 64, 100, 256, 1000, 4096, 5000, 65536, 0x80000,
                                    0x7fffffff, 0x80000000u, (uint64_t)-1, (uint64_t)-100, 1ull << 40 };
static const uint64_t pointers[] = { AT(DATA), 0, AT(2 * PAGE), EDGE - 4, EDGE - 24, EDGE - 100, EDGE, READ_ONLY, KERNEL, 16,
                                     AT(VECTORS), AT(EDGES), AT(HEADER), AT(HEADERS), AT(TIME), AT(LENGTH), AT(POLLS),
                                     AT(ZEROS), READ_ONLY + PAGE - 8 };
static char long_name[5000];
static const char *const names[] = { "f", "d", "missing", "f/below", "", long_name, (const char *)EDGE - 1,
                                     (const char *)16, NULL, "/proc/self/stat" };
static const uint64_t processes[] = { 0, (uint64_t)-1, 0x3fffffff };
static const uint64_t file_commands[] = { F_GETLK, F_OFD_GETLK, F_GETOWN_EX, 17, 1035, 1037, F_GETFD, 9999, F_SETLK };
static const uint64_t device_commands[] = { 0x5401, 0x5413, 0x541b, 0x80045430, 0xc020660b, 0x80086601, 0x8912, 0xc0189436,
                                            0x5421, 0x802c542a, 0xdeadbeef, 0x80045432 };
static const uint64_t set_commands[] = { IPC_STAT, 3, 11, 13, 14, 18, 77 };
static uint64_t queues[] = { 0, (uint64_t)-1, 0x7fffffff };
static uint64_t sets[] = { 0, (uint64_t)-1, 0x7fffffff };
static uint64_t segments[] = { 0, (uint64_t)-1, 0x7fffffff };

struct values {
    const uint64_t *at;
    size_t count;
};
#define VALUES(list) ((struct values){ (const uint64_t *)(list), sizeof(list) / sizeof((list)[0]) })

static int is_any(const char *name, const char *list)
{
    size_t length = strlen(name);

    for (const char *at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return 1;
    return 0;
}

static struct values first_values(const char *name, unsigned index)
{
    if (index == 0 && is_any(name, "shmctl"))
        return VALUES(segments);
    if (index == 0 && is_any(name, "semctl semop semtimedop"))
        return VALUES(sets);
    if (index == 0 && is_any(name, "msgctl msgsnd msgrcv"))
        return VALUES(queues);
    if (index == 0 && is_any(name, "process_vm_readv process_vm_writev move_pages migrate_pages get_robust_list "
                                   "sched_getaffinity sched_setaffinity sched_getparam sched_setparam "
                                   "sched_rr_get_interval sched_getattr sched_setattr sched_setscheduler"))
        return VALUES(processes);
    if ((index == 1 && is_any(name, "shmctl msgctl")) || (index == 2 && is_any(name, "semctl")))
        return VALUES(set_commands);
    return (struct values){ NULL, 0 };
}

static struct values values_of(const struct tbd_sys_row *row, unsigned index)
{
    const struct tbd_sys_arg *arg = &row->args[index];
    struct values special = first_values(row->name, index);

    if (special.count)
        return special;
    switch ((enum tbd_sys_show)arg->show) {
    case TBD_SHOW_PTR:
    case TBD_SHOW_DATA:
    case TBD_SHOW_IOVEC:
    case TBD_SHOW_MASK:
    case TBD_SHOW_MASK_IN:
    case TBD_SHOW_OUT: return VALUES(pointers);
    case TBD_SHOW_STR: return VALUES(names);
    case TBD_SHOW_ATFD: return VALUES(descriptors);
    case TBD_SHOW_INT: /* FD is shown like INT */
        return index == 0 ? VALUES(descriptors) : VALUES(numbers);
    case TBD_SHOW_FLAGS:
        if (arg->set == TBD_SET_FCNTL)
            return VALUES(file_commands);
        return arg->set == TBD_SET_IOCTL ? VALUES(device_commands) : VALUES(numbers);
    default: return VALUES(numbers);
    }
}

/* ---- which calls ---- */

/* They would end, stop or change this process, its rights, its memory or the machine; or natively there is more of them. */
static const char *const left_out =
    "exit exit_group rt_sigreturn fork vfork clone clone3 execveat ptrace prctl arch_prctl seccomp pause rt_sigsuspend "
    "rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal rt_sigaction rt_sigprocmask sigaltstack setitimer mmap munmap mremap "
    "mprotect brk madvise shmat shmdt pkey_mprotect mseal process_madvise process_mrelease setrlimit prlimit64 set_robust_list "
    "set_tid_address modify_ldt capset setgroups personality chdir chroot pivot_root mount umount2 swapon swapoff "
    "acct settimeofday adjtimex clock_settime clock_adjtime sethostname setdomainname reboot init_module finit_module "
    "delete_module create_module get_kernel_syms query_module kexec_load kexec_file_load syslog quotactl quotactl_fd nfsservctl "
    "add_key request_key keyctl unshare setns bpf perf_event_open userfaultfd open_tree open_tree_attr move_mount mount_setattr "
    "fsopen fsconfig fsmount fspick landlock_create_ruleset landlock_add_rule memfd_secret fanotify_init fanotify_mark "
    "restart_syscall uselib vhangup ioperm iopl lookup_dcookie set_mempolicy mbind lsm_set_self_attr _sysctl "
    "set_thread_area get_thread_area wait4 waitid mq_open mq_unlink listmount statmount vmsplice splice tee";

static int is_tried(const struct tbd_sys_row *row)
{
    int has_pointer = 0;

    if (!row || row->mode == TBD_SYS_REFUSED || is_any(row->name, left_out))
        return 0;
    for (unsigned i = 0; i < 6; i++)
        has_pointer |= row->args[i].show == TBD_SHOW_PTR || row->args[i].show == TBD_SHOW_STR ||
                       row->args[i].show == TBD_SHOW_DATA || row->args[i].show == TBD_SHOW_OUT;
    return has_pointer;
}

/* ---- what is there before a call ---- */

static void put(unsigned offset, const void *data, size_t bytes)
{
    memcpy(filled + offset, data, bytes);
}

/* Bit 5 of no byte is set: as a mask it lets SIGALRM through. */
static void make_pattern(void)
{
    struct iovec vectors[3] = { { (void *)AT(PAGE), 24 }, { (void *)EDGE, 8 }, { (void *)AT(PAGE + 64), 64 } };
    struct iovec edges[2] = { { (void *)(EDGE - 6), 40 }, { (void *)AT(PAGE + 256), 64 } };
    struct msghdr header = { (void *)AT(PAGE + 512), 110, (void *)AT(VECTORS), 3, (void *)AT(PAGE + 700), 100, 0 };
    struct mmsghdr headers[2] = { { header, 0 }, { header, 0 } };
    struct timespec time = { 0, 1 };
    uint64_t length = 16;
    struct { int fd; short events, seen; } polls[2] = { { PIPE_R, 1, 77 }, { PIPE_W, 4, 77 } };

    for (unsigned i = 0; i < sizeof(filled); i++)
        filled[i] = (unsigned char)(0x80 | (i * 7 & 0x1f));
    headers[1].msg_hdr.msg_name = (void *)EDGE;
    put(VECTORS, vectors, sizeof(vectors));
    put(EDGES, edges, sizeof(edges));
    put(HEADER, &header, sizeof(header));
    put(HEADERS, headers, sizeof(headers));
    put(TIME, &time, sizeof(time));
    put(LENGTH, &length, sizeof(length));
    put(POLLS, polls, sizeof(polls));
    memset(filled + ZEROS, 0, 512);
}

static void move_to(int fd, int wanted)
{
    CHECK(fd >= 0 && dup2(fd, wanted) == wanted && close(fd) == 0);
}

static void make_pairs(void)
{
    int ends[2];

    CHECK(pipe2(ends, O_NONBLOCK) == 0);
    move_to(ends[0], PIPE_R);
    move_to(ends[1], PIPE_W);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    move_to(ends[0], STREAM);
    move_to(ends[1], STREAM_PEER);
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends) == 0);
    move_to(ends[0], DATAGRAM);
    move_to(ends[1], DATAGRAM_PEER);
}

static void make_descriptors(void)
{
    struct epoll_event event = { .events = EPOLLIN };
    int fd;

    move_to(open("f", O_RDWR | O_CREAT, 0644), FILE_FD);
    move_to(open(".", O_RDONLY | O_DIRECTORY), FOLDER);
    make_pairs();
    move_to(eventfd(3, EFD_NONBLOCK), EVENT);
    move_to(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), TIMER);
    move_to(inotify_init1(IN_NONBLOCK), WATCH);
    move_to(epoll_create1(0), POLLER);
    move_to(memfd_create("memory", 0), MEMORY);
    fd = open("/dev/ptmx", O_RDWR | O_NONBLOCK | O_NOCTTY);
    move_to(fd >= 0 ? fd : open("/dev/null", O_RDWR), MASTER);
    CHECK(ftruncate(MEMORY, 10000) == 0);
    CHECK(epoll_ctl(POLLER, EPOLL_CTL_ADD, EVENT, &event) == 0);
    queues[0] = (uint64_t)messages;
    sets[0] = (uint64_t)semaphores;
    segments[0] = (uint64_t)segment;
}

static void make_names(void)
{
    struct stat status;

    if (lstat("missing", &status) == 0 && remove("missing") != 0)
        CHECK(rmdir("missing") == 0);
    if (lstat("f", &status) != 0 || !S_ISREG(status.st_mode)) {
        remove("f");
        close(open("f", O_RDWR | O_CREAT, 0644));
    }
    if (lstat("d", &status) != 0)
        CHECK(mkdir("d", 0755) == 0);
}

/* There is always something to read, and room to write. */
static void feed(void)
{
    static const char text[200] = "something to read";
    static const int readers[] = { STREAM, STREAM_PEER, DATAGRAM, DATAGRAM_PEER, PIPE_R };
    char drained[4096];

    for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
        while (read(readers[i], drained, sizeof(drained)) > 0)
            ;
    CHECK(write(PIPE_W, text, sizeof(text)) == sizeof(text));
    CHECK(write(STREAM_PEER, text, sizeof(text)) == sizeof(text));
    CHECK(write(DATAGRAM_PEER, text, 100) == 100 && write(DATAGRAM_PEER, text, 100) == 100);
    CHECK(pwrite(FILE_FD, text, sizeof(text), 0) == sizeof(text) && lseek(FILE_FD, 0, SEEK_SET) == 0);
    CHECK(lseek(FOLDER, 0, SEEK_SET) == 0 && lseek(MEMORY, 0, SEEK_SET) == 0);
}

/* ---- the calls ---- */

static unsigned char errors[TBD_SYS_COUNT][200];
static volatile uint64_t sum;

static void note_alarm(int signal)
{
    (void)signal;
}

/* A call that would wait for ever ends with EINTR. */
static void set_alarm(long microseconds)
{
    struct itimerval value = { { 0, microseconds }, { 0, microseconds } };

    CHECK(setitimer(ITIMER_REAL, &value, NULL) == 0);
}

/* Looks at all of memory, and makes it as it was. */
static void compare(void)
{
    const unsigned char *now = (const unsigned char *)ARENA;

    if (memcmp(now, filled, sizeof(filled)) == 0)
        return;
    for (unsigned at = 0; at < sizeof(filled); at += 64) {
        if (memcmp(now + at, filled + at, 64) == 0)
            continue;
        for (unsigned i = at; i < at + 64; i++)
            sum = sum * 31 + now[i];
        memcpy((unsigned char *)ARENA + at, filled + at, 64);
    }
}

/* Descriptors that a call left, some without returning them, would be arguments of later calls. */
static void close_others(void)
{
    syscall(SYS_close_range, STDERR_FILENO + 1, FILE_FD - 1, 0);
    syscall(SYS_close_range, FD_COUNT, 700, 0);
}

static void try(uint64_t number, const uint64_t *args)
{
    const struct tbd_sys_row *row = tbd_sys_row(number);
    long result;

    if (row->args[0].show == TBD_SHOW_INT || row->flags & TBD_SYS_BLOCKS)
        feed();
    if (row->flags & TBD_SYS_BLOCKS)
        set_alarm(10000);
    errno = 0;
    result = syscall((long)number, args[0], args[1], args[2], args[3], args[4], args[5]);
    errors[number][result == -1 && errno < 200 ? errno : 0] = 1;
    if (row->flags & TBD_SYS_BLOCKS)
        set_alarm(0);
    compare();
    if (result >= 0)
        close_others();
    make_names();
}

static void try_each(uint64_t number)
{
    const struct tbd_sys_row *row = tbd_sys_row(number);
    unsigned count = tbd_syscall_arg_count(number);
    uint64_t state = 88172645463325252ull + number, args[6] = { 0 };
    const char *random = getenv("RANDOM_CALLS"); /* further calls of each row, with arguments taken at random */

    for (unsigned changed = 0; changed < count; changed++) {
        struct values values = values_of(row, changed);

        for (size_t v = 0; v < values.count; v++) {
            for (unsigned i = 0; i < count; i++)
                args[i] = values_of(row, i).at[values_of(row, i).at == numbers ? 9 : 0];
            args[changed] = values.at[v];
            try(number, args);
        }
    }
    for (unsigned n = 0; n < (random ? (unsigned)atoi(random) : 10); n++) {
        for (unsigned i = 0; i < count; i++)
            args[i] = values_of(row, i).at[check_random(&state) % values_of(row, i).count];
        try(number, args);
    }
}

static void print_errors(uint64_t number)
{
    printf("%s:", tbd_syscall_name(number));
    for (int i = 0; i < 200; i++)
        if (errors[number][i] && i != EINTR) /* that depends on the time */
            printf(" %s", i ? strerrorname_np(i) : "ok");
    putchar('\n');
}

static void make_arena(void)
{
    CHECK(mmap((void *)ARENA, 6 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
          (void *)ARENA);
    make_pattern();
    memcpy((void *)ARENA, filled, sizeof(filled));
    memcpy((void *)READ_ONLY, filled, PAGE);
    CHECK(mprotect((void *)READ_ONLY, PAGE, PROT_READ) == 0);
    CHECK(munmap((void *)EDGE, PAGE) == 0 && munmap((void *)(READ_ONLY + PAGE), PAGE) == 0);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_it(void *arg)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return arg;
}

/* Signals go to the main thread. */
static void start_thread(pthread_t *thread)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_mutex_lock(&lock);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    CHECK(pthread_create(thread, NULL, wait_for_it, NULL) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
}

static void try_all(const char *only, unsigned flags)
{
    memset(errors, 0, sizeof(errors));
    for (uint64_t number = 0; number < TBD_SYS_COUNT; number++) {
        const struct tbd_sys_row *row = tbd_sys_row(number);

        if (!is_tried(row) || (row->flags & flags) != flags || (only && strcmp(only, row->name)))
            continue;
        try_each(number);
        print_errors(number);
    }
}

static void make_ipc(void)
{
    semaphores = semget(IPC_PRIVATE, 3, 0600);
    messages = msgget(IPC_PRIVATE, 0600);
    segment = shmget(IPC_PRIVATE, PAGE, 0600);
    CHECK(semaphores >= 0 && messages >= 0 && segment >= 0);
}

static void enter_folder(void)
{
    static char folder[] = "/tmp/tbd-calls-XXXXXX";

    CHECK(mkdtemp(folder) && chdir(folder) == 0);
    memset(long_name, 'n', sizeof(long_name) - 1);
}

static void leave_folder(void)
{
    char folder[100];

    CHECK(getcwd(folder, sizeof(folder)));
    remove("f");
    remove("d");
    CHECK(chdir("/") == 0 && rmdir(folder) == 0);
}

int main(int argc, char **argv)
{
    struct sigaction action = { .sa_handler = note_alarm };
    pthread_t thread;

    CHECK(sigaction(SIGALRM, &action, NULL) == 0 && signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    signal(SIGIO, SIG_IGN);
    close_others();
    enter_folder();
    make_ipc();
    make_descriptors();
    make_arena();
    make_names();
    try_all(argc > 1 ? argv[1] : NULL, 0);
    start_thread(&thread);
    try_all(argc > 1 ? argv[1] : NULL, TBD_SYS_BLOCKS);
    pthread_mutex_unlock(&lock);
    CHECK(pthread_join(thread, NULL) == 0);
    semctl(semaphores, 0, IPC_RMID);
    msgctl(messages, IPC_RMID, NULL);
    shmctl(segment, IPC_RMID, NULL);
    leave_folder();
    puts("call table ok");
    return 0;
}
