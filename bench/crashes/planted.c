// SPDX-License-Identifier: MIT
/* planted.c - programs that do some work and die of a planted bug (bench/values)
 *
 * usage: planted BUG [ROUNDS].  The work is a table of words, a list, sorting and numbers: what went wrong lies in the last of it.
 * It is done once, and ROUNDS times with reports that nobody reads. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

struct word {
    struct word *next;
    char *text;
    unsigned count;
    double weight;
    int (*rank)(const struct word *);
};

static struct word *table[64];
static int steps[16] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3 };
static const char text[] = "it was the best of times it was the worst of times it was the age of wisdom it was the age of "
                           "foolishness it was the epoch of belief it was the epoch of incredulity";

static int by_count(const struct word *word)
{
    return (int)word->count;
}

static unsigned hash(const char *s)
{
    unsigned h = 5381;

    while (*s)
        h = h * 33 + (unsigned char)*s++;
    return h;
}

__attribute__((noinline)) static struct word *lookup(const char *name)
{
    struct word **at = &table[hash(name) % 64];

    while (*at && strcmp((*at)->text, name) != 0)
        at = &(*at)->next;
    if (!*at) {
        *at = calloc(1, sizeof(**at));
        (*at)->text = strdup(name);
        (*at)->rank = by_count;
    }
    (*at)->count++;
    (*at)->weight += 1.0 / (double)(*at)->count;
    return *at;
}

static void read_words(void)
{
    char copy[sizeof(text)], *rest = copy, *name;

    memcpy(copy, text, sizeof(text));
    while ((name = strsep(&rest, " ")) != NULL)
        lookup(name);
}

static int compare(const void *a, const void *b)
{
    const struct word *const *x = a, *const *y = b;

    return (*y)->rank(*y) - (*x)->rank(*x);
}

static size_t gather(struct word **out)
{
    size_t count = 0;

    for (size_t i = 0; i < 64; i++)
        for (struct word *word = table[i]; word; word = word->next)
            out[count++] = word;
    return count;
}

static unsigned long mix(unsigned rounds)
{
    unsigned long x = 88172645463325252ul;

    for (unsigned i = 0; i < rounds; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        steps[i % 16] += (int)(x % 7) - 3;
    }
    return x;
}

/* Words by their count, as text. */
static void report(int to)
{
    struct word *words[64];
    size_t count = gather(words);

    qsort(words, count, sizeof(*words), compare);
    for (size_t i = 0; i < count; i++)
        dprintf(to, "%s %ld %.3f\n", words[i]->text, (long)words[i]->count, words[i]->weight);
}

/* What a program does for a long time before its bug. */
static void work(unsigned long rounds)
{
    int to = open("/dev/null", O_WRONLY);

    for (unsigned long i = 0; i < rounds; i++) {
        read_words();
        mix(50 + (unsigned)(i * 7 % 50));
        report(to);
    }
    close(to);
}

/* ---- bugs ---- */

static void null_member(void)
{
    lookup("wisdom")->text = NULL;
    read_words();
}

static void wild_next(void)
{
    lookup("belief")->next = (struct word *)0x4141414141414141;
    for (int i = 0; i < 64; i++) {
        char name[3] = { (char)('a' + i % 26), (char)('a' + i / 26), 0 };

        lookup(name);
    }
}

static void bad_index(void)
{
    int at = 0;

    for (int i = 0; i < 4000; i++)
        at += steps[(unsigned)(at + i) % 16] * (at % 3 + 1000000);
    table[at % 64 + 100000000]->count++;
}

static void wild_jump(void)
{
    struct word *words[64];
    size_t count = gather(words);

    words[count / 2]->rank = (int (*)(const struct word *))0x1234;
    qsort(words, count, sizeof(*words), compare);
}

static void use_after_free(void)
{
    struct word *kept = lookup("times");

    free(kept->text);
    free(kept);
    for (int i = 0; i < 4; i++)
        memset(malloc(sizeof(struct word)), 0x5a, sizeof(struct word));
    printf("%d\n", kept->rank(kept));
}

__attribute__((noinline)) static size_t copy_name(const char *name)
{
    char small[16];

    for (size_t i = 0;; i++)
        if ((small[i] = name[i]) == 0)
            break;
    return strlen(small) + hash(small);
}

static void stack_smash(void)
{
    printf("%zu\n", copy_name(text));
}

static void heap_overflow(void)
{
    char *name = malloc(24), *other = malloc(24);

    memset(name, 'A', 64);
    free(other);
    free(name);
    read_words();
    abort();
}

static void divide(void)
{
    unsigned long sum = 0, zero = lookup("it")->count + 146;

    for (unsigned i = 0; i < 300; i++)
        sum += mix(3) / (unsigned long)(lookup(i % 2 ? "it" : "was")->count - zero);
    printf("%lu\n", sum);
}

__attribute__((noinline)) static int deep(struct word *word, int depth)
{
    return depth > 200 ? *(volatile int *)(uintptr_t)(word->count & 7) : deep(word, depth + 1) + (int)word->count;
}

static void recursion(void)
{
    printf("%d\n", deep(lookup("epoch"), 0));
}

static void free_twice(void)
{
    struct word *words[64];
    size_t count = gather(words);

    for (size_t i = 0; i < count; i++)
        free(words[i]->text);
    free(words[count - 1]->text);
}

static void unterminated(void)
{
    char *page = lookup("foolishness")->text;
    size_t sum = 0;

    for (size_t i = 0; i < 1000000000; i++)
        sum += *(volatile char *)&page[i * 61] != 0;
    printf("%zu\n", sum);
}

static void wrong_type(void)
{
    struct word *words[64];
    size_t count = gather(words);

    words[3] = (struct word *)&steps;
    for (size_t i = 0; i < count; i++)
        words[i]->weight += words[i]->rank(words[i]);
}

static void by_signal(void)
{
    mix(2000);
    raise(SIGABRT);
}

static struct word *volatile shared;

static void take_away(int signal)
{
    (void)signal;
    shared = shared ? NULL : lookup("winter");
}

/* The handler may come between the test and the use. */
static void race(void)
{
    const struct itimerval often = { { 0, 5000 }, { 0, 5000 } };

    signal(SIGALRM, take_away);
    setitimer(ITIMER_REAL, &often, NULL);
    for (;;)
        if (shared) {
            mix(20);
            steps[0] += (int)shared->count;
        }
}

static const struct {
    const char *name;
    void (*run)(void);
} bugs[] = {
    { "null_member", null_member }, { "wild_next", wild_next },         { "bad_index", bad_index },
    { "wild_jump", wild_jump },     { "use_after_free", use_after_free }, { "stack_smash", stack_smash },
    { "heap_overflow", heap_overflow }, { "divide", divide },           { "recursion", recursion },
    { "free_twice", free_twice },   { "unterminated", unterminated },   { "wrong_type", wrong_type },
    { "by_signal", by_signal },     { "race", race },
};

int main(int argc, char **argv)
{
    struct word *words[64];

    read_words();
    qsort(words, gather(words), sizeof(*words), compare);
    mix(500);
    work(argc > 2 ? strtoul(argv[2], NULL, 10) : 0);
    for (size_t i = 0; argc > 1 && i < sizeof(bugs) / sizeof(*bugs); i++)
        if (strcmp(bugs[i].name, argv[1]) == 0)
            bugs[i].run();
    return 0;
}
