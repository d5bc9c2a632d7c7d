// SPDX-License-Identifier: MIT
/* A loop whose variables never leave their registers; how often they have which value is computed again by
 * test/e2e/test_conditions.py. */
#include "check.h"

#define CELLS 7

struct cell {
    struct cell *next;
    int weight;
};

volatile unsigned sink[256];
volatile double reals[4];

__attribute__((noinline)) unsigned churn(struct cell *at, unsigned rounds, double ratio)
{
    unsigned total = 1;
    double sum = 0;

    for (unsigned i = 0; i < rounds; i++) {
        unsigned mixed = total * 2654435761u + i;

        sink[mixed & 255] = mixed;
        sum = sum * ratio + (double)(mixed & 1023);
        reals[i & 3] = sum;
        total = mixed ^ (mixed >> 7) ^ (unsigned)at->weight;
        at = at->next;
    }
    return total + (unsigned)sum;
}

int main(int argc, char **argv)
{
    static struct cell cells[CELLS];
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 20000;

    for (int i = 0; i < CELLS; i++)
        cells[i] = (struct cell){ &cells[(i + 1) % CELLS], i * i };
    printf("%u\n", churn(cells, rounds, 0.5));
    return 0;
}
