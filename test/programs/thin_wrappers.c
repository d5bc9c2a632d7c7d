// SPDX-License-Identifier: MIT
/* Functions that hand a call on by a jump, with operands that follow from their own, or from memory. */
#include <stdio.h>

#define TAIL __attribute__((noipa, optimize("O2")))

volatile long sum;

TAIL long moved(long a, long b, long c, long d, long e, long f)
{
    sum += a ^ b ^ c ^ d ^ e ^ f;
    return a + f;
}

TAIL long loaded(long a, long b)
{
    sum += a ^ b;
    return a;
}

TAIL long adds(int a, unsigned b, long c)
{
    return moved(a - 5, b + 7u, c - 100000, 3, -4, 0x123456789abcdef);
}

TAIL long turns(long a, long b, long c, long d, long e, long f)
{
    return moved(b, c, d, e, f, a);
}

TAIL long halves(long a, long b, long c)
{
    return moved((unsigned)a, (unsigned)(b + 1), c, (unsigned)c - 3, 0, 1);
}

TAIL long hands_on(int a, int b)
{
    sum++;
    return adds(a, (unsigned)b, 9);
}

TAIL long loads(const long *p, long b)
{
    return loaded(p[b & 1], b);
}

TAIL long chooses(long a, long b)
{
    if ((a & 1) != 0)
        return loaded(a, b);
    return loaded(b, a);
}

int main(void)
{
    const long numbers[] = { -77, 88 };

    for (long i = 0; i < 400; i++) {
        (void)adds((int)i, (unsigned)i * 3u, -i);
        (void)turns(i, 2, 3, 4, 5, -i);
        (void)halves(-i, i - 1, i - 0x80000000l);
        (void)hands_on((int)i, (int)-i);
        (void)loads(numbers, i);
        (void)chooses(i, i + 2);
    }
    printf("%ld\n", sum);
    return 0;
}
