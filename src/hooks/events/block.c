// SPDX-License-Identifier: MIT
/* block.c - the block event: one store and one add per block entry
 *
 * Who only counts entries need not write them: a load of where the entry would be notices the guard page, too, and costs less than a
 * store, of which programs have enough themselves.
 *
 * The entry store is the first instruction of a block and the only one that can fault before
 * anything of the block has happened: a guard page there makes a boundary. */
#include "patcher/templates.h"

void tbd_hook_block(struct tbd_emit *e, uint32_t id)
{
    tbd_emit_store_imm32(e, TBD_R15, id);
    tbd_emit_lea(e, TBD_R15,
                 &(struct tbd_ea){ .disp = 4, .base = TBD_R15, .index = TBD_NO_REG, .scale = 1 });
}

/* At a block's entry r10 is in its slot (tbd_at_home()). */
void tbd_hook_counted_block(struct tbd_emit *e)
{
    struct tbd_ea next = { .base = TBD_R15, .index = TBD_NO_REG, .scale = 1 };

    tbd_emit_load(e, TBD_R10, &next, 4);
    next.disp = 4;
    tbd_emit_lea(e, TBD_R15, &next);
}

void tbd_hook_ring_block(struct tbd_emit *e, uint32_t id)
{
    tbd_emit_store_imm64(e, TBD_R15, id);
    tbd_emit_lea(e, TBD_R15,
                 &(struct tbd_ea){ .disp = 4, .base = TBD_R15, .index = TBD_NO_REG, .scale = 1 });
}

void tbd_hook_block_end(struct tbd_emit *e, uint32_t record_bytes)
{
    struct tbd_ea next = tbd_hook_operand(record_bytes);

    if (record_bytes)
        tbd_emit_lea(e, TBD_R14, &next);
}
