/* SPDX-License-Identifier: MIT */
/* entry_x86_64.S - the engine's hand-written code: where it is entered and left, and what C cannot say
 *
 * Labels are grouped as: image header and entry points; boot; leaving for good; the program's system
 * calls; copying with faults allowed; signal entry; one instruction with the program's registers;
 * vector state. */

#include "hooks/threads/thread_asm.h"

#define GS_REGS(reg) (TBD_ASM_GS_REGS + 8 * (reg))

        .section .text.tbd_head, "ax", @progbits
        .balign 16
        .quad   0x656e69676e656474      /* TBD_ENGINE_MAGIC: see hooks/boot/boot.h */
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

/* void tbd_engine_boot(const struct tbd_boot *)
 * The C part runs on the engine's own stack: the program's stack must hold still while its pages are
 * recorded. */
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

/* _Noreturn void tbd_native_jump(const struct tbd_regs *regs, const uint64_t *mask)
 * in:  rdi = registers, rsi = the signal mask, NULL: it is set already; gs base and handlers are the program's already
 * Continues at regs->rip with every general register, rsp and rflags as given.  Signals that have waited come on the
 * program's stack.  iretq because it is the only way that needs no register and no program stack. */
        .globl  tbd_native_jump
        .type   tbd_native_jump, @function
tbd_native_jump:
        test    %rsi, %rsi
        jz      1f
        mov     %rdi, %rbx
        mov     %rsp, %rbp
        mov     8*4(%rdi), %rsp
        mov     $2, %edi                /* SIG_SETMASK */
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
        mov     8*0(%rdi), %rax
        mov     8*1(%rdi), %rcx
        mov     8*2(%rdi), %rdx
        mov     8*3(%rdi), %rbx
        mov     8*5(%rdi), %rbp
        mov     8*6(%rdi), %rsi
        mov     8*8(%rdi), %r8
        mov     8*9(%rdi), %r9
        mov     8*10(%rdi), %r10
        mov     8*11(%rdi), %r11
        mov     8*12(%rdi), %r12
        mov     8*13(%rdi), %r13
        mov     8*14(%rdi), %r14
        mov     8*15(%rdi), %r15
        mov     8*7(%rdi), %rdi
        iretq
        .size   tbd_native_jump, . - tbd_native_jump

/* int64_t tbd_thread_clone(uint64_t flags, uint64_t stack, uint32_t *alive, uint64_t tls, struct tbd_seat *seat)
 * clone; the new thread calls tbd_threads_begin(seat) on `stack`, which does not return. */
        .globl  tbd_thread_clone
        .type   tbd_thread_clone, @function
tbd_thread_clone:
        push    %rbx
        mov     %r8, %rbx
        mov     %rdx, %r10
        xor     %edx, %edx
        mov     %rcx, %r8
        mov     $56, %eax
        syscall
        test    %rax, %rax
        jz      1f
        pop     %rbx
        ret
1:      xor     %ebp, %ebp
        mov     %rbx, %rdi
        call    tbd_threads_begin
        hlt
        .size   tbd_thread_clone, . - tbd_thread_clone

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

/* int64_t tbd_program_syscall(const struct tbd_sys_call *call, const uint32_t *pending)
 * The program's system call.  Returns -512 without making it when *pending is set or gets set before
 * the kernel has begun: the signal handler moves rip from [tbd_program_syscall_check,
 * tbd_program_syscall_done) to tbd_program_syscall_interrupted (the kernel restarts a call by going
 * back to the syscall instruction, so rip is there too when a restartable call was interrupted). */
        .globl  tbd_program_syscall, tbd_program_syscall_check
        .globl  tbd_program_syscall_done, tbd_program_syscall_interrupted
        .type   tbd_program_syscall, @function
tbd_program_syscall:
        push    %rbx
        mov     %rsi, %rbx
        mov     %rdi, %rax
        mov     8(%rax), %rdi
        mov     16(%rax), %rsi
        mov     24(%rax), %rdx
        mov     32(%rax), %r10
        mov     40(%rax), %r8
        mov     48(%rax), %r9
        mov     (%rax), %rax
tbd_program_syscall_check:
        cmpl    $0, (%rbx)
        jne     tbd_program_syscall_interrupted
        syscall
tbd_program_syscall_done:
        pop     %rbx
        ret
tbd_program_syscall_interrupted:
        mov     $-512, %rax
        jmp     tbd_program_syscall_done
        .size   tbd_program_syscall, . - tbd_program_syscall

/* size_t tbd_touch_faultable(uint64_t address, bool is_write, const uint32_t *pending): 0 when the byte was read, or
 * written with what it holds.  A fault, or a signal while it waits, continues at tbd_copy_faultable_end. */
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

/* size_t tbd_copy_faultable(void *dst, const void *src, size_t bytes): how many bytes were NOT copied.
 * A fault between _begin and _end continues at _end. */
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

/* Signal return of the engine's own handlers. */
        .globl  tbd_signal_restorer
tbd_signal_restorer:
        mov     $15, %eax
        syscall
        hlt

/* Handlers are entered with the program's flags: DF may be set, AC too. */
        .globl  tbd_signal_entry
        .type   tbd_signal_entry, @function
tbd_signal_entry:
        cld
        pushfq
        andl    $0xfffbffff, (%rsp)
        popfq
        jmp     tbd_signal_handle
        .size   tbd_signal_entry, . - tbd_signal_entry

/* A signal handler continued here: the program's registers are in the thread block.
 * in: rsp = engine stack, rdi = thread */
        .globl  tbd_fault_entry
tbd_fault_entry:
        cld
        and     $-16, %rsp
        call    tbd_signals_after_fault
        hlt

/* void tbd_raise(uint64_t what, uint64_t address)      signals_last.c
 * A fault of the kind, which the signal handler makes go on at tbd_raise_done because tbd_raise_expected is set. */
        .globl  tbd_raise, tbd_raise_done, tbd_raise_expected
        .type   tbd_raise, @function
tbd_raise:
        movl    $1, tbd_raise_expected(%rip)
        xor     %eax, %eax
        xor     %edx, %edx
        lea     9f(%rip), %rcx
        lea     (%rcx, %rdi, 8), %rcx
        jmp     *%rcx
        .balign 8
9:      testb   %al, (%rsi)             /* each at most 8 bytes, then on to the end */
        jmp     tbd_raise_done
        .balign 8
        lock orb %al, (%rsi)
        jmp     tbd_raise_done
        .balign 8
        jmp     *%rsi
        .balign 8
        div     %eax
        jmp     tbd_raise_done
        .balign 8
        int3
        jmp     tbd_raise_done
        .balign 8
        .byte   0xf1                    /* int1 */
        jmp     tbd_raise_done
        .balign 8
        ud2
        .balign 8
        hlt
tbd_raise_done:
        movl    $0, tbd_raise_expected(%rip)
        ret
        .size   tbd_raise, . - tbd_raise

/* int64_t tbd_sigreturn_perform(uint8_t *frame)
 * in: rdi = copy of a signal frame's ucontext; its general registers are overwritten so that rt_sigreturn
 * comes back here.  Restores vector state and signal mask from it.  All callee-saved registers are
 * restored. */
        .globl  tbd_sigreturn_perform
        .type   tbd_sigreturn_perform, @function
tbd_sigreturn_perform:
        push    %rbx
        push    %rbp
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        lea     1f(%rip), %rax
        mov     %rsp, 40+8*15(%rdi)     /* uc_mcontext.gregs[REG_RSP] */
        mov     %rax, 40+8*16(%rdi)     /* REG_RIP */
        movq    $0x202, 40+8*17(%rdi)   /* REG_EFL */
        mov     %rdi, %rsp              /* the kernel takes the frame from rsp - 8 */
        mov     $15, %eax
        syscall
1:      pop     %r15
        pop     %r14
        pop     %r13
        pop     %r12
        pop     %rbp
        pop     %rbx
        xor     %eax, %eax
        ret
        .size   tbd_sigreturn_perform, . - tbd_sigreturn_perform

/* void tbd_insn_run(struct tbd_thread *thread, uint64_t code)
 * Runs the program's instruction copied to `code` (which ends with a jump to tbd_insn_done) with all
 * registers and flags of thread->regs, and stores them back.  A fault inside leaves this routine
 * through the signal handler.  rsp is the program's while it runs: nothing is pushed. */
        .globl  tbd_insn_run, tbd_insn_done
        .type   tbd_insn_run, @function
tbd_insn_run:
        push    %rbx
        push    %rbp
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        mov     %rsi, %gs:TBD_ASM_GS_SCRATCH
        mov     %rsp, %gs:TBD_ASM_GS_SCRATCH+8
        pushq   %gs:TBD_ASM_GS_RFLAGS
        popfq
        mov     %gs:GS_REGS(0), %rax
        mov     %gs:GS_REGS(1), %rcx
        mov     %gs:GS_REGS(2), %rdx
        mov     %gs:GS_REGS(3), %rbx
        mov     %gs:GS_REGS(4), %rsp
        mov     %gs:GS_REGS(5), %rbp
        mov     %gs:GS_REGS(6), %rsi
        mov     %gs:GS_REGS(7), %rdi
        mov     %gs:GS_REGS(8), %r8
        mov     %gs:GS_REGS(9), %r9
        mov     %gs:GS_REGS(10), %r10
        mov     %gs:GS_REGS(11), %r11
        mov     %gs:GS_REGS(12), %r12
        mov     %gs:GS_REGS(13), %r13
        mov     %gs:GS_REGS(14), %r14
        mov     %gs:GS_REGS(15), %r15
        jmp     *%gs:TBD_ASM_GS_SCRATCH
tbd_insn_done:
        mov     %rax, %gs:GS_REGS(0)
        mov     %rcx, %gs:GS_REGS(1)
        mov     %rdx, %gs:GS_REGS(2)
        mov     %rbx, %gs:GS_REGS(3)
        mov     %rsp, %gs:GS_REGS(4)
        mov     %rbp, %gs:GS_REGS(5)
        mov     %rsi, %gs:GS_REGS(6)
        mov     %rdi, %gs:GS_REGS(7)
        mov     %r8, %gs:GS_REGS(8)
        mov     %r9, %gs:GS_REGS(9)
        mov     %r10, %gs:GS_REGS(10)
        mov     %r11, %gs:GS_REGS(11)
        mov     %r12, %gs:GS_REGS(12)
        mov     %r13, %gs:GS_REGS(13)
        mov     %r14, %gs:GS_REGS(14)
        mov     %r15, %gs:GS_REGS(15)
        mov     %gs:TBD_ASM_GS_SCRATCH+8, %rsp
        pushfq
        popq    %gs:TBD_ASM_GS_RFLAGS
        cld
        testb   $4, %gs:(TBD_ASM_GS_RFLAGS + 2) /* AC */
        jz      1f
        pushq   $2
        popfq
1:      pop     %r15
        pop     %r14
        pop     %r13
        pop     %r12
        pop     %rbp
        pop     %rbx
        ret
        .size   tbd_insn_run, . - tbd_insn_run

/* void tbd_insn_run_gs(struct tbd_thread *thread, uint64_t code)
 * The same for an instruction that uses gs: the processor's gs base is the program's while it runs, and
 * thread->regs.gs_base is what it has become.  `code` ends with a jump to tbd_insn_done_gs.  Needs fsgsbase. */
        .globl  tbd_insn_run_gs, tbd_insn_done_gs
        .type   tbd_insn_run_gs, @function
tbd_insn_run_gs:
        mov     %rsi, insn_target(%rip)
        rdgsbase %rax
        mov     %rax, insn_own_base(%rip)
        mov     %gs:TBD_ASM_GS_GS_BASE, %rax
        mov     %rax, insn_base(%rip)
        lea     insn_enter_gs(%rip), %rsi
        jmp     tbd_insn_run
insn_enter_gs:
        mov     %rax, insn_rax(%rip)
        mov     insn_base(%rip), %rax
        wrgsbase %rax
        mov     insn_rax(%rip), %rax
        jmp     *insn_target(%rip)
tbd_insn_done_gs:
        mov     %rax, insn_rax(%rip)
        rdgsbase %rax
        mov     %rax, insn_base(%rip)
        mov     insn_own_base(%rip), %rax
        wrgsbase %rax
        mov     insn_base(%rip), %rax
        mov     %rax, %gs:TBD_ASM_GS_GS_BASE
        mov     insn_rax(%rip), %rax
        jmp     tbd_insn_done
        .size   tbd_insn_run_gs, . - tbd_insn_run_gs

/* void tbd_vector_call(void (*fn)(void *), void *arg, void *save, uint64_t fs)
 * Calls fn(arg) with xmm0-15 and MXCSR saved in `save` (264 bytes) and, when `fs` is not 0, with fs base
 * `fs` (needs fsgsbase).  Legacy SSE instructions leave the upper halves alone. */
        .globl  tbd_vector_call
        .type   tbd_vector_call, @function
tbd_vector_call:
        push    %rbx
        push    %r12
        push    %r13
        mov     %rdx, %rbx
        mov     %rcx, %r12
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
        test    %r12, %r12
        jz      1f
        rdfsbase %r13
        wrfsbase %r12
1:      mov     %rdi, %rax
        mov     %rsi, %rdi
        call    *%rax
        test    %r12, %r12
        jz      2f
        wrfsbase %r13
2:      movups  0(%rbx), %xmm0
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
        pop     %r13
        pop     %r12
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

        .bss
        .balign 8
tbd_raise_expected:
        .zero   8
insn_target:
        .zero   8
insn_base:
        .zero   8
insn_own_base:
        .zero   8
insn_rax:
        .zero   8
        .balign 64
        .zero   65536
boot_stack_top:
        .zero   64

        .section .note.GNU-stack, "", @progbits
