// SPDX-License-Identifier: MIT
/* A list of short pieces of code that end with jumps, as compilers make of a switch: decoding that begins in the midst of one stays beside the
 * real instructions, since every 11 bytes are alike, and finds an fnstenv in the distance of a jump.  And a loop in which the constant
 * of a subtraction looks like a jump to an fnsave.  Neither is an instruction: native play goes on. */
#include "check.h"

/* mov r14, r15; mov r15, r12; jmp: 11 bytes, of which the last four say how far.  d9 37 is fnstenv [rdi]. */
__asm__(".text\n"
        ".balign 64\n"
        "list:\n"
        ".rept 24\n"
        ".byte 0x4d, 0x89, 0xfe, 0x4d, 0x89, 0xe7, 0xe9, 0xd6, 0x3a, 0xff, 0xff\n"
        ".endr\n"
        ".byte 0x4d, 0x89, 0xfe, 0x4d, 0x89, 0xe7, 0xe9, 0xd9, 0x37, 0xff, 0xff\n"
        ".rept 24\n"
        ".byte 0x4d, 0x89, 0xfe, 0x4d, 0x89, 0xe7, 0xe9, 0xb3, 0x32, 0xff, 0xff\n"
        ".endr\n"
        ".balign 64\n"
        "count_down:\n"
        "    push %rbx\n"
        "    push %rbp\n"
        "    mov %edi, %ebx\n"
        "    mov %esi, %ebp\n"
        "    xor %eax, %eax\n"
        "    jmp 2f\n"
        "1:  .byte 0x83, 0xeb, 0x01\n" /* sub ebx, 1 */
        "    .byte 0x39, 0xdd\n"       /* cmp ebp, ebx */
        "    .byte 0x73, 0x05\n"       /* jae: dd 73 05 is fnsave [rbx+5] */
        "2:  add %ebx, %eax\n"
        "    jmp 1b\n"
        "    nop\n"
        "3:  pop %rbp\n"
        "    pop %rbx\n"
        "    ret\n");

extern const uint8_t list[49 * 11];
uint32_t count_down(uint32_t from, uint32_t to);

int main(void)
{
    CHECK(list[24 * 11 + 7] == 0xd9 && list[24 * 11 + 8] == 0x37);
    CHECK(count_down(100, 10) == 100 * 101 / 2 - 10 * 11 / 2);
    printf("list of %zu bytes, %016lx\n", sizeof(list), check_hash(list, sizeof(list)));
    return 0;
}
