// SPDX-License-Identifier: MIT
/* Prints what `tbdq log` finds afterwards, in the same words. */
#include "check.h"

struct item {
    int key;
    double weight;
    const char *name;
    char tag[8]; /* without a NUL */
    struct item *next;
};

static const char *const names[] = { "alpha", "", "gamma\tx",
                                     "a name that is longer than sixty-four bytes, so that it lies in many words" };
static struct item *head;
static struct item items[200];

__attribute__((noinline)) static long insert(struct item *item, int key, double weight)
{
    item->key = key;
    item->weight = weight * 2;
    item->name = names[(unsigned)key % 4];
    memcpy(item->tag, "12345678", 8);
    item->next = head;
    head = item; /* log here */
    return key * 3L;
}

int main(void)
{
    for (int i = 0; i < 200; i++) {
        int key = i * 7 - 500;
        const char *name = names[(unsigned)key % 4];
        long result = insert(&items[i], key, i / 4.0);

        printf("enter %+05d %.2f\n", key, i / 4.0);
        printf("line %s %d\n", strchr(name, '\t') == NULL ? name : "gamma\\tx", key);
        printf("leave %ld\n", result);
    }
    return 0;
}
