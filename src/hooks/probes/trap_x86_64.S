/* SPDX-License-Identifier: MIT */
/* trap_x86_64.S - entry of the handler of SIGTRAP (trap.c): with the program's flags, DF and AC may be set */

        .text
        .globl  tbd_probe_trap_entry
        .type   tbd_probe_trap_entry, @function
tbd_probe_trap_entry:
        cld
        pushfq
        andl    $0xfffbffff, (%rsp)
        popfq
        jmp     tbd_probe_trap
        .size   tbd_probe_trap_entry, . - tbd_probe_trap_entry

        .section .note.GNU-stack, "", @progbits
