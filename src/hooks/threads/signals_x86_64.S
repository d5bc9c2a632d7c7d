/* SPDX-License-Identifier: MIT */
/* signals_x86_64.S - entry of signal handlers, return from them, and their exit to the engine;
 * faults on purpose; rt_sigreturn */

        .text

/* Signal return of the engine's own handlers. */
        .globl  tbd_signal_restorer
tbd_signal_restorer:
        mov     $15, %eax
        syscall
        hlt

/* Handlers are entered with the program's flags: DF may be set, and AC. */
        .globl  tbd_signal_entry
        .type   tbd_signal_entry, @function
tbd_signal_entry:
        cld
        pushfq
        andl    $0xfffbffff, (%rsp)
        popfq
        jmp     tbd_signal_handle
        .size   tbd_signal_entry, . - tbd_signal_entry

/* A signal handler continues here: the program's registers are in the thread block.
 * in: rsp = engine stack, rdi = thread, rsi = function that goes on and does not return */
        .globl  tbd_fault_entry
tbd_fault_entry:
        cld
        and     $-16, %rsp
        call    *%rsi
        hlt

/* void tbd_raise(uint64_t what, uint64_t address)      signals_last.c
 * Raises a fault of this kind.  The signal handler continues at tbd_raise_done because
 * tbd_raise_expected is set. */
        .globl  tbd_raise, tbd_raise_done, tbd_raise_expected
        .type   tbd_raise, @function
tbd_raise:
        movl    $1, tbd_raise_expected(%rip)
        xor     %eax, %eax
        xor     %edx, %edx
        lea     9f(%rip), %rcx
        lea     (%rcx, %rdi, 8), %rcx
        jmp     *%rcx
        .balign 8
9:      testb   %al, (%rsi)             /* each at most 8 bytes, then on to the end */
        jmp     tbd_raise_done
        .balign 8
        lock orb %al, (%rsi)
        jmp     tbd_raise_done
        .balign 8
        jmp     *%rsi
        .balign 8
        div     %eax
        jmp     tbd_raise_done
        .balign 8
        int3
        jmp     tbd_raise_done
        .balign 8
        .byte   0xf1                    /* int1 */
        jmp     tbd_raise_done
        .balign 8
        ud2
        .balign 8
        hlt
tbd_raise_done:
        movl    $0, tbd_raise_expected(%rip)
        ret
        .size   tbd_raise, . - tbd_raise

/* int64_t tbd_sigreturn_perform(uint8_t *frame)
 * in: rdi = copy of a signal frame's ucontext; its general registers are overwritten so that
 * rt_sigreturn comes back here.  Restores vector state and signal mask from the frame.  All
 * callee-saved registers are restored.
 * out: 0; 1: the kernel has not accepted the frame, and its SIGSEGV was caught at
 * tbd_sigreturn_done. */
        .globl  tbd_sigreturn_perform, tbd_sigreturn_done
        .type   tbd_sigreturn_perform, @function
tbd_sigreturn_perform:
        push    %rbx
        push    %rbp
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        lea     tbd_sigreturn_done(%rip), %rax
        movq    $0, 40+8*13(%rdi)       /* uc_mcontext.gregs[REG_RAX] */
        mov     %rsp, 40+8*15(%rdi)     /* REG_RSP */
        mov     %rax, 40+8*16(%rdi)     /* REG_RIP */
        movq    $0x202, 40+8*17(%rdi)   /* REG_EFL */
        mov     %rdi, %rsp              /* the kernel takes the frame from rsp - 8 */
        mov     $15, %eax
        syscall
tbd_sigreturn_done:
        pop     %r15
        pop     %r14
        pop     %r13
        pop     %r12
        pop     %rbp
        pop     %rbx
        ret
        .size   tbd_sigreturn_perform, . - tbd_sigreturn_perform

        .bss
        .balign 8
tbd_raise_expected:
        .zero   8

        .section .note.GNU-stack, "", @progbits
