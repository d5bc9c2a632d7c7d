// SPDX-License-Identifier: MIT
// args: 300000
// Computations without system calls: counters in registers, in memory, in vector registers, on the x87 stack; copies that one
// instruction makes.  With a second argument timers send signals meanwhile, whose handler counts.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static volatile unsigned long in_memory;
static volatile sig_atomic_t rings;
static char from[1 << 16], to[1 << 16];

static void ring(int signo)
{
    (void)signo;
    rings++;
}

static unsigned long in_registers(unsigned long rounds)
{
    unsigned long x = 88172645463325252ul;

    for (unsigned long i = 0; i < rounds; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

/* The general registers are the same in each round. */
static void count_in_memory(unsigned long rounds)
{
    for (in_memory = 0; in_memory < rounds; in_memory++)
        ;
}

static double in_vectors(double rounds)
{
    double x = 0;

    __asm__ volatile("1: addsd %1, %0\n\tucomisd %2, %0\n\tjb 1b" : "+x"(x) : "x"(1.0), "x"(rounds) : "cc");
    return x;
}

static long double on_x87(unsigned long rounds)
{
    long double x = 1;

    for (unsigned long i = 0; i < rounds; i++)
        x = x * 1.0000001L + 1 / x;
    return x;
}

static unsigned copies(unsigned long rounds)
{
    unsigned sum = 0;

    for (unsigned long i = 0; i < rounds / 1000; i++) {
        void *d = to;
        const void *s = from;
        size_t n = sizeof(to);

        from[i % sizeof(from)] = (char)i;
        __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
        sum = sum * 31 + (unsigned char)to[i * 7 % sizeof(to)];
    }
    return sum;
}

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 300000;
    struct itimerval every = { { 0, 3000 }, { 0, 3000 } };

    if (argc > 2) {
        signal(SIGPROF, ring);
        signal(SIGALRM, ring);
        setitimer(ITIMER_PROF, &every, NULL);
        setitimer(ITIMER_REAL, &every, NULL);
    }
    printf("%lx\n", in_registers(rounds));
    count_in_memory(rounds);
    printf("%lu\n", in_memory);
    printf("%.0f\n", in_vectors((double)rounds / 8));
    printf("%.12Lg\n", on_x87(rounds / 8));
    printf("%u\n", copies(rounds / 8));
    if (argc > 2)
        while (rings < 20)
            ;
    printf("%s\n", argc > 2 && rings < 20 ? "no signals" : "done");
    return 0;
}
