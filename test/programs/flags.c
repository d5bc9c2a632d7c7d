// SPDX-License-Identifier: MIT
/* Flags live across stores, loads, calls and block ends: carry chains in memory, loops that
 * keep carry over dec, lahf/sahf, flags returned by functions. */
#include "check.h"

uint64_t add_big(uint64_t *to, const uint64_t *from, uint64_t words);
uint64_t flag_calls(uint64_t n);

__asm__(".pushsection .text\n.globl add_big\nadd_big:\n"
        "xor %eax, %eax; mov %rdx, %rcx\n" /* clears carry */
        "1: mov (%rsi), %r8; adc %r8, (%rdi); lea 8(%rdi), %rdi; lea 8(%rsi), %rsi; dec %rcx; jnz 1b\n"
        "setc %al; ret\n"
        "set_flags: push %rbx; cmp %rdi, %rsi; mov $5, %ebx; mov %rbx, flag_store(%rip); pop %rbx; ret\n"
        ".comm flag_store,64,64\n"
        ".globl flag_calls\nflag_calls:\n"
        "push %rbx; push %r12; xor %ebx, %ebx; mov %rdi, %r12; mov $50, %esi\n"
        "2: mov %r12, %rdi; call set_flags; jb 3f; adc $2, %rbx; jmp 4f\n"
        "3: seto %al; movzbl %al, %eax; lea 1(%rbx,%rax), %rbx\n"
        "4: mov %bl, flag_store+8(%rip); lahf; mov %ah, flag_store+9(%rip); sahf; dec %r12; jnz 2b\n"
        "mov %rbx, %rax; pop %r12; pop %rbx; ret\n.popsection\n");

int main(void)
{
    uint64_t a[32], b[32], sum = 0, carry = 0;

    memset(a, 0xff, sizeof(a));
    memset(b, 0, sizeof(b));
    b[0] = 1;
    CHECK(add_big(a, b, 32) == 1);
    for (int i = 0; i < 32; i++)
        CHECK(a[i] == 0);
    for (uint64_t i = 1; i < 400; i++) {
        for (int k = 0; k < 32; k++)
            b[k] = i * 0xf123456789abcdefu * (uint64_t)(k + 1);
        carry += add_big(a, b, 32);
        sum += flag_calls(i);
    }
    printf("%llu %llu %016llx\n", (unsigned long long)sum, (unsigned long long)carry, (unsigned long long)check_hash(a, sizeof(a)));
    return 0;
}
