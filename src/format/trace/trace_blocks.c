// SPDX-License-Identifier: MIT
/* trace_blocks.c - the definitions of a trace's blocks */
#include "format/trace/trace_private.h"

static enum tbd_status read_block(struct tbd_trace *trace, const struct tbd_file *file,
                                  const struct tbd_record_view *record, uint32_t id,
                                  const struct tbd_block_def *def, struct tbd_error *why)
{
    const char *wrong = NULL;
    const struct tbd_op *ops = NULL;

    if (def->ops_offset % 8 || def->ops_offset > record->bytes ||
        sizeof(*ops) * def->op_count > record->bytes - def->ops_offset ||
        def->code_offset > record->bytes || def->code_bytes > record->bytes - def->code_offset)
        wrong = "a block lies outside its record";
    else
        ops = (const void *)(record->payload + def->ops_offset);
    if (!wrong)
        wrong = tbd_block_check(def, ops, false);
    if (wrong)
        return tbd_error_set(why, TBD_CORRUPT, file->path, record->offset, "block %u: %s", id,
                             wrong);
    if (tbd_block_table_get(trace->blocks, id))
        return tbd_error_set(why, TBD_CORRUPT, file->path, record->offset, "block %u twice", id);
    return tbd_block_table_put(trace->blocks, id, def, ops, record->payload + def->code_offset);
}

static enum tbd_status read_block_batch(struct tbd_trace *trace, const struct tbd_file *file,
                                        const struct tbd_record_view *record, struct tbd_error *why)
{
    struct tbd_disk_blocks head;
    enum tbd_status status = TBD_OK;

    if (record->bytes < sizeof(head))
        return tbd_record_corrupt(file, record, "a block record is too short", why);
    memcpy(&head, record->payload, sizeof(head));
    if (head.count > (record->bytes - sizeof(head)) / sizeof(struct tbd_block_def) ||
        head.first_id <= tbd_block_table_count(trace->blocks) ||
        head.count >= (1u << 30) - head.first_id)
        return tbd_record_corrupt(file, record, "impossible block numbers", why);
    for (uint32_t i = 0; i < head.count && !status; i++) {
        struct tbd_block_def def;

        memcpy(&def, record->payload + sizeof(head) + i * sizeof(def), sizeof(def));
        status = read_block(trace, file, record, head.first_id + i, &def, why);
    }
    return status;
}

/* Notes blocks that windows may name but no record has: these windows cannot be read. */
static void note_missing_blocks(struct tbd_trace *trace)
{
    uint64_t there = tbd_block_table_count(trace->blocks);
    uint64_t missing = trace->index.highest_id > there ? trace->index.highest_id - there : 0;

    for (uint64_t id = 1; id <= there && id <= trace->index.highest_id; id++)
        missing += !tbd_block_table_get(trace->blocks, (uint32_t)id);
    if (missing)
        tbd_damage_note(trace, "blocks: %llu of %llu are missing; windows with them cannot be read",
                        (unsigned long long)missing, (unsigned long long)trace->index.highest_id);
}

enum tbd_status tbd_trace_read_blocks(struct tbd_trace *trace, struct tbd_error *why)
{
    struct tbd_error own = { 0 };
    struct tbd_record_view record;
    struct tbd_file file;
    enum tbd_status status = tbd_damage_open(trace, "blocks", TBD_FILE_BLOCKS, &file, why);

    if (status)
        return status;
    while (!(status = tbd_damage_next(trace, &file, &record, &own))) {
        if (record.type == TBD_REC_BLOCKS)
            status = read_block_batch(trace, &file, &record, &own);
        if (status == TBD_CORRUPT)
            tbd_damage_note(trace, "blocks, offset %llu: %s", (unsigned long long)own.offset,
                            own.detail);
        else if (status)
            break;
    }
    note_missing_blocks(trace);
    trace->info.damage_count = trace->damage.count;
    tbd_file_close(&file);
    return status == TBD_NOTFOUND || status == TBD_TRUNCATED || status == TBD_CHECKSUM ? TBD_OK
                                                                                       : status;
}
