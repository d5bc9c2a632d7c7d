// SPDX-License-Identifier: MIT
/* list.c - a linked list gets a cycle: an element that is in it already is put in again
 *
 *     list              prints "7 elements, expected 6", exit status 1
 *
 * The walk stops at a limit and says that something is wrong; what is wrong happened earlier.  Who
 * wrote the link of the element where the walk came round again?
 *
 *     tbdq 'goto last backward store 1 where addr==&nodes+0x48 and newval!=0'
 *     tbdq bt                                                it was put_in_front, called from restore
 */
#include <stdio.h>

struct node {
    struct node *next;
    long value;
    char name[8];
};

struct node nodes[6]; /* 24 bytes each: nodes[3].next is at &nodes+0x48 */
struct node *head;
int restored;

__attribute__((noinline)) void put_in_front(struct node *node);
__attribute__((noinline)) void restore(void);

void put_in_front(struct node *node)
{
    node->next = head;
    head = node;
}

/* The bug: element 3 was never taken out. */
void restore(void)
{
    put_in_front(&nodes[3]);
    restored++;
}

static unsigned length(void)
{
    unsigned count = 0;

    for (const struct node *n = head; n && count < 7; n = n->next)
        count++;
    return count;
}

int main(void)
{
    for (long i = 0; i < 6; i++) {
        nodes[i].value = i * i;
        put_in_front(&nodes[i]);
    }
    restore();
    printf("%u elements, expected 6\n", length());
    return length() == 6 ? 0 : 1;
}
