/* SPDX-License-Identifier: MIT */
/* spawn_x86_64.S - a process that shares the program's memory and runs on a stack of its own (spawn.c) */

        .text

/* int64_t tbd_spawn_clone(uint64_t flags, uint64_t stack, void (*run)(void *), void *context)
 * clone; the new process calls run(context) on `stack`, which does not return. */
        .globl  tbd_spawn_clone
        .type   tbd_spawn_clone, @function
tbd_spawn_clone:
        mov     %rdx, %r8
        mov     %rcx, %r9
        xor     %edx, %edx
        xor     %r10d, %r10d
        mov     $56, %eax
        syscall
        test    %rax, %rax
        jz      1f
        ret
1:      xor     %ebp, %ebp
        mov     %r9, %rdi
        call    *%r8
        hlt
        .size   tbd_spawn_clone, . - tbd_spawn_clone

        .section .note.GNU-stack, "", @progbits
