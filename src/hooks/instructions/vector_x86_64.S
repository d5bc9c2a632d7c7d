/* SPDX-License-Identifier: MIT */
/* vector_x86_64.S - saves vector state around a call, stores it and loads it */

        .text

/* void tbd_vector_call(void (*fn)(void *), void *arg, void *save)
 * Calls fn(arg) with xmm0-15 and MXCSR saved in `save` (264 bytes).  Legacy SSE instructions leave the upper halves alone. */
        .globl  tbd_vector_call
        .type   tbd_vector_call, @function
tbd_vector_call:
        push    %rbx
        mov     %rdx, %rbx
        stmxcsr 256(%rbx)
        movups  %xmm0, 0(%rbx)
        movups  %xmm1, 16(%rbx)
        movups  %xmm2, 32(%rbx)
        movups  %xmm3, 48(%rbx)
        movups  %xmm4, 64(%rbx)
        movups  %xmm5, 80(%rbx)
        movups  %xmm6, 96(%rbx)
        movups  %xmm7, 112(%rbx)
        movups  %xmm8, 128(%rbx)
        movups  %xmm9, 144(%rbx)
        movups  %xmm10, 160(%rbx)
        movups  %xmm11, 176(%rbx)
        movups  %xmm12, 192(%rbx)
        movups  %xmm13, 208(%rbx)
        movups  %xmm14, 224(%rbx)
        movups  %xmm15, 240(%rbx)
        mov     %rdi, %rax
        mov     %rsi, %rdi
        call    *%rax
        movups  0(%rbx), %xmm0
        movups  16(%rbx), %xmm1
        movups  32(%rbx), %xmm2
        movups  48(%rbx), %xmm3
        movups  64(%rbx), %xmm4
        movups  80(%rbx), %xmm5
        movups  96(%rbx), %xmm6
        movups  112(%rbx), %xmm7
        movups  128(%rbx), %xmm8
        movups  144(%rbx), %xmm9
        movups  160(%rbx), %xmm10
        movups  176(%rbx), %xmm11
        movups  192(%rbx), %xmm12
        movups  208(%rbx), %xmm13
        movups  224(%rbx), %xmm14
        movups  240(%rbx), %xmm15
        ldmxcsr 256(%rbx)
        pop     %rbx
        ret
        .size   tbd_vector_call, . - tbd_vector_call

/* void tbd_xsave(void *image, uint64_t mask)      image 64-byte aligned, header zeroed */
        .globl  tbd_xsave, tbd_xrstor
        .type   tbd_xsave, @function
tbd_xsave:
        mov     %esi, %eax
        mov     %rsi, %rdx
        shr     $32, %rdx
        xsave64 (%rdi)
        ret
        .size   tbd_xsave, . - tbd_xsave

/* void tbd_xrstor(const void *image, uint64_t mask) */
        .type   tbd_xrstor, @function
tbd_xrstor:
        mov     %esi, %eax
        mov     %rsi, %rdx
        shr     $32, %rdx
        xrstor64 (%rdi)
        ret
        .size   tbd_xrstor, . - tbd_xrstor

        .section .note.GNU-stack, "", @progbits
