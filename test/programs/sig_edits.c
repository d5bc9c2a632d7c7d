// SPDX-License-Identifier: MIT
/* Handlers that repair what they interrupt, by editing the context: registers, flags, vector registers, the
 * place where it goes on; a region that grows under a guard page, its handler on an alternate stack; handlers that are
 * left by siglongjmp, nested ones too. */
#define _GNU_SOURCE
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define GUARDED (64ul << 20)
static sigjmp_buf back;
static volatile int repairs, depth;
static char *guarded, *volatile grown;
static char alternate[32768];

static void on_divide(int signo, siginfo_t *info, void *raw)
{
    ucontext_t *context = raw;

    (void)info;
    CHECK(signo == SIGFPE && context->uc_mcontext.gregs[REG_RCX] == 0);
    context->uc_mcontext.gregs[REG_RCX] = 7;
    context->uc_mcontext.gregs[REG_R14] += 1; /* registers that the tracer keeps elsewhere */
    context->uc_mcontext.gregs[REG_R15] ^= 0xff;
    repairs++;
}

static void divide(void)
{
    uint64_t quotient, sum14, sum15;

    for (uint64_t i = 1; i < 300; i++) {
        __asm__ volatile("mov %%rbx, %%r14; mov %%rbx, %%r15; xor %%ecx, %%ecx; xor %%edx, %%edx\n\t"
                         "imul $7, %%rbx, %%rax; div %%rcx; mov %%r14, %%rsi; mov %%r15, %%rdi"
                         : "=a"(quotient), "=S"(sum14), "=D"(sum15)
                         : "b"(i)
                         : "rcx", "rdx", "r14", "r15", "cc");
        CHECK(quotient == i && sum14 == i + 1 && sum15 == (i ^ 0xff));
    }
}

static void on_illegal(int signo, siginfo_t *info, void *raw)
{
    ucontext_t *context = raw;
    greg_t *r = context->uc_mcontext.gregs;

    (void)signo;
    CHECK((greg_t)info->si_addr == r[REG_RIP]);
    r[REG_RIP] += 2;
    r[REG_EFL] ^= 1; /* carry */
    context->uc_mcontext.fpregs->_xmm[3].element[0] += 5;
    context->uc_mcontext.fpregs->_xmm[3].element[3] = 77;
    repairs++;
}

static void illegal(void)
{
    unsigned in[4], out[4];
    unsigned char carry;

    for (unsigned i = 0; i < 300; i++) {
        in[0] = in[1] = in[2] = in[3] = i;
        __asm__ volatile("movups %2, %%xmm3; clc; ud2; setc %1; movups %%xmm3, %0"
                         : "=m"(out), "=q"(carry)
                         : "m"(in)
                         : "xmm3", "cc");
        CHECK(carry && out[0] == i + 5 && out[1] == i && out[2] == i && out[3] == 77);
    }
}

static void on_guard(int signo, siginfo_t *info, void *raw)
{
    char here;

    (void)raw;
    CHECK(signo == SIGSEGV && &here >= alternate && &here < alternate + sizeof(alternate));
    CHECK((char *)info->si_addr >= grown && (char *)info->si_addr < guarded + GUARDED);
    CHECK(mprotect(grown, 4096, PROT_READ | PROT_WRITE) == 0);
    grown += 4096;
    repairs++;
}

static void grow(void)
{
    stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };

    guarded = mmap(NULL, GUARDED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(guarded != MAP_FAILED && sigaltstack(&stack, NULL) == 0);
    grown = guarded;
    for (size_t i = 0; i < 400 * 4096; i += 64)
        guarded[i] = (char)(i >> 6);
    CHECK(grown == guarded + 400 * 4096 && check_hash(guarded, 400 * 4096) != 0);
}

static void on_nested(int signo, siginfo_t *info, void *raw)
{
    (void)raw;
    (void)info;
    if (++depth < 6)
        raise(depth % 2 ? SIGUSR2 : SIGUSR1);
    else
        siglongjmp(back, signo);
}

static void leave(void)
{
    for (int i = 0; i < 200; i++) {
        depth = 0;
        if (sigsetjmp(back, 1) == 0) {
            raise(SIGUSR1);
            CHECK(!"came back");
        }
        CHECK(depth == 6);
        if (sigsetjmp(back, 1) == 0)
            *(volatile char *)(uintptr_t)(16 + i) = 1;
    }
}

static void on_fault(int signo)
{
    siglongjmp(back, signo);
}

static void handle(int signo, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags };

    CHECK(sigaction(signo, &action, NULL) == 0);
}

int main(void)
{
    handle(SIGFPE, on_divide, 0);
    handle(SIGILL, on_illegal, 0);
    handle(SIGSEGV, on_guard, SA_ONSTACK);
    handle(SIGUSR1, on_nested, SA_NODEFER);
    handle(SIGUSR2, on_nested, SA_NODEFER | SA_ONSTACK);
    divide();
    illegal();
    grow();
    signal(SIGSEGV, on_fault);
    leave();
    printf("%d repairs\n", repairs);
    return 0;
}
