// SPDX-License-Identifier: MIT
/* busy.c - `busy THREADS ROUNDS`: threads that compute, with calls through pointers and branches that depend on data, and share
 * nothing; each does the same work however many there are. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_THREADS = 64 };

struct part {
    _Alignas(128) uint64_t value;
    uint64_t rounds;
};

static uint64_t multiply(uint64_t x)
{
    return x * 0x9e3779b97f4a7c15u;
}

static uint64_t shift(uint64_t x)
{
    return x ^ x >> 29;
}

static uint64_t add(uint64_t x)
{
    return x + (x << 7);
}

static uint64_t step(uint64_t x)
{
    return x & 1 ? x * 3 + 1 : x / 2;
}

static uint64_t (*const functions[])(uint64_t) = { multiply, shift, add, step };

static void *compute(void *argument)
{
    struct part *part = argument;
    uint64_t x = part->value;
    unsigned seen[256] = { 0 };

    for (uint64_t i = 0; i < part->rounds; i++) {
        x = functions[x >> 11 & 3](x) + i;
        seen[x & 255]++;
        if (!(x & 63))
            x ^= seen[x >> 8 & 255];
    }
    part->value = x;
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned count = argc > 2 ? (unsigned)atoi(argv[1]) : 0;
    static struct part parts[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    uint64_t sum = 0;

    if (count < 1 || count > MAX_THREADS)
        return 2;
    for (unsigned i = 0; i < count; i++) {
        parts[i] = (struct part){ .value = i + 1, .rounds = strtoull(argv[2], NULL, 10) };
        if (pthread_create(&threads[i], NULL, compute, &parts[i]))
            return 1;
    }
    for (unsigned i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        sum ^= parts[i].value;
    }
    printf("%llx\n", (unsigned long long)sum);
    return 0;
}
