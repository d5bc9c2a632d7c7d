// SPDX-License-Identifier: MIT
/* r12-r15 in every role: base, index, source, destination, implicit by push/pop, locked
 * exchanges, byte and word parts; a mixing loop in asm against the same in C. */
#include "check.h"

uint64_t mix_asm(uint64_t *memory, uint64_t rounds);

__asm__(".pushsection .text\n.globl mix_asm\nmix_asm:\n"
        "push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        "mov %rdi, %r14; mov %rsi, %r13; mov $0x9e3779b97f4a7c15, %r15; xor %r12d, %r12d\n"
        "1: mov (%r14,%r12,8), %rax; add %r15, %rax; mov %rax, (%r14,%r12,8)\n"
        "rol $13, %r15; xor %rax, %r15; push %r15; pop %r8\n"
        "mov %r15b, 512(%r14); mov %r15w, 514(%r14); mov %r15d, 516(%r14); movzbl 512(%r14), %ebx; add %rbx, %r15\n"
        "xadd %r15, 520(%r14); xchg %r15, 528(%r14); mov %r15, %rax; mov %r8, %rdx; cmpxchg %r14, 528(%r14); mov %rdx, 528(%r14)\n"
        "bswap %r15; imul $77, %r15, %r15; lea 3(%r15,%r14), %rbp; sub %r14, %rbp; mov %rbp, %r15\n"
        "push 520(%r14); pop 536(%r14); push %r14; mov $0, %r14d; pop %r14\n"
        "shld $7, %r15, 544(%r14); shrd $9, %r15, %r8; sbb %r8, 552(%r14); adc %r15, %r8; xor %r8, %r15\n"
        "mov %r15, %rax; mul %r15; xor %rdx, %r15; mulx %r15, %r9, %r10; xor %r10, %r15; andn %r9, %r15, %r10; add %r10, %r15\n"
        "movq %r15, %xmm3; movq %xmm3, 560(%r14); pinsrq $1, %r15, %xmm3; movdqu %xmm3, 568(%r14); pextrq $1, %xmm3, %r15\n"
        "crc32q %r15, %rbx; mov %ebx, 584(%r14); popcnt %r15, %r11; add %r11, %r15; cmovc %r13, %r11; mov %r11, 592(%r14)\n"
        "inc %r12; and $63, %r12; dec %r13; jnz 1b\n"
        "mov %r15, %rax; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n.popsection\n");

int main(void)
{
    static uint64_t memory[80], again[80];
    uint64_t a, b;

    for (int i = 0; i < 80; i++)
        memory[i] = again[i] = (uint64_t)i * 1234567;
    a = mix_asm(memory, 5000);
    b = mix_asm(again, 5000);
    CHECK(a == b);
    for (int i = 0; i < 80; i++)
        CHECK(memory[i] == again[i]);
    printf("%016llx %016llx\n", (unsigned long long)a, (unsigned long long)check_hash(memory, 64 * 8));
    return 0;
}
