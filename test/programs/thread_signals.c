// SPDX-License-Identifier: MIT
// libs: pthread
/* Signals and threads: to one thread while it runs, waits and sleeps; to the process, taken by the one that lets
 * it in; sigwait; faults of threads; alternate stacks of their own; setuid, which signals all of them. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

static sem_t ready;
static volatile sig_atomic_t stop;
static __thread volatile sig_atomic_t mine;
static __thread sigjmp_buf back;
static __thread char *low, *high;

static void note(int signo)
{
    char here;

    mine += signo;
    if (low)
        CHECK(&here >= low && &here < high);
}

static void jump(int signo, siginfo_t *info, void *context)
{
    (void)context;
    CHECK(signo == SIGSEGV && info->si_addr == (void *)0x10);
    siglongjmp(back, 1);
}

static volatile int *volatile nowhere = (volatile int *)0x10;

static void *fault(void *argument)
{
    static __thread volatile unsigned caught;

    if (sigsetjmp(back, 1))
        caught++;
    if (caught < 5)
        *nowhere = 1;
    (void)argument;
    return (void *)(uintptr_t)caught;
}

static void *spin(void *argument)
{
    stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };

    low = stack.ss_sp;
    high = low + stack.ss_size;
    CHECK(sigaltstack(&stack, NULL) == 0);
    sem_post(&ready);
    while (mine < SIGUSR1)
        ;
    stack.ss_flags = SS_DISABLE;
    CHECK(sigaltstack(&stack, NULL) == 0);
    free(low);
    return argument;
}

static void *sleep_long(void *argument)
{
    sem_post(&ready);
    while (mine < SIGUSR1)
        if (usleep(1000000) == 0)
            break;
    CHECK(mine == SIGUSR1);
    return argument;
}

static void *wait_in_read(void *argument)
{
    char byte;

    sem_post(&ready);
    CHECK(read(*(int *)argument, &byte, 1) == 1 && byte == 'x'); /* restarted after the handler */
    CHECK(mine == SIGUSR1);
    return NULL;
}

static void *take_signals(void *argument)
{
    sigset_t set;
    uintptr_t sum = 0;
    int signo;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGTERM);
    sem_post(&ready);
    do {
        CHECK(sigwait(&set, &signo) == 0);
        sum += (unsigned)signo;
        sem_post(&ready);
    } while (signo != SIGTERM);
    (void)argument;
    return (void *)sum;
}

static void *idle(void *argument)
{
    while (!stop)
        usleep(1000);
    return argument;
}

static pthread_t begin(void *(*function)(void *), void *argument)
{
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, function, argument) == 0);
    sem_wait(&ready);
    return thread;
}

static uintptr_t join(pthread_t thread)
{
    void *result;

    CHECK(pthread_join(thread, &result) == 0);
    return (uintptr_t)result;
}

static void to_threads(void)
{
    int ends[2];
    pthread_t thread = begin(spin, NULL);

    CHECK(pthread_kill(thread, SIGUSR1) == 0);
    join(thread);
    thread = begin(sleep_long, NULL);
    CHECK(pthread_kill(thread, SIGUSR1) == 0);
    join(thread);
    CHECK(pipe(ends) == 0);
    thread = begin(wait_in_read, &ends[0]);
    usleep(2000);
    CHECK(pthread_kill(thread, SIGUSR1) == 0);
    usleep(2000);
    CHECK(write(ends[1], "x", 1) == 1);
    join(thread);
    CHECK(mine == 0);
}

static void to_the_process(void)
{
    sigset_t set;
    pthread_t thread;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    thread = begin(take_signals, NULL);
    for (int i = 0; i < 3; i++) {
        kill(getpid(), SIGUSR2);
        sem_wait(&ready);
    }
    kill(getpid(), SIGTERM);
    CHECK(join(thread) == 3 * SIGUSR2 + SIGTERM);
}

static void change_ids(void)
{
    pthread_t threads[3];

    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, idle, NULL);
    for (int i = 0; i < 3; i++)
        CHECK(setuid(getuid()) == 0 && setgid(getgid()) == 0);
    stop = 1;
    for (int i = 0; i < 3; i++)
        join(threads[i]);
}

int main(void)
{
    struct sigaction action = { .sa_handler = note, .sa_flags = SA_ONSTACK | SA_RESTART };
    struct sigaction on_fault = { .sa_sigaction = jump, .sa_flags = SA_SIGINFO };
    pthread_t threads[3];

    sem_init(&ready, 0, 0);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGSEGV, &on_fault, NULL);
    to_threads();
    to_the_process();
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, fault, NULL);
    for (int i = 0; i < 3; i++)
        CHECK(join(threads[i]) == 5);
    change_ids();
    puts("signalled");
    return 0;
}
