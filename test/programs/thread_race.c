// SPDX-License-Identifier: MIT
// libs: pthread
/* Four threads count in one variable without a lock.  With an argument it prints how often the variable went from
 * one thread to another, and how many counts were lost; both depend on when turns end (test/e2e/test_threads.py). */
#include "check.h"
#include <pthread.h>

#define THREADS 4
#define ROUNDS  100000

static volatile unsigned long counter, last, changes;

static void *count(void *argument)
{
    unsigned long me = *(unsigned long *)argument;

    for (unsigned i = 0; i < ROUNDS; i++) {
        if (last != me) {
            last = me;
            changes++;
        }
        counter++;
    }
    return argument;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    unsigned long numbers[THREADS];

    (void)argv;
    for (unsigned i = 0; i < THREADS; i++) {
        numbers[i] = i + 1;
        CHECK(pthread_create(&threads[i], NULL, count, &numbers[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(counter && counter <= THREADS * ROUNDS);
    if (argc > 1)
        printf("%lu %lu\n", changes, THREADS * ROUNDS - counter);
    return 0;
}
