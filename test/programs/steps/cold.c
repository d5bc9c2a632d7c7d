// SPDX-License-Identifier: MIT
/* Code that the compiler moves out of functions (NAME.cold): reached by branches, by a jump table, left by jumps back and by returns. */
#include <stdio.h>

volatile int sum, seldom;

__attribute__((cold, noinline)) static int rare(int n)
{
    seldom++;
    return n - 1;
}

/* The moved code calls, and goes back. */
__attribute__((noinline)) static int checked(int n)
{
    int result = n + sum;

    if (n == 2) {
        result += rare(n);
        sum += result;
    }
    sum++;
    return result;
}

/* The moved code returns by itself. */
__attribute__((noinline)) static int leaves(int n)
{
    if (n == 3) {
        sum += 7;
        return rare(rare(n));
    }
    return n;
}

/* A jump table leads to it. */
__attribute__((noinline)) static int chosen(int n)
{
    switch (n) {
    case 0: sum += 3; break;
    case 1: sum ^= 5; break;
    case 2: sum -= rare(n); break;
    case 3: sum *= 2; break;
    case 4: sum += 11; seldom += rare(n); break;
    case 5: sum |= 1; break;
    default: return -1;
    }
    return sum;
}

int main(void)
{
    for (int n = 0; n < 6; n++)
        sum += checked(n) + leaves(n) + chosen(n);
    printf("%d %d\n", sum, seldom);
    return 0;
}
