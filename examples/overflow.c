// SPDX-License-Identifier: MIT
/* overflow.c - a buffer overflow changes the variable after the buffer
 *
 *     overflow          prints "limit is 1936601658, it should be 100", exit status 1
 *
 * Nobody assigns to settings.limit after the start, and yet it changed.  Which store did it?
 *
 *     tbdq 'goto last backward store 1 where addr>=&settings+16 and addr<&settings+20'
 *     tbdq bt                                                set_name, called with a long name
 *     tbdq 'goto current backward func_enter 1 where func==set_name'      its arguments
 */
#include <stdio.h>

struct {
    char name[16];
    int limit;
} settings = { "none", 100 };

__attribute__((noinline)) void set_name(const char *name);

/* The bug: no bound. */
void set_name(const char *name)
{
    volatile char *to = settings.name;

    while ((*to++ = *name++) != '\0')
        ;
}

int main(void)
{
    const char *const names[] = { "short", "a longer one", "sixteen and more:2ns" };

    for (unsigned i = 0; i < 3; i++)
        set_name(names[i]);
    printf("limit is %d, it should be 100\n", settings.limit);
    return settings.limit == 100 ? 0 : 1;
}
