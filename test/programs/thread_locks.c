// SPDX-License-Identifier: MIT
// libs: pthread
/* Read-write locks, barriers, semaphores, conditions with time-outs, recursive and error-checking mutexes, a
 * robust mutex whose owner ends with it, futexes that time out, priority inheritance. */
#include "check.h"
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 300

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t robust;
static pthread_barrier_t barrier;
static sem_t items, room;
static unsigned shared, ring[4], put_at, turn;

static void *read_or_write(void *argument)
{
    unsigned seen = 0;

    for (unsigned i = 0; i < ROUNDS; i++) {
        if (argument && i % 4 == 0) {
            pthread_rwlock_wrlock(&rwlock);
            shared++;
        } else {
            pthread_rwlock_rdlock(&rwlock);
            CHECK(shared >= seen);
            seen = shared;
        }
        pthread_rwlock_unlock(&rwlock);
        if (i % 100 == 0)
            pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void *produce(void *argument)
{
    for (unsigned i = 1; i <= ROUNDS; i++) {
        sem_wait(&room);
        ring[put_at++ % 4] = i;
        sem_post(&items);
    }
    return argument;
}

static void *consume(void *argument)
{
    uintptr_t sum = 0;

    for (unsigned i = 0; i < ROUNDS; i++) {
        sem_wait(&items);
        sum += ring[i % 4];
        sem_post(&room);
    }
    (void)argument;
    return (void *)sum;
}

static void *take_turns(void *argument)
{
    unsigned me = (unsigned)(uintptr_t)argument;

    pthread_mutex_lock(&mutex);
    for (unsigned i = 0; i < ROUNDS; i++) {
        while (turn % 3 != me)
            pthread_cond_wait(&condition, &mutex);
        turn++;
        pthread_cond_broadcast(&condition);
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void *die_with_it(void *argument)
{
    CHECK(pthread_mutex_lock(&robust) == 0);
    return argument;
}

static void *run(pthread_t thread)
{
    void *result;

    CHECK(pthread_join(thread, &result) == 0);
    return result;
}

static void locks(void)
{
    pthread_t threads[4];

    pthread_barrier_init(&barrier, NULL, 4);
    for (uintptr_t i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, read_or_write, (void *)(i & 1)) == 0);
    for (int i = 0; i < 4; i++)
        run(threads[i]);
    CHECK(shared == 2 * ROUNDS / 4);
    for (uintptr_t i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, take_turns, (void *)i) == 0);
    for (int i = 0; i < 3; i++)
        run(threads[i]);
    CHECK(turn == 3 * ROUNDS);
}

static void semaphores(void)
{
    pthread_t threads[2];

    sem_init(&items, 0, 0);
    sem_init(&room, 0, 4);
    pthread_create(&threads[0], NULL, produce, NULL);
    pthread_create(&threads[1], NULL, consume, NULL);
    run(threads[0]);
    CHECK((uintptr_t)run(threads[1]) == ROUNDS * (ROUNDS + 1) / 2);
}

static void owner_dies(void)
{
    pthread_mutexattr_t attributes;
    pthread_t thread;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &attributes);
    pthread_create(&thread, NULL, die_with_it, NULL);
    run(thread);
    CHECK(pthread_mutex_lock(&robust) == EOWNERDEAD);
    CHECK(pthread_mutex_consistent(&robust) == 0);
    CHECK(pthread_mutex_unlock(&robust) == 0);
    pthread_create(&thread, NULL, die_with_it, NULL); /* while somebody may wait for it */
    for (;;) {
        int error = pthread_mutex_lock(&robust);

        if (error == EOWNERDEAD)
            break;
        CHECK(error == 0 && pthread_mutex_unlock(&robust) == 0);
    }
    pthread_mutex_consistent(&robust);
    pthread_mutex_unlock(&robust);
    run(thread);
}

static void time_outs(void)
{
    struct timespec until, short_time = { 0, 2000000 };
    unsigned word = 5;

    clock_gettime(CLOCK_REALTIME, &until);
    pthread_mutex_lock(&mutex);
    CHECK(pthread_cond_timedwait(&condition, &mutex, &until) == ETIMEDOUT);
    pthread_mutex_unlock(&mutex);
    CHECK(syscall(SYS_futex, &word, FUTEX_WAIT, 5, &short_time, NULL, 0) == -1 && errno == ETIMEDOUT);
    CHECK(syscall(SYS_futex, &word, FUTEX_WAIT, 6, &short_time, NULL, 0) == -1 && errno == EAGAIN);
    CHECK(sem_trywait(&items) == -1 && errno == EAGAIN);
    CHECK(sem_timedwait(&items, &until) == -1 && errno == ETIMEDOUT);
}

static void *time_out_on_it(void *argument)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 2000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    CHECK(pthread_mutex_timedlock(argument, &until) == ETIMEDOUT);
    CHECK(pthread_mutex_trylock(argument) == EBUSY);
    return NULL;
}

static void *inherit(void *argument)
{
    pthread_mutex_t *inheriting = argument;

    for (unsigned i = 0; i < 50; i++) {
        CHECK(pthread_mutex_lock(inheriting) == 0);
        shared++;
        if (i % 10 == 0)
            usleep(100);
        CHECK(pthread_mutex_unlock(inheriting) == 0);
    }
    return NULL;
}

static void inheritance(void)
{
    struct timespec until;
    pthread_mutexattr_t attributes;
    pthread_mutex_t inheriting;
    pthread_t threads[3];

    shared = 0;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&inheriting, &attributes);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, inherit, &inheriting);
    for (int i = 0; i < 3; i++)
        run(threads[i]);
    CHECK(shared == 150);
    pthread_mutex_init(&robust, &attributes);
    pthread_create(&threads[0], NULL, die_with_it, NULL);
    run(threads[0]);
    clock_gettime(CLOCK_REALTIME, &until);
    CHECK(pthread_mutex_timedlock(&robust, &until) == EOWNERDEAD);
    pthread_mutex_consistent(&robust);
    pthread_create(&threads[0], NULL, time_out_on_it, &robust);
    run(threads[0]);
    CHECK(pthread_mutex_unlock(&robust) == 0);
}

static void *wait_and_time_out(void *argument)
{
    time_outs();
    return argument;
}

int main(void)
{
    pthread_t thread;

    locks();
    semaphores();
    owner_dies();
    pthread_create(&thread, NULL, wait_and_time_out, NULL);
    run(thread);
    inheritance();
    puts("locked");
    return 0;
}
