// SPDX-License-Identifier: MIT
/* record_fields.c - the fields of a block's records (coding.c)
 *
 * RECORD_FIELDS-1  Fields cover a record without gap or overlap, whatever the ops are. (not checked:
 *     whoever verifies a trace compares what was decoded) */
#include "format/coding/coding_private.h"

#include <stdlib.h>

static void find_borders(uint8_t *border, const struct tbd_block *block)
{
    for (uint16_t i = 0; i < block->def.op_count; i++) {
        const struct tbd_op *op = &block->ops[i];
        uint32_t bytes = op->kind == TBD_OP_STORE  ? op->size
                         : op->kind == TBD_OP_CALL ? 56
                         : op->kind == TBD_OP_RET  ? 16
                                                   : 0;

        if (op->base != TBD_BASE_NONE)
            border[op->base] = border[op->base + 8] = 1;
        if (bytes)
            border[op->data] = border[op->data + bytes] = 1;
    }
}

struct tbd_record_fields *tbd_record_fields_make(const struct tbd_block *block)
{
    uint8_t border[TBD_RECORD_MAX_BYTES + 1] = { 0 };
    uint32_t bytes = block->def.operand_bytes;
    struct tbd_record_fields *f = malloc(sizeof(*f) + bytes * sizeof(f->field[0]));

    if (!f)
        return NULL;
    find_borders(border, block);
    f->count = 0;
    f->record_bytes = bytes;
    for (uint32_t at = 0; at < bytes;) {
        uint32_t end = at + 1;

        while (end < bytes && !border[end] && end - at < 8)
            end++;
        f->field[f->count++] = (struct tbd_record_field){ (uint16_t)at, (uint16_t)(end - at) };
        at = end;
    }
    return f;
}
