// SPDX-License-Identifier: MIT
// Functions that end in a call of another one: by name, of themselves, through a pointer, and out of a switch.
#include <stdio.h>

struct state {
    int n, sum;
    int (*then)(struct state *);
};

__attribute__((noinline)) static int odd(unsigned n);

__attribute__((noinline)) static int even(unsigned n) {
    if (n == 0)
        return 1;
    return odd(n - 1);
}

__attribute__((noinline)) static int odd(unsigned n) {
    if (n == 0)
        return 0;
    return even(n - 1);
}

__attribute__((noinline)) static int finished(struct state *s) {
    s->then = NULL;
    return s->sum;
}

__attribute__((noinline)) static int halve(struct state *s) {
    s->n /= 2;
    s->sum += 1;
    if (s->n <= 1)
        s->then = finished;
    return s->then(s);
}

__attribute__((noinline)) static int choose(struct state *s) {
    switch (s->n % 4) {
    case 0: return halve(s);
    case 1:
        s->n--;
        return choose(s);
    case 2:
        s->sum += 10;
        return halve(s);
    default: break;
    }
    s->n++;
    s->sum += 100;
    return choose(s);
}

__attribute__((noinline)) static long gcd(long a, long b) { return b ? gcd(b, a % b) : a; }

__attribute__((noinline)) static int length(const char *text, int so_far) {
    if (!*text)
        return so_far;
    return length(text + 1, so_far + 1);
}

int main(void) {
    int found = 0;
    for (unsigned i = 0; i < 6; i++)
        found += even(i);
    for (int i = 3; i < 9; i++) {
        struct state s = {i, 0, choose};
        found += s.then(&s);
    }
    printf("%d %ld %d\n", found, gcd(84, 36), length("seven", 0));
    return 0;
}
