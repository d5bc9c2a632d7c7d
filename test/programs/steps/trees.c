// SPDX-License-Identifier: MIT
// A tree with rotations, walks with callbacks, macros of several statements on a line, conditions with side effects, goto out of loops.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define HEIGHT(t) ((t) ? (t)->height : 0)
#define UPDATE(t) do { (t)->height = 1 + MAX(HEIGHT((t)->left), HEIGHT((t)->right)); (t)->size = 1 + size_of((t)->left) + size_of((t)->right); } while (0)

struct tree {
    struct tree *left, *right;
    int key, height, size;
};

static int rotations;

static int size_of(const struct tree *t) { return t ? t->size : 0; }

static struct tree *rotated(struct tree *t, bool to_left) {
    struct tree *up = to_left ? t->right : t->left;
    if (to_left) { t->right = up->left; up->left = t; } else { t->left = up->right; up->right = t; }
    UPDATE(t);
    UPDATE(up);
    rotations++;
    return up;
}

static struct tree *balanced(struct tree *t) {
    UPDATE(t);
    int lean = HEIGHT(t->left) - HEIGHT(t->right);
    if (lean > 1) {
        if (HEIGHT(t->left->left) < HEIGHT(t->left->right))
            t->left = rotated(t->left, true);
        return rotated(t, false);
    }
    if (lean < -1) {
        if (HEIGHT(t->right->right) < HEIGHT(t->right->left)) t->right = rotated(t->right, false);
        return rotated(t, true);
    }
    return t;
}

static struct tree *insert(struct tree *t, int key) {
    if (!t) {
        t = calloc(1, sizeof(*t));
        t->key = key;
    } else if (key < t->key)
        t->left = insert(t->left, key);
    else if (key > t->key)
        t->right = insert(t->right, key);
    else
        return t;
    return balanced(t);
}

static bool walk(const struct tree *t, bool (*each)(const struct tree *, void *), void *with) {
    return !t || (walk(t->left, each, with) && each(t, with) && walk(t->right, each, with));
}

static bool until_sum(const struct tree *t, void *with) {
    int *sum = with;
    return (*sum += t->key) < 40;
}

static int search(const struct tree *t, int key) {
    int steps = 0;
again:
    steps++;
    if (!t)
        goto none;
    if (key == t->key) goto found;
    t = key < t->key ? t->left : t->right;
    goto again;
found:
    return steps;
none:
    return -steps;
}

static void release(struct tree *t) {
    if (t) release(t->left), release(t->right), free(t);
}

int main(void) {
    struct tree *root = NULL;
    int keys[] = {5, 2, 8, 1, 9, 3, 7, 4, 6, 5}, sum = 0, steps = 0;
    for (unsigned i = 0; i < sizeof(keys) / sizeof(*keys); i++) root = insert(root, keys[i]);
    bool all = walk(root, until_sum, &sum);
    for (int k = 0; k < 12; k += 3)
        steps += search(root, k);
    printf("%d %d %d %d %d %d\n", root->key, root->size, rotations, all, sum, steps);
    release(root);
    return 0;
}
