// SPDX-License-Identifier: MIT
/* Blocks that live to the end, and mistakes with freed ones that do no harm here.
 * The numbers after "says:" are what `tbdq heap` must find. */
// flags: -O0
#include "check.h"

#include <malloc.h>

static void *kept[64];
static volatile int sink;
static char *volatile stale; /* volatile: compilers warn of what they see */

__attribute__((noinline)) static void *wrapped(size_t size)
{
    return malloc(size);
}

__attribute__((noinline)) static void leak_in_a_loop(void)
{
    for (int i = 0; i < 10; i++)
        kept[i] = wrapped(100);
}

__attribute__((noinline)) static void leak_array(void)
{
    kept[20] = calloc(7, 30);
    kept[21] = realloc(malloc(10), 500);
    CHECK(posix_memalign(&kept[22], 64, 640) == 0);
}

/* In the middle of a block of tcache: its first 16 bytes are the allocator's. */
__attribute__((noinline)) static void use_after_free(void)
{
    stale = malloc(200);
    stale[100] = 1;
    free(stale);
    stale[100] = 2;    /* store after free */
    sink = stale[100]; /* load after free */
}

int main(void)
{
    void *freed = malloc(3000);

    leak_in_a_loop();
    leak_array();
    use_after_free();
    memset(freed, 1, 3000);
    free(freed);
    printf("says: 13 blocks %zu bytes\n", (size_t)10 * 100 + 210 + 500 + 640);
    fflush(stdout);
    return 0;
}
