// SPDX-License-Identifier: MIT
// libs: pthread
// end: detached
// missing: too many threads
/* More threads at a time than are followed: all of them go on natively, from a barrier or before it. */
#include "check.h"
#include <pthread.h>

#define COUNT 1000

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
