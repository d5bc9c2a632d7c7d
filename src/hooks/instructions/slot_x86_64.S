/* SPDX-License-Identifier: MIT */
/* slot_x86_64.S - one instruction of the program with the program's registers */

#include "hooks/instructions/thread_asm.h"

#define GS_REGS(reg) (TBD_ASM_GS_REGS + 8 * (reg))

        .text

/* void tbd_insn_run(struct tbd_thread *thread, uint64_t code) Runs the program's instruction copied
 * to `code` (which ends with a jump to tbd_insn_done) with all registers and flags of thread->regs,
 * and stores them back.  After a fault inside, the signal handler leaves this routine. rsp is the
 * program's while the instruction runs: nothing is pushed. */
        .globl  tbd_insn_run, tbd_insn_done
        .type   tbd_insn_run, @function
tbd_insn_run:
        push    %rbx
        push    %rbp
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        mov     %rsi, %gs:TBD_ASM_GS_SCRATCH
        mov     %rsp, %gs:TBD_ASM_GS_SCRATCH+8
        pushq   %gs:TBD_ASM_GS_RFLAGS
        popfq
        mov     %gs:GS_REGS(0), %rax
        mov     %gs:GS_REGS(1), %rcx
        mov     %gs:GS_REGS(2), %rdx
        mov     %gs:GS_REGS(3), %rbx
        mov     %gs:GS_REGS(4), %rsp
        mov     %gs:GS_REGS(5), %rbp
        mov     %gs:GS_REGS(6), %rsi
        mov     %gs:GS_REGS(7), %rdi
        mov     %gs:GS_REGS(8), %r8
        mov     %gs:GS_REGS(9), %r9
        mov     %gs:GS_REGS(10), %r10
        mov     %gs:GS_REGS(11), %r11
        mov     %gs:GS_REGS(12), %r12
        mov     %gs:GS_REGS(13), %r13
        mov     %gs:GS_REGS(14), %r14
        mov     %gs:GS_REGS(15), %r15
        jmp     *%gs:TBD_ASM_GS_SCRATCH
tbd_insn_done:
        mov     %rax, %gs:GS_REGS(0)
        mov     %rcx, %gs:GS_REGS(1)
        mov     %rdx, %gs:GS_REGS(2)
        mov     %rbx, %gs:GS_REGS(3)
        mov     %rsp, %gs:GS_REGS(4)
        mov     %rbp, %gs:GS_REGS(5)
        mov     %rsi, %gs:GS_REGS(6)
        mov     %rdi, %gs:GS_REGS(7)
        mov     %r8, %gs:GS_REGS(8)
        mov     %r9, %gs:GS_REGS(9)
        mov     %r10, %gs:GS_REGS(10)
        mov     %r11, %gs:GS_REGS(11)
        mov     %r12, %gs:GS_REGS(12)
        mov     %r13, %gs:GS_REGS(13)
        mov     %r14, %gs:GS_REGS(14)
        mov     %r15, %gs:GS_REGS(15)
        mov     %gs:TBD_ASM_GS_SCRATCH+8, %rsp
        pushfq
        popq    %gs:TBD_ASM_GS_RFLAGS
        cld
        testb   $4, %gs:(TBD_ASM_GS_RFLAGS + 2) /* AC */
        jz      1f
        pushq   $2
        popfq
1:      pop     %r15
        pop     %r14
        pop     %r13
        pop     %r12
        pop     %rbp
        pop     %rbx
        ret
        .size   tbd_insn_run, . - tbd_insn_run

/* void tbd_insn_run_gs(struct tbd_thread *thread, uint64_t code) Likewise, for an instruction that
 * uses gs: the processor has the program's gs base while it runs, and thread->regs.gs_base is the
 * base after it.  `code` ends with a jump to tbd_insn_done_gs.  Needs fsgsbase. */
        .globl  tbd_insn_run_gs, tbd_insn_done_gs
        .type   tbd_insn_run_gs, @function
tbd_insn_run_gs:
        mov     %rsi, insn_target(%rip)
        rdgsbase %rax
        mov     %rax, insn_own_base(%rip)
        mov     %gs:TBD_ASM_GS_GS_BASE, %rax
        mov     %rax, insn_base(%rip)
        lea     insn_enter_gs(%rip), %rsi
        jmp     tbd_insn_run
insn_enter_gs:
        mov     %rax, insn_rax(%rip)
        mov     insn_base(%rip), %rax
        wrgsbase %rax
        mov     insn_rax(%rip), %rax
        jmp     *insn_target(%rip)
tbd_insn_done_gs:
        mov     %rax, insn_rax(%rip)
        rdgsbase %rax
        mov     %rax, insn_base(%rip)
        mov     insn_own_base(%rip), %rax
        wrgsbase %rax
        mov     insn_base(%rip), %rax
        mov     %rax, %gs:TBD_ASM_GS_GS_BASE
        mov     insn_rax(%rip), %rax
        jmp     tbd_insn_done
        .size   tbd_insn_run_gs, . - tbd_insn_run_gs

        .bss
        .balign 8
insn_target:
        .zero   8
insn_base:
        .zero   8
insn_own_base:
        .zero   8
insn_rax:
        .zero   8

        .section .note.GNU-stack, "", @progbits
