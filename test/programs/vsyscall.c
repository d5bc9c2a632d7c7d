// SPDX-License-Identifier: MIT
/* The vsyscall page's functions, as programs linked against old C libraries call them; where the kernel has no such page, and with
 * pointers to nowhere, the call is a fault with its handler. */
#define _GNU_SOURCE
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static sigjmp_buf back;
static volatile int faults;

static void on_fault(int signal)
{
    (void)signal;
    faults++;
    siglongjmp(back, 1);
}

static int has_page(void)
{
    char line[256];
    volatile int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");

    while (maps && fgets(line, sizeof(line), maps))
        found = found || strstr(line, "[vsyscall]");
    if (maps)
        fclose(maps);
    return found;
}

int main(void)
{
    int (*volatile now)(struct timeval *, void *) = (void *)0xffffffffff600000;
    time_t (*volatile seconds)(time_t *) = (void *)0xffffffffff600400;
    long (*volatile where)(unsigned *, unsigned *, void *) = (void *)0xffffffffff600800;
    void (*volatile inside)(void) = (void *)0xffffffffff600123;
    int expected = has_page();

    signal(SIGSEGV, on_fault);
    for (int i = 0; i < 50; i++) {
        struct timeval tv = { 0, 0 };
        time_t stored = 0, got = 0;
        unsigned cpu = 12345, node = 12345;

        if (sigsetjmp(back, 1))
            continue; /* no such page */
        CHECK(now(&tv, NULL) == 0 && tv.tv_sec > 1000000000);
        got = seconds(&stored);
        /* time() reads the clock of the last tick, which may lie before the second that gettimeofday() read. */
        CHECK(got == stored && got >= tv.tv_sec - 1 && got <= tv.tv_sec + 5);
        CHECK(seconds(NULL) >= got);
        CHECK(where(&cpu, &node, NULL) == 0 && cpu < 12345 && node < 12345);
    }
    CHECK(faults == (expected ? 0 : 50));
    faults = 0;
    if (!sigsetjmp(back, 1))
        inside();
    if (!sigsetjmp(back, 1))
        now((void *)16, NULL);
    CHECK(faults == 2);
    puts("vsyscall ok");
    return 0;
}
