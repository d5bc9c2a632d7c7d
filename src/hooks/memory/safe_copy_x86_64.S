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
        rep movsb
tbd_copy_faultable_end:
        mov     %rcx, %rax
        ret
        .size   tbd_copy_faultable, . - tbd_copy_faultable

        .section .note.GNU-stack, "", @progbits
