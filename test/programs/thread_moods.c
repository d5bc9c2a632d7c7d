// SPDX-License-Identifier: MIT
/* A thread-local variable that each thread changes in its own way, while all take turns. */
// flags: -O1
// libs: pthread
#include "check.h"

#include <pthread.h>

#define THREADS 3
#define STEPS   40

static _Thread_local int mood;
volatile int all_moods;

__attribute__((noinline)) void cheer(int by)
{
    mood += by;
    all_moods = mood;
}

static void *live(void *number)
{
    for (int i = 0; i < STEPS; i++) {
        cheer((int)(intptr_t)number);
        sched_yield();
    }
    CHECK(mood == STEPS * (int)(intptr_t)number);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];

    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, live, (void *)(i + 2)) == 0);
    live((void *)1);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    printf("done\n");
    return 0;
}
