// SPDX-License-Identifier: MIT
/* Variables that nothing is stored to yet: unoptimized functions over a stack full of 77s. */
// flags: -O0 -Wno-maybe-uninitialized -Wno-unused-but-set-variable
#include "check.h"

struct pair {
    int a, b;
};

static void soil(void)
{
    volatile int left[256];

    for (int i = 0; i < 256; i++)
        left[i] = 77;
}

/* char parameters change registers of others while they are stored. */
int narrow(char a, char b, short c)
{
    int sum = a + b;
    int more = sum * 2;

    return more + c;
}

double wide(double x, int n, struct pair *to)
{
    double half = x / 2;
    struct pair both;

    both.a = n;
    both.b = n + 1;
    *to = both;
    return half;
}

/* The first store is one of another function's. */
static void set(int *what)
{
    *what = 5;
}

int passed_on(int n)
{
    int set_there, parts[4];

    parts[0] = n;
    set(&set_there);
    return set_there + parts[0];
}

/* Only one of two ways stores. */
int ways(int n)
{
    int late;

    if (n > 2)
        late = 9;
    else
        n = 8;
    return n > 2 && n != 8 ? late : n;
}

int main(void)
{
    struct pair both;

    soil();
    CHECK(narrow(1, 2, 3) == 9);
    soil();
    CHECK(wide(4.5, 6, &both) == 2.25 && both.b == 7);
    soil();
    CHECK(passed_on(4) == 9);
    soil();
    CHECK(ways(3) == 9);
    printf("done\n");
    return 0;
}
