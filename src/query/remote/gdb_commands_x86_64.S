// SPDX-License-Identifier: MIT
/* gdb_commands_x86_64.S - gdb_commands.py as a string */
            .section .rodata.tbd_gdb_commands, "a", @progbits
        .global tbd_gdb_commands
        .hidden tbd_gdb_commands
tbd_gdb_commands:
        .incbin "gdb_commands.py"
        .byte 0

        .section .note.GNU-stack,"",@progbits
