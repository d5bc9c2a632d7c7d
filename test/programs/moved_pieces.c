// SPDX-License-Identifier: MIT
/* Values that are moved in many ways, also as parts of vector registers: the constants of `from`, all different, to `to`.
 * With an argument it crashes at the end. */
#include "check.h"

uint64_t from[8];
uint64_t to[64];
unsigned char parts[8];
unsigned moved;

#define SET(i) __asm__ volatile("movq %1, %0" : "=m"(from[i]) : "i"(0x10101 * ((i) + 1)))

/* The next `count` words of `to` get words of `from`, with the instructions: %0 and %1 lead there. */
#define MOVE(count, instructions)                                                                  \
    do {                                                                                           \
        __asm__ volatile(instructions                                                              \
                         :                                                                         \
                         : "r"(from), "r"(to + moved)                                              \
                         : "rax", "rcx", "rdx", "rsi", "rdi", "xmm0", "xmm1", "xmm2", "memory",    \
                           "cc");                                                                  \
        for (unsigned k = 0; k < (count); k++)                                                     \
            CHECK(to[moved + k] != 0 && to[moved + k] <= 0x80808 && to[moved + k] % 0x10101 == 0); \
        moved += (count);                                                                          \
    } while (0)

static void move_general(void)
{
    MOVE(1, "mov (%0), %%rax\n mov %%rax, %%rcx\n mov %%rcx, (%1)");
    MOVE(1, "mov 8(%0), %%eax\n mov %%rax, (%1)");
    MOVE(1, "push 16(%0)\n pop (%1)");
    MOVE(1, "mov 24(%0), %%rax\n xchg %%rax, (%1)");
    MOVE(1, "lea 32(%0), %%rsi\n mov %1, %%rdi\n movsq");
    MOVE(4, "mov %0, %%rsi\n mov %1, %%rdi\n mov $4, %%ecx\n rep movsq");
    MOVE(1, "mov 48(%0), %%rax\n push %%rax\n mov $7, %%eax\n pop %%rax\n mov %%rax, (%1)");
}

static void move_vectors(void)
{
    MOVE(2, "movups (%0), %%xmm0\n movups %%xmm0, (%1)");
    MOVE(
        2,
        "movq 8(%0), %%xmm0\n movhps 24(%0), %%xmm0\n movaps %%xmm0, %%xmm1\n movups %%xmm1, (%1)");
    MOVE(2, "mov 32(%0), %%rax\n mov 40(%0), %%rcx\n movq %%rax, %%xmm0\n movq %%rcx, %%xmm1\n"
            "punpcklqdq %%xmm1, %%xmm0\n movups %%xmm0, (%1)");
    MOVE(2, "movups 16(%0), %%xmm0\n movhps %%xmm0, (%1)\n movlps %%xmm0, 8(%1)");
    MOVE(2, "movups 32(%0), %%xmm0\n pshufd $0x4e, %%xmm0, %%xmm1\n movups %%xmm1, (%1)");
    MOVE(
        2,
        "movups (%0), %%xmm0\n movups 16(%0), %%xmm1\n movaps %%xmm0, %%xmm2\n unpckhpd %%xmm1, %%xmm2\n"
        "movups %%xmm2, (%1)");
    MOVE(
        2,
        "movups (%0), %%xmm0\n movups 48(%0), %%xmm1\n shufpd $1, %%xmm1, %%xmm0\n movups %%xmm0, (%1)");
    MOVE(1, "movups 40(%0), %%xmm0\n psrldq $8, %%xmm0\n movq %%xmm0, (%1)");
    MOVE(1, "movups 8(%0), %%xmm0\n movhlps %%xmm0, %%xmm1\n movq %%xmm1, %%rax\n mov %%rax, (%1)");
    if (__builtin_cpu_supports("avx2")) {
        MOVE(4, "vmovdqu (%0), %%ymm0\n vmovdqu %%ymm0, (%1)\n vzeroupper");
        MOVE(
            2,
            "vmovdqu 32(%0), %%ymm0\n vextracti128 $1, %%ymm0, %%xmm1\n vmovdqu %%xmm1, (%1)\n vzeroupper");
        MOVE(
            4,
            "vmovdqu (%0), %%xmm0\n vinserti128 $1, 32(%0), %%ymm0, %%ymm1\n vmovdqu %%ymm1, (%1)\n vzeroupper");
        MOVE(4, "vpermq $0x1b, 8(%0), %%ymm0\n vmovdqu %%ymm0, (%1)\n vzeroupper");
    }
    if (__builtin_cpu_supports("avx512f")) {
        MOVE(8, "vmovdqu64 (%0), %%zmm0\n vmovdqu64 %%zmm0, (%1)\n vzeroupper");
        MOVE(
            4,
            "vmovdqu64 (%0), %%zmm0\n vextracti64x4 $1, %%zmm0, %%ymm1\n vmovdqu %%ymm1, (%1)\n vzeroupper");
    }
}

/* al, ah, and the bytes above them are written by three instructions. */
static void move_parts(void)
{
    __asm__ volatile("mov 56(%0), %%rax\n mov $0x77, %%al\n mov $0x66, %%ah\n mov %%rax, (%1)"
                     :
                     : "r"(from), "r"(parts)
                     : "rax", "memory");
    CHECK(parts[0] == 0x77 && parts[1] == 0x66 && parts[2] == 8);
}

int main(int argc, char **argv)
{
    (void)argv;
    SET(0);
    SET(1);
    SET(2);
    SET(3);
    SET(4);
    SET(5);
    SET(6);
    SET(7);
    move_general();
    move_vectors();
    move_parts();
    CHECK(moved >= 26 && moved <= sizeof(to) / sizeof(to[0]));
    puts("all moved");
    if (argc > 1) {
        fflush(stdout);
        *(volatile int *)0 = 1;
    }
    return 0;
}
