// SPDX-License-Identifier: MIT
/* ring.c - a ring buffer with room for eight, and a ninth
 *
 * Its count becomes absurd at some time.  ring.tbdq finds the store that did it: to the slot after
 * the last one. */
#include <stdio.h>

#define SLOTS 8u

static struct {
    unsigned slots[SLOTS];
    unsigned count;
    unsigned head;
} ring;

static void push(unsigned value)
{
    ring.slots[ring.head] = value;
    ring.count++;
#ifdef FIXED
    if (++ring.head == SLOTS)
#else
    if (ring.head++ == SLOTS)
#endif
        ring.head = 0;
}

int main(void)
{
    for (unsigned i = 0; i < 20; i++)
        push(1000 + i);
    printf("%u pushed\n", ring.count);
    return ring.count != 20;
}
