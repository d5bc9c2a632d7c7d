// SPDX-License-Identifier: MIT
// libs: pthread
/* Cancellation: in a system call that waits, at a point, at once, held back, with clean-up handlers. */
#include "check.h"
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static int ends[2];
static sem_t ready;
static unsigned cleaned;

static void clean(void *argument)
{
    cleaned += (unsigned)(uintptr_t)argument;
}

static void *in_read(void *argument)
{
    char byte;

    pthread_cleanup_push(clean, (void *)1);
    sem_post(&ready);
    if (read(ends[0], &byte, 1) != 1)
        cleaned += 1000;
    pthread_cleanup_pop(0);
    return argument;
}

static void *in_loop(void *argument)
{
    volatile unsigned i = 0;

    pthread_cleanup_push(clean, (void *)10);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    sem_post(&ready);
    for (;;)
        i++;
    pthread_cleanup_pop(0);
    return argument;
}

static void *held_back(void *argument)
{
    pthread_cleanup_push(clean, (void *)100);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    sem_post(&ready);
    sem_wait((sem_t *)argument);
    pthread_testcancel();
    cleaned += 500;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    pthread_testcancel();
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancel(void *(*function)(void *), sem_t *after)
{
    pthread_t thread;
    void *result;

    CHECK(pthread_create(&thread, NULL, function, after) == 0);
    sem_wait(&ready);
    CHECK(pthread_cancel(thread) == 0);
    if (after)
        sem_post(after);
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
}

int main(void)
{
    sem_t after;

    CHECK(pipe(ends) == 0 && sem_init(&ready, 0, 0) == 0 && sem_init(&after, 0, 0) == 0);
    cancel(in_read, NULL);
    CHECK(cleaned == 1);
    cancel(in_loop, NULL);
    CHECK(cleaned == 11);
    cancel(held_back, &after);
    CHECK(cleaned == 611);
    puts("cancelled");
    return 0;
}
