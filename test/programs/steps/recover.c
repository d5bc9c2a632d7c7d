// SPDX-License-Identifier: MIT
// Errors by longjmp: out of a callback of qsort, out of recursion, out of a handler of a fault, and a loop that sets the place anew.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static jmp_buf failed;
static sigjmp_buf faulted;
static volatile int caught;

static void on_fault(int signal) {
    caught = signal;
    siglongjmp(faulted, 1);
}

static int peek(const volatile int *at) {
    if (sigsetjmp(faulted, 1))
        return -1;
    int value = *at;
    return value;
}

static int order(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    if (x == 13 || y == 13)
        longjmp(failed, 13);
    return x - y;
}

static int sorted(int *numbers, int count) {
    int why = setjmp(failed);
    if (why)
        return why;
    qsort(numbers, (size_t)count, sizeof(*numbers), order);
    return 0;
}

static int down(int n, int stop) {
    if (n == stop)
        longjmp(failed, n + 1);
    return down(n - 1, stop) + 1;
}

static int tries(void) {
    volatile int round = 0, sum = 0;
    switch (setjmp(failed)) {
    case 0: break;
    case 3: sum += 100; break;
    default: sum++; break;
    }
    while (round < 4) {
        round++;
        sum += down(round + 2, round);
    }
    return sum;
}

int main(void) {
    int good[] = {3, 1, 2}, bad[] = {5, 13, 4};
    signal(SIGSEGV, on_fault);
    int value = 6, a = sorted(good, 3), b = sorted(bad, 3), c = tries(), d = peek(&value), e = peek((int *)8);
    printf("%d %d %d %d %d %d\n", a, b, c, d, e, caught);
    return 0;
}
