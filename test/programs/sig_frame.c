// SPDX-License-Identifier: MIT
// libs: m
/* What a handler finds in its frame, field by field: printed, so that a traced run must say the same as a native
 * one.  Addresses are printed relative to what the program knows. */
#define _GNU_SOURCE
#include "check.h"
#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static sigjmp_buf back;
static uintptr_t marks[4];
static char alternate[65536] __attribute__((aligned(4096)));
static char *page;
static uintptr_t stack_low, stack_high;
static volatile int shown;

/* An address as something that is the same in every run. */
static void place(const char *name, uintptr_t value)
{
    const char *bases[] = { "page", "alternate", "stack" };
    uintptr_t low[] = { (uintptr_t)page, (uintptr_t)alternate, stack_low };
    uintptr_t high[] = { (uintptr_t)page + 8192, (uintptr_t)alternate + sizeof(alternate), stack_high };

    for (int i = 0; i < 3; i++)
        if (value >= low[i] && value < high[i]) {
            if (i == 2)
                printf(" %s=stack", name);
            else
                printf(" %s=%s+%lu", name, bases[i], (unsigned long)(value - low[i]));
            return;
        }
    for (int i = 0; i < 4; i++)
        if (value == marks[i]) {
            printf(" %s=mark%d", name, i);
            return;
        }
    printf(" %s=%s", name, value < 4096 ? "low" : "other");
}

static void show_fpstate(const ucontext_t *context)
{
    const unsigned char *fp = (const void *)context->uc_mcontext.fpregs;
    uint32_t magic1, bytes, magic2, mxcsr;
    uint64_t features;

    memcpy(&magic1, fp + 464, 4);
    memcpy(&bytes, fp + 468, 4);
    memcpy(&features, fp + 472, 8);
    memcpy(&mxcsr, fp + 24, 4);
    memcpy(&magic2, fp + bytes - 4, 4);
    printf("  fp: magic %x %x, features %lx, bytes %u, aligned %d, cw %x, mxcsr %x\n", magic1, magic2,
           (unsigned long)features, bytes, ((uintptr_t)fp & 63) == 0,
           context->uc_mcontext.fpregs->cwd, mxcsr);
}

static void on_signal(int signo, siginfo_t *info, void *raw)
{
    const ucontext_t *context = raw;
    const greg_t *r = context->uc_mcontext.gregs;
    uint64_t mask;
    bool faults = signo == SIGSEGV || signo == SIGBUS || signo == SIGILL || signo == SIGFPE || signo == SIGTRAP;

    memcpy(&mask, &context->uc_sigmask, 8);
    printf("signal %d code %d errno %d flags %lx link %p", signo, info->si_code, info->si_errno,
           context->uc_flags, (void *)context->uc_link);
    printf(" onstack %d/%lu", context->uc_stack.ss_flags, (unsigned long)context->uc_stack.ss_size);
    printf(" mask %lx segments %lx trap %lld err %llx efl %llx\n ", (unsigned long)mask,
           (unsigned long)r[REG_CSGSFS], r[REG_TRAPNO], r[REG_ERR], r[REG_EFL] & ~0x8d5ll);
    if (faults && info->si_code > 0 && info->si_code != SI_KERNEL)
        place("addr", (uintptr_t)info->si_addr);
    if (faults)
        place("rip", (uintptr_t)r[REG_RIP]);
    if (signo == SIGSEGV || signo == SIGBUS)
        place("cr2", (uintptr_t)r[REG_CR2]);
    if (info->si_code == SI_QUEUE)
        printf(" value %d pid %d uid %d", info->si_value.sival_int, info->si_pid == getpid(), info->si_uid == getuid());
    if (info->si_code == SI_TIMER)
        printf(" value %d timer overrun %d", info->si_value.sival_int, info->si_overrun);
    place("handler's stack", (uintptr_t)&mask);
    printf(" aligned %ld\n", (long)(((uintptr_t)__builtin_frame_address(0) + 16) & 15));
    show_fpstate(context);
    shown++;
    if (faults)
        siglongjmp(back, signo);
}

/* Each fault has its own label, so that rip can be told. */
#define FAULT(number, text, ...)                                                            \
    if (sigsetjmp(back, 1) == 0) {                                                          \
        __asm__ volatile("lea 1f(%%rip), %%rax; mov %%rax, %0" : "=m"(marks[number])::"rax"); \
        __asm__ volatile("1: " text __VA_ARGS__);                                           \
        puts("no fault");                                                                   \
    }

static void all_faults(void)
{
    volatile float zero = 0, one = 1;

    FAULT(0, "movl $1, 0x10", :: : "memory")
    FAULT(1, "movl %0, %%eax", ::"m"(page[4100]) : "eax")
    FAULT(1, "movl $1, %0", : "=m"(page[4100])::)
    FAULT(2, "ud2", ::)
    FAULT(3, "int3; nop", ::)
    FAULT(0, "hlt", ::)
    FAULT(1, "mov $0x800000000000, %%rax; movb (%%rax), %%al", :: : "rax")
    FAULT(2, "mov $0, %%ecx; mov $1, %%eax; cltd; idivl %%ecx", :: : "eax", "ecx", "edx")
    FAULT(3, "movaps 8(%0), %%xmm0", ::"r"(page) : "xmm0")
    FAULT(0, "mov $0x80000000, %%eax; mov $-1, %%ecx; cltd; idivl %%ecx", :: : "eax", "ecx", "edx")
    feenableexcept(FE_DIVBYZERO);
    if (sigsetjmp(back, 1) == 0)
        one /= zero;
    fedisableexcept(FE_ALL_EXCEPT);
    feclearexcept(FE_ALL_EXCEPT);
    if (sigsetjmp(back, 1) == 0)
        ((void (*)(void))(uintptr_t)page)(); /* not executable */
    if (sigsetjmp(back, 1) == 0)
        ((void (*)(void))(uintptr_t)0x20)();
    if (sigsetjmp(back, 1) == 0)
        raise(SIGSEGV);
}

static void others(void)
{
    union sigval value = { .sival_int = 42 };
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 2, .sigev_value = { 7 } };
    struct itimerspec soon = { .it_value = { .tv_nsec = 1000000 } };
    timer_t timer;
    int before = shown;

    raise(SIGUSR1);
    kill(getpid(), SIGUSR2);
    sigqueue(getpid(), SIGRTMIN + 1, value);
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &soon, NULL) == 0);
    while (shown < before + 4)
        ;
    CHECK(timer_delete(timer) == 0);
}

static void catch_all(int flags)
{
    int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGUSR1, SIGUSR2, SIGRTMIN + 1, SIGRTMIN + 2 };
    struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | flags };

    sigaddset(&action.sa_mask, SIGHUP);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        CHECK(sigaction(signals[i], &action, NULL) == 0);
}

int main(void)
{
    stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) }, none = { .ss_flags = SS_DISABLE };
    sigset_t some;
    char here;

    stack_low = (uintptr_t)&here - 65536;
    stack_high = (uintptr_t)&here + 65536;
    page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED && mprotect(page + 4096, 4096, PROT_NONE) == 0);
    CHECK(sigaltstack(&none, NULL) == 0); /* before that frames say 0 (sigstack.c): no call brings it back after letting go */
    catch_all(0);
    all_faults();
    others();
    sigemptyset(&some);
    sigaddset(&some, SIGWINCH);
    sigaddset(&some, SIGRTMAX);
    CHECK(sigprocmask(SIG_BLOCK, &some, NULL) == 0 && sigaltstack(&stack, NULL) == 0);
    catch_all(SA_ONSTACK | SA_NODEFER);
    all_faults();
    others();
    return 0;
}
