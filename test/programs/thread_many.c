// SPDX-License-Identifier: MIT
// libs: pthread
/* Two hundred threads at a time, all waiting for each other. */
#include "check.h"
#include <pthread.h>

#ifndef COUNT
#define COUNT 200
#endif

static pthread_barrier_t barrier;
static unsigned values[COUNT];

static void *work(void *argument)
{
    unsigned index = (unsigned)(uintptr_t)argument;

    values[index] = index + 1;
    pthread_barrier_wait(&barrier);
    return (void *)(uintptr_t)(values[(index + 1) % COUNT] + values[index]);
}

int main(void)
{
    pthread_t threads[COUNT];
    uintptr_t sum = 0;

    pthread_barrier_init(&barrier, NULL, COUNT);
    for (uintptr_t i = 0; i < COUNT; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (unsigned i = 0; i < COUNT; i++) {
        void *result;

        CHECK(pthread_join(threads[i], &result) == 0);
        sum += (uintptr_t)result;
    }
    CHECK(sum == COUNT * (COUNT + 1));
    printf("%lu\n", (unsigned long)sum);
    return 0;
}
