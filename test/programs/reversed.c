// SPDX-License-Identifier: MIT
// flags: -O0
/* reversed.c - what debuggers stop at: functions, lines, variables of all kinds, signals, system calls, recursion, a library's function, memory
 * that comes and goes.  Comments `mark: NAME` are lines that test_debugger.py asks for. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int counter, watched;
static volatile int handled;
char *mapping;

static int bump(int by)
{
    counter += by;  /* mark: bump */
    return counter; /* mark: bumped */
}

static double half(double value, int by)
{
    return value / by;
}

static size_t length(const char *text)
{
    return strlen(text);
}

static void handler(int number, siginfo_t *info, void *context)
{
    (void)info;
    (void)context;
    handled += number; /* mark: handler */
}

static int work(int n)
{
    char line[64];
    int size = snprintf(line, sizeof(line), "work %d\n", n); /* mark: work */

    if (write(1, line, (size_t)size) != size) /* mark: write */
        return -1;
    return n * 2; /* mark: worked */
}

static int depth_of(int n)
{
    if (n == 0)
        return 0;               /* mark: bottom */
    return depth_of(n - 1) + 1; /* mark: deeper */
}

/* Variables in a register, static, of a block. */
static int states(int n)
{
    static int kept = 3;
    register int quick = n;
    int own = 1;

    quick += 2; /* mark: quick */
    kept += 5;  /* mark: kept */
    own = quick + kept;
    watched = own; /* mark: watched */
    return own;    /* mark: stated */
}

static int loops(int n)
{
    int sum = 0;

    for (int i = 0; i < n; i++) /* mark: loop */
        sum += i;               /* mark: looped */
    return sum;                 /* mark: left */
}

static int aborts(void)
{
    abort();
}

static void signals(void)
{
    static const int all[] = { SIGUSR1, SIGHUP, SIGALRM, SIGCHLD, SIGURG, SIGUSR2, SIGTERM, SIGWINCH };
    struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        sigaction(all[i], &action, NULL);
        raise(all[i]); /* mark: raise */
    }
}

int main(void)
{
    int sum = 0;

    for (int i = 0; i < 8; i++) {
        sum += work(i); /* mark: call */
        bump(i);        /* mark: after */
        sum += i;       /* mark: sum */
    }
    sum += depth_of(5); /* mark: depth */
    sum += states(2);   /* mark: states */
    sum += states(4);   /* mark: again */
    sum += loops(6);    /* mark: loops */
    mapping = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* mark: map */
    mapping[5] = 7;         /* mark: mapped */
    munmap(mapping, 8192);  /* mark: unmap */
    signals();              /* mark: signals */
    printf("%d\n", sum);    /* mark: print */
    if (sum == -1)
        return (int)half(2, 3) + (int)length("") + aborts();
    return sum > 0 ? 0 : 1; /* mark: end */
}
