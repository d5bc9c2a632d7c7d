// SPDX-License-Identifier: MIT
// libs: pthread
/* How threads begin and end: joined, detached, by pthread_exit, with values, with thread-local data and its
 * destructors, from other threads, and often, so that ids and stacks are used again. */
#include "check.h"
#include <pthread.h>
#include <semaphore.h>

static pthread_key_t key;
static unsigned destroyed;
static sem_t done;
static __thread uint64_t local = 7;

static void destroy(void *value)
{
    __atomic_add_fetch(&destroyed, (unsigned)(uintptr_t)value, __ATOMIC_RELAXED);
}

static void leave(uintptr_t value)
{
    pthread_exit((void *)(value * 3));
}

static void *work(void *argument)
{
    uintptr_t value = (uintptr_t)argument;

    CHECK(local == 7);
    local += value;
    pthread_setspecific(key, (void *)value);
    if (value & 1)
        leave(value);
    return (void *)(value * 2);
}

static void *detached(void *argument)
{
    CHECK(pthread_detach(pthread_self()) == 0);
    sem_post(&done);
    return argument;
}

static void *parent(void *argument)
{
    pthread_t child;
    void *result;

    CHECK(pthread_create(&child, NULL, work, argument) == 0);
    CHECK(pthread_join(child, &result) == 0);
    return result;
}

static uintptr_t run(void *(*function)(void *), uintptr_t value)
{
    pthread_t thread;
    void *result;

    CHECK(pthread_create(&thread, NULL, function, (void *)value) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    return (uintptr_t)result;
}

int main(void)
{
    pthread_t thread;

    CHECK(pthread_key_create(&key, destroy) == 0 && sem_init(&done, 0, 0) == 0);
    for (uintptr_t i = 1; i <= 40; i++)
        CHECK(run(i % 3 ? work : parent, i) == (i & 1 ? i * 3 : i * 2));
    CHECK(destroyed == 40 * 41 / 2);
    for (int i = 0; i < 5; i++) {
        CHECK(pthread_create(&thread, NULL, detached, NULL) == 0);
        while (sem_wait(&done) != 0)
            ;
    }
    CHECK(local == 7);
    puts("alive");
    return 0;
}
