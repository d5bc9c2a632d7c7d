// SPDX-License-Identifier: MIT
/* remote_signals.c - registers where a debugger stands, also at a signal whose handler has not begun (remote_motion.h) */
#include "query/remote/remote_motion.h"

#include "base/vector_layout.h"

#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* A handler's first instruction: the kernel has put the interrupted registers and what it says of the signal onto the stack. */
static bool read_frame(struct tbd_remote_motion *motion, uint64_t sp, ucontext_t *out)
{
    return tbd_session_read(motion->session, motion->at, sp + 8, out, sizeof(*out)) == TBD_OK;
}

/* The vector registers of the frame, which are in XSAVE's standard format. */
static void take_vectors(struct tbd_remote_motion *motion, uint64_t image,
                         struct tbd_reg_state *state)
{
    size_t bytes = state->regs.xsave_bytes;

    if (bytes > sizeof(state->xsave))
        bytes = sizeof(state->xsave);
    if (image == 0 ||
        tbd_session_read(motion->session, motion->at, image, state->xsave, bytes) != TBD_OK)
        return;
    /* Bytes that are the kernel's and nobody else's (struct _fpx_sw_bytes). */
    if (bytes >= TBD_VECTOR_LEGACY)
        memset(state->xsave + TBD_VECTOR_SOFTWARE, 0, TBD_VECTOR_LEGACY - TBD_VECTOR_SOFTWARE);
}

enum tbd_status tbd_remote_state_at(struct tbd_remote_motion *motion, uint32_t thread,
                                    struct tbd_reg_state *out)
{
    enum tbd_status status;

    motion->session->thread = thread;
    status = tbd_session_regs(motion->session, motion->at, out);
    motion->session->thread = 0;
    return status;
}

enum tbd_status tbd_motion_state(struct tbd_remote_motion *motion, uint32_t thread,
                                 struct tbd_reg_state *out)
{
    static const uint8_t places[TBD_REG_COUNT] = {
        [TBD_RAX] = REG_RAX, [TBD_RCX] = REG_RCX, [TBD_RDX] = REG_RDX, [TBD_RBX] = REG_RBX,
        [TBD_RSP] = REG_RSP, [TBD_RBP] = REG_RBP, [TBD_RSI] = REG_RSI, [TBD_RDI] = REG_RDI,
        [TBD_R8] = REG_R8,   [TBD_R9] = REG_R9,   [TBD_R10] = REG_R10, [TBD_R11] = REG_R11,
        [TBD_R12] = REG_R12, [TBD_R13] = REG_R13, [TBD_R14] = REG_R14, [TBD_R15] = REG_R15,
    };
    enum tbd_status status = tbd_remote_state_at(motion, thread, out);
    ucontext_t frame;

    if (status != TBD_OK || !motion->is_signalled || thread != motion->thread ||
        !read_frame(motion, out->regs.gpr[TBD_RSP], &frame))
        return status;
    for (unsigned i = 0; i < TBD_REG_COUNT; i++)
        out->regs.gpr[i] = (uint64_t)frame.uc_mcontext.gregs[places[i]];
    out->regs.rip = (uint64_t)frame.uc_mcontext.gregs[REG_RIP];
    out->regs.rflags = (uint64_t)frame.uc_mcontext.gregs[REG_EFL];
    take_vectors(motion, (uint64_t)(uintptr_t)frame.uc_mcontext.fpregs, out);
    return TBD_OK;
}

bool tbd_motion_siginfo(struct tbd_remote_motion *motion, uint8_t *out)
{
    struct tbd_reg_state *state = calloc(1, sizeof(*state));
    bool good = motion->is_signalled && state != NULL &&
                tbd_remote_state_at(motion, motion->thread, state) == TBD_OK &&
                tbd_session_read(motion->session, motion->at, state->regs.gpr[TBD_RSI], out,
                                 TBD_SIGINFO_BYTES) == TBD_OK;

    free(state);
    return good;
}
