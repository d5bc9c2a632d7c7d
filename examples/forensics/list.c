// SPDX-License-Identifier: MIT
/* list.c - a list is damaged long before the walk that crashes
 *
 * list.tbdq goes from the crash to the link that is wrong, and from there back over thousands of
 * harmless calls to the store that broke it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    int value;
    char name[12];
    struct node *next;
};

static struct node *head;

static void put_in_front(int value)
{
    struct node *node = calloc(1, sizeof(*node));

    node->value = value;
    node->next = head;
    head = node;
}

static void set_name(struct node *node, const char *name)
{
#ifdef FIXED
    strncpy(node->name, name, sizeof(node->name) - 1);
#else
    strcpy(node->name, name);
#endif
}

static int work(int amount)
{
    int sum = 0;

    for (int i = 0; i < amount; i++)
        sum ^= i * amount;
    return sum;
}

static int walk(void)
{
    struct node *before = NULL;
    int sum = 0;

    for (struct node *node = head; node != NULL; node = node->next) {
        sum += node->value;
        before = node;
    }
    return before == NULL ? 0 : sum;
}

int main(void)
{
    int sum = 0;

    for (int i = 1; i <= 5; i++)
        put_in_front(i);
    set_name(head->next, "Konstantinopel");
    for (int i = 0; i < 3000; i++)
        sum ^= work(i % 20);
    sum = walk();
    printf("sum %d\n", sum);
    return sum != 15;
}
