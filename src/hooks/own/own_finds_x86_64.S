/* SPDX-License-Identifier: MIT */
/* own_finds_x86_64.S - native play: code is passed 16 bytes at a time
 *
 * All code that a program maps is looked through before it runs: byte by byte this took a nanosecond for each, 20 ms for gcc's compiler. */

        .section .rodata
        .balign 16
ones_but_one:   .fill 16, 1, 0xfd
one:            .fill 16, 1, 0x01
third_bit:      .fill 16, 1, 0x04
reg_bits:       .fill 16, 1, 0x38
reg_is_6:       .fill 16, 1, 0x30
byte_0f:        .fill 16, 1, 0x0f
byte_31:        .fill 16, 1, 0x31
byte_60:        .fill 16, 1, 0x60
byte_a2:        .fill 16, 1, 0xa2
byte_ae:        .fill 16, 1, 0xae
byte_c7:        .fill 16, 1, 0xc7
byte_dd:        .fill 16, 1, 0xdd
byte_f8:        .fill 16, 1, 0xf8
byte_ff:        .fill 16, 1, 0xff

        .text

/* void tbd_own_mark_finds(const uint8_t *bytes, uint16_t *marks, size_t count)
 * 0f 01, 0f 03, 0f 31, 0f a2, 0f ae, 0f c7; d9 and dd with reg 6; c7 f8; 60 ff. */
        .globl  tbd_own_mark_finds
        .type   tbd_own_mark_finds, @function
tbd_own_mark_finds:
        movdqa  byte_0f(%rip), %xmm5
        movdqa  byte_31(%rip), %xmm6
        movdqa  byte_a2(%rip), %xmm7
        movdqa  byte_c7(%rip), %xmm8
        movdqa  byte_ae(%rip), %xmm9
        movdqa  ones_but_one(%rip), %xmm10
        movdqa  one(%rip), %xmm11
        movdqa  third_bit(%rip), %xmm12
        movdqa  byte_dd(%rip), %xmm13
        movdqa  reg_bits(%rip), %xmm14
        movdqa  reg_is_6(%rip), %xmm15
        test    %rdx, %rdx
        jz      2f
1:      movdqu  (%rdi), %xmm0           /* the first bytes of pairs, */
        movdqu  1(%rdi), %xmm1          /* and their second ones */
        movdqa  %xmm1, %xmm2
        pand    %xmm10, %xmm2
        pcmpeqb %xmm11, %xmm2           /* 01, 03 */
        movdqa  %xmm1, %xmm3
        pcmpeqb %xmm6, %xmm3
        por     %xmm3, %xmm2
        movdqa  %xmm1, %xmm4
        pcmpeqb %xmm7, %xmm4
        por     %xmm4, %xmm2
        movdqa  %xmm1, %xmm3
        pcmpeqb %xmm8, %xmm3
        por     %xmm3, %xmm2
        movdqa  %xmm1, %xmm4
        pcmpeqb %xmm9, %xmm4
        por     %xmm4, %xmm2
        movdqa  %xmm0, %xmm3
        pcmpeqb %xmm5, %xmm3
        pand    %xmm3, %xmm2
        movdqa  %xmm0, %xmm3            /* d9 and dd differ in one bit */
        por     %xmm12, %xmm3
        pcmpeqb %xmm13, %xmm3
        movdqa  %xmm1, %xmm4
        pand    %xmm14, %xmm4
        pcmpeqb %xmm15, %xmm4
        pand    %xmm4, %xmm3
        por     %xmm3, %xmm2
        movdqa  %xmm0, %xmm3
        pcmpeqb %xmm8, %xmm3
        movdqa  %xmm1, %xmm4
        pcmpeqb byte_f8(%rip), %xmm4
        pand    %xmm4, %xmm3
        por     %xmm3, %xmm2
        pcmpeqb byte_60(%rip), %xmm0
        pcmpeqb byte_ff(%rip), %xmm1
        pand    %xmm1, %xmm0
        por     %xmm0, %xmm2
        pmovmskb %xmm2, %eax
        mov     %ax, (%rsi)
        add     $16, %rdi
        add     $2, %rsi
        dec     %rdx
        jnz     1b
2:      ret
        .size   tbd_own_mark_finds, . - tbd_own_mark_finds

        .section .note.GNU-stack, "", @progbits
