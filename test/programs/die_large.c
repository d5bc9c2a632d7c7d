// SPDX-License-Identifier: MIT
// signal: 11
/* Dies below five frames with 50 MiB of heap that does not compress; pointers lead from one page to the next. */
#include <stdint.h>
#include <stdlib.h>

enum { NODES = 50 * 256, WORDS = 510 };

struct node {
    struct node *next;
    uint64_t words[WORDS];
};

static struct node *list;
static volatile int marker = 4711;
static volatile int *volatile nowhere;

static struct node *grow(struct node *next, uint64_t *noise)
{
    struct node *node = malloc(sizeof(*node));

    if (!node)
        exit(2);
    for (int i = 0; i < WORDS; i++) {
        *noise ^= *noise << 13;
        *noise ^= *noise >> 7;
        *noise ^= *noise << 17;
        node->words[i] = *noise;
    }
    node->next = next;
    return node;
}

__attribute__((noinline)) static void die(int depth, volatile int *where)
{
    volatile int mine = marker + depth;

    if (depth < 4)
        die(depth + 1, where);
    *where = mine;
}

int main(void)
{
    uint64_t noise = 88172645463325252;

    for (int i = 0; i < NODES; i++)
        list = grow(list, &noise);
    die(0, nowhere);
    return list->words[0] == 0;
}
