// SPDX-License-Identifier: MIT
/* Bytes that are no instruction: a lock prefix where none may be, too many prefixes, wrong registers; alone, after other
 * instructions, and in front of a page that is not there.  Each raises what the processor raises. */
#define _GNU_SOURCE
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { PAGE = 4096 };

static sigjmp_buf back;
static unsigned char *code;
static volatile int seen, seen_code;
static volatile long at, address, error, trap, resumes;

static void on_fault(int signo, siginfo_t *info, void *pointer)
{
    const greg_t *regs = ((ucontext_t *)pointer)->uc_mcontext.gregs;

    seen = signo;
    seen_code = info->si_code;
    at = (long)(regs[REG_RIP] - (greg_t)(uintptr_t)code);
    address = info->si_addr ? (long)((unsigned char *)info->si_addr - code) : -1;
    error = (long)regs[REG_ERR];
    trap = (long)regs[REG_TRAPNO];
    resumes = (long)(regs[REG_EFL] >> 16 & 1);
    siglongjmp(back, 1);
}

static const struct {
    const char *name;
    unsigned char bytes[24];
    int length;
} tries[] = {
    { "lock nop", { 0xf0, 0x90 }, 2 },
    { "lock add of a register", { 0xf0, 0x01, 0xc0 }, 3 },
    { "lock mov", { 0xf0, 0x89, 0x07 }, 3 },
    { "15 bytes", { 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x90 }, 15 },
    { "16 bytes", { 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x90 }, 16 },
    { "16 bytes with a number", { 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x48, 0x81, 0xc0, 1, 2, 3, 4 }, 17 },
    { "prefixes", { 0xf3, 0xf3, 0xf3, 0xf3, 0xf3, 0xf3, 0xf3, 0xf3, 0xf3, 0xf3, 0xf3, 0xf3, 0xf3, 0xf3, 0xf3, 0xf3, 0xf3, 0xf3, 0xf3, 0xf3 }, 20 },
    { "66 in front of VEX", { 0x66, 0xc5, 0xf8, 0x28, 0xc0 }, 5 },
    { "REX in front of VEX", { 0x48, 0xc5, 0xf8, 0x28, 0xc0 }, 5 },
    { "lock in front of VEX", { 0xf0, 0xc5, 0xf8, 0x28, 0xc0 }, 5 },
    { "mov cs", { 0x8e, 0xc8 }, 2 },
    { "segment register 7", { 0x8c, 0xf8 }, 2 },
    { "push es", { 0x06 }, 1 },
    { "ud2", { 0x0f, 0x0b }, 2 },
    { "hlt", { 0xf4 }, 1 },
};

static void run(const char *where, size_t offset, size_t i)
{
    seen = seen_code = 0;
    at = address = error = trap = resumes = 0;
    if (!sigsetjmp(back, 1))
        ((void (*)(void))(void *)(code + offset))();
    printf("%s %s: signal %d, code %d, at %ld, address %ld, error %lx, trap %ld, RF %ld\n", tries[i].name, where, seen, seen_code,
           seen ? at - (long)offset : 0, address < 0 ? -1 : seen ? address - (long)offset : 0, (unsigned long)error, trap, resumes);
}

static void alone(size_t i)
{
    memset(code, 0xc3, PAGE);
    memcpy(code, tries[i].bytes, (size_t)tries[i].length);
    run("alone", 0, i);
}

static void behind_others(size_t i)
{
    static const unsigned char some[] = { 0x90, 0x48, 0x31, 0xc0, 0x48, 0xff, 0xc0 };

    memset(code, 0xc3, PAGE);
    memcpy(code + 64, some, sizeof(some));
    memcpy(code + 64 + sizeof(some), tries[i].bytes, (size_t)tries[i].length);
    run("behind others", 64, i);
}

static void before_nothing(size_t i)
{
    size_t offset = PAGE - (size_t)(tries[i].length < 15 ? tries[i].length : 14);

    memset(code, 0xc3, PAGE);
    memcpy(code + offset, tries[i].bytes, PAGE - offset);
    run("before nothing", offset, i);
}

static void deaths(size_t i)
{
    int status;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        signal(SIGILL, SIG_DFL);
        signal(SIGSEGV, SIG_DFL);
        alone(i);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    printf("%s: %s %d\n", tries[i].name, WIFSIGNALED(status) ? "signal" : "exit", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

    CHECK(sigaction(SIGILL, &action, NULL) == 0 && sigaction(SIGSEGV, &action, NULL) == 0);
    code = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(code != MAP_FAILED && munmap(code + PAGE, PAGE) == 0);
    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        alone(i);
        behind_others(i);
        before_nothing(i);
    }
    deaths(0);
    deaths(4);
    return 0;
}
