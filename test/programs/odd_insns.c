// SPDX-License-Identifier: MIT
// flags: -mmovbe -no-pie
// cpu: movbe
/* Instructions with unusual memory operands or control flow: push/pop/call/jmp through memory,
 * enter/leave, ret n, loop, jrcxz, xlat, movbe, movnti, pushf/popf, bit tests far from their base. */
#include "check.h"

uint64_t odd_slot[64];
uint64_t odd_indirect(uint64_t x);
uint64_t odd_enter(uint64_t x);
uint64_t odd_stack_args(uint64_t x);
uint64_t odd_loops(uint64_t x);
uint64_t odd_push_pop(uint64_t x);
uint64_t odd_table_call(uint64_t x);

__asm__(".pushsection .text\n"
        "odd_target: lea 1(%rdi,%rdi,2), %rax; ret\n"
        "odd_pointer: .quad 0\n"
        ".globl odd_indirect\nodd_indirect:\n"
        "push %rbx; lea odd_target(%rip), %rbx; mov %rbx, odd_slot(%rip); mov %rbx, odd_slot+8(%rip)\n"
        "call *odd_slot(%rip); mov %rax, %rdi\n"           /* call through memory */
        "push %rbx; call *(%rsp); add $8, %rsp\n"           /* call through the stack pointer's word */
        "mov %rax, %rdi; lea odd_slot(%rip), %rbx; pop %rcx; push %rcx; xchg %rcx, %rbx; xchg %rcx, %rbx\n"
        "call *8(%rbx); pop %rbx; mov %rax, %rdi; jmp *odd_slot(%rip)\n" /* a tail jump through memory */
        ".globl odd_enter\nodd_enter:\n"
        "enter $64, $0; mov %rdi, -64(%rbp); mov $5, %ecx\n"
        "1: add %rcx, -64(%rbp); addq $3, -8(%rbp); loop 1b\n"
        "mov -64(%rbp), %rax; leave; ret\n"
        /* r14 in use, r15 and r10 in the address, r8 and r9 arguments: no register is left over */
        ".globl odd_table_call\nodd_table_call:\n"
        "push %r14; push %r15; lea odd_target(%rip), %rax; lea odd_slot(%rip), %r15; mov $5, %r10d; mov %rax, 40(%r15)\n"
        "mov %rdi, %r14; jmp 8f; 8: add $3, %r14; mov %r14, %rdi; mov $1, %r8d; mov $2, %r9d; mov $4, %r11d\n"
        "call *(%r15,%r10,8); add %r14, %rax; add %r15, %rax; sub %r15, %rax; pop %r15; pop %r14; ret\n"
        "odd_callee: mov 8(%rsp), %rax; add 16(%rsp), %rax; ret $16\n"
        ".globl odd_stack_args\nodd_stack_args:\n"
        "mov %rsp, %rsi; push %rdi; push $-7; call odd_callee; cmp %rsp, %rsi; je 2f; ud2\n2: ret\n"
        ".globl odd_loops\nodd_loops:\n"
        "xor %eax, %eax; mov %rdi, %rcx; jrcxz 4f\n"
        "3: inc %rax; test %rcx, %rcx; loopne 3b\n"
        "4: mov $3, %ecx; 5: inc %rax; cmp %eax, %eax; loope 5b; jecxz 6f; ud2\n6: ret\n"
        ".globl odd_push_pop\nodd_push_pop:\n"
        "lea odd_slot(%rip), %rdx; mov %rdi, 16(%rdx); pushq 16(%rdx); popq 24(%rdx)\n" /* memory to memory by the stack */
        "push %rsp; pop %rax; sub %rsp, %rax; push $1; popw 32(%rdx); popw 34(%rdx); popw 36(%rdx); popw 38(%rdx)\n"
        "add 24(%rdx), %rax; add 32(%rdx), %rax; pushf; orq $1, (%rsp); popf; adc $0, %rax\n"
        "mov %rsp, %r8; mov %rsp, %r9; push (%rsp); pop (%rsp); cmp %r8, %r9; je 7f; ud2\n7: ret\n.popsection\n");

/* Without a shadow stack rdssp does nothing: what the registers held counts, also for hooks in search of a free one. */
static uint64_t shadow_stack(uint64_t n)
{
    uint64_t sum = n;

    __asm__ volatile("lea 1(%0), %%rax; lea 2(%0), %%rcx; lea 3(%0), %%rdx; lea 4(%0), %%rsi; lea 5(%0), %%rdi\n\t"
                     "lea 6(%0), %%r8; lea 7(%0), %%r9; lea 8(%0), %%r10; lea 9(%0), %%r11; mov %0, odd_slot(%%rip)\n\t"
                     "rdsspq %%rax; rdsspq %%rcx; rdsspd %%edx; rdsspq %%rsi; rdsspd %%edi\n\t"
                     "rdsspd %%r8d; rdsspq %%r9; rdsspq %%r10; rdsspd %%r11d\n\t"
                     "add %%rax, %0; add %%rcx, %0; add %%rdx, %0; add %%rsi, %0; add %%rdi, %0\n\t"
                     "add %%r8, %0; add %%r9, %0; add %%r10, %0; add %%r11, %0"
                     : "+r"(sum) : : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
    return sum;
}

static uint64_t bits(uint64_t seed)
{
    static uint8_t bitmap[8192];
    uint64_t sum = 0;

    memset(bitmap, 0, sizeof(bitmap));
    for (int i = 0; i < 500; i++) {
        int64_t bit = (int64_t)(check_random(&seed) % 60000) - 30000; /* also before the base */
        unsigned char was;

        __asm__ volatile("btsq %2, %1; setc %0" : "=r"(was), "+m"(*(uint64_t *)(bitmap + 4096)) : "r"(bit) : "cc", "memory");
        sum += was;
        __asm__ volatile("btcq %2, %1; setc %0" : "=r"(was), "+m"(*(uint64_t *)(bitmap + 4096)) : "r"(bit / 2) : "cc", "memory");
        sum += (uint64_t)was * 3;
        __asm__ volatile("btrl $5, %1; setc %0" : "=r"(was), "+m"(*(uint32_t *)(bitmap + 4096)) : : "cc", "memory");
        sum += (uint64_t)was * 7;
    }
    return sum ^ check_hash(bitmap, sizeof(bitmap));
}

static uint64_t moves(void)
{
    static uint8_t table[256], out[64];
    uint64_t value = 0x1122334455667788u;

    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)(i * 7 + 1);
    for (int i = 0; i < 64; i++) {
        uint8_t al = (uint8_t)i;

        __asm__ volatile("xlatb" : "+a"(al) : "b"(table) : "memory");
        out[i] = al;
    }
    __asm__ volatile("movbe %1, %0; movntiq %1, %2" : "=m"(out[8]), "+r"(value), "=m"(out[24])::"memory");
    __asm__ volatile("movabs %%rax, odd_slot+400; movabs odd_slot+400, %%rax" : "+a"(value)::"memory");
    memcpy(out + 40, &value, 8);
    __asm__ volatile("setc %0; sfence; clflush %0; prefetcht0 %0" : "=m"(out[50])::"memory");
    out[50] = 0;
    return check_hash(out, sizeof(out));
}

int main(void)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < 300; i++) {
        CHECK(odd_indirect(i) == i * 81 + 40);
        CHECK(odd_enter(i) == i + 15);
        CHECK(odd_stack_args(i) == i - 7);
        CHECK(odd_table_call(i) == (i + 3) * 4 + 1);
        CHECK(odd_loops(i) == (i == 0 ? 3 : i + 3));
        CHECK(shadow_stack(i) == 10 * i + 45);
        sum += odd_push_pop(i);
    }
    printf("%llu %016llx %016llx\n", (unsigned long long)sum, (unsigned long long)bits(5), (unsigned long long)moves());
    return 0;
}
