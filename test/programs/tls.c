// SPDX-License-Identifier: MIT
/* Thread-local data (fs-relative loads and stores of all shapes), errno, an ifunc of our own. */
#include "check.h"
#include <errno.h>

static __thread uint64_t counter = 7;
static __thread char buffer[256];
static __thread struct { int a; short b; char c; } small;

static int answer_plain(void) { return 41; }
static int answer_good(void) { return 42; }
static int (*pick_answer(void))(void) { __builtin_cpu_init(); return __builtin_cpu_supports("sse2") ? answer_good : answer_plain; }
int answer(void) __attribute__((ifunc("pick_answer")));

__attribute__((noinline)) static char *place(size_t i) { return &buffer[i % sizeof(buffer)]; }

int main(void)
{
    for (unsigned i = 0; i < 5000; i++) {
        counter += (uint64_t)i * (uint64_t)answer();
        *place(i * 3) ^= (char)counter;
        buffer[i % 256]++;
        small.a += (int)i;
        small.b = (short)(small.b + small.a);
        small.c ^= (char)small.b;
        errno = (int)i;
    }
    CHECK(errno == 4999);
    printf("%llu %016llx %d %d %d\n", (unsigned long long)counter, (unsigned long long)check_hash(buffer, 256), small.a, small.b, small.c);
    return 0;
}
