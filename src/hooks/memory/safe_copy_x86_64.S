/* SPDX-License-Identifier: MIT */
/* safe_copy_x86_64.S - access to program memory that may fault: the signal handler then continues
 * at the function's end */

        .text

/* size_t tbd_touch_faultable(uint64_t address, bool is_write, const uint32_t *pending): reads the
 * byte, or writes it with its own value, and returns 0.  After a fault, or a signal while it waits,
 * execution continues at tbd_copy_faultable_end. */
        .globl  tbd_touch_faultable, tbd_touch_begin, tbd_touch_end
        .globl  tbd_copy_faultable_begin
        .type   tbd_touch_faultable, @function
tbd_touch_faultable:
        mov     $1, %ecx
tbd_copy_faultable_begin:
tbd_touch_begin:
        cmpl    $0, (%rdx)
        jne     tbd_copy_faultable_end
        test    %esi, %esi
        jz      1f
        lock orb $0, (%rdi)
        jmp     2f
1:      movb    (%rdi), %al
2:      xor     %ecx, %ecx
        jmp     tbd_copy_faultable_end
tbd_touch_end:
        .size   tbd_touch_faultable, . - tbd_touch_faultable

/* size_t tbd_copy_faultable(void *dst, const void *src, size_t bytes): returns the number of bytes
 * NOT copied.  A fault between _begin and _end continues at _end. */
        .globl  tbd_copy_faultable, tbd_copy_faultable_end
        .type   tbd_move_faultable, @function
        .globl  tbd_move_faultable
/* The same for 1, 2, 4 or 8 bytes, in one access. */
tbd_move_faultable:
        mov     %rdx, %rcx
        cmp     $4, %ecx
        je      4f
        jb      2f
        mov     (%rsi), %rax
        mov     %rax, (%rdi)
        jmp     9f
4:      mov     (%rsi), %eax
        mov     %eax, (%rdi)
        jmp     9f
2:      cmp     $2, %ecx
        jb      1f
        movzwl  (%rsi), %eax
        mov     %ax, (%rdi)
        jmp     9f
1:      movzbl  (%rsi), %eax
        mov     %al, (%rdi)
9:      xor     %ecx, %ecx
        jmp     tbd_copy_faultable_end
        .size   tbd_move_faultable, . - tbd_move_faultable

        .type   tbd_copy_faultable, @function
tbd_copy_faultable:
        mov     %rdx, %rcx
        cmp     $16, %rdx
        ja      9f
        /* a few bytes in one page each, where all can be accessed or none, are copied at once */
        lea     -1(%rsi,%rdx), %rax
        xor     %rsi, %rax
        lea     -1(%rdi,%rdx), %r8
        xor     %rdi, %r8
        or      %r8, %rax
        test    $-4096, %rax
        jnz     9f
1:      cmp     $8, %ecx
        jb      4f
        mov     (%rsi), %rax
        mov     %rax, (%rdi)
        add     $8, %rsi
        add     $8, %rdi
        sub     $8, %ecx
        jmp     1b
4:      cmp     $4, %ecx
        jb      2f
        mov     (%rsi), %eax
        mov     %eax, (%rdi)
        add     $4, %rsi
        add     $4, %rdi
        sub     $4, %ecx
2:      test    %ecx, %ecx
        jz      tbd_copy_faultable_end
        movzbl  (%rsi), %eax
        mov     %al, (%rdi)
        inc     %rsi
        inc     %rdi
        dec     %ecx
        jmp     2b
9:      rep movsb
tbd_copy_faultable_end:
        mov     %rcx, %rax
        ret
        .size   tbd_copy_faultable, . - tbd_copy_faultable

        .section .note.GNU-stack, "", @progbits
