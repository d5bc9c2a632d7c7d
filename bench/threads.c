// SPDX-License-Identifier: MIT
/* threads.c - `threads apart N`: four threads that compute N rounds each and share nothing;
 * `threads mutex N`: four threads that take the same mutex N times each, with little work under it.
 * The result does not depend on the order in which threads run. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4

struct part {
    _Alignas(64) uint64_t seed;
    uint64_t rounds;
    uint64_t result;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t shared_sum;

static uint64_t next(uint64_t x)
{
    x ^= x << 13;
    x ^= x >> 7;
    return x ^ x << 17;
}

static void *compute(void *argument)
{
    struct part *part = argument;
    uint64_t table[256] = { 0 };
    uint64_t x = part->seed;

    for (uint64_t i = 0; i < part->rounds; i++) {
        x = next(x);
        table[x & 255] += x >> 32;
    }
    for (int i = 0; i < 256; i++)
        part->result += table[i];
    return NULL;
}

static void *contend(void *argument)
{
    struct part *part = argument;
    uint64_t x = part->seed;

    for (uint64_t i = 0; i < part->rounds; i++) {
        x = next(x);
        pthread_mutex_lock(&lock);
        shared_sum += x;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    struct part parts[THREADS];
    uint64_t sum = 0;

    if (argc != 3)
        return 2;
    for (int i = 0; i < THREADS; i++) {
        parts[i] = (struct part){ .seed = 88172645463325252u + (uint64_t)i,
                                  .rounds = strtoull(argv[2], NULL, 10) };
        if (pthread_create(&threads[i], NULL, strcmp(argv[1], "mutex") ? compute : contend,
                           &parts[i]))
            return 1;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += parts[i].result;
    }
    printf("%llu\n", (unsigned long long)(sum + shared_sum));
    return 0;
}
