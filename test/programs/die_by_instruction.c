// SPDX-License-Identifier: MIT
/* A child for each instruction that raises a signal: it dies of it, natively and recorded alike, and its replay ends with
 * the same registers (rip after a trap, RF after a fault). */
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

#define DEATHS(X)                                                                                  \
    X("ud0", ".byte 0x0f, 0xff, 0xc0")                                                             \
    X("ud1", ".byte 0x0f, 0xb9, 0xc0")                                                             \
    X("ud2", "ud2")                                                                                \
    X("int3", "int3")                                                                              \
    X("int3, two bytes", ".byte 0xcd, 0x03")                                                       \
    X("int1", ".byte 0xf1")                                                                        \
    X("int 0x20", "int $0x20")                                                                     \
    X("hlt", "hlt")                                                                                \
    X("cli", "cli")                                                                                \
    X("in", "inb %%dx, %%al")                                                                      \
    X("outs", "outsb")                                                                             \
    X("rdmsr", "rdmsr")                                                                            \
    X("read of cr0", "mov %%cr0, %%rax")                                                           \
    X("invalid in 64-bit code", ".byte 0x06")                                                      \
    X("division", "xor %%ecx, %%ecx; div %%ecx")                                                   \
    X("memory that is not there", "xor %%ecx, %%ecx; mov (%%rcx), %%eax")                          \
    X("address that is none", "mov $0x8000000000000000, %%rcx; mov (%%rcx), %%eax")                \
    X("jump to nowhere", "mov $16, %%ecx; jmp *%%rcx")                                             \
    X("jump to an address that is none", "mov $0x8000000000000000, %%rcx; jmp *%%rcx")

static const char *const names[] = {
#define X(name, code) name,
    DEATHS(X)
#undef X
};

static void die_of(unsigned which)
{
    unsigned n = 0;

#define X(name, code)                                                                              \
    if (which == n++)                                                                              \
        __asm__ volatile("xor %%eax, %%eax; add $1, %%eax;" code ::: "rax", "rcx", "rdx", "memory", "cc");
    DEATHS(X)
#undef X
}

int main(void)
{
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        int status = 0;
        pid_t child;

        fflush(stdout);
        child = fork();
        if (child == 0) {
            die_of(i);
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child);
        printf("%s: signal %d\n", names[i], WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
    return 0;
}
