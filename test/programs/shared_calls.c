// SPDX-License-Identifier: MIT
/* Control flow through memory that another process may write: function pointers in it, called and jumped
 * through, and a stack in it. */
#define _GNU_SOURCE
#include "check.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_BYTES (256 << 10)

struct shared {
    uint64_t (*call)(uint64_t);
    uint64_t (*jump)(uint64_t);
    volatile uint64_t counter;
    char stack[STACK_BYTES];
};

static struct shared *shared;
static ucontext_t back, there;
static uint64_t sum;

__attribute__((noinline)) static uint64_t twice(uint64_t x)
{
    return 2 * x + shared->counter * 0;
}

__attribute__((noinline)) static uint64_t thrice(uint64_t x)
{
    return 3 * x;
}

/* A tail call through the pointer: with -O2 it is a jump. */
__attribute__((noinline)) static uint64_t pass(uint64_t x)
{
    return shared->jump(x + 1);
}

__attribute__((noinline)) static uint64_t deep(uint64_t n)
{
    volatile uint64_t here = n;

    return n ? deep(n - 1) + here : 0;
}

static void on_the_stack(void)
{
    for (int i = 0; i < 50; i++)
        sum += deep(20) + shared->call(i);
}

int main(void)
{
    pid_t child;
    int status;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    shared->call = twice;
    shared->jump = thrice;
    child = fork();
    if (!child) {
        for (int i = 0; i < 2000; i++)
            shared->counter++;
        shared->jump = twice;
        _exit(0);
    }
    for (uint64_t i = 0; i < 1000; i++)
        sum += shared->call(i);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    for (uint64_t i = 0; i < 1000; i++)
        sum += pass(i);
    CHECK(!getcontext(&there));
    there.uc_stack.ss_sp = shared->stack;
    there.uc_stack.ss_size = STACK_BYTES;
    there.uc_link = &back;
    makecontext(&there, on_the_stack, 0);
    CHECK(!swapcontext(&back, &there));
    CHECK(shared->counter == 2000);
    printf("%lu\n", sum);
    return 0;
}
