// SPDX-License-Identifier: MIT
// flags: -O0 -g -fno-pie -no-pie
/* Recursion, loops, globals and pointers for random commands of a debugger (test_gdb_walks.py); the same in every run. */
#include <stdio.h>

struct node {
    struct node *left, *right;
    int key, uses;
};

static struct node nodes[40];
static int used, total, depth;
static long table[8];
static unsigned char flags;

static struct node *insert(struct node *at, int key)
{
    if (at == NULL) {
        at = &nodes[used++];
        at->key = key;
    } else if (key < at->key) {
        at->left = insert(at->left, key);
    } else {
        at->right = insert(at->right, key);
    }
    at->uses++;
    return at;
}

static int sum(const struct node *at, int level)
{
    int result = 0;

    if (at == NULL)
        return 0;
    if (level > depth)
        depth = level;
    result += sum(at->left, level + 1);
    result += at->key;
    result += sum(at->right, level + 1);
    return result;
}

static void mark(int n)
{
    for (int i = 0; i < n; i++) {
        table[i % 8] += n - i;
        flags ^= (unsigned char)(1 << i % 8);
    }
}

static int collatz(unsigned n)
{
    int steps = 0;

    while (n != 1) {
        n = n % 2 == 0 ? n / 2 : 3 * n + 1;
        steps++;
    }
    return steps;
}

int main(void)
{
    struct node *root = NULL;

    for (int i = 0; i < 20; i++)
        root = insert(root, (i * 7 + 3) % 20);
    total = sum(root, 1);
    for (int i = 1; i < 9; i++) {
        mark(i);
        total += collatz((unsigned)i);
    }
    total -= (int)table[3];
    printf("%d %d %d\n", total, depth, flags);
    return 0;
}
