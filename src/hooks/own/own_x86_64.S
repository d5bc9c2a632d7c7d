/* SPDX-License-Identifier: MIT */
/* own_x86_64.S - native play: a system call enters the engine by a jump, and leaves it without iretq */

#include "hooks/threads/load_registers_x86_64.inc"
#include "patcher/offsets.h"

        .text

/* From a stub (own_jumps.c), before the system call, of which rcx and r11 are free.
 * in: r11 = &thread->regs, rcx = address after the system call; all others, gs base too, are the program's.
 * As the processor has it after the call's instruction, and the signal of user dispatch: rcx and r11 are set. */
        .globl  tbd_own_jump_entry
        .type   tbd_own_jump_entry, @function
tbd_own_jump_entry:
        mov     %rax, 8*0(%r11)
        mov     %rcx, 8*1(%r11)
        mov     %rdx, 8*2(%r11)
        mov     %rbx, 8*3(%r11)
        mov     %rsp, 8*4(%r11)
        mov     %rbp, 8*5(%r11)
        mov     %rsi, 8*6(%r11)
        mov     %rdi, 8*7(%r11)
        mov     %r8, 8*8(%r11)
        mov     %r9, 8*9(%r11)
        mov     %r10, 8*10(%r11)
        mov     %r12, 8*12(%r11)
        mov     %r13, 8*13(%r11)
        mov     %r14, 8*14(%r11)
        mov     %r15, 8*15(%r11)
        mov     TBD_GS_ENGINE_STACK-TBD_GS_GPR(%r11), %rsp
        pushfq
        pop     %rax
        mov     %rax, 8*11(%r11)
        mov     %rax, 136(%r11)         /* rflags */
        lea     -2(%rcx), %rax          /* the instruction's length */
        mov     %rax, 128(%r11)         /* rip */
        push    $0x202                  /* no DF, no AC */
        popfq
        and     $-16, %rsp
        mov     %r11, %rdi
        call    tbd_own_jumped
        hlt
        .size   tbd_own_jump_entry, . - tbd_own_jump_entry

/* _Noreturn void tbd_own_return(const struct tbd_regs *regs)
 * As tbd_native_jump(), where rcx is the program's rip, as after a system call, and TF is clear. */
        .globl  tbd_own_return
        .type   tbd_own_return, @function
tbd_own_return:
        push    136(%rdi)               /* rflags: nothing from here on changes them */
        popfq
        mov     8*4(%rdi), %rsp
        load_registers
        jmp     *%rcx
        .size   tbd_own_return, . - tbd_own_return

        .section .note.GNU-stack, "", @progbits
