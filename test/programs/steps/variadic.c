// SPDX-License-Identifier: MIT
// Variadic functions, macros within macros, bit-fields, unions, arrays whose length is a parameter.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TWICE(x) ((x) + (x))
#define APPLY(f, ...) f(sizeof((int[]){__VA_ARGS__}) / sizeof(int), __VA_ARGS__)
#define EACH(i, n, body) \
    do { \
        for (int i = 0; i < (n); i++) { \
            body; \
        } \
    } while (0)
#define FIELDS(F) F(first, 3) F(second, 7) F(third, 11)
#define FIELD(name, bits) unsigned name : bits;
#define STORE(name, bits) p->name = (unsigned)value >> (bits - 1);
#define COUNT(name, bits) +p->name

struct Packed {
    FIELDS(FIELD)
    int sign : 5;
};

union Word {
    unsigned whole;
    unsigned char bytes[4];
    struct {
        unsigned low : 12, middle : 8, high : 12;
    };
};

static int sum(size_t n, ...) {
    va_list args;
    int total = 0;
    va_start(args, n);
    while (n--)
        total += va_arg(args, int);
    va_end(args);
    return total;
}

static double weighted(const char *kinds, ...) {
    va_list args, again;
    double all = 0;
    va_start(args, kinds);
    va_copy(again, args);
    for (const char *k = kinds; *k; k++)
        switch (*k) {
        case 'i': all += va_arg(args, int); break;
        case 'd': all += va_arg(args, double) * 2; break;
        case 's': all += (double)strlen(va_arg(args, const char *)); break;
        default: all = -1;
        }
    if (*kinds == 'i')
        all += va_arg(again, int);
    va_end(again);
    va_end(args);
    return all;
}

static int fill(struct Packed *p, int value) {
    FIELDS(STORE)
    p->sign = -value;
    return 0 FIELDS(COUNT);
}

static int mixed(int n, const int from[n]) {
    int rows[n], whole = 0;
    EACH(i, n, rows[i] = TWICE(from[i]) - i);
    EACH(i, n, EACH(j, i, whole += rows[i] * rows[j]));
    return whole;
}

static unsigned turned(union Word w) {
    unsigned char last = w.bytes[3];
    w.bytes[3] = w.bytes[0];
    w.bytes[0] = last;
    w.middle ^= w.low;
    return w.whole;
}

int main(void) {
    struct Packed p;
    union Word w = {.whole = 0x12345678};
    int three[] = {3, 1, 4}, a = APPLY(sum, 1, 2, 3) + APPLY(sum, 4);
    double b = weighted("ids", 3, 0.5, "word") + weighted("x");
    memset(&p, 0, sizeof(p));
    for (int i = 1; i < 4; i++)
        a += fill(&p, i * 5);
    printf("%d %g %d %x %d\n", a, b, mixed(3, three), turned(w), p.sign);
    return 0;
}
