// SPDX-License-Identifier: MIT
// A hash table with chains that grows, qsort and bsearch with functions of the program, small functions that are inlined.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    struct entry *next;
    uint32_t hash;
    int count;
    char word[12];
};

struct table {
    struct entry **heads;
    uint32_t size, used;
};

static inline uint32_t mix(uint32_t h, unsigned char c) { return (h ^ c) * 16777619u; }

static inline uint32_t hash_of(const char *word) {
    uint32_t h = 2166136261u;
    while (*word)
        h = mix(h, (unsigned char)*word++);
    return h;
}

static void grow(struct table *t) {
    struct entry **old = t->heads;
    uint32_t size = t->size;
    t->size = size ? size * 2 : 4;
    t->heads = calloc(t->size, sizeof(*t->heads));
    for (uint32_t i = 0; i < size; i++)
        for (struct entry *e = old[i], *next; e; e = next) {
            next = e->next;
            struct entry **head = &t->heads[e->hash & (t->size - 1)];
            e->next = *head, *head = e;
        }
    free(old);
}

static struct entry *look_up(struct table *t, const char *word, uint32_t hash) {
    for (struct entry *e = t->size ? t->heads[hash & (t->size - 1)] : NULL; e; e = e->next)
        if (e->hash == hash && !strcmp(e->word, word)) return e;
    return NULL;
}

static struct entry *insert(struct table *t, const char *word) {
    uint32_t hash = hash_of(word);
    struct entry *e = look_up(t, word, hash);
    if (e)
        return e->count++, e;
    if (t->used >= t->size * 3 / 4)
        grow(t);
    e = calloc(1, sizeof(*e));
    *e = (struct entry){.next = t->heads[hash & (t->size - 1)], .hash = hash, .count = 1};
    strncpy(e->word, word, sizeof(e->word) - 1);
    t->used++;
    return t->heads[hash & (t->size - 1)] = e;
}

static int by_count(const void *a, const void *b) {
    const struct entry *x = *(const struct entry *const *)a, *y = *(const struct entry *const *)b;
    if (x->count != y->count)
        return y->count - x->count;
    return strcmp(x->word, y->word);
}

static int by_number(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static uint32_t digest(struct table *t, void (*each)(struct entry *, void *), void *with) {
    uint32_t seen = 0;
    for (struct entry **head = t->heads; head < t->heads + t->size; head++)
        for (struct entry *e = *head; e; e = e->next, seen++)
            each(e, with);
    return seen;
}

static void collect(struct entry *e, void *with) {
    struct entry ***at = with;
    *(*at)++ = e;
}

int main(void) {
    char text[] = "the cat and the dog and the bird saw a cat that saw the dog";
    struct table t = {0};
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        insert(&t, word);
    struct entry *all[32], **end = all;
    uint32_t seen = digest(&t, collect, &end);
    qsort(all, seen, sizeof(all[0]), by_count);
    int numbers[9] = {8, 3, 5, 1, 9, 2, 7, 4, 6}, key = 7;
    qsort(numbers, 9, sizeof(int), by_number);
    int *found = bsearch(&key, numbers, 9, sizeof(int), by_number);
    printf("%u %s %d %d\n", seen, all[0]->word, all[0]->count, found ? *found : -1);
    return 0;
}
