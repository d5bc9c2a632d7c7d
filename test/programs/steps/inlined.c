// SPDX-License-Identifier: MIT
/* Functions that the compiler inlines: nested, twice on a line, in loops, at a function's start and end, with early returns. */
#include <stdio.h>
#define INLINE static inline __attribute__((always_inline))

volatile int table[8], sum;

INLINE void put(int at, int value)
{
    table[at & 7] = value;
    sum += value;
}

INLINE int twice(int n)
{
    put(n, n);
    if (n % 3 == 0)
        table[7] = n;
    put(n + 1, n);
    return 2 * n;
}

INLINE int early(int n)
{
    if (n < 2)
        return sum;
    for (int i = 0; i < n; i++)
        sum += i;
    return n;
}

INLINE int get(int at) { return table[at & 7]; }

__attribute__((noinline)) static int user(int n)
{
    int result = twice(n);

    table[0] = result;
    return result + sum;
}

__attribute__((noinline)) static int starts(int n)
{
    put(n, 4);
    return early(n) + early(n + 1);
}

__attribute__((noinline)) static void ends(int n)
{
    sum ^= user(n);
    put(n, 5);
}

__attribute__((noinline)) static int on_a_line(int n)
{
    put(n, 1); put(n, 2); sum += get(n) + get(n + 1);
    for (int i = 0; i < 3; i++) put(i, get(i + n));
    return get(3);
}

/* The compiler may inline it. */
static int free_choice(int n)
{
    int s = n;

    while (n-- > 0)
        s += get(n);
    return s;
}

int main(void)
{
    int result = 0;

    for (int i = 0; i < 4; i++)
        result += user(i);
    put(3, result);
    result += starts(1);
    result += starts(3);
    ends(2);
    result += on_a_line(2) + free_choice(4);
    printf("%d %d\n", sum, result);
    return 0;
}
