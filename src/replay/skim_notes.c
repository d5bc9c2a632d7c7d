// SPDX-License-Identifier: MIT
/* skim_notes.c - registers before instructions, told while the window is replayed (tbd_replay_skim_notes() in replay.h)
 *
 * As skim.h has it, nothing is kept: the records of blocks with sites are looked at in the chunk. */
#include "base/copy_once.h"
#include "format/window/blocks.h"
#include "replay/replayer_private.h"
#include "replay/skim.h"

struct note_telling {
    const struct tbd_note_listener *listener;
    const struct tbd_block_table *table; /* ids are this table's; borrowed */
    uint64_t time;                       /* of the next block, relative */
};

static bool tell(struct note_telling *t, const struct tbd_block *block, const uint8_t *record)
{
    bool good = true;

    for (uint16_t i = 0; i < block->def.op_count && good; i++) {
        if (block->ops[i].kind == TBD_OP_NOTE)
            good = t->listener->note(t->listener->context, t->time, &block->ops[i],
                                     record + block->ops[i].data);
    }
    return good;
}

static bool take_records(void *context, const uint32_t *ids, size_t count, const uint8_t *operands)
{
    struct note_telling *t = context;
    bool good = true;

    for (size_t i = 0; i < count && good; i++) {
        const struct tbd_block *block = tbd_block_table_get(t->table, ids[i]);

        if (!block)
            return false;
        if (block->def.operand_bytes)
            good = tell(t, block, operands);
        operands += block->def.operand_bytes;
        t->time++;
    }
    return good;
}

static bool take_message(void *context, uint32_t kind, const uint8_t *payload, uint32_t bytes)
{
    (void)context;
    (void)kind;
    (void)payload;
    (void)bytes;
    return true;
}

enum tbd_status tbd_skim_notes(struct tbd_worker *worker, const struct tbd_note_listener *listener,
                               struct tbd_window **out, struct tbd_divergence *divergence,
                               struct tbd_error *why)
{
    struct note_telling telling = { .listener = listener, .table = worker->noted };
    struct tbd_skim_listener records = { .records = take_records,
                                         .message = take_message,
                                         .context = &telling };

    return tbd_skim_window(worker, TBD_HOOK_BLOCKS | TBD_HOOK_NOTES, &records, out, divergence,
                           why);
}
