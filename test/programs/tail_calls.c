// SPDX-License-Identifier: MIT
// flags: -O2 -fno-pie -no-pie
/* Functions that end by a jump to another one: always, sometimes, one after the other, in recursion, through a pointer.  Some are
 * left by longjmp(), and what they jump to is then called at the same place of the stack. */
#include "check.h"
#include <setjmp.h>

#define ALONE __attribute__((noipa)) static

static jmp_buf back;
volatile int sum;

ALONE int work(int n)
{
    sum += n;
    return 2 * n;
}

ALONE int always(int n)
{
    return work(n + 1);
}

ALONE int twice(int n)
{
    sum++;
    return always(n + 10);
}

ALONE int sometimes(int n)
{
    return n % 2 == 0 ? work(n) : n;
}

/* Returns, or is left. */
ALONE int risky(int n)
{
    sum += n;
    if (n % 3 == 1)
        longjmp(back, n);
    return n + 5;
}

ALONE int leaves(int n)
{
    sum += 2;
    return risky(n);
}

ALONE int around(int n)
{
    sum += 3;
    return risky(n + 3);
}

ALONE int inner(int n);

ALONE int outer(int n)
{
    sum++;
    return inner(n);
}

ALONE int inner(int n)
{
    return n == 0 ? 1 : n + outer(n - 1);
}

ALONE int pointed(int n, int (*to)(int))
{
    return to(n);
}

/* One call, of one place on the stack, leads to all of them. */
ALONE int call(int (*function)(int), int n)
{
    return setjmp(back) == 0 ? function(n) + 1 : -n;
}

int main(void)
{
    static int (*const all[])(int) = { leaves, risky, leaves, around, risky, work, always, twice, sometimes, outer };
    int total = 0;

    for (int n = 0; n < 60; n++) {
        for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
            total += call(all[i], n % 12);
        total += pointed(n, n % 2 == 0 ? work : always);
    }
    printf("%d %d\n", total, sum);
    return 0;
}
