// SPDX-License-Identifier: MIT
/* Scalar variables of all kinds, in memory and in registers, in nested scopes. */
#include <stdbool.h>
#include <stdio.h>

enum colour { RED, GREEN = 5, BLUE };
struct point {
    int x, y;
    double weight;
};
volatile long total;
static float scale = 1.5f;

__attribute__((noinline)) static double mix(char c, short s, int i, long l, float f, double d, bool b, enum colour e)
{
    double result = c + s + i;

    result += (double)l * f + d;
    if (b)
        result *= e;
    scale += 0.25f;
    return result;
}

__attribute__((noinline)) static unsigned shadow(unsigned n)
{
    unsigned x = n, out = 0;

    for (unsigned i = 0; i < n; i++) {
        unsigned x = i * i;

        out += x;
        {
            int x = (int)out - 3;

            total += x;
        }
    }
    return out + x;
}

__attribute__((noinline)) static long walk(const struct point *points, int count)
{
    const struct point *p = points, *end = points + count;
    long sum = 0;

    for (; p < end; p++) {
        int x = p->x, y = p->y;

        sum += x * y;
        if (p->weight > 2.0)
            sum -= (long)p->weight;
    }
    return sum;
}

__attribute__((noinline)) static int eight(int a, int b, int c, int d, int e, int f, int g, int h)
{
    int s = a + b * c;

    s -= d ^ e;
    total += s;
    return s + f + g + h;
}

int main(void)
{
    struct point points[] = { { 1, 2, 3.5 }, { 4, 5, 1.0 }, { -6, 7, 9.0 } };
    enum colour colour = GREEN;
    unsigned char small = 250;
    double result = 0;

    for (int i = 0; i < 3; i++) {
        result += mix('a', (short)-i, i, 1L << 40, 0.5f, 2.25, i % 2 == 0, colour);
        colour = BLUE;
        small++;
    }
    total += shadow(5);
    total += walk(points, 3);
    total += eight(1, 2, 3, 4, 5, 6, 7, small);
    printf("%ld %ld %d\n", total, (long)result, (int)scale);
    return 0;
}
