// SPDX-License-Identifier: MIT
/* longjmp() over frames and to the frame itself. */
#include <setjmp.h>
#include <stdio.h>

static jmp_buf outer, middle;
volatile int sum;

__attribute__((noinline)) static int leaf(int n)
{
    if (n % 3 == 1)
        longjmp(outer, n);
    if (n % 3 == 2)
        longjmp(middle, n);
    return n + 100;
}

__attribute__((noinline)) static int nested(int depth, int n)
{
    if (depth == 0)
        return leaf(n) + 1;
    return nested(depth - 1, n) + 1;
}

__attribute__((noinline)) static int catcher(int n)
{
    volatile int result = 0;

    if (setjmp(middle) == 0)
        result = nested(2, n);
    else
        result = 7;
    return result + 1000;
}

__attribute__((noinline)) static int sibling(int n)
{
    sum++;
    return -n;
}

__attribute__((noinline)) static int itself(int n)
{
    jmp_buf here;
    volatile int i = 0;

    if (setjmp(here) < n) {
        i++;
        longjmp(here, i);
    }
    return i;
}

static int (*volatile chosen[])(int) = { catcher, sibling };

int main(void)
{
    for (volatile int n = 0; n < 6; n++) {
        for (volatile int k = 0; k < 2; k++) {
            if (setjmp(outer) == 0)
                sum += chosen[k](n);
        }
        sum += sibling(n) + sibling(n + 1);
    }
    sum += itself(3);
    printf("%d\n", sum);
    return 0;
}
