// SPDX-License-Identifier: MIT
// libs: pthread
// cpu: xsave
// options: window=300
/* Where the last x87 instruction was, which operand and opcode it had: as fnstenv, fnsave, fxsave and xsave store it, in
 * signal frames, behind calls, in other threads and processes, behind code that is gone.  Some processors (AMD's) tell only
 * fnstenv and fnsave, and forget whenever the kernel has another thread run: there it is what it should be, or 0, or (some
 * virtual machines) its lower half.  Intel's newer ones keep the operand and the opcode of exceptions only. */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static double data[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
static _Alignas(64) unsigned char image[4096];
static uint64_t sum;

static int tells;          /* the processor is one that always tells the address */
static int tells_operands; /* and the operand's */

static uint64_t field(size_t at, size_t bytes)
{
    uint64_t value = 0;

    memcpy(&value, image + at, bytes);
    return value;
}

static void check(uint64_t found, uint64_t wanted)
{
    CHECK(found == wanted || (!tells && (!found || found == (uint32_t)wanted)));
}

static void check_operand(uint64_t found, uint64_t wanted)
{
    if (tells && !tells_operands)
        CHECK(found == 0);
    else
        check(found, wanted);
}

static uint64_t opcode_of(uint64_t code)
{
    const unsigned char *bytes = (const unsigned char *)(uintptr_t)code;

    while ((*bytes & 0xf8) != 0xd8)
        bytes++;
    return (bytes[0] & 7u) << 8 | bytes[1];
}

static void check_wide(uint64_t code, const void *operand, uint64_t opcode)
{
    check(field(8, 8), code);
    check_operand(field(16, 8), (uint64_t)(uintptr_t)operand);
    CHECK(field(6, 2) == opcode || !field(6, 2));
}

static void check_narrow(uint64_t code, const void *operand, uint64_t opcode)
{
    check(field(12, 4), (uint32_t)code);
    check_operand(field(20, 4), (uint32_t)(uintptr_t)operand);
    CHECK((field(18, 2) & 0x7ff) == opcode || !(field(18, 2) & 0x7ff));
}

/* `gone`: the code is not there any more. */
static void ask(const char *who, uint64_t code, const void *operand, int gone)
{
    uint64_t opcode = code && !gone ? opcode_of(code) : 0x407;

    memset(image, 0, sizeof(image));
    __asm__ volatile("fnstenv %0; fldenv %0" : "=m"(image));
    check_narrow(code, operand, opcode);
    __asm__ volatile("fnsave %0; frstor %0" : "=m"(image));
    check_narrow(code, operand, opcode);
    memset(image, 0, sizeof(image));
    __asm__ volatile("fxsave64 %0" : "=m"(image));
    check_wide(code & (tells ? UINT32_MAX : ~0ull), (const void *)((uintptr_t)operand & (tells ? UINT32_MAX : ~0ull)), opcode);
    memset(image, 0, sizeof(image));
    __asm__ volatile("xsave64 %0" : "=m"(image) : "a"(1), "d"(0));
    check_wide(code & (tells ? UINT32_MAX : ~0ull), (const void *)((uintptr_t)operand & (tells ? UINT32_MAX : ~0ull)), opcode);
    puts(who);
}

static uint64_t add(const double *what)
{
    uint64_t code;

    __asm__ volatile("lea 1f(%%rip), %0; fldz; 1: faddl %1; jmp 2f; ud2; 2: fstp %%st(0)" : "=r"(code) : "m"(*what));
    __asm__ volatile("lea 1f(%%rip), %0; fld1; 1: faddl %1; jmp 2f; ud2; 2: nop" : "=r"(code) : "m"(*what));
    return code;
}

/* Its registers are not those that translated code uses. */
static uint64_t multiply(const double *what)
{
    uint64_t code;

    __asm__ volatile("mov %1, %%r14; mov $2, %%r15d; fninit; fld1; lea 1f(%%rip), %0; 1: fmull -16(%%r14,%%r15,8); jmp 2f; ud2; 2:"
                     : "=r"(code) : "r"(what) : "r14", "r15");
    return code;
}

static void clear(void)
{
    __asm__ volatile("fninit");
}

static void work(void)
{
    for (int i = 0; i < 2000; i++)
        sum = sum * 5 + (uint64_t)i;
}

static void *thread(void *unused)
{
    uint64_t code = add(&data[3]);

    (void)unused;
    for (int i = 0; i < 3; i++)
        usleep(100);
    ask("thread", code, &data[3], 0);
    clear();
    return NULL;
}

static volatile uint64_t expected;

static void on_signal(int signo, siginfo_t *info, void *raw)
{
    ucontext_t *context = raw;

    (void)signo;
    (void)info;
    check(context->uc_mcontext.fpregs->rip, expected);
    check_operand(context->uc_mcontext.fpregs->rdp, (uint64_t)(uintptr_t)&data[5]);
    puts("frame");
}

static uint64_t raised; /* where the handler of the exception is told that it comes from */

static void on_exception(int signo, siginfo_t *info, void *raw)
{
    ucontext_t *context = raw;

    (void)signo;
    (void)info;
    raised = context->uc_mcontext.fpregs->rip;
    context->uc_mcontext.fpregs->swd = 0;
}

/* An exception that is not masked and not raised yet: then all processors tell.  Only on some virtual machines it is
 * half of the address if another thread has run since, natively, too: then once more. */
static void pending(void)
{
    static const uint16_t unmasked = 0x37b; /* division by zero */
    static const double zero;
    uint64_t code;
    int tries = 0;

    do {
        CHECK(tries++ < 100);
        clear();
        __asm__ volatile("fldcw %1; fld1; lea 1f(%%rip), %0; 1: fdivl %2; jmp 2f; ud2; 2: nop" : "=r"(code) : "m"(unmasked), "m"(zero));
        raised = 0;
        memset(image, 0, sizeof(image));
        __asm__ volatile("fxsave64 %0" : "=m"(image));
        __asm__ volatile("fwait"); /* raises it */
    } while (field(8, 8) != code || field(16, 8) != (uint64_t)(uintptr_t)&zero || raised != code);
    CHECK(field(6, 2) == opcode_of(code) || !field(6, 2));
    clear();
    puts("pending");
}

/* fld1; faddl [rdi]; ret */
static const unsigned char adds[] = { 0xd9, 0xe8, 0xdc, 0x07, 0xc3 };

/* At `address`, or anywhere (0). */
static unsigned char *place(uintptr_t address, const unsigned char *code, size_t bytes)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (address ? MAP_FIXED_NOREPLACE : 0);
    unsigned char *page = mmap((void *)address, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, flags, -1, 0);

    CHECK(page != MAP_FAILED);
    return memcpy(page, code, bytes);
}

static void generated(void)
{
    unsigned char *page = place(0, adds, sizeof(adds));

    ((void (*)(const double *))(uintptr_t)page)(&data[2]);
    CHECK(munmap(page, 4096) == 0);
    work();
    ask("gone", (uint64_t)(uintptr_t)page + 2, &data[2], 1);
    clear();
}

/* Code whose addresses differ in the upper half only: fnstenv and fnsave tell the lower one. */
static void same_half(void)
{
    static const unsigned char none[] = { 0x90, 0x90, 0x90, 0xc3 };
    unsigned char *first = place((uintptr_t)1 << 44, none, sizeof(none));
    unsigned char *second = place(((uintptr_t)1 << 44) + ((uintptr_t)1 << 32), adds, sizeof(adds));

    ((void (*)(const double *))(uintptr_t)first)(&data[6]);
    ((void (*)(const double *))(uintptr_t)second)(&data[6]);
    ask("same half", (uint64_t)(uintptr_t)second + 2, &data[6], 0);
    clear();
    CHECK(munmap(first, 4096) == 0 && munmap(second, 4096) == 0);
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
    pthread_t other;
    uint64_t code;
    int status;

    setvbuf(stdout, NULL, _IOLBF, 0);
    __asm__ volatile("fninit; fldl %1; fxsave64 %0; fninit" : "=m"(image) : "m"(data));
    tells = field(8, 8) != 0;
    tells_operands = field(16, 8) != 0;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (int i = 0; i < 3; i++) {
        code = add(&data[i]);
        ask("add", code, &data[i], 0);
        clear();
        code = multiply(&data[i]);
        ask("multiply", code, &data[i], 0);
        work();
        ask("later", code, &data[i], 0);
        clear();
    }
    code = add(&data[4]);
    CHECK(pthread_create(&other, NULL, thread, NULL) == 0 && pthread_join(other, NULL) == 0);
    ask("main", code, &data[4], 0);
    clear();
    expected = add(&data[5]);
    raise(SIGUSR1);
    ask("after", expected, &data[5], 0);
    fflush(stdout);
    if (fork() == 0) {
        ask("child", expected, &data[5], 0);
        _exit(0);
    }
    CHECK(wait(&status) > 0 && status == 0);
    clear();
    action.sa_sigaction = on_exception;
    CHECK(sigaction(SIGFPE, &action, NULL) == 0);
    pending();
    generated();
    same_half();
    ask("none", 0, NULL, 0);
    return 0;
}
