// SPDX-License-Identifier: MIT
/* branches.c - functions whose branches count (mode=context, option `branches`): each prints tbd_branch_context() at
 * places that are reached in different ways
 *
 *     branches          prints NAME VALUE lines; exit status 0
 *     branches storm    the same while a timer interrupts it, whose handler calls the same functions: each function is called
 *                       many times; ends with status 1 if a value differs from the first call's
 *
 * Without tbd all values are 0. */
#include <inttypes.h>
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <tbd/tbd.h>

#define NOINLINE __attribute__((noinline, noclone, noipa))
#define ROUNDS   1500

static volatile unsigned sink, handled;
static jmp_buf out;

NOINLINE unsigned next(unsigned *state);
NOINLINE uint64_t collatz(unsigned n);
NOINLINE uint64_t rounds(unsigned n);
NOINLINE uint64_t kinds(const char *text);
NOINLINE uint64_t deep(unsigned n);
NOINLINE uint64_t returns_twice(unsigned n);
NOINLINE uint64_t grows(unsigned n);
NOINLINE uint64_t leaf(unsigned n);
NOINLINE void leave(unsigned n);

/* Its caller's loop goes on right after the call, and jumps to there. */
unsigned next(unsigned *state)
{
    *state = *state * 1103515245u + 12345u;
    if (*state >> 16 & 1)
        sink++;
    return *state >> 20 & 7;
}

uint64_t collatz(unsigned n)
{
    while (n != 1)
        n = n & 1 ? 3 * n + 1 : n / 2;
    return tbd_branch_context();
}

uint64_t rounds(unsigned n)
{
    unsigned state = n, left = n;

    while (next(&state) != 7)
        if (--left == 0)
            break;
    if (left > n / 2)
        sink += left;
    return tbd_branch_context();
}

uint64_t kinds(const char *text)
{
    unsigned digits = 0, others = 0;

    for (; *text; text++)
        switch (*text) {
        case '0': digits++; break;
        case 'a': others += 2; break;
        case 'b': others += 3; break;
        case 'c': others += 5; break;
        case 'd': others += 7; break;
        case 'e': sink++; break;
        default: others += *text > 'm';
        }
    if (digits > others)
        sink += digits;
    return tbd_branch_context();
}

/* The value belongs to this call, after those it has made. */
uint64_t deep(unsigned n)
{
    uint64_t below = n > 1 ? deep(n - 1) : 0;

    if (n % 2)
        sink += (unsigned)below;
    return tbd_branch_context();
}

void leave(unsigned n)
{
    if (n % 3)
        longjmp(out, (int)n);
}

uint64_t returns_twice(unsigned n)
{
    volatile unsigned left = n;

    if (setjmp(out) != 0)
        sink++;
    while (left) {
        left--;
        leave(left);
    }
    return tbd_branch_context();
}

/* rsp differs in each round. */
uint64_t grows(unsigned n)
{
    volatile char *last = NULL;

    for (unsigned i = 1; i <= n; i++) {
        volatile char *more = alloca(i * 16);

        more[0] = (char)i;
        if (last && last[0] == (char)(n / 2))
            sink++;
        last = more;
    }
    return tbd_branch_context();
}

uint64_t leaf(unsigned n)
{
    if (n > 3)
        sink++;
    if (n > 5)
        sink++;
    return tbd_branch_context();
}

#define FUNCTIONS 7

static uint64_t call(unsigned which)
{
    switch (which) {
    case 0: return collatz(27);
    case 1: return rounds(30);
    case 2: return kinds("a0bz0cc0d0ea0");
    case 3: return deep(6);
    case 4: return returns_twice(8);
    case 5: return grows(6);
    default: return leaf(2);
    }
}

static void handler(int signo)
{
    (void)signo;
    handled++;
    collatz(7);
    kinds("abc");
    grows(3);
    deep(2);
}

static int storm(void)
{
    struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
    uint64_t first[FUNCTIONS];
    unsigned wrong = 0;

    for (unsigned i = 0; i < FUNCTIONS; i++)
        first[i] = call(i);
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &often, NULL);
    for (unsigned round = 0; round < ROUNDS; round++)
        for (unsigned i = 0; i < FUNCTIONS; i++) {
            uint64_t value = call(i);

            if (value != first[i])
                printf("%u %u: %016" PRIx64 ", not %016" PRIx64 "\n", round, i, value, first[i]);
            wrong += value != first[i];
        }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%u values differ\n", wrong);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    static const char *const names[FUNCTIONS] = { "collatz", "rounds", "kinds", "deep", "returns_twice", "grows", "leaf" };

    if (argc > 1 && strcmp(argv[1], "storm") == 0)
        return storm();
    for (unsigned i = 0; i < FUNCTIONS; i++)
        printf("%s %016" PRIx64 "\n", names[i], call(i));
    printf("main %016" PRIx64 "\n", tbd_branch_context());
    return 0;
}
