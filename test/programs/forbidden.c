// SPDX-License-Identifier: MIT
/* Instructions that the program has the kernel forbid and allow again: rdtsc, rdtscp (PR_SET_TSC), cpuid (ARCH_SET_CPUID,
 * where the processor can); in children and in an executed program, too. */
#define _GNU_SOURCE
#include "check.h"
#include <asm/prctl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static volatile int faults, code;
static volatile long resumes, skip;

/* Goes on behind the instruction. */
static void on_segv(int signo, siginfo_t *info, void *pointer)
{
    greg_t *regs = ((ucontext_t *)pointer)->uc_mcontext.gregs;

    (void)signo;
    faults++;
    code = info->si_code;
    resumes = (long)(regs[REG_EFL] >> 16 & 1);
    regs[REG_RIP] += skip;
    regs[REG_RAX] = 1;
}

static uint32_t stamp(void)
{
    uint32_t low, high;

    skip = 2;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return low;
}

static uint32_t stamp_p(void)
{
    uint32_t low, high, aux;

    skip = 3;
    __asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(aux));
    return low;
}

static uint32_t leaves(void)
{
    uint32_t a = 0, b, c = 0, d;

    skip = 2;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return a;
}

static void run(const char *when)
{
    faults = code = 0;
    for (int i = 0; i < 3; i++) {
        uint32_t first = stamp(), second = stamp_p();

        CHECK((faults == 0) == (first != 1 && second != 1));
    }
    printf("%s: %d faults, code %d, RF %ld\n", when, faults, code, faults ? resumes : 0);
}

static int end_of(pid_t child)
{
    int status;

    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static int setting(void)
{
    int value = 0;

    CHECK(prctl(PR_GET_TSC, &value) == 0);
    return value;
}

static void children(const char *self)
{
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        faults = 0;
        stamp();
        _exit(setting() * 10 + faults);
    }
    printf("child %d\n", end_of(child));
    child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        stamp();
        _exit(0);
    }
    printf("dead child %d\n", end_of(child));
    child = fork();
    if (child == 0) {
        execl(self, self, "executed", (char *)NULL);
        _exit(98);
    }
    printf("program %d\n", end_of(child));
}

static void forbid_cpuid(void)
{
    faults = 0;
    if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0) != 0) {
        puts("cpuid as always");
        return;
    }
    leaves();
    printf("cpuid: %d faults, code %d\n", faults, code);
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1) == 0);
    faults = 0;
    CHECK(leaves() != 1 && !faults);
}

int main(int argc, char **argv)
{
    struct sigaction action = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO };

    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    if (argc > 1) {
        stamp();
        return setting() * 10 + faults;
    }
    run("before");
    CHECK(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0);
    run("forbidden");
    children(argv[0]);
    CHECK(prctl(PR_SET_TSC, PR_TSC_ENABLE) == 0);
    run("allowed");
    forbid_cpuid();
    return 0;
}
