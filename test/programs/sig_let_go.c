// SPDX-License-Identifier: MIT
// libs: pthread
// end: detached
// missing: 32-bit
/* Signals that wait when the program is let go: of the processor's kind and others, for the process and for threads.  They
 * are still waiting then, and come with their values when they are let in.  So are a dispatch of
 * system calls and restartable sequences: the kernel has them again. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const int kinds[] = { SIGSEGV, SIGFPE, SIGTRAP, SIGUSR1, 40 /* a real-time signal */ };
enum { KINDS = 5 };

static __thread volatile int seen[65], value[65];
static sem_t blocked, go;

static void on_signal(int signo, siginfo_t *info, void *context)
{
    (void)context;
    seen[signo]++;
    value[signo] = info->si_code == SI_QUEUE ? info->si_value.sival_int : -info->si_code;
}

static sigset_t all(void)
{
    sigset_t set;

    sigemptyset(&set);
    for (int i = 0; i < KINDS; i++)
        sigaddset(&set, kinds[i]);
    return set;
}

static int pending(void)
{
    sigset_t set;
    int count = 0;

    CHECK(sigpending(&set) == 0);
    for (int i = 0; i < KINDS; i++)
        count += sigismember(&set, kinds[i]);
    return count;
}

static void let_in(const char *who)
{
    sigset_t set = all();

    CHECK(pending() == KINDS && pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0 && pending() == 0);
    printf("%s:", who);
    for (int i = 0; i < KINDS; i++)
        printf(" %d/%d", seen[kinds[i]], value[kinds[i]]);
    printf("\n");
    fflush(stdout);
}

static void send(int n)
{
    for (int i = 0; i < KINDS; i++)
        if (i % 2 == n)
            CHECK(pthread_kill(pthread_self(), kinds[i]) == 0);
        else
            CHECK(pthread_sigqueue(pthread_self(), kinds[i], (union sigval){ .sival_int = 100 * n + i }) == 0);
}

extern const ptrdiff_t __rseq_offset __attribute__((weak)); /* glibc 2.35 and later */
extern const unsigned __rseq_size __attribute__((weak));

/* Of the C library, in each thread that was not refused them: a free run does that. */
static void has_sequences(void)
{
    char *area;

    if (!&__rseq_size || !__rseq_size)
        return;
    area = (char *)__builtin_thread_pointer() + __rseq_offset;
    if (((uint32_t *)(void *)area)[1] == (uint32_t)-2)
        return;
    CHECK(syscall(SYS_rseq, area, __rseq_size > 32 ? __rseq_size : 32, 0, 0x53053053) == -1 && errno == EBUSY);
    CHECK(*(uint32_t *)(void *)area < 65536); /* the processor */
}

static void *wait_for_it(void *unused)
{
    send(0);
    CHECK(sem_post(&blocked) == 0);
    while (sem_wait(&go) != 0)
        CHECK(errno == EINTR);
    let_in("thread");
    has_sequences();
    return unused;
}

static volatile char selector;

static void on_dispatch(int signo)
{
    CHECK(signo == SIGSYS && selector == 1);
    selector = 0;
}

static void dispatch(int has_dispatch)
{
    selector = (char)has_dispatch;
    getppid();
    CHECK(selector == 0);
}

/* It runs natively, as all children of vfork. */
static int kernel_has_calls_of_32_bits(void)
{
    int status;
    long result;
    pid_t child = vfork();

    if (child == 0) {
        __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
    sigset_t set = all();
    pthread_t thread;
    long result;
    int has_dispatch; /* some kernels have none */

    if (!kernel_has_calls_of_32_bits()) {
        puts("a kernel without system calls of 32-bit programs");
        return 77;
    }
    for (int i = 0; i < KINDS; i++)
        CHECK(sigaction(kinds[i], &action, NULL) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0 && sem_init(&blocked, 0, 0) == 0 && sem_init(&go, 0, 0) == 0);
    CHECK(pthread_create(&thread, NULL, wait_for_it, NULL) == 0);
    while (sem_wait(&blocked) != 0)
        CHECK(errno == EINTR);
    send(1);
    CHECK(signal(SIGSYS, on_dispatch) != SIG_ERR);
    has_dispatch = prctl(59 /* PR_SET_SYSCALL_USER_DISPATCH */, 1, 0, 0, &selector) == 0;
    dispatch(has_dispatch);
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
    let_in("main");
    dispatch(has_dispatch);
    has_sequences();
    CHECK(sem_post(&go) == 0 && pthread_join(thread, NULL) == 0);
    return 0;
}
