// SPDX-License-Identifier: MIT
/* call.c - function entries and exits
 *
 * Entry: the stack pointer and the six argument registers before the call instruction.  Exit: the
 * stack pointer, where the return address lies, and rax.  The registers are in their own places. */
#include "patcher/templates.h"

static void record(struct tbd_emit *e, uint32_t at, unsigned reg)
{
    struct tbd_ea slot = tbd_hook_operand(at);

    tbd_emit_store(e, reg, &slot, 8);
}

void tbd_hook_call(struct tbd_emit *e, uint32_t data_at)
{
    static const uint8_t order[] = { TBD_RSP, TBD_RDI, TBD_RSI, TBD_RDX, TBD_RCX, TBD_R8, TBD_R9 };

    for (uint32_t n = 0; n < sizeof(order); n++)
        record(e, data_at + 8 * n, order[n]);
}

void tbd_hook_return(struct tbd_emit *e, uint32_t data_at)
{
    record(e, data_at, TBD_RSP);
    record(e, data_at + 8, TBD_RAX);
}
