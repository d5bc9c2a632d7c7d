// SPDX-License-Identifier: MIT
/* start.S - entry points of a replay process: its start, and its signal handlers
 *
 *   tbd_stub_start     in:  the kernel's initial stack (not used: it is unmapped soon)
 *                      out: never returns; C runs on stack_top in the engine's range, direction flag clear
 */
    .text
    .globl tbd_stub_start
    .hidden tbd_stub_start
    .type tbd_stub_start, @function
tbd_stub_start:
    lea stack_top(%rip), %rsp
    xor %ebp, %ebp
    cld
    call tbd_stub_main
    ud2
    .size tbd_stub_start, . - tbd_stub_start

/*
 *   tbd_stub_restorer    return from our signal handlers
 *   tbd_stub_after_fault in: rsp = engine stack, everything else as it was in the interrupted code
 */
    .globl tbd_stub_restorer
    .hidden tbd_stub_restorer
tbd_stub_restorer:
    mov $15, %eax
    syscall
    ud2

/*   tbd_stub_signal_entry  our signal handler: the program's DF and AC may be set */
    .globl tbd_stub_signal_entry
    .hidden tbd_stub_signal_entry
tbd_stub_signal_entry:
    cld
    pushfq
    andl $0xfffbffff, (%rsp)
    popfq
    jmp tbd_stub_signal

    .globl tbd_stub_after_fault
    .hidden tbd_stub_after_fault
tbd_stub_after_fault:
    cld
    and $-16, %rsp
    call tbd_stub_after_fault_c
    ud2

    .bss
    .balign 4096
    .skip 256 << 10
stack_top:

    .section .note.GNU-stack, "", @progbits
