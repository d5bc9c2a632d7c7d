/* SPDX-License-Identifier: MIT */
/* jump_x86_64.S - between the code of a jump (jump.h) and the engine's functions.  Both are called with rsp
 * at the frame, whose offsets are below; they keep what the code has not saved: all but ax, cx, dx and flags. */

#define FRAME   320
#define MASK    8
#define RDX     24
#define RCX     32
#define RAX     40
#define WORDS   152             /* below the frame: 18 registers in the kernel's order, and the return address */
#define DF_AC   0x40400

        .text

/* rax: the probe */
        .globl  tbd_jump_call
        .type   tbd_jump_call, @function
tbd_jump_call:
        pushfq                          /* nothing before has changed them */
        leaq    -136(%rsp), %rsp
        movq    %r8, (%rsp)
        movq    %r9, 8(%rsp)
        movq    %r10, 16(%rsp)
        movq    %r11, 24(%rsp)
        movq    %r12, 32(%rsp)
        movq    %r13, 40(%rsp)
        movq    %r14, 48(%rsp)
        movq    %r15, 56(%rsp)
        movq    %rdi, 64(%rsp)
        movq    %rsi, 72(%rsp)
        movq    %rbp, 80(%rsp)
        movq    %rbx, 88(%rsp)
        movq    WORDS+RDX(%rsp), %rcx
        movq    %rcx, 96(%rsp)
        movq    WORDS+RAX(%rsp), %rcx
        movq    %rcx, 104(%rsp)
        movq    WORDS+RCX(%rsp), %rcx
        movq    %rcx, 112(%rsp)
        leaq    WORDS+FRAME(%rsp), %rcx
        movq    %rcx, 120(%rsp)
        movq    %rsp, %rdi
        movq    %rax, %rsi
        testl   $DF_AC, 136(%rsp)
        jz      1f
        pushq   $0x202
        popfq
1:      call    tbd_probe_jumped
        movq    (%rsp), %r8
        movq    8(%rsp), %r9
        movq    16(%rsp), %r10
        movq    24(%rsp), %r11
        movq    64(%rsp), %rdi
        movq    72(%rsp), %rsi
        testl   $DF_AC, 136(%rsp)
        jz      2f
        pushq   136(%rsp)
        popfq
2:      leaq    144(%rsp), %rsp
        ret
        .size   tbd_jump_call, . - tbd_jump_call

/* Sets the mask that the thread had when a signal was deferred: it comes at tbd_jump_undeferred. */
        .globl  tbd_jump_deferred, tbd_jump_undeferred, tbd_jump_undeferred_end
        .type   tbd_jump_deferred, @function
tbd_jump_deferred:
        leaq    -40(%rsp), %rsp
        movq    %rdi, (%rsp)
        movq    %rsi, 8(%rsp)
        movq    %r10, 16(%rsp)
        movq    %r11, 24(%rsp)
        movl    $2, %edi                /* SIG_SETMASK */
        leaq    48+MASK(%rsp), %rsi
        xorl    %edx, %edx
        movl    $8, %r10d
        movl    $14, %eax               /* rt_sigprocmask */
        syscall
tbd_jump_undeferred:
        movq    (%rsp), %rdi
        movq    8(%rsp), %rsi
        movq    16(%rsp), %r10
        movq    24(%rsp), %r11
        movl    $0, 48(%rsp)
        leaq    40(%rsp), %rsp
tbd_jump_undeferred_end:
        ret
        .size   tbd_jump_deferred, . - tbd_jump_deferred

        .section .note.GNU-stack, "", @progbits
