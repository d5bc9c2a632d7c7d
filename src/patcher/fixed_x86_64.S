// SPDX-License-Identifier: MIT
/* fixed_x86_64.S - between translated code and C
 *
 * gs base is the thread's everywhere here.  The program's stack is never touched.  r10 and r11 of the
 * program are in their slots whenever translated code leaves or is entered, and r14 and r15 if
 * thread->at_home says so (tbd_at_home(), patcher/translate.h). */
#include "patcher/offsets.h"

        .text

        .macro  save reg, number
        movq    %\reg, %gs:(TBD_GS_GPR + 8 * \number)
        .endm

        .macro  restore reg, number
        movq    %gs:(TBD_GS_GPR + 8 * \number), %\reg
        .endm

        /* Is this register, number 8 or more, in its slot in translated code?  Then zero is clear. */
        .macro  test_at_home number
        testb   $(1 << (\number - 8)), %gs:(TBD_GS_AT_HOME + 1)
        .endm

        .globl  tbd_fixed_start
        .hidden tbd_fixed_start
tbd_fixed_start:

/* tbd_fixed_miss: a table jump found no block, or a block for another address.
 * in:  r11 = target (application), r10 anything, r14, r15 = stream; all else the program's, flags
 *      too: nothing here changes them
 * out: goes on at the entry that the second table has for the target; or to tbd_fixed_exit with
 *      exit_kind INDIRECT, exit_arg = target */
        .globl  tbd_fixed_miss
        .hidden tbd_fixed_miss
tbd_fixed_miss:
        movq    %rcx, %gs:TBD_GS_SCRATCH
        movl    %gs:TBD_GS_KICK, %ecx
        jrcxz   1f
        .globl  tbd_fixed_leave
        .hidden tbd_fixed_leave
tbd_fixed_leave:                        /* a signal goes on here, too (tbd_patcher_hurry) */
        movq    %r11, %gs:TBD_GS_EXIT_ARG
        movl    $2, %gs:TBD_GS_EXIT_KIND
        movq    %gs:TBD_GS_SCRATCH, %rcx
        jmp     tbd_fixed_exit
1:
        movl    $0x3fff00, %r10d
        pextq   %r10, %r11, %r10
        leaq    (%r10, %r10), %r10
        movq    %gs:TBD_GS_SECOND(, %r10, 8), %rcx
        leaq    (%r11, %rcx), %rcx
        jrcxz   2f
        jmp     tbd_fixed_leave
2:
        movq    %gs:TBD_GS_SCRATCH, %rcx
        jmp     *%gs:(TBD_GS_SECOND + 8)(, %r10, 8)

/* tbd_fixed_boundary: the entry store of a block hit the guard page.
 * in:  thread->resume = address of that store; registers as at a block's entry
 * out: goes to tbd_fixed_exit with exit_kind BOUNDARY */
        .globl  tbd_fixed_boundary
        .hidden tbd_fixed_boundary
tbd_fixed_boundary:
        movl    $7, %gs:TBD_GS_EXIT_KIND

/* tbd_fixed_exit: translated code leaves.
 * in:  exit_kind, exit_arg set; the program's registers in place but those in their slots;
 *      r14 = next operand, r15 = next entry, or the program's; flags the program's
 * out: tbd_patcher_dispatch(thread) on the engine stack, DF clear; its result is entered */
        .globl  tbd_fixed_exit
        .hidden tbd_fixed_exit
tbd_fixed_exit:
        save    rax, 0
        save    rcx, 1
        save    rdx, 2
        save    rbx, 3
        save    rsp, 4
        save    rbp, 5
        save    rsi, 6
        save    rdi, 7
        save    r8, 8
        save    r9, 9
        save    r12, 12
        save    r13, 13
        movq    %gs:TBD_GS_ENGINE_STACK, %rsp
        pushfq
        popq    %gs:TBD_GS_RFLAGS
        cld
        test_at_home 14
        jnz     2f
        save    r14, 14
        jmp     3f
2:      movq    %r14, %gs:TBD_GS_OPERAND_NEXT
3:      test_at_home 15
        jnz     2f
        save    r15, 15
        jmp     3f
2:      movq    %r15, %gs:TBD_GS_ENTRY_NEXT
3:
        testb   $4, %gs:(TBD_GS_RFLAGS + 2) /* AC: C code does not keep to it */
        jz      1f
        pushq   $2
        popfq
        jmp     1f

/* tbd_fixed_again: translated code was about to be entered at thread->resume.
 * in:  thread->regs = the program's registers; registers and flags anything
 * out: goes to tbd_patcher_dispatch with exit_kind BOUNDARY */
        .globl  tbd_fixed_again
        .hidden tbd_fixed_again
tbd_fixed_again:
        movl    $7, %gs:TBD_GS_EXIT_KIND
        movq    %gs:TBD_GS_ENGINE_STACK, %rsp
        pushq   $2
        popfq
        jmp     1f

/* tbd_fixed_run(thread): starts with thread->regs; never returns. */
        .globl  tbd_fixed_run
        .hidden tbd_fixed_run
tbd_fixed_run:
        movl    $0, %gs:TBD_GS_EXIT_KIND
        movq    %gs:TBD_GS_ENGINE_STACK, %rsp
1:
        andq    $-64, %rsp
        xorl    %ebp, %ebp
#ifndef TBD_ENGINE
        /* Host build (unit tests): C code around us uses vector registers, so the program's are kept here.
         * The engine itself has none. */
        subq    $16384, %rsp
        leaq    512(%rsp), %rdi
        movl    $8, %ecx
        xorl    %eax, %eax
        rep stosq
        movl    $-1, %eax
        movl    $-1, %edx
        xsave64 (%rsp)
#endif
        movq    %gs:TBD_GS_SELF, %rdi
        call    tbd_patcher_dispatch
#ifndef TBD_ENGINE
        movq    %rax, %rcx
        movl    $-1, %eax
        movl    $-1, %edx
        xrstor64 (%rsp)
        movq    %rcx, %rax
#endif
        movq    %rax, %gs:TBD_GS_RESUME
        .globl  tbd_fixed_enter
        .hidden tbd_fixed_enter
tbd_fixed_enter:
        cmpl    $0, %gs:TBD_GS_KICK     /* later ones: tbd_patcher_hurry */
        jne     tbd_fixed_again
        restore r14, 14
        restore r15, 15
        test_at_home 14
        jz      1f
        movq    %gs:TBD_GS_OPERAND_NEXT, %r14
1:      test_at_home 15
        jz      1f
        movq    %gs:TBD_GS_ENTRY_NEXT, %r15
1:      pushq   %gs:TBD_GS_RFLAGS
        popfq
        restore rax, 0
        restore rcx, 1
        restore rdx, 2
        restore rbx, 3
        restore rsp, 4
        restore rbp, 5
        restore rsi, 6
        restore rdi, 7
        restore r8, 8
        restore r9, 9
        restore r12, 12
        restore r13, 13
        jmp     *%gs:TBD_GS_RESUME

        .globl  tbd_fixed_end
        .hidden tbd_fixed_end
tbd_fixed_end:

        .section .note.GNU-stack,"",@progbits
