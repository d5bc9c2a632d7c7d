// SPDX-License-Identifier: MIT
// libs: pthread
// end: detached
// missing: changes mappings
/* The program is let go in the middle (it unmaps what belongs to the engine) while others wait in calls, for locks and for
 * their turn: all of them go on natively from where they are. */
#include "check.h"
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

static int ends[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned stop;
static __thread unsigned local;

static void *wait_in_read(void *argument)
{
    char text[6] = { 0 };

    local = 1;
    CHECK(read(ends[0], text, 5) == 5 && !strcmp(text, "hello") && local == 1);
    return argument;
}

static void *wait_for_mutex(void *argument)
{
    local = 2;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    CHECK(local == 2);
    return argument;
}

static void *run(void *argument)
{
    double value = (double)(uintptr_t)argument;

    for (unsigned i = 0; i < 100 || !stop; i++)
        value = value * 0.5 + 1;
    CHECK(value > 1.9 && value < 2.1);
    return argument;
}

/* Nothing is there. */
static void unmap(void)
{
    CHECK(munmap((void *)0x53f000000000, 4096) == 0);
}

int main(void)
{
    pthread_t threads[4];

    CHECK(pipe(ends) == 0);
    pthread_mutex_lock(&mutex);
    pthread_create(&threads[0], NULL, wait_in_read, NULL);
    pthread_create(&threads[1], NULL, wait_for_mutex, NULL);
    pthread_create(&threads[2], NULL, run, (void *)3);
    pthread_create(&threads[3], NULL, run, (void *)100);
    usleep(3000);
    unmap();
    CHECK(write(ends[1], "hello", 5) == 5);
    pthread_mutex_unlock(&mutex);
    stop = 1;
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    puts("free");
    return 0;
}
