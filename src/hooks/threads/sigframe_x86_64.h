// SPDX-License-Identifier: MIT
/* sigframe_x86_64.h - the frame that the kernel puts on a stack for a signal handler, as facts
 *
 *     higher   (redzone of the interrupted code: 128 bytes, not on a switch to the signal stack)
 *              extended state: fxsave area, xsave header, components, 4 bytes of magic   64-aligned
 *              struct tbd_sigframe: return address, ucontext, siginfo     16-aligned minus 8
 *     lower    = rsp in the handler
 *
 * The handler starts with rdi = signal, rsi = &info, rdx = &context, rax = 0, direction, resume and trap
 * flags clear, cs and ss the kernel's, and the x87, vector and MXCSR state of a new process; everything else
 * as it was interrupted.  rt_sigreturn is called with rsp = frame + 8.
 * test_sigframe.c compares all of it with frames that the kernel makes.  No code, any context.
 */
#ifndef TBD_HOOKS_SIGFRAME_X86_64_H
#define TBD_HOOKS_SIGFRAME_X86_64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_REDZONE_BYTES 128u

/* Order of the kernel's struct sigcontext, not of the encoding. */
struct tbd_sigcontext {
    uint64_t r8, r9, r10, r11, r12, r13, r14, r15; /*   0 */
    uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx;    /*  64 */
    uint64_t rsp;                                  /* 120 */
    uint64_t rip;                                  /* 128 */
    uint64_t rflags;                               /* 136 */
    uint16_t cs, gs, fs, ss;                       /* 144: gs and fs are 0 */
    uint64_t error;                                /* 152: of the last fault, signal or not */
    uint64_t trap;                                 /* 160 */
    uint64_t old_mask;                             /* 168: low word of the mask */
    uint64_t cr2;                                  /* 176: address of the last page fault */
    /* 184: address of the extended state; 0 = none */
    uint64_t fpstate;
    uint64_t reserved[8]; /* 192 */
};
_Static_assert(sizeof(struct tbd_sigcontext) == 256, "struct sigcontext of the kernel");
_Static_assert(offsetof(struct tbd_sigcontext, fpstate) == 184, "struct sigcontext of the kernel");

/* uc_flags: extended state beyond fxsave is there; ss is saved; ss is restored even if odd. */
#define TBD_UC_FP_XSTATE         1u
#define TBD_UC_SIGCONTEXT_SS     2u
#define TBD_UC_STRICT_RESTORE_SS 4u
#define TBD_UC_FLAGS             (TBD_UC_FP_XSTATE | TBD_UC_SIGCONTEXT_SS | TBD_UC_STRICT_RESTORE_SS)

struct tbd_ucontext {
    uint64_t flags;                /*   0 */
    uint64_t link;                 /*   8: 0 */
    uint64_t stack_sp;             /*  16: the alternate stack as sigaltstack set it */
    uint32_t stack_flags;          /*  24: as last set (SS_DISABLE, SS_AUTODISARM), 0 before
                                              any sigaltstack; never SS_ONSTACK */
    uint32_t padding;              /*  28 */
    uint64_t stack_bytes;          /*  32 */
    struct tbd_sigcontext context; /*  40 */
    uint64_t mask;                 /* 296: blocked before the handler */
};
_Static_assert(sizeof(struct tbd_ucontext) == 304, "struct ucontext of the kernel, not of libc");

struct tbd_sigframe {
    uint64_t return_address; /*   0: sa_restorer */
    struct tbd_ucontext uc;  /*   8 */
    uint8_t info[128];       /* 312 */
};
_Static_assert(sizeof(struct tbd_sigframe) == 440, "struct rt_sigframe of the kernel");

/* In the last 48 bytes of the fxsave area (offset 464): how much extended state follows. */
#define TBD_XSTATE_MAGIC1   0x46505853u
#define TBD_XSTATE_MAGIC2   0x46505845u /* at offset xstate_bytes */
#define TBD_FXSAVE_SOFTWARE 464u
struct tbd_xstate_software {
    uint32_t magic1;         /*  0 */
    uint32_t extended_bytes; /*  4: xstate_bytes + 4 */
    uint64_t features;       /*  8: components that can be in it */
    uint32_t xstate_bytes;   /* 16 */
    uint32_t padding[7];     /* 20 */
};
_Static_assert(sizeof(struct tbd_xstate_software) == 48, "struct _fpx_sw_bytes of the kernel");

struct tbd_sigframe_place {
    uint64_t frame;   /* address of struct tbd_sigframe: rsp in the handler */
    uint64_t fpstate; /* address of the extended state, xstate_bytes + 4 long */
};

/* Where the kernel would put it.  `sp`: the interrupted rsp; `altstack_top`: end of the
 * alternate stack if the handler switches to it (SA_ONSTACK, there is one, and sp - 128 is not
 * on it), else 0. */
static inline struct tbd_sigframe_place tbd_sigframe_place(uint64_t sp, uint64_t altstack_top,
                                                           uint32_t xstate_bytes)
{
    struct tbd_sigframe_place place;

    sp = altstack_top ? altstack_top : sp - TBD_REDZONE_BYTES;
    place.fpstate = (sp - (xstate_bytes + 4u)) & ~63ull;
    place.frame = ((place.fpstate - sizeof(struct tbd_sigframe)) & ~15ull) - 8;
    return place;
}

/* Is `sp` on the alternate stack [bottom, bottom + bytes)?  As the kernel compares: the bottom byte
 * is not on it, the end is. */
static inline bool tbd_sigframe_is_on(uint64_t sp, uint64_t bottom, uint64_t bytes)
{
    return sp > bottom && sp - bottom <= bytes;
}

/* Flags that are clear in the handler whatever the program had. */
#define TBD_SIGFRAME_CLEAR_FLAGS (0x400ull | 0x10000ull | 0x100ull) /* DF, RF, TF */

#endif
