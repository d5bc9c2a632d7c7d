// SPDX-License-Identifier: MIT
/* reg_state.c - a state's vector registers, without the tiles of AMX: they are four times as long as all others, and nobody
 * asks for them */
#include "base/vector_layout.h"
#include "replay/replay.h"

#include <string.h>

/* The length without tiles, which are last. */
static uint32_t short_bytes(const uint8_t *xsave, uint32_t bytes)
{
    struct tbd_vector_layout layout;
    uint64_t components;

    memcpy(&components, xsave + TBD_VECTOR_LEGACY, sizeof(components)); /* all are marked */
    return tbd_vector_layout_find(components, bytes, &layout) ? layout.short_bytes : bytes;
}

void tbd_reg_state_put(struct tbd_reg_state *state, const struct tbd_regs *regs,
                       const uint8_t *xsave)
{
    uint32_t bytes = xsave != NULL ? regs->xsave_bytes : 0;
    uint64_t components;

    state->regs = *regs;
    if (bytes > sizeof(state->xsave))
        bytes = short_bytes(xsave, bytes);
    if (bytes > sizeof(state->xsave))
        bytes = sizeof(state->xsave);
    state->regs.xsave_bytes = bytes;
    if (bytes != 0)
        memcpy(state->xsave, xsave, bytes);
    if (bytes == regs->xsave_bytes || bytes < TBD_VECTOR_EXTENDED)
        return;
    memcpy(&components, state->xsave + TBD_VECTOR_LEGACY, sizeof(components));
    components &= ~(1ull << TBD_VECTOR_TILES);
    memcpy(state->xsave + TBD_VECTOR_LEGACY, &components, sizeof(components));
}
