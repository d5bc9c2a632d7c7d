// SPDX-License-Identifier: MIT
/* Variables of all kinds in scopes of all kinds: what debug information describes. */
#include "check.h"

#include <uchar.h>
#include <wchar.h>

enum color { RED, GREEN = 5, BLUE = 6 };

struct point {
    int x, y;
};

struct node {
    int key;
    struct node *next;
    struct point at;
    char name[12];
};

union number {
    unsigned long whole;
    double real;
    unsigned char bytes[8];
};

struct packed {
    unsigned one : 1;
    int five : 5;
    unsigned long big : 40;
    enum color color : 4;
    union {
        short small;
        char letter;
    };
};

typedef struct node *list;
typedef int (*operation)(int, int);

int counter = 3;
static long hidden = -77;
double ratio = 0.25;
float third = 1.5f;
_Bool ready = 1;
unsigned char byte = 200;
char letter = 'q';
const char *title = "a title";
int table[4] = { 10, 20, 30, 40 };
short grid[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } };
enum color paint = BLUE;
union number number = { .whole = 0x4009000000000000 };
struct packed packed = { 1, -7, 0x123456789a, GREEN, { .small = 77 } };
struct point points[3] = { { 1, 2 }, { 3, 4 }, { 5, 6 } };
list head;
operation chosen;
_Thread_local int per_thread = 11;
void *nothing;

__attribute__((noinline)) int add(int a, int b);
__attribute__((noinline)) int twice(operation f, int n);
__attribute__((noinline)) long sum_list(const struct node *first);
__attribute__((noinline)) void push(list *to, struct node *item, int key);
__attribute__((noinline)) double mean(const int *values, unsigned count);
__attribute__((noinline)) struct point move(struct point p, int by);
__attribute__((noinline)) unsigned depth(unsigned n);

int add(int a, int b)
{
    int result = a + b;

    counter++;
    return result;
}

int twice(operation f, int n)
{
    int once = f(n, n);

    return f(once, n) + per_thread;
}

static inline __attribute__((always_inline)) int scaled(int value, int by)
{
    int product = value * by;

    if (product > 100)
        counter += 2;
    return product;
}

static inline __attribute__((always_inline)) int outer(int value)
{
    int inner = scaled(value, 3);

    return inner + scaled(value + 1, counter);
}

long sum_list(const struct node *first)
{
    long total = 0;

    for (const struct node *at = first; at != NULL; at = at->next) {
        int weight = outer(at->key);

        total += weight + at->at.x;
    }
    hidden += total;
    return total;
}

void push(list *to, struct node *item, int key)
{
    static int pushes;

    pushes++;
    item->key = key;
    item->next = *to;
    item->at = (struct point){ key * 2, pushes };
    snprintf(item->name, sizeof(item->name), "node %d", key);
    *to = item;
}

double mean(const int *values, unsigned count)
{
    double sum = 0;

    for (unsigned i = 0; i < count; i++)
        sum += values[i];
    ratio = sum;
    return count == 0 ? 0 : sum / count;
}

struct point move(struct point p, int by)
{
    struct point moved = p;

    moved.x += by;
    moved.y -= by;
    points[1] = moved;
    return moved;
}

unsigned depth(unsigned n)
{
    volatile unsigned local = n * 7;

    return n == 0 ? local : depth(n - 1) + local;
}

int main(void)
{
    struct node nodes[5];
    struct point p = { 7, 9 };
    long total;

    memset(nodes, 0, sizeof(nodes));
    chosen = add;
    for (int i = 0; i < 5; i++)
        push(&head, &nodes[i], i * 11);
    total = sum_list(head);
    p = move(p, twice(chosen, 4));
    printf("%ld %d %d %.2f %u %d %ld\n", total, p.x, p.y, mean(table, 4), depth(6), counter,
           hidden);
    CHECK(nothing == NULL && letter == 'q' && title[0] == 'a' && byte == 200 && ready);
    CHECK(grid[1][2] == 6 && third > 1 && paint == BLUE && packed.five == -7);
    CHECK(number.real > 3 && head->key == 44);
    return 0;
}

/* Characters with NULs inside, in runs and more than are shown; elements that repeat. */
char inner[12] = "ab\0\0c\33\"\\'\377";
char runs[64] = "xaaaaaaaaaaaaaaabbbbbbbbbbcccccccccccccd\0\0\0\0\0\0\0\0\0\0\0\0d";
unsigned char blank[12];
#define ALL "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ!?"
char large[420] = ALL ALL ALL ALL ALL;
char ends[3] = { 'e', 0, 0 }, full[3] = { 'f', 'u', 'l' };
char rows[3][12] = { "", "row", "r\0w" };
int counts[24] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3 };
#define SIX(n)  (n), (n) + 1, (n) + 2, (n) + 3, (n) + 4, (n) + 5
#define MANY(n) SIX(n), SIX((n) + 6), SIX((n) + 12), SIX((n) + 18), SIX((n) + 24), SIX((n) + 30)
long many[300];
long steps[] = { MANY(0), MANY(36), MANY(72), MANY(108), MANY(144), MANY(180), MANY(216) };
struct point pairs[14] = { { 1, 2 } };
char *spaced = "pointer to aaaaaaaaaaaaaaaaaaaaaaa";

/* Wide characters, which are typedefs of integers in C. */
typedef wchar_t symbol;
wchar_t wide[8] = L"wide", *wide_pointer = wide;
const symbol symbols[3] = L"sy";
char16_t sixteen[9] = u"six";
char32_t thirty_two[3] = U"ab";
long double long_third = 1.0L / 3;
