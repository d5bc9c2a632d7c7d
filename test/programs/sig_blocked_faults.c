// SPDX-License-Identifier: MIT
/* The signals of the processor (SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV), sent by somebody: blocked, pending, waited
 * for, read from a signalfd, raised in their own handlers, ignored, across fork and exec, for a thread and for all. */
// libs: pthread
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int five[] = { SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV };
enum { FIVE = 5, WAYS = 6 };

static struct {
    int signo, code, value, depth;
} seen[64];
static volatile int count, depth, again, most;

static sigset_t set_of(int signo)
{
    sigset_t set;

    sigemptyset(&set);
    if (signo)
        sigaddset(&set, signo);
    return set;
}

static sigset_t all_five(void)
{
    sigset_t set = set_of(0);

    for (int i = 0; i < FIVE; i++)
        sigaddset(&set, five[i]);
    return set;
}

static void block(int how, sigset_t set)
{
    CHECK(sigprocmask(how, &set, NULL) == 0);
}

static int is_pending(int signo)
{
    sigset_t set;

    CHECK(sigpending(&set) == 0);
    return sigismember(&set, signo);
}

static void send(int how, int signo, int value)
{
    siginfo_t info = { .si_signo = signo, .si_code = SEGV_ACCERR };

    info.si_addr = (void *)(intptr_t)value;
    switch (how) {
    case 0: CHECK(kill(getpid(), signo) == 0); break;
    case 1: CHECK(raise(signo) == 0); break;
    case 2: CHECK(syscall(SYS_tkill, gettid(), signo) == 0); break;
    case 3: CHECK(sigqueue(getpid(), signo, (union sigval){ .sival_int = value }) == 0); break;
    case 4: CHECK(pthread_sigqueue(pthread_self(), signo, (union sigval){ .sival_int = value }) == 0); break;
    case 5: CHECK(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), signo, &info) == 0); break;
    }
}

static void on_signal(int signo, siginfo_t *info, void *context)
{
    (void)context;
    depth++;
    if (depth > most)
        most = depth;
    seen[count % 64].signo = signo;
    seen[count % 64].code = info->si_code;
    seen[count % 64].value = info->si_code == SI_QUEUE ? info->si_value.sival_int : info->si_code > 0 ? (int)(intptr_t)info->si_addr : 0;
    seen[count % 64].depth = depth;
    count++;
    if (again) {
        again--;
        send(again % WAYS, signo, 0);
    }
    depth--;
}

static void handle(int signo, int flags, sigset_t mask)
{
    struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | flags, .sa_mask = mask };

    CHECK(sigaction(signo, &action, NULL) == 0);
}

static void show(const char *what)
{
    printf("%s:", what);
    for (int i = 0; i < count; i++)
        printf(" %d/%d/%d/%d", seen[i].signo, seen[i].code, seen[i].value, seen[i].depth);
    printf("\n");
    count = 0;
}

/* The second one is lost. */
static void blocked_then_not(void)
{
    for (int i = 0; i < FIVE; i++)
        for (int how = 0; how < WAYS; how++) {
            handle(five[i], 0, set_of(0));
            block(SIG_BLOCK, set_of(five[i]));
            send(how, five[i], 7);
            send(how, five[i], 8);
            CHECK(count == 0 && is_pending(five[i]));
            block(SIG_UNBLOCK, set_of(five[i]));
            CHECK(!is_pending(five[i]));
            show("blocked");
        }
}

/* One for the thread and one for the process. */
static void both(void)
{
    block(SIG_BLOCK, set_of(SIGBUS));
    send(3, SIGBUS, 1);
    send(1, SIGBUS, 2);
    block(SIG_UNBLOCK, set_of(SIGBUS));
    show("both");
}

static void at_once(void)
{
    block(SIG_BLOCK, all_five());
    for (int i = FIVE; i-- > 0;)
        send(i % 2, five[i], i);
    block(SIG_UNBLOCK, all_five());
    show("at once");
    for (int i = 0; i < FIVE; i++)
        handle(five[i], 0, all_five());
    block(SIG_BLOCK, all_five());
    for (int i = FIVE; i-- > 0;)
        send(i % 2, five[i], i);
    block(SIG_UNBLOCK, all_five());
    show("one by one");
    for (int i = 0; i < FIVE; i++)
        handle(five[i], 0, set_of(0));
}

static void in_handlers(void)
{
    for (int i = 0; i < FIVE; i++) {
        most = 0;
        again = 3;
        send(1, five[i], 0);
        CHECK(most == 1 && count == 4);
        handle(five[i], SA_NODEFER, set_of(0));
        again = 3;
        send(0, five[i], 0);
        CHECK(most == 4 && count == 8);
        show("in handlers");
        handle(five[i], 0, set_of(0));
    }
}

static void waited_for(void)
{
    struct timespec none = { 0, 0 }, little = { 0, 2000000 };

    for (int i = 0; i < FIVE; i++)
        for (int how = 0; how < WAYS; how++) {
            sigset_t set = set_of(five[i]);
            siginfo_t info;

            block(SIG_BLOCK, set);
            CHECK(sigtimedwait(&set, &info, &none) == -1 && errno == EAGAIN);
            CHECK(sigtimedwait(&set, &info, &little) == -1 && errno == EAGAIN);
            send(how, five[i], 11);
            CHECK(sigwaitinfo(&set, &info) == five[i]);
            printf("%d/%d ", five[i], info.si_code);
            CHECK(sigtimedwait(&set, NULL, &none) == -1 && errno == EAGAIN && !is_pending(five[i]));
            block(SIG_UNBLOCK, set);
            CHECK(count == 0);
        }
    printf("waited for\n");
}

static timer_t timer_for(int signo, long ns)
{
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = signo };
    struct itimerspec once = { .it_value = { 0, ns } };
    timer_t timer;

    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &once, NULL) == 0);
    return timer;
}

static void read_from_fd(void)
{
    sigset_t set = all_five();
    struct signalfd_siginfo info;
    struct pollfd poll_fd;
    timer_t timer;
    int fd = signalfd(-1, &set, SFD_NONBLOCK);

    CHECK(fd >= 0);
    block(SIG_BLOCK, set);
    CHECK(read(fd, &info, sizeof(info)) == -1 && errno == EAGAIN);
    poll_fd = (struct pollfd){ .fd = fd, .events = POLLIN };
    CHECK(poll(&poll_fd, 1, 0) == 0);
    for (int i = 0; i < FIVE; i++) {
        send(i % WAYS, five[i], i);
        CHECK(poll(&poll_fd, 1, 0) == 1);
        CHECK(read(fd, &info, sizeof(info)) == sizeof(info) && (int)info.ssi_signo == five[i]);
        printf("%u/%d ", info.ssi_signo, info.ssi_code);
        timer = timer_for(five[i], 3000000);
        CHECK(poll(&poll_fd, 1, 20000) == 1); /* it comes while it waits */
        CHECK(read(fd, &info, sizeof(info)) == sizeof(info) && (int)info.ssi_signo == five[i]);
        CHECK(timer_delete(timer) == 0);
    }
    block(SIG_UNBLOCK, set);
    close(fd);
    CHECK(count == 0);
    printf("read\n");
}

static void suspended(void)
{
    sigset_t none = set_of(0);
    struct timespec second = { 20, 0 };
    timer_t timer;

    block(SIG_BLOCK, all_five());
    for (int i = 0; i < FIVE; i++) {
        send(i, five[i], 5);
        CHECK(sigsuspend(&none) == -1 && errno == EINTR && count == 1);
        CHECK(!is_pending(five[i]));
        send(i, five[i], 6);
        CHECK(ppoll(NULL, 0, &second, &none) == -1 && errno == EINTR && count == 2);
        timer = timer_for(five[i], 3000000);
        CHECK(sigsuspend(&none) == -1 && errno == EINTR && count == 3);
        CHECK(timer_delete(timer) == 0);
        show("suspended");
    }
    for (int i = 0; i < FIVE; i++)
        send(0, five[i], 0);
    CHECK(sigsuspend(&none) == -1 && errno == EINTR);
    show("all");
    block(SIG_UNBLOCK, all_five());
}

/* What is ignored interrupts nothing; what waits is forgotten when it becomes ignored. */
static void ignored(void)
{
    for (int i = 0; i < FIVE; i++) {
        struct timespec some = { 0, 20000000 };
        timer_t timer;

        block(SIG_BLOCK, set_of(five[i]));
        send(0, five[i], 0);
        send(1, five[i], 0);
        CHECK(is_pending(five[i]));
        signal(five[i], SIG_IGN);
        CHECK(!is_pending(five[i]));
        send(1, five[i], 0);
        CHECK(is_pending(five[i]));
        block(SIG_UNBLOCK, set_of(five[i]));
        send(0, five[i], 0);
        timer = timer_for(five[i], 3000000);
        CHECK(nanosleep(&some, NULL) == 0);
        CHECK(timer_delete(timer) == 0);
        handle(five[i], 0, set_of(0));
    }
    show("ignored");
}

static int end_of(pid_t child)
{
    int status;

    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void children(const char *self)
{
    pid_t child;

    for (int i = 0; i < FIVE; i++) {
        block(SIG_BLOCK, all_five());
        send(1, five[i], 0);
        fflush(stdout);
        child = fork();
        if (child == 0)
            _exit(is_pending(five[i]) * 2 + (count != 0));
        printf("fork %d, ", end_of(child));
        child = fork();
        if (child == 0) {
            send(i % 2, five[i], 0);
            execl(self, self, "executed", (char *)NULL);
            _exit(98);
        }
        printf("exec %d, ", end_of(child));
        child = fork();
        if (child == 0) { /* the default action, when it is let in */
            signal(five[i], SIG_DFL);
            send(0, five[i], 0);
            block(SIG_UNBLOCK, all_five());
            _exit(97);
        }
        printf("default %d\n", end_of(child));
        CHECK(is_pending(five[i]));
        block(SIG_UNBLOCK, all_five());
    }
    show("children");
}

static pthread_barrier_t barrier;
static pthread_t other;
static volatile int got[2];

static void on_either(int signo)
{
    (void)signo;
    got[pthread_equal(pthread_self(), other) != 0]++;
}

static void *wait_open(void *unused)
{
    pthread_barrier_wait(&barrier);
    while (!got[1]) {}
    pthread_barrier_wait(&barrier);
    return unused;
}

/* A signal for the process goes to a thread that lets it in; one for a thread waits for that. */
static void threads(void)
{
    sigset_t set = all_five();

    CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
    for (int i = 0; i < FIVE; i++) {
        signal(five[i], on_either);
        got[0] = got[1] = 0;
        CHECK(pthread_create(&other, NULL, wait_open, NULL) == 0);
        CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
        pthread_barrier_wait(&barrier);
        CHECK(kill(getpid(), five[i]) == 0);
        pthread_barrier_wait(&barrier);
        CHECK(pthread_join(other, NULL) == 0);
        CHECK(raise(five[i]) == 0 && got[0] == 0 && is_pending(five[i]));
        CHECK(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
        printf("threads %d %d\n", got[0], got[1]);
    }
}

static int read_end, way; /* how the thread waits */
static siginfo_t brought;

static void wait_with(int how, siginfo_t *out)
{
    static const struct timespec minute = { 60, 0 };
    struct pollfd poll_fd = { .fd = read_end, .events = POLLIN };
    sigset_t set = all_five();
    struct signalfd_siginfo info;

    switch (how) {
    case 0: CHECK(sigwaitinfo(&set, out) > 0); return;
    case 1: CHECK(sigtimedwait(&set, out, &minute) > 0); return;
    case 2: CHECK(sigwait(&set, &out->si_signo) == 0); return;
    case 3: CHECK(poll(&poll_fd, 1, 60000) == 1); break;
    }
    CHECK(read(read_end, &info, sizeof(info)) == sizeof(info));
    out->si_signo = (int)info.ssi_signo;
    out->si_code = info.ssi_code;
    out->si_pid = (int)info.ssi_pid;
}

static void *wait_blocked(void *unused)
{
    for (int i = 0; i < FIVE; i++) {
        pthread_barrier_wait(&barrier);
        memset(&brought, 0, sizeof(brought));
        wait_with(way, &brought);
        pthread_barrier_wait(&barrier);
    }
    return unused;
}

/* Every thread blocks them; one waits for them, and gets those of the process, and of other processes. */
static void for_waiting_threads(void)
{
    struct timespec none = { 0, 0 }, little = { 0, 1000000 };
    sigset_t set = all_five();

    block(SIG_BLOCK, set);
    read_end = signalfd(-1, &set, 0);
    for (way = 0; way < 5; way++) {
        CHECK(pthread_create(&other, NULL, wait_blocked, NULL) == 0);
        for (int i = 0; i < FIVE; i++) {
            sigset_t one = set_of(five[i]);
            siginfo_t info;

            pthread_barrier_wait(&barrier);
            nanosleep(i % 2 ? &none : &little, NULL); /* it may wait already, or not */
            CHECK(raise(five[i]) == 0);
            if (i == 3 && fork() == 0) {
                kill(getppid(), five[i]);
                _exit(0);
            }
            if (i != 3)
                send(i % 2 * 3, five[i], 21);
            pthread_barrier_wait(&barrier);
            CHECK(brought.si_signo == five[i]);
            if (way != 2)
                CHECK(brought.si_code == (i == 1 ? SI_QUEUE : SI_USER) && (brought.si_pid == getpid()) == (i != 3));
            CHECK(sigtimedwait(&one, &info, &none) == five[i] && info.si_code == SI_USER && !is_pending(five[i]));
            CHECK(i != 3 || wait(NULL) > 0);
        }
        CHECK(pthread_join(other, NULL) == 0);
        printf("way %d\n", way);
    }
    close(read_end);
    block(SIG_UNBLOCK, set);
}

static int executed(void)
{
    int pending = 0;

    for (int i = 0; i < FIVE; i++)
        pending |= is_pending(five[i]) << i;
    return pending;
}

int main(int argc, char **argv)
{
    (void)argc;
    if (argv[1])
        return executed();
    blocked_then_not();
    both();
    at_once();
    in_handlers();
    waited_for();
    read_from_fd();
    suspended();
    ignored();
    children(argv[0]);
    threads();
    for_waiting_threads();
    return 0;
}
