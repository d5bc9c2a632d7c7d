// SPDX-License-Identifier: MIT
/* sigframe_x86_64.c - see sigframe.h; after arch/x86/kernel/signal.c and fpu/signal.c of
 * the kernel's ABI */
#include "hooks/threads/sigframe.h"

#include "base/linux_abi.h"
#include "base/string.h"
#include "base/vector_layout.h"

#define FIXED_FLAGS 0x50dd5ull /* AC OF DF TF SF ZF AF PF CF RF: what a frame may change */
#define SW_BYTES_AT offsetof(struct _fpstate_64, sw_reserved)

#define AS_THE_KERNELS(ours, theirs)                                                               \
    _Static_assert(offsetof(struct tbd_ucontext, ours) == offsetof(struct ucontext, theirs), #ours)
_Static_assert(sizeof(struct tbd_ucontext) == sizeof(struct ucontext), "asm/ucontext.h");
AS_THE_KERNELS(altstack, uc_stack);
AS_THE_KERNELS(gregs, uc_mcontext.r8);
AS_THE_KERNELS(gregs[TBD_FRAME_R14], uc_mcontext.r14);
AS_THE_KERNELS(gregs[TBD_FRAME_R15], uc_mcontext.r15);
AS_THE_KERNELS(gregs[TBD_FRAME_RSP], uc_mcontext.rsp);
AS_THE_KERNELS(rip, uc_mcontext.rip);
AS_THE_KERNELS(rflags, uc_mcontext.eflags);
AS_THE_KERNELS(cs, uc_mcontext.cs);
AS_THE_KERNELS(ss, uc_mcontext.ss);
AS_THE_KERNELS(error, uc_mcontext.err);
AS_THE_KERNELS(trap, uc_mcontext.trapno);
AS_THE_KERNELS(cr2, uc_mcontext.cr2);
AS_THE_KERNELS(fpstate, uc_mcontext.fpstate);
AS_THE_KERNELS(mask, uc_sigmask);

_Static_assert(sizeof(struct tbd_altstack) == sizeof(stack_t), "asm/signal.h");
_Static_assert(offsetof(struct tbd_altstack, flags) == offsetof(stack_t, ss_flags), "ss_flags");
_Static_assert(offsetof(struct tbd_altstack, bytes) == offsetof(stack_t, ss_size), "ss_size");

_Static_assert(sizeof(struct tbd_action) == sizeof(struct sigaction), "asm/signal.h");
_Static_assert(offsetof(struct tbd_action, flags) == offsetof(struct sigaction, sa_flags),
               "sa_flags");
_Static_assert(offsetof(struct tbd_action, restorer) == offsetof(struct sigaction, sa_restorer),
               "sa_restorer");
_Static_assert(offsetof(struct tbd_action, mask) == offsetof(struct sigaction, sa_mask), "sa_mask");

_Static_assert(TBD_SIGINFO_BYTES == SI_MAX_SIZE && sizeof(siginfo_t) == SI_MAX_SIZE,
               "asm/siginfo.h");
_Static_assert(TBD_FPSTATE_MAGIC2_BYTES == FP_XSTATE_MAGIC2_SIZE, "asm/sigcontext.h");

static const uint8_t order[16] = {
    TBD_R8,  TBD_R9,  TBD_R10, TBD_R11, TBD_R12, TBD_R13, TBD_R14, TBD_R15,
    TBD_RDI, TBD_RSI, TBD_RBP, TBD_RBX, TBD_RDX, TBD_RAX, TBD_RCX, TBD_RSP,
};

void tbd_ucontext_get(const struct tbd_ucontext *context, struct tbd_regs *regs)
{
    for (size_t i = 0; i < 16; i++)
        regs->gpr[order[i]] = context->gregs[i];
    regs->rip = context->rip;
    regs->rflags = context->rflags;
}

void tbd_ucontext_set(struct tbd_ucontext *context, const struct tbd_regs *regs)
{
    for (size_t i = 0; i < 16; i++)
        context->gregs[i] = regs->gpr[order[i]];
    context->rip = regs->rip;
    context->rflags = regs->rflags;
}

uint64_t tbd_ucontext_merge_flags(uint64_t now, uint64_t wanted)
{
    return (now & ~FIXED_FLAGS) | (wanted & FIXED_FLAGS);
}

void tbd_fpstate_mark(uint8_t *image, uint32_t bytes, uint64_t mask)
{
    uint32_t magic1 = FP_XSTATE_MAGIC1;
    uint32_t magic2 = FP_XSTATE_MAGIC2;
    uint32_t extended = bytes + TBD_FPSTATE_MAGIC2_BYTES;

    memset(image + SW_BYTES_AT, 0, 48);
    memcpy(image + SW_BYTES_AT, &magic1, 4);
    memcpy(image + SW_BYTES_AT + 4, &extended, 4);
    memcpy(image + SW_BYTES_AT + 8, &mask, 8);
    memcpy(image + SW_BYTES_AT + 16, &bytes, 4);
    memcpy(image + bytes, &magic2, 4);
}

bool tbd_frame_has_tiles(const struct tbd_ucontext *context)
{
    uint64_t mask = 0;

    if (context->fpstate)
        memcpy(&mask, (const uint8_t *)(uintptr_t)context->fpstate + SW_BYTES_AT + 8, sizeof(mask));
    return mask >> TBD_VECTOR_TILES & 1;
}

struct tbd_frame_place tbd_sigframe_place(uint64_t sp, uint64_t fpstate_bytes)
{
    struct tbd_frame_place place;

    place.fpstate = (sp - fpstate_bytes) & ~63ull;
    place.frame = ((place.fpstate - sizeof(struct tbd_sigframe)) & ~15ull) - 8;
    place.end = place.fpstate + fpstate_bytes;
    return place;
}
