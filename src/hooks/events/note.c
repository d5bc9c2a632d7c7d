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
