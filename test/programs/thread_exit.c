// SPDX-License-Identifier: MIT
// libs: pthread
// exit: 7
/* The program ends by exit() in one thread while others wait, sleep and run. */
#include "check.h"
#include <pthread.h>
#include <unistd.h>

static int ends[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

static void *wait_in_read(void *argument)
{
    char byte;

    pthread_barrier_wait(&barrier);
    CHECK(read(ends[0], &byte, 1) == 1);
    return argument;
}

static void *wait_for_mutex(void *argument)
{
    pthread_barrier_wait(&barrier);
    pthread_mutex_lock(&mutex);
    return argument;
}

static void *run(void *argument)
{
    pthread_barrier_wait(&barrier);
    for (volatile unsigned i = 0;; i++)
        ;
    return argument;
}

static void *end(void *argument)
{
    pthread_barrier_wait(&barrier);
    usleep(3000);
    puts("over");
    exit(7);
    return argument;
}

int main(void)
{
    void *(*const functions[4])(void *) = { wait_in_read, wait_for_mutex, run, end };
    pthread_t threads[4];

    CHECK(pipe(ends) == 0);
    pthread_mutex_lock(&mutex);
    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, functions[i], NULL) == 0);
    pthread_join(threads[0], NULL);
    return 1;
}
