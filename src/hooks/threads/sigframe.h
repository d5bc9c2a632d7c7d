// SPDX-License-Identifier: MIT
/* sigframe.h - signal frames as the kernel builds them on x86-64
 *
 * No state.  Contexts: APP, SIG. */
#ifndef TBD_HOOKS_SIGFRAME_H
#define TBD_HOOKS_SIGFRAME_H

#include "format/stream/stream.h"
#include "hooks/threads/signals.h"

/* struct ucontext of the kernel (asm/ucontext.h, asm/sigcontext.h). */
struct tbd_ucontext {
    uint64_t flags;               /*   0 */
    uint64_t link;                /*   8 */
    struct tbd_altstack altstack; /* 16 */
    uint64_t gregs[16];           /*  40: r8-r15 rdi rsi rbp rbx rdx rax rcx rsp */
    uint64_t rip;                 /* 168 */
    uint64_t rflags;              /* 176 */
    uint16_t cs, gs, fs, ss;      /* 184 */
    uint64_t error;               /* 192 */
    uint64_t trap;                /* 200 */
    uint64_t old_mask;            /* 208 */
    uint64_t cr2;                 /* 216 */
    uint64_t fpstate;             /* 224: address of the XSAVE image, 0 = none */
    uint64_t reserved[8];         /* 232 */
    uint64_t mask;                /* 296 */
};
_Static_assert(sizeof(struct tbd_ucontext) == 304, "as the kernel's");

struct tbd_sigframe {
    uint64_t restorer; /* return address of the handler */
    struct tbd_ucontext context;
    uint8_t info[TBD_SIGINFO_BYTES];
};
_Static_assert(sizeof(struct tbd_sigframe) == 440, "as the kernel's");

#define TBD_FRAME_R14 6 /* places in gregs */
#define TBD_FRAME_R15 7
#define TBD_FRAME_RAX 13
#define TBD_FRAME_RSP 15

void tbd_ucontext_get(const struct tbd_ucontext *context, struct tbd_regs *regs);
void tbd_ucontext_set(struct tbd_ucontext *context, const struct tbd_regs *regs);
/* The flags after rt_sigreturn: `now`, with those bits from `wanted` that the kernel restores. */
uint64_t tbd_ucontext_merge_flags(uint64_t now, uint64_t wanted);

/* Marks that follow and lie in the XSAVE image on a signal stack (struct _fpx_sw_bytes). */
#define TBD_FPSTATE_MAGIC2_BYTES 4u
void tbd_fpstate_mark(uint8_t *image, uint32_t bytes, uint64_t mask);

/* Does the kernel's frame have tiles? */
bool tbd_frame_has_tiles(const struct tbd_ucontext *context);

/* The place below `sp` of a frame with `fpstate_bytes` (marks included). */
struct tbd_frame_place {
    uint64_t frame;
    uint64_t fpstate;
    uint64_t end;
};
struct tbd_frame_place tbd_sigframe_place(uint64_t sp, uint64_t fpstate_bytes);

#endif
