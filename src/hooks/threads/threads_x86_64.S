/* SPDX-License-Identifier: MIT */
/* threads_x86_64.S - where a thread enters the engine, and where it leaves it for good */

#include "hooks/threads/load_registers_x86_64.inc"

        .text

/* _Noreturn void tbd_native_jump(const struct tbd_regs *regs, const uint64_t *mask)
 * in:  rdi = registers, rsi = the signal mask (NULL: it is set already); gs base and handlers are
 *      the program's already
 * Continues at regs->rip with every general register, rsp and rflags as given.  Pending signals are
 * delivered on the program's stack, but where rsp is no address: there the kernel cannot come back
 * from a call, and a general protection fault would take the place of the program's own fault.
 * Uses iretq because no other instruction does this without a register or the program's stack. */
        .globl  tbd_native_jump
        .type   tbd_native_jump, @function
tbd_native_jump:
        test    %rsi, %rsi
        jz      1f
        mov     %rdi, %rbx
        mov     %rsp, %rbp
        mov     8*4(%rdi), %rax
        mov     %rax, %rcx
        sar     $47, %rcx               /* 0 or -1 in an address */
        inc     %rcx
        cmp     $1, %rcx
        ja      2f
        mov     %rax, %rsp
2:      mov     $2, %edi                /* SIG_SETMASK */
        xor     %edx, %edx
        mov     $8, %r10d
        mov     $14, %eax               /* rt_sigprocmask */
        syscall
        mov     %rbp, %rsp
        mov     %rbx, %rdi
1:      and     $-16, %rsp
        xor     %eax, %eax
        mov     %ss, %ax
        push    %rax
        push    8*4(%rdi)               /* rsp */
        push    136(%rdi)               /* rflags */
        mov     %cs, %ax
        push    %rax
        push    128(%rdi)               /* rip */
        load_registers
        iretq
        .size   tbd_native_jump, . - tbd_native_jump

/* int64_t tbd_thread_clone(uint64_t flags, uint64_t stack, uint32_t *alive, uint64_t tls, void (*begin)(void *), void *context)
 * clone; the new thread calls begin(context) on `stack`, which does not return. */
        .globl  tbd_thread_clone
        .type   tbd_thread_clone, @function
tbd_thread_clone:
        push    %rbx
        push    %r12
        mov     %r8, %r12
        mov     %r9, %rbx
        mov     %rdx, %r10
        xor     %edx, %edx
        mov     %rcx, %r8
        mov     $56, %eax
        syscall
        test    %rax, %rax
        jz      1f
        pop     %r12
        pop     %rbx
        ret
1:      xor     %ebp, %ebp
        mov     %rbx, %rdi
        call    *%r12
        hlt
        .size   tbd_thread_clone, . - tbd_thread_clone

/* int64_t tbd_free_clone_call(const struct tbd_sys_call *call, void (*begin)(void *), void *context)
 * Makes the call (clone or clone3); the child calls begin(context) on the stack that the call names,
 * which does not return. */
        .globl  tbd_free_clone_call
        .type   tbd_free_clone_call, @function
tbd_free_clone_call:
        push    %rbx
        push    %r12
        mov     %rsi, %r12
        mov     %rdx, %rbx
        mov     %rdi, %rax
        mov     8(%rax), %rdi
        mov     16(%rax), %rsi
        mov     24(%rax), %rdx
        mov     32(%rax), %r10
        mov     40(%rax), %r8
        mov     48(%rax), %r9
        mov     (%rax), %rax
        syscall
        test    %rax, %rax
        jz      1b                      /* in tbd_thread_clone */
        pop     %r12
        pop     %rbx
        ret
        .size   tbd_free_clone_call, . - tbd_free_clone_call

        .section .note.GNU-stack, "", @progbits
