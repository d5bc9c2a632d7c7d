// SPDX-License-Identifier: MIT
/* word_names.c - parameters whose names mean something in conditions, too */
#include <stdio.h>

static volatile long sink;
volatile int offset = 7;

static long __attribute__((noinline)) look(int size, int time, int ch, long r8, int frame)
{
    sink = offset + size + time + ch + r8 + frame;
    return sink;
}

int main(void)
{
    long sum = 0;

    for (int i = 0; i < 5; i++)
        sum += look(i, i, i, i, i);
    printf("%ld\n", sum);
    return 0;
}
