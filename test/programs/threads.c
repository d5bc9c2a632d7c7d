// SPDX-License-Identifier: MIT
// libs: pthread
/* Threads with a mutex, a condition, thread-local data: the program's results are native. */
#include "check.h"
#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static unsigned total, waiting;
static __thread unsigned mine;

static void *work(void *argument)
{
    for (unsigned i = 0; i < 5000; i++) {
        mine += i & 3;
        pthread_mutex_lock(&mutex);
        total += *(unsigned *)argument;
        pthread_mutex_unlock(&mutex);
    }
    pthread_mutex_lock(&mutex);
    waiting++;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    return (void *)(uintptr_t)mine;
}

int main(void)
{
    pthread_t threads[4];
    unsigned weights[4] = { 1, 2, 3, 4 }, locals = 0;

    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, work, &weights[i]) == 0);
    pthread_mutex_lock(&mutex);
    while (waiting < 4)
        pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < 4; i++) {
        void *result;

        CHECK(pthread_join(threads[i], &result) == 0);
        locals += (unsigned)(uintptr_t)result;
    }
    CHECK(total == 50000 && locals == 4 * 7500);
    printf("%u %u\n", total, locals);
    return 0;
}
