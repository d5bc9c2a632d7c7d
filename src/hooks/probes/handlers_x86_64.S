/* SPDX-License-Identifier: MIT */
/* handlers_x86_64.S - entry of the program's signal handlers while there are jumps (handlers.c)
 *
 * The handler is jumped to with the stack as it was here. */

        .text

        .globl  tbd_handlers_entry, tbd_handlers_ready, tbd_handlers_jump
        .type   tbd_handlers_entry, @function
tbd_handlers_entry:
        pushfq
        andl    $0xfffbffff, (%rsp)     /* AC */
        popfq
        leaq    -40(%rsp), %rsp         /* struct tbd_handlers_frame */
        movq    %rdi, (%rsp)
        movq    %rsi, 8(%rsp)
        movq    %rdx, 16(%rsp)
        movq    %rsp, %rcx
        call    tbd_handlers_settle
        testb   %al, %al
        jz      1f
        movl    $2, %edi                /* SIG_SETMASK */
        leaq    24(%rsp), %rsi
        xorl    %edx, %edx
        movl    $8, %r10d
        movl    $14, %eax               /* rt_sigprocmask */
        syscall
tbd_handlers_ready:
        movq    (%rsp), %rdi
        movq    8(%rsp), %rsi
        movq    16(%rsp), %rdx
        movq    32(%rsp), %rax
        leaq    40(%rsp), %rsp
tbd_handlers_jump:
        jmp     *%rax
1:      leaq    40(%rsp), %rsp
        ret
        .size   tbd_handlers_entry, . - tbd_handlers_entry

        .section .note.GNU-stack, "", @progbits
