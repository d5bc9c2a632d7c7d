// SPDX-License-Identifier: MIT
/* The syscall instruction: rcx becomes the return address, r11 the flags, all else stays. */
#include "check.h"

struct seen {
    uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15;
};

extern const char after_call[];
void call_gettid(struct seen *out);

__asm__(".pushsection .text\n.globl call_gettid\ncall_gettid:\n"
        "push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; push %rdi\n"
        "mov $186, %eax; mov $0x1b, %ebx; mov $0xd, %edx; mov $0x5, %esi; mov $0xd1, %edi; mov $0xb, %ebp\n"
        "mov $8, %r8; mov $9, %r9; mov $10, %r10; mov $12, %r12; mov $13, %r13; mov $14, %r14; mov $15, %r15\n"
        "stc\nsyscall\n.globl after_call\nafter_call:\n"
        "xchg %rdi, (%rsp)\n" /* out; the call's rdi in its place */
        "mov %rax, (%rdi); mov %rbx, 8(%rdi); mov %rcx, 16(%rdi); mov %rdx, 24(%rdi); mov %rsi, 32(%rdi)\n"
        "pop %rax; mov %rax, 40(%rdi); mov %rbp, 48(%rdi); mov %r8, 56(%rdi); mov %r9, 64(%rdi); mov %r10, 72(%rdi)\n"
        "mov %r11, 80(%rdi); mov %r12, 88(%rdi); mov %r13, 96(%rdi); mov %r14, 104(%rdi); mov %r15, 112(%rdi)\n"
        "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n.popsection\n");

int main(void)
{
    struct seen s;

    for (int i = 0; i < 1000; i++) {
        call_gettid(&s);
        CHECK(s.rcx == (uint64_t)after_call && (int64_t)s.rax > 0);
        CHECK((s.r11 & 0x201) == 0x201);
        CHECK(s.rbx == 0x1b && s.rdx == 0xd && s.rsi == 5 && s.rdi == 0xd1 && s.rbp == 0xb);
        CHECK(s.r8 == 8 && s.r9 == 9 && s.r10 == 10 && s.r12 == 12 && s.r13 == 13 && s.r14 == 14 && s.r15 == 15);
    }
    puts("registers ok");
    return 0;
}
