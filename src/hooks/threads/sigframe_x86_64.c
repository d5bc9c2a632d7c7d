// SPDX-License-Identifier: MIT
/* sigframe_x86_64.c - see sigframe.h; after arch/x86/kernel/signal.c and fpu/signal.c of
 * the kernel's ABI */
#include "hooks/threads/sigframe.h"

#include "base/string.h"

#define FIXED_FLAGS 0x50dd5ull /* AC OF DF TF SF ZF AF PF CF RF: what a frame may change */
#define MAGIC1      0x46505853u
#define MAGIC2      0x46505845u
#define SW_BYTES_AT 464u

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
    uint32_t magic1 = MAGIC1;
    uint32_t magic2 = MAGIC2;
    uint32_t extended = bytes + TBD_FPSTATE_MAGIC2_BYTES;

    memset(image + SW_BYTES_AT, 0, 48);
    memcpy(image + SW_BYTES_AT, &magic1, 4);
    memcpy(image + SW_BYTES_AT + 4, &extended, 4);
    memcpy(image + SW_BYTES_AT + 8, &mask, 8);
    memcpy(image + SW_BYTES_AT + 16, &bytes, 4);
    memcpy(image + bytes, &magic2, 4);
}

struct tbd_frame_place tbd_sigframe_place(uint64_t sp, uint64_t fpstate_bytes)
{
    struct tbd_frame_place place;

    place.fpstate = (sp - fpstate_bytes) & ~63ull;
    place.frame = ((place.fpstate - sizeof(struct tbd_sigframe)) & ~15ull) - 8;
    place.end = place.fpstate + fpstate_bytes;
    return place;
}
