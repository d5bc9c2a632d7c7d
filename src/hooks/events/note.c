// SPDX-License-Identifier: MIT
/* note.c - registers that a question wants to know before an instruction, in a replay */
#include "patcher/templates.h"

void tbd_hook_note(struct tbd_emit *e, unsigned reg, uint32_t at)
{
    struct tbd_ea slot = tbd_hook_operand(at);

    tbd_emit_store(e, reg, &slot, 8);
}

void tbd_hook_note_vector(struct tbd_emit *e, unsigned number, uint32_t at)
{
    struct tbd_ea slot = tbd_hook_operand(at);

    tbd_emit_store_vector(e, number, &slot);
}

void tbd_hook_note_top(struct tbd_emit *e, unsigned scratch, uint32_t at)
{
    struct tbd_ea top = { .base = TBD_RSP, .index = TBD_NO_REG, .scale = 1 };
    struct tbd_ea slot = tbd_hook_operand(at);

    tbd_emit_load(e, scratch, &top, 8);
    tbd_emit_store(e, scratch, &slot, 8);
}
