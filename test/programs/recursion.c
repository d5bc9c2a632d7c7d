// SPDX-License-Identifier: MIT
/* Recursion: one function, mutual, deep; call counts are known. */
#include "check.h"

unsigned calls_fib, calls_even, calls_odd;

__attribute__((noinline)) unsigned fib(unsigned n);
__attribute__((noinline)) int is_even(unsigned n);
__attribute__((noinline)) int is_odd(unsigned n);
__attribute__((noinline)) unsigned ackermann(unsigned m, unsigned n);

__attribute__((noinline, noclone, optimize("no-optimize-sibling-calls"))) unsigned fib(unsigned n)
{
    calls_fib++;
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

__attribute__((optimize("no-optimize-sibling-calls"))) int is_even(unsigned n)
{
    calls_even++;
    return n == 0 ? 1 : is_odd(n - 1);
}

__attribute__((optimize("no-optimize-sibling-calls"))) int is_odd(unsigned n)
{
    calls_odd++;
    return n == 0 ? 0 : is_even(n - 1);
}

unsigned ackermann(unsigned m, unsigned n)
{
    if (m == 0)
        return n + 1;
    return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

int main(void)
{
    unsigned f = fib(18), e = (unsigned)is_even(5000), a = ackermann(2, 9);

    CHECK(f == 2584 && e == 1 && a == 21);
    printf("fib %u in %u calls, even %u, odd %u, ackermann %u\n", f, calls_fib, calls_even, calls_odd, a);
    return 0;
}
