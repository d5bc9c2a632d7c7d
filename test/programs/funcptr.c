// SPDX-License-Identifier: MIT
/* Indirect calls: one site with many targets, many sites, pointers kept in memory, tail calls. */
#include "check.h"

typedef uint64_t (*step)(uint64_t);

#define STEP(n)                                                                            \
    __attribute__((noinline)) static uint64_t step_##n(uint64_t x) { return (x ^ (0x51ed27u * (n + 1))) * (2 * n + 3); }
STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7) STEP(8) STEP(9) STEP(10) STEP(11)
static step steps[] = { step_0, step_1, step_2, step_3, step_4, step_5, step_6, step_7, step_8, step_9, step_10, step_11 };

__attribute__((noinline)) static uint64_t tail(uint64_t x) { return steps[x % 12](x); }

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

int main(void)
{
    static uint64_t values[2000];
    uint64_t x = 1;

    for (int i = 0; i < 20000; i++)
        x = i % 3 ? steps[x % 12](x) : tail(x);
    for (size_t i = 0; i < 2000; i++)
        values[i] = x = step_3(x) % 1000003;
    qsort(values, 2000, sizeof(values[0]), compare);
    for (size_t i = 1; i < 2000; i++)
        CHECK(values[i - 1] <= values[i]);
    printf("%016llx %016llx\n", (unsigned long long)x, (unsigned long long)check_hash(values, sizeof(values)));
    return 0;
}
