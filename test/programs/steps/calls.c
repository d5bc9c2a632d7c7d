// SPDX-License-Identifier: MIT
/* Recursion, calls within calls' arguments, function pointers, tail calls, import stubs, callbacks, structs as results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pair {
    long a, b;
};
struct large {
    int all[12];
};
volatile int sum;
static int steps;

__attribute__((noinline)) static int leaf(int n)
{
    steps++;
    return n * 3 + 1;
}

__attribute__((noinline)) static int fibonacci(int n)
{
    if (n < 2)
        return n;
    return fibonacci(n - 1) + fibonacci(n - 2);
}

__attribute__((noinline)) static int even(int n);
__attribute__((noinline)) static int odd(int n)
{
    if (n == 0)
        return 0;
    return even(n - 1);
}
static int even(int n)
{
    if (n == 0)
        return 1;
    return odd(n - 1);
}

__attribute__((noinline)) static int last(int n)
{
    sum += n;
    return leaf(n + 1);
}

__attribute__((noinline)) static struct pair two(int n)
{
    struct pair p = { n, leaf(n) };

    return p;
}

__attribute__((noinline)) static struct large many(int n)
{
    struct large l;

    for (int i = 0; i < 12; i++)
        l.all[i] = n + i;
    return l;
}

static int by_value(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

__attribute__((noinline)) static void nothing(void)
{
}

static int (*volatile chosen[])(int) = { leaf, last, fibonacci };

int main(void)
{
    int values[] = { 5, 3, 9, 1 };
    struct large l;
    struct pair p;
    char text[40];

    sum = leaf(leaf(1) + leaf(2));
    sum += fibonacci(5);
    sum += odd(5) + even(4);
    nothing();
    for (int i = 0; i < 3; i++)
        sum += chosen[i](i + 2);
    p = two(4);
    l = many((int)p.b);
    nothing(); nothing(); sum += l.all[3];
    qsort(values, 4, sizeof(values[0]), by_value);
    snprintf(text, sizeof(text), "%d %s", values[0], "text");
    sum += (int)strlen(text) + abs(-values[1]) + (last(3), leaf(2));
    puts(text);
    if (leaf(sum) > 0 && leaf(2) < 100 || last(1))
        sum++;
    return sum > 1000;
}
