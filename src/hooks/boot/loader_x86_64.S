/* SPDX-License-Identifier: MIT */
/* loader_x86_64.S - libtbd.so's constructor: saves the state to return to, and calls the C part */
        .text
        .globl  tbd_constructor
        .hidden tbd_constructor
        .type   tbd_constructor, @function
/* in: rdi = argc, rsi = argv, rdx = envp (ld.so passes them to constructors) */
tbd_constructor:
        lea     8(%rsp), %rax
        push    (%rsp)                  /* struct tbd_boot_regs, from its end */
        push    %rax
        push    %r15
        push    %r14
        push    %r13
        push    %r12
        push    %rbp
        push    %rbx
        mov     %rsp, %rcx
        sub     $8, %rsp
        call    tbd_loader_main
        add     $8, %rsp
        pop     %rbx
        pop     %rbp
        pop     %r12
        pop     %r13
        pop     %r14
        pop     %r15
        add     $16, %rsp
        ret
        .size   tbd_constructor, . - tbd_constructor

        .section .init_array, "aw", @init_array
        .balign 8
        .quad   tbd_constructor

        .section .rodata.tbd_engine, "a", @progbits
        .balign 4096
        .globl  tbd_engine_image, tbd_engine_image_end
        .hidden tbd_engine_image, tbd_engine_image_end
tbd_engine_image:
        .incbin TBD_ENGINE_FILE
tbd_engine_image_end:

        .section .note.GNU-stack, "", @progbits
