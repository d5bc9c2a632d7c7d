/* SPDX-License-Identifier: MIT */
/* entry_x86_64.S - the image's two entry points: for libtbd.so's constructor, and for the kernel
 * that starts a replay process */

        .balign 16
        .quad   0x656e69676e656474      /* TBD_ENGINE_MAGIC: see format/probe/boot.h */
        .quad   tbd_engine_boot
        .globl  _start
        .type   _start, @function
/* Replay: started as a program by the replay driver; rsp is the kernel's initial stack. */
_start:
        jmp     tbd_stub_start
        .size   _start, . - _start

        .text
        .weak   tbd_stub_start
tbd_stub_start:
        mov     $60, %eax               /* no replay stub in this image: exit(4) */
        mov     $4, %edi
        syscall
        hlt

/* bool tbd_engine_boot(const struct tbd_boot *) The C part runs on the engine's own stack: the
 * program's stack must not change while its pages are recorded. */
        .globl  tbd_engine_boot
        .type   tbd_engine_boot, @function
tbd_engine_boot:
        push    %rbp
        mov     %rsp, %rbp
        lea     boot_stack_top(%rip), %rsp
        call    tbd_boot
        mov     %rbp, %rsp
        pop     %rbp
        ret
        .size   tbd_engine_boot, . - tbd_engine_boot

        .bss
        .balign 64
        .zero   65536
boot_stack_top:
        .zero   64

        .section .note.GNU-stack, "", @progbits
