// SPDX-License-Identifier: MIT
// libs: pthread
/* Threads of different habits at once, for a while (argument: rounds): two that talk through pipes, three that count
 * under a lock and yield, one that sleeps and takes signals, and threads that come and go. */
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

static unsigned rounds = 30;
static int there[2], back[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned counter, signals, visitors;
static volatile unsigned stop;

static void note(int signo)
{
    signals += signo == SIGUSR1;
}

static uint64_t compute(uint64_t state, unsigned steps)
{
    while (steps--)
        check_random(&state);
    return state;
}

static void *talk(void *argument)
{
    uint64_t value = 1;

    for (unsigned i = 0; i < 20 * rounds; i++) {
        if (argument) {
            CHECK(write(there[1], &value, 8) == 8 && read(back[0], &value, 8) == 8);
        } else {
            CHECK(read(there[0], &value, 8) == 8);
            value = compute(value, 50);
            CHECK(write(back[1], &value, 8) == 8);
        }
    }
    return (void *)(uintptr_t)value;
}

static void *count(void *argument)
{
    for (unsigned i = 0; i < 100 * rounds; i++) {
        pthread_mutex_lock(&mutex);
        counter++;
        pthread_mutex_unlock(&mutex);
        compute(i + 1, 100);
        if (i % 16 == 0)
            sched_yield();
    }
    return argument;
}

static void *doze(void *argument)
{
    while (!stop)
        usleep(500);
    return argument;
}

static void *visit(void *argument)
{
    __atomic_add_fetch(&visitors, 1, __ATOMIC_RELAXED);
    return argument;
}

int main(int argc, char **argv)
{
    struct sigaction action = { .sa_handler = note };
    pthread_t threads[6], visitor;
    void *value;

    rounds = argc > 1 ? (unsigned)atoi(argv[1]) : rounds;
    CHECK(pipe(there) == 0 && pipe(back) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    pthread_create(&threads[0], NULL, talk, NULL);
    pthread_create(&threads[1], NULL, talk, there);
    for (int i = 2; i < 5; i++)
        pthread_create(&threads[i], NULL, count, NULL);
    pthread_create(&threads[5], NULL, doze, NULL);
    for (unsigned i = 0; i < rounds; i++) {
        CHECK(pthread_create(&visitor, NULL, visit, NULL) == 0 && pthread_kill(threads[5], SIGUSR1) == 0);
        CHECK(pthread_join(visitor, NULL) == 0);
    }
    for (int i = 0; i < 5; i++)
        CHECK(pthread_join(threads[i], &value) == 0);
    stop = 1;
    CHECK(pthread_join(threads[5], NULL) == 0);
    CHECK(counter == 300 * rounds && visitors == rounds && signals >= 1 && signals <= rounds);
    printf("%u %u\n", counter, visitors);
    return 0;
}
