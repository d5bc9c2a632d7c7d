// SPDX-License-Identifier: MIT
/* System calls from the program's own instructions, often enough that an engine may change what is before them: all
 * registers but rax, rcx and r11 are as before, also where signals come meanwhile; calls that are jumped to;
 * a load before a call that faults;
 * and, with an argument, a program that steps through them with its own trap flag sees its own instructions. */
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#define TRAP_FLAG 0x100ull

/* Each returns what the call returned; the labels are the instructions' addresses. */
uint64_t near_call(void), far_call(void), wide_call(void), bare_call(void), stack_call(void);
/* Comes to the load of stack_call() with a stack that is not there. */
void fault_call(void);
int64_t short_call(int file);
extern const char near_begin[], near_end[], wide_begin[], wide_end[], short_begin[], short_end[];
extern const char stack_begin[], stack_end[], fault_end[];
__asm__(".text\n"
        ".balign 64\n"
        ".skip 64, 0x90\n"
        "near_call: near_begin: mov $110, %eax\n" /* getppid */
        "    syscall\n"
        "near_end: ret\n"
        "far_call: mov $110, %eax\n"
        "    jmp 1f\n"
        "    nop; nop; nop\n"
        "    mov $39, %eax\n" /* not on this way */
        "1:  syscall\n"
        "    ret\n"
        ".skip 64, 0x90\n"
        "wide_call: mov $110, %eax\n"
        "wide_begin: mov $7, %r8d\n"
        "    syscall\n"
        "wide_end: ret\n"
        ".skip 64, 0x90\n"
        "short_call: mov $60, %edx\n"
        "short_begin: xor %eax, %eax\n" /* read */
        "    syscall\n"
        "short_end: ret\n"
        "    .balign 16\n" /* a nop of several bytes */
        "    .skip 64, 0x90\n"
        "stack_call: push $110; push $0\n"
        "stack_begin: mov 8(%rsp), %rax\n"
        "    syscall\n"
        "stack_end: lea 16(%rsp), %rsp\n"
        "    ret\n"
        "fault_call: push %rbx\n"
        "    mov %rsp, %rbx\n"
        "    mov $4096, %esp\n"
        "    jmp stack_begin\n"
        "fault_end: mov %rbx, %rsp\n"
        "    pop %rbx\n"
        "    ret\n"
        ".skip 64, 0x90\n"
        "bare_call: mov $110, %ecx\n"
        "    mov %ecx, %eax\n"
        "    syscall\n"
        "    ret\n");

static uint64_t call_short(void)
{
    return (uint64_t)short_call(-1);
}

/* ---- registers ---- */

struct registers {
    uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15, flags, after;
};

/* Makes getppid with all registers as given, and stores what they are afterwards. */
void call_with(const struct registers *in, struct registers *out);
__asm__(".text\n"
        "call_with:\n"
        "    push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        "    push %rsi\n"
        "    push 120(%rdi)\n"
        "    mov 8(%rdi), %rbx; mov 24(%rdi), %rdx; mov 32(%rdi), %rsi; mov 48(%rdi), %rbp\n"
        "    mov 56(%rdi), %r8; mov 64(%rdi), %r9; mov 72(%rdi), %r10; mov 88(%rdi), %r12\n"
        "    mov 96(%rdi), %r13; mov 104(%rdi), %r14; mov 112(%rdi), %r15; mov 40(%rdi), %rdi\n"
        "    movq $0x5a5a5a5a, -120(%rsp)\n" /* in the red zone */
        "    popfq\n"
        "    mov $110, %eax\n"
        "    syscall\n"
        "call_after:\n"
        "    pushfq\n"
        "    cld\n"
        "    push %rdi\n"
        "    mov 16(%rsp), %rdi\n"
        "    mov %rax, (%rdi); mov %rbx, 8(%rdi); mov %rcx, 16(%rdi); mov %rdx, 24(%rdi); mov %rsi, 32(%rdi)\n"
        "    mov %rbp, 48(%rdi); mov %r8, 56(%rdi); mov %r9, 64(%rdi); mov %r10, 72(%rdi); mov %r11, 80(%rdi)\n"
        "    mov %r12, 88(%rdi); mov %r13, 96(%rdi); mov %r14, 104(%rdi); mov %r15, 112(%rdi)\n"
        "    pop %rax; mov %rax, 40(%rdi)\n"
        "    pop %rax; mov %rax, 120(%rdi)\n"
        "    mov -128(%rsp), %rax; mov %rax, 128(%rdi)\n"
        "    pop %rsi\n"
        "    pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
        "    ret\n");
extern const char call_after[];

static void check_registers(uint64_t *state, uint64_t flags)
{
    struct registers in, out = { 0 };
    uint64_t *words = (uint64_t *)&in;

    for (size_t i = 0; i < sizeof(in) / 8; i++)
        words[i] = check_random(state);
    in.flags = flags;
    call_with(&in, &out);
    CHECK(out.rax == (uint64_t)getppid());
    CHECK(out.rcx == (uint64_t)(uintptr_t)call_after && (out.r11 & ~0x202ull) == (flags & ~0x202ull));
    CHECK(out.after == 0x5a5a5a5a);
    in.rax = out.rax, in.rcx = out.rcx, in.r11 = out.r11, in.after = out.after, in.flags |= 0x202;
    CHECK((out.flags | 0x202) == in.flags);
    out.flags = in.flags;
    CHECK(memcmp(&in, &out, sizeof(in)) == 0);
}

/* ---- steps ---- */

static uint64_t steps[64];
static volatile unsigned step_count;

static void on_trap(int signal, siginfo_t *info, void *context)
{
    const ucontext_t *at = context;

    (void)signal;
    (void)info;
    if (step_count < 64)
        steps[step_count++] = (uint64_t)at->uc_mcontext.gregs[REG_RIP];
}

static uint64_t step_through(uint64_t (*call)(void))
{
    uint64_t result;

    step_count = 0;
    __asm__ volatile("sub $128, %%rsp; pushfq; orq %2, (%%rsp); popfq\n"
                     "call *%1\n"
                     "pushfq; andq %3, (%%rsp); popfq; add $128, %%rsp"
                     : "=&a"(result)
                     : "r"(call), "i"(TRAP_FLAG), "i"(~(int64_t)TRAP_FLAG)
                     : "rcx", "r11", "r8", "memory", "cc");
    return result;
}

static unsigned steps_in(const char *begin, const char *end)
{
    unsigned found = 0;

    for (unsigned i = 0; i < step_count; i++)
        found += steps[i] >= (uint64_t)(uintptr_t)begin && steps[i] <= (uint64_t)(uintptr_t)end;
    return found;
}

static void step_through_both(uint64_t parent)
{
    for (int i = 0; i < 3; i++) {
        CHECK(step_through(near_call) == parent);
        printf("%u steps, %u in the call\n", step_count, steps_in(near_begin, near_end));
        CHECK(step_through(wide_call) == parent);
        printf("%u steps, %u in the call\n", step_count, steps_in(wide_begin, wide_end));
        CHECK(step_through(call_short) == (uint64_t)-9);
        printf("%u of them\n", steps_in(short_begin, short_end));
        CHECK(step_through(stack_call) == parent);
        printf("%u steps, %u in the call\n", step_count, steps_in(stack_begin, stack_end));
    }
}

/* ---- a load that faults ---- */

static volatile unsigned faults;

static void on_fault(int signal, siginfo_t *info, void *context)
{
    greg_t *at = ((ucontext_t *)context)->uc_mcontext.gregs;

    (void)signal;
    CHECK(at[REG_RIP] == (greg_t)(uintptr_t)stack_begin && info->si_addr == (void *)(4096 + 8));
    at[REG_RSP] = at[REG_RBX];
    at[REG_RIP] = (greg_t)(uintptr_t)fault_end;
    faults++;
}

static void fault_at_load(void)
{
    static char stack[65536];
    stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) };
    struct sigaction fault = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };

    CHECK(sigaltstack(&other, NULL) == 0 && sigaction(SIGSEGV, &fault, NULL) == 0);
    fault_call();
    CHECK(faults == 1);
}

/* ---- */

static volatile sig_atomic_t ticks;

static void on_tick(int signal)
{
    (void)signal;
    ticks++;
}

int main(int argc, char **argv)
{
    struct sigaction trap = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
    struct sigaction tick = { .sa_handler = on_tick, .sa_flags = SA_RESTART };
    struct itimerval every = { { 0, 700 }, { 0, 700 } }, never = { { 0, 0 }, { 0, 0 } };
    uint64_t parent = (uint64_t)getppid(), state = 7;

    (void)argv;
    CHECK(sigaction(SIGTRAP, &trap, NULL) == 0 && sigaction(SIGALRM, &tick, NULL) == 0);
    for (int i = 0; i < 20; i++) {
        CHECK(near_call() == parent && far_call() == parent && wide_call() == parent && bare_call() == parent);
        CHECK(stack_call() == parent);
        CHECK(short_call(-1) == -9);
        check_registers(&state, i % 2 ? 0xcd5 : 0x202); /* OF, DF, SF, ZF, AF, PF, CF */
    }
    CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
    while (ticks < 30)
        for (int i = 0; i < 100; i++)
            check_registers(&state, 0x8d5);
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    if (argc > 1)
        step_through_both(parent);
    fault_at_load();
    for (int i = 0; i < 20; i++)
        CHECK(near_call() == parent && wide_call() == parent && short_call(-1) == -9 && stack_call() == parent);
    puts("done");
    return 0;
}
