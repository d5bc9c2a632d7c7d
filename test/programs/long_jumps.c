// SPDX-License-Identifier: MIT
// flags: -O0 -fno-pie -no-pie
/* longjmp() over frames: out of nested calls, to a frame in the middle, out of a signal handler, and back to the same call again
 * and again.  Each function counts its entries and its returns. */
#include "check.h"
#include <setjmp.h>
#include <signal.h>

static jmp_buf outer, middle;
static sigjmp_buf from_handler;
volatile int entered[6], returned[6], sum;

__attribute__((noinline)) static int leaf(int n)
{
    entered[0]++;
    if (n % 3 == 1)
        longjmp(outer, n);
    if (n % 3 == 2)
        longjmp(middle, n);
    returned[0]++;
    return n + 100;
}

__attribute__((noinline)) static int nested(int depth, int n)
{
    int result;

    entered[1]++;
    result = depth == 0 ? leaf(n) : nested(depth - 1, n) + 1;
    returned[1]++;
    return result;
}

__attribute__((noinline)) static int catcher(int n)
{
    int result = 0;

    entered[2]++;
    if (setjmp(middle) == 0)
        result = nested(2, n);
    returned[2]++;
    return result + 1000;
}

/* It is called from where the frame that was left was called from. */
__attribute__((noinline)) static int sibling(int n)
{
    entered[3]++;
    returned[3]++;
    return -n;
}

static void handler(int signal)
{
    entered[4]++;
    siglongjmp(from_handler, signal);
}

__attribute__((noinline)) static int faulty(int n)
{
    entered[5]++;
    if (n % 2)
        raise(SIGUSR1);
    returned[5]++;
    return n;
}

static int (*volatile chosen[])(int) = { catcher, sibling };

int main(void)
{
    signal(SIGUSR1, handler);
    for (volatile int n = 0; n < 12; n++) {
        for (volatile int k = 0; k < 2; k++) {
            if (setjmp(outer) == 0)
                sum += chosen[k](n);
        }
        if (sigsetjmp(from_handler, 1) == 0)
            sum += faulty(n);
        else
            sum += sibling(n) + sibling(n + 1);
    }
    for (int i = 0; i < 6; i++)
        printf("%d %d\n", entered[i], returned[i]);
    printf("%d\n", sum);
    return 0;
}
