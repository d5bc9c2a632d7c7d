// SPDX-License-Identifier: MIT
// libs: pthread
// flags: -fno-pie -no-pie
/* Threads that wait with known values in their registers, while the main thread calls marker(): what a debugger
 * sees there of each is known (test/e2e/test_thread_questions.py). */
#include "check.h"
#include <pthread.h>
#include <sched.h>

#define THREADS 3

static volatile uint32_t ready[THREADS], gate;

__attribute__((noinline)) void marker(void)
{
    __asm__ volatile("");
}

/* rbx, r12 .. r15 and xmm8 hold multiples of `value` from before `here` is set until the gate opens.  Returns
 * their sum as it is then. */
__attribute__((noinline)) uint64_t wait_here(volatile uint32_t *here, uint64_t value)
{
    register uint64_t number __asm__("r8") = value;
    register volatile uint32_t *place __asm__("r9") = here;
    uint64_t sum;

    __asm__ volatile("movq %%r8, %%rbx\n\t"
                     "leaq (%%r8,%%r8), %%r12\n\t"
                     "leaq (%%r8,%%r8,2), %%r13\n\t"
                     "leaq (,%%r8,4), %%r14\n\t"
                     "leaq (%%r8,%%r8,4), %%r15\n\t"
                     "movq %%r8, %%xmm8\n\t"
                     "movl $1, (%%r9)\n"
                     "1:\tmovl $202, %%eax\n\t" /* futex */
                     "movq %[gate], %%rdi\n\t"
                     "movl $128, %%esi\n\t" /* FUTEX_WAIT_PRIVATE */
                     "xorl %%edx, %%edx\n\t"
                     "xorl %%r10d, %%r10d\n\t"
                     "syscall\n\t"
                     "cmpl $0, (%%rdi)\n\t"
                     "je 1b\n\t"
                     "movq %%xmm8, %%rax\n\t"
                     "addq %%rbx, %%rax\n\t"
                     "addq %%r12, %%rax\n\t"
                     "addq %%r13, %%rax\n\t"
                     "addq %%r14, %%rax\n\t"
                     "addq %%r15, %%rax"
                     : "=&a"(sum), "+r"(number), "+r"(place)
                     : [gate] "i"(&gate)
                     : "rbx", "rcx", "rdx", "rsi", "rdi", "r10", "r11", "r12", "r13", "r14", "r15",
                       "xmm8", "memory");
    return sum;
}

static void *work(void *argument)
{
    uint64_t index = (uintptr_t)argument;

    return (void *)(uintptr_t)wait_here(&ready[index], 0x1111111100000000 * (index + 1) + index + 7);
}

static void open_gate(void)
{
    uint64_t result;

    gate = 1;
    __asm__ volatile("xorl %%r10d, %%r10d\n\tsyscall"
                     : "=a"(result)
                     : "0"(202), "D"(&gate), "S"(129), "d"(THREADS) /* FUTEX_WAKE_PRIVATE */
                     : "rcx", "r10", "r11", "memory");
    CHECK((int64_t)result >= 0);
}

int main(void)
{
    pthread_t threads[THREADS];

    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, work, (void *)i));
    for (int i = 0; i < THREADS; i++)
        while (!ready[i])
            sched_yield();
    marker();
    open_gate();
    for (uint64_t i = 0; i < THREADS; i++) {
        void *sum;

        CHECK(!pthread_join(threads[i], &sum));
        CHECK((uint64_t)(uintptr_t)sum == 16 * (0x1111111100000000 * (i + 1) + i + 7));
    }
    printf("registers kept\n");
    return 0;
}
