// SPDX-License-Identifier: MIT
/* crash.c - dies of a null pointer that was stored long before
 *
 *     crash             killed by SIGSEGV
 *
 * The core dump shows where it died.  The trace shows where the pointer came from.
 *
 *     tbdq --at last bt                                     use_handler
 *     tbdq 'goto last backward store 1 where addr>=&handlers and addr<&handlers+64 and newval==0'
 *     tbdq bt                                               clear_handler, with a number off by one
 */
#include <stdio.h>

typedef int (*handler)(int);

handler handlers[8];

__attribute__((noinline)) void clear_handler(unsigned number);
__attribute__((noinline)) int use_handler(unsigned number, int value);

static int twice(int value)
{
    return 2 * value;
}

/* The bug: numbers begin with 0. */
void clear_handler(unsigned number)
{
    handlers[number - 1] = NULL;
}

int use_handler(unsigned number, int value)
{
    return handlers[number](value) + 1; /* not a tail call: the frame stays visible */
}

int main(void)
{
    int sum = 0;

    for (unsigned i = 0; i < 8; i++)
        handlers[i] = twice;
    clear_handler(6);
    for (unsigned round = 0; round < 100; round++) {
        for (unsigned i = 0; i < 5; i++)
            sum += use_handler(i, 1);
    }
    printf("%d\n", sum);
    fflush(stdout);
    return use_handler(5, sum) & 1;
}
