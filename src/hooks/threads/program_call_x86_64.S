/* SPDX-License-Identifier: MIT */
/* program_call_x86_64.S - the program's system call, which a signal can still stop before the
 * kernel begins it */

        .text

/* int64_t tbd_program_syscall(const struct tbd_sys_call *call, const struct tbd_signals *signals)
 * Makes the program's system call.  Returns -512 without making it if `pending` or `called_in`, the first words
 * of *signals, is set, or becomes set before the kernel begins: the signal handler moves rip from [tbd_program_syscall_check,
 * tbd_program_syscall_done) to tbd_program_syscall_interrupted.  An interrupted call that can be
 * restarted ends there too, because the kernel restarts a call by moving rip back to the syscall
 * instruction. */
        .globl  tbd_program_syscall, tbd_program_syscall_check
        .globl  tbd_program_syscall_done, tbd_program_syscall_interrupted
        .type   tbd_program_syscall, @function
tbd_program_syscall:
        push    %rbx
        mov     %rsi, %rbx
        mov     %rdi, %rax
        mov     8(%rax), %rdi
        mov     16(%rax), %rsi
        mov     24(%rax), %rdx
        mov     32(%rax), %r10
        mov     40(%rax), %r8
        mov     48(%rax), %r9
        mov     (%rax), %rax
tbd_program_syscall_check:
        cmpq    $0, (%rbx)
        jne     tbd_program_syscall_interrupted
        syscall
tbd_program_syscall_done:
        pop     %rbx
        ret
tbd_program_syscall_interrupted:
        mov     $-512, %rax
        jmp     tbd_program_syscall_done
        .size   tbd_program_syscall, . - tbd_program_syscall

        .section .note.GNU-stack, "", @progbits
