// SPDX-License-Identifier: MIT
// flags: -Wno-infinite-recursion
/* setjmp/longjmp, also out of nested calls, and coroutines by swapcontext. */
#include "check.h"
#include <setjmp.h>
#include <ucontext.h>

static jmp_buf env;
static ucontext_t main_context, other_context;
static int turns;

__attribute__((noinline)) static void dive(int depth)
{
    volatile char pad[100];

    pad[depth % 100] = (char)depth;
    if (depth > 0)
        dive(depth - 1);
    else
        longjmp(env, 7 + pad[0]);
    pad[0] = pad[1];
}

static void coroutine(void)
{
    for (int i = 0; i < 50; i++) {
        turns += i;
        swapcontext(&other_context, &main_context);
    }
}

int main(void)
{
    static char stack[65536];
    volatile int count = 0;

    for (volatile int i = 0; i < 200; i++) {
        int value = setjmp(env);

        if (value == 0)
            dive(i % 40);
        CHECK(value >= 7);
        count += value;
    }
    getcontext(&other_context);
    other_context.uc_stack.ss_sp = stack;
    other_context.uc_stack.ss_size = sizeof(stack);
    other_context.uc_link = &main_context;
    makecontext(&other_context, coroutine, 0);
    for (int i = 0; i < 51; i++)
        swapcontext(&main_context, &other_context);
    CHECK(turns == 49 * 50 / 2);
    printf("%d jumps' sum, %d turns' sum\n", count, turns);
    return 0;
}
