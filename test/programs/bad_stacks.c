// SPDX-License-Identifier: MIT
/* Stack pointers that are no addresses: what a push, a call, a return, a load or a store through them faults with, and a fault of
 * something else while they are set.  The handler, on its own stack, sees the registers as they were, and puts rsp right. */
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#define REPEATS 20

static uint64_t good_stack, good_rip; /* where the handler lets it go on */
static uint64_t at;                   /* the instruction that is to fault */
static uint64_t bad;
static int signo_seen, code_seen, trap_seen;
static uint64_t address_seen;
static unsigned faults;

static void mend(int signo, siginfo_t *info, void *context)
{
    greg_t *gregs = ((ucontext_t *)context)->uc_mcontext.gregs;

    signo_seen = signo;
    code_seen = info->si_code;
    trap_seen = (int)gregs[REG_TRAPNO];
    address_seen = (uint64_t)info->si_addr;
    CHECK((uint64_t)gregs[REG_RSP] == bad);
    CHECK((uint64_t)gregs[REG_RIP] == at);
    CHECK(gregs[REG_RAX] == 0x1111 && gregs[REG_R10] == 0x2222 && gregs[REG_R15] == 0x3333);
    gregs[REG_RSP] = (greg_t)good_stack;
    gregs[REG_RIP] = (greg_t)good_rip;
    faults++;
}

/* `what` with rsp as it is in `bad`: its label 1 is what faults. */
#define TRY(what)                                                                                  \
    __asm__ volatile("lea 1f(%%rip), %%rcx; mov %%rcx, %[at]\n\t"                                  \
                     "lea 2f(%%rip), %%rcx; mov %%rcx, %[rip]\n\t"                                 \
                     "sub $128, %%rsp; mov %%rsp, %[stack]\n\t"                                    \
                     "mov $0x1111, %%eax; mov $0x2222, %%r10d; mov $0x3333, %%r15d\n\t"            \
                     "mov %[bad], %%rsp\n\t" what "\n"                                             \
                     "2: add $128, %%rsp"                                                          \
                     : [at] "=m"(at), [rip] "=m"(good_rip), [stack] "=m"(good_stack)               \
                     : [bad] "m"(bad)                                                              \
                     : "rax", "rcx", "rdx", "r10", "r15", "memory", "cc")

static void push(void)
{
    TRY("1: push %%rax");
}

static void call(void)
{
    TRY("1: call 2f");
}

static void call_by_register(void)
{
    TRY("lea 2f(%%rip), %%rdx\n1: call *%%rdx");
}

static void return_(void)
{
    TRY("1: ret");
}

static void pop(void)
{
    TRY("1: pop %%rdx");
}

static void push_flags(void)
{
    TRY("1: pushfq");
}

static void load(void)
{
    TRY("1: mov 8(%%rsp), %%rdx");
}

static void store(void)
{
    TRY("1: mov %%rax, 8(%%rsp)");
}

static void load_null(void)
{
    TRY("xor %%edx, %%edx\n1: mov (%%rdx), %%rcx");
}

static void not_an_instruction(void)
{
    TRY("1: ud2");
}

static void divide(void)
{
    TRY("xor %%edx, %%edx\n1: div %%rdx");
}

static const struct {
    const char *name;
    void (*run)(void);
    int only_reads; /* through rsp */
} cases[] = {
    { "push", push, 0 },
    { "call", call, 0 },
    { "call by register", call_by_register, 0 },
    { "return", return_, 1 },
    { "pop", pop, 1 },
    { "pushfq", push_flags, 0 },
    { "load", load, 1 },
    { "store", store, 0 },
    { "null", load_null, 0 },
    { "ud2", not_an_instruction, 0 },
    { "divide", divide, 0 },
};

/* Where rsp may lead; `bad` is in the middle of two pages. */
static uint64_t pages(int protection)
{
    char *memory = mmap(NULL, 2 * 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(memory != MAP_FAILED);
    return (uint64_t)memory + 4096;
}

int main(void)
{
    const struct {
        const char *name;
        uint64_t rsp;
        int can_read;
    } stacks[] = {
        { "zero", 0, 0 },
        { "unmapped", 0x12340, 0 },
        { "unaligned", 0x12343, 0 },
        { "no access", pages(PROT_NONE), 0 },
        { "read only", pages(PROT_READ), 1 },
        { "noncanonical", 0x8000000000001230, 0 },
        { "kernel", 0xffffffff81000000, 0 },
        { "the end", 0xfffffffffffffff8, 0 },
    };
    static char own[65536];
    stack_t stack = { .ss_sp = own, .ss_size = sizeof(own) };
    struct sigaction action = { .sa_sigaction = mend, .sa_flags = SA_SIGINFO | SA_ONSTACK };

    CHECK(sigaltstack(&stack, NULL) == 0);
    for (int signo = SIGILL; signo <= SIGSEGV; signo++)
        if (signo == SIGILL || signo == SIGBUS || signo == SIGFPE || signo == SIGSEGV)
            CHECK(sigaction(signo, &action, NULL) == 0);
    for (size_t s = 0; s < sizeof(stacks) / sizeof(stacks[0]); s++)
        for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
            if (stacks[s].can_read && cases[c].only_reads)
                continue;
            bad = stacks[s].rsp;
            faults = 0;
            for (int i = 0; i < REPEATS; i++)
                cases[c].run();
            CHECK(faults == REPEATS);
            printf("%s %s: signal %d code %d trap %d %s\n", stacks[s].name, cases[c].name,
                   signo_seen, code_seen, trap_seen,
                   address_seen == 0             ? "at 0"
                   : address_seen + 8 == bad     ? "below"
                   : address_seen == bad         ? "there"
                   : address_seen == bad + 8     ? "above"
                   : address_seen == at          ? "at the instruction"
                                                 : "elsewhere");
        }
    return 0;
}
