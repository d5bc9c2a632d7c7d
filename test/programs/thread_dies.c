// SPDX-License-Identifier: MIT
// libs: pthread
// signal: 11
/* A fault in one thread ends the program while others wait and run. */
#include "check.h"
#include <pthread.h>
#include <unistd.h>

static pthread_barrier_t barrier;

static void *run(void *argument)
{
    pthread_barrier_wait(&barrier);
    for (volatile unsigned i = 0; !argument; i++)
        ;
    pause();
    return argument;
}

static void *die(void *argument)
{
    pthread_barrier_wait(&barrier);
    usleep(2000);
    *(volatile int *)((char *)argument + 8) = 1; /* it is NULL */
    return argument;
}

int main(void)
{
    pthread_t threads[3];

    puts("dying");
    fflush(stdout);
    pthread_barrier_init(&barrier, NULL, 3);
    pthread_create(&threads[0], NULL, run, NULL);
    pthread_create(&threads[1], NULL, run, threads);
    pthread_create(&threads[2], NULL, die, NULL);
    pthread_join(threads[0], NULL);
    return 0;
}
