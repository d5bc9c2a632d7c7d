// SPDX-License-Identifier: MIT
/* coding.c - how the records of a window's blocks are coded before LZ4
 *
 * A segment:
 *
 *   uint32_t   bytes of lengths that follow
 *   uint32_t   bytes of values
 *   lengths    4 bits per value, low half first: how many bytes it takes (0 .. 8)
 *   values     that many bytes each
 *
 * in this order: blocks as they first occur in the segment, fields by offset, occurrences by time.
 * A value is the difference between a field and the same field of the block's previous occurrence
 * (0 before the first in the segment), within the field's width, zigzag coded.  A field is a part
 * of the record between two borders, at most 8 bytes; borders are where addresses and data of the
 * block's events begin and end.  After the last segment come messages that are in no log (unlogged.h).
 *
 * Invariants
 * CODING-1  Decoding writes only to rows that lay_out() reserved, and to operands that were
 *     counted. (not checked: it is what decoding checks of its input) */
#include "format/coding/coding_private.h"
#include "format/coding/unlogged.h"
#include "format/window/window_make.h"

#include "base/array.h"

#include <stdlib.h>

/* The data of a block that each of its entries needs. */
struct slim {
    uint32_t set; /* in the segment + 1; 0: not met yet, or without operands */
    uint16_t operand_bytes;
    uint16_t op_count;
    bool is_known;
};

struct tbd_coder {
    const struct tbd_block_table *blocks; /* a reference is held */
    struct tbd_record_fields **fields;    /* by id, made when needed */
    struct slim *slim;                    /* by id */
    uint32_t *next;                       /* by set: where its next row is */
    size_t ids;
    struct tbd_row_set *sets;
    size_t set_count, set_capacity;
    uint8_t *rows;
    size_t row_capacity;
};

struct tbd_coder *tbd_coder_new(const struct tbd_block_table *blocks)
{
    struct tbd_coder *coder = calloc(1, sizeof(*coder));

    if (coder)
        coder->blocks = tbd_block_table_retain((struct tbd_block_table *)(uintptr_t)blocks);
    return coder;
}

void tbd_coder_free(struct tbd_coder *coder)
{
    if (!coder)
        return;
    for (uint32_t id = 0; id < coder->ids; id++)
        free(coder->fields[id]);
    free(coder->fields);
    free(coder->slim);
    free(coder->next);
    free(coder->sets);
    free(coder->rows);
    tbd_block_table_release((struct tbd_block_table *)(uintptr_t)coder->blocks);
    free(coder);
}

/* ---- fields ---- */

static bool grow_ids(struct tbd_coder *coder, uint32_t id)
{
    return tbd_array_reach_both(&coder->fields, sizeof(*coder->fields), &coder->slim,
                                sizeof(*coder->slim), id, &coder->ids);
}

const struct tbd_record_fields *tbd_coder_fields(struct tbd_coder *coder, uint32_t id)
{
    if (id >= coder->ids && !grow_ids(coder, id))
        return NULL;
    if (!coder->fields[id])
        coder->fields[id] = tbd_record_fields_make(tbd_block_table_get(coder->blocks, id));
    return coder->fields[id];
}

/* Counts the values of a segment, and the bytes of its records. */
static bool measure(struct tbd_coder *coder, const struct tbd_row_set *sets, size_t set_count,
                    uint64_t *out_values, uint64_t *out_bytes)
{
    *out_values = *out_bytes = 0;
    for (size_t i = 0; i < set_count; i++) {
        const struct tbd_record_fields *f = tbd_coder_fields(coder, sets[i].id);

        if (!f)
            return false;
        *out_values += (uint64_t)f->count * sets[i].count;
        *out_bytes += (uint64_t)f->record_bytes * sets[i].count;
    }
    return true;
}

/* ---- encoding ---- */

struct encoder {
    uint8_t *lengths;
    uint8_t *values;
    uint64_t n;       /* values so far */
    unsigned pending; /* the length of the last one, if n is odd */
};

static inline unsigned bytes_for(uint64_t z)
{
    return z ? 8u - (unsigned)__builtin_clzll(z) / 8u : 0;
}

static inline void put_value(struct encoder *e, uint64_t z)
{
    unsigned length = bytes_for(z);

    memcpy(e->values, &z, sizeof(z));
    e->values += length;
    if (e->n & 1)
        e->lengths[e->n >> 1] = (uint8_t)(e->pending | length << 4);
    else
        e->pending = length;
    e->n++;
}

/* Most callers pass a constant `bytes`, so the shifts are constants. */
static inline __attribute__((always_inline)) void
encode_field(struct encoder *e, const uint8_t *at, size_t stride, uint32_t count, unsigned bytes)
{
    unsigned shift = 64 - bytes * 8;
    struct encoder local = *e;
    uint64_t before = 0;

    for (uint32_t i = 0; i < count; i++, at += stride) {
        uint64_t value, step;

        memcpy(&value, at, sizeof(value));
        value <<= shift;
        step = value - before;
        before = value;
        put_value(&local, (step << 1 ^ (uint64_t)((int64_t)step >> 63)) >> shift);
    }
    *e = local;
}

static void encode_rows(struct encoder *e, const struct tbd_record_fields *f, const uint8_t *rows,
                        size_t stride, uint32_t count)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const uint8_t *at = rows + f->field[i].offset;

        switch (f->field[i].bytes) {
        case 8: encode_field(e, at, stride, count, 8); break;
        case 4: encode_field(e, at, stride, count, 4); break;
        case 1: encode_field(e, at, stride, count, 1); break;
        default: encode_field(e, at, stride, count, f->field[i].bytes); break;
        }
    }
}

void tbd_coder_put_segment(struct tbd_coder *coder, struct tbd_buffer *out,
                           const struct tbd_row_set *sets, size_t set_count, const uint8_t *rows,
                           uint32_t prefix)
{
    uint32_t head[2];
    uint64_t values, bytes;
    struct encoder e = { 0 };
    uint8_t *at;

    if (!measure(coder, sets, set_count, &values, &bytes)) {
        out->failed = true;
        return;
    }
    head[0] = (uint32_t)((values + 1) / 2);
    at = tbd_buffer_reserve(out, sizeof(head) + head[0] + bytes + 8);
    if (!at)
        return;
    e.lengths = at + sizeof(head);
    e.values = e.lengths + head[0];
    for (size_t i = 0; i < set_count; i++) {
        const struct tbd_record_fields *f = coder->fields[sets[i].id];

        encode_rows(&e, f, rows + sets[i].start + prefix, f->record_bytes + prefix, sets[i].count);
    }
    if (e.n & 1)
        e.lengths[e.n >> 1] = (uint8_t)e.pending;
    head[1] = (uint32_t)(e.values - (e.lengths + head[0]));
    memcpy(at, head, sizeof(head));
    out->used += sizeof(head) + head[0] + head[1];
}

/* ---- the rows of a segment, from entries ---- */

static bool new_set(struct tbd_coder *coder, uint32_t id)
{
    size_t sets = coder->set_capacity, next = coder->set_capacity;

    if (!tbd_array_grow(&coder->sets, coder->set_count, &sets, sizeof(*coder->sets)) ||
        !tbd_array_grow(&coder->next, coder->set_count, &next, sizeof(*coder->next)))
        return false;
    coder->set_capacity = next;
    coder->sets[coder->set_count++] = (struct tbd_row_set){ .id = id };
    coder->slim[id].set = (uint32_t)coder->set_count;
    return true;
}

static void forget_sets(struct tbd_coder *coder)
{
    for (size_t i = 0; i < coder->set_count; i++)
        coder->slim[coder->sets[i].id].set = 0;
    coder->set_count = 0;
}

/* A block's first entry in the segment, or at all.  TBD_CORRUPT if it is none. */
static enum tbd_status meet(struct tbd_coder *coder, uint32_t id)
{
    const struct tbd_block *block = tbd_block_table_get(coder->blocks, id);
    struct slim *slim;

    if (!block)
        return TBD_CORRUPT;
    if (id >= coder->ids && !grow_ids(coder, id))
        return TBD_NOMEM;
    slim = &coder->slim[id];
    slim->is_known = true;
    slim->operand_bytes = (uint16_t)block->def.operand_bytes;
    slim->op_count = block->def.op_count;
    return !slim->operand_bytes || new_set(coder, id) ? TBD_OK : TBD_NOMEM;
}

/* TBD_CORRUPT if an entry is no block. */
static enum tbd_status count_rows(struct tbd_coder *coder, const uint32_t *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t id = entries[i];

        if (id & TBD_ENTRY_MESSAGE)
            continue;
        if (__builtin_expect(id >= coder->ids || !coder->slim[id].is_known ||
                                 (coder->slim[id].operand_bytes && !coder->slim[id].set),
                             0)) {
            enum tbd_status status = meet(coder, id);

            if (status)
                return status;
        }
        if (coder->slim[id].operand_bytes)
            coder->sets[coder->slim[id].set - 1].count++;
    }
    return TBD_OK;
}

static enum tbd_status lay_out(struct tbd_coder *coder, const uint32_t *entries, size_t count)
{
    enum tbd_status status;
    size_t at = 0;

    forget_sets(coder);
    status = count_rows(coder, entries, count);
    if (status)
        return status;
    for (size_t i = 0; i < coder->set_count; i++) {
        struct tbd_row_set *set = &coder->sets[i];

        set->start = coder->next[i] = (uint32_t)at;
        at += (size_t)set->count * coder->slim[set->id].operand_bytes + TBD_ROW_STEP;
    }
    if (at + TBD_ROW_SLACK > coder->row_capacity) {
        free(coder->rows);
        coder->row_capacity = at + at / 2 + TBD_ROW_SLACK;
        coder->rows = malloc(coder->row_capacity);
    }
    if (coder->rows)
        return TBD_OK;
    coder->row_capacity = 0;
    return TBD_NOMEM;
}

static uint64_t message_bytes(const void *message)
{
    struct tbd_message head;

    memcpy(&head, message, sizeof(head));
    return sizeof(head) + (uint64_t)head.bytes;
}

static size_t segment_entries(const struct tbd_window *window, size_t from)
{
    size_t left = window->entry_count - from;

    return left < TBD_SEGMENT_ENTRIES ? left : TBD_SEGMENT_ENTRIES;
}

/* Copies a segment's records into rows, and messages that are in no log to `unlogged`; returns where
 * the operands of the next segment begin. */
static const uint8_t *gather(struct tbd_coder *coder, const uint32_t *entries, size_t count,
                             const uint8_t *at, struct tbd_buffer *unlogged)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t set, bytes;

        if (entries[i] & TBD_ENTRY_MESSAGE) {
            if (!tbd_message_is_logged(entries[i] & ~TBD_ENTRY_MESSAGE))
                tbd_buffer_put(unlogged, at, message_bytes(at));
            at += message_bytes(at);
            continue;
        }
        bytes = coder->slim[entries[i]].operand_bytes;
        if (!bytes)
            continue;
        set = coder->slim[entries[i]].set - 1;
        tbd_row_copy(coder->rows + coder->next[set], at, bytes);
        coder->next[set] += bytes;
        at += bytes;
    }
    return at;
}

void tbd_records_encode(struct tbd_buffer *out, const struct tbd_window *window)
{
    struct tbd_coder *coder = tbd_coder_new(window->blocks_by_id);
    const uint8_t *at = window->operands;
    struct tbd_buffer unlogged = { 0 };

    for (size_t i = 0; i < window->entry_count && !out->failed; i += TBD_SEGMENT_ENTRIES) {
        size_t count = segment_entries(window, i);

        if (!coder || lay_out(coder, window->entries + i, count)) {
            out->failed = true;
            break;
        }
        at = gather(coder, window->entries + i, count, at, &unlogged);
        tbd_coder_put_segment(coder, out, coder->sets, coder->set_count, coder->rows, 0);
    }
    tbd_unlogged_put(out, &unlogged);
    tbd_buffer_free(&unlogged);
    tbd_coder_free(coder);
}

/* ---- decoding ---- */

/* Most callers pass a constant `bytes`.  If enough bytes are left for all values at their greatest
 * length, only impossible lengths are checked for. */
static inline __attribute__((always_inline)) bool
decode_field(struct tbd_decoder *d, uint8_t *at, size_t stride, uint32_t count, unsigned bytes)
{
    struct tbd_decoder local = *d;
    uint64_t value = 0, z;
    unsigned lengths = 0;
    uint32_t i = 0;

    for (; i < count && (size_t)(local.end - local.values) >= TBD_VALUE_MOST; i++, at += stride) {
        unsigned length = local.lengths[local.n >> 1] >> ((local.n & 1) * 4) & 15;

        memcpy(&z, local.values, sizeof(z));
        z &= tbd_value_masks[length];
        lengths |= length + 7; /* 16: one was more than 8 */
        local.values += length;
        local.n++;
        value += (uint64_t)tbd_unzigzag(z);
        memcpy(at, &value, bytes);
    }
    for (; i < count; i++, at += stride) {
        if (!tbd_decoder_get(&local, &z))
            return false;
        value += (uint64_t)tbd_unzigzag(z);
        memcpy(at, &value, bytes);
    }
    *d = local;
    return lengths < 16;
}

bool tbd_decode_rows(struct tbd_decoder *d, const struct tbd_record_fields *f, uint8_t *rows,
                     uint32_t count)
{
    bool good = true;

    for (uint32_t i = 0; i < f->count && good; i++) {
        uint8_t *at = rows + f->field[i].offset;

        switch (f->field[i].bytes) {
        case 8: good = decode_field(d, at, f->record_bytes, count, 8); break;
        case 4: good = decode_field(d, at, f->record_bytes, count, 4); break;
        case 1: good = decode_field(d, at, f->record_bytes, count, 1); break;
        default: good = decode_field(d, at, f->record_bytes, count, f->field[i].bytes); break;
        }
    }
    return good;
}

static enum tbd_status get_segment(struct tbd_coder *coder, struct tbd_reader *in)
{
    const uint8_t *at = tbd_reader_take(in, 2 * sizeof(uint32_t));
    uint64_t values, bytes;
    struct tbd_decoder d = { 0 };
    uint32_t head[2];

    if (!at)
        return TBD_CORRUPT;
    memcpy(head, at, sizeof(head));
    if (!measure(coder, coder->sets, coder->set_count, &values, &bytes))
        return TBD_NOMEM;
    d.lengths = tbd_reader_take(in, head[0]);
    d.values = tbd_reader_take(in, head[1]);
    if (in->failed || head[0] != (values + 1) / 2)
        return TBD_CORRUPT;
    d.end = d.values + head[1];
    for (size_t i = 0; i < coder->set_count; i++) {
        const struct tbd_row_set *set = &coder->sets[i];

        if (!tbd_decode_rows(&d, coder->fields[set->id], coder->rows + set->start, set->count))
            return TBD_CORRUPT;
    }
    return d.values == d.end ? TBD_OK : TBD_CORRUPT;
}

struct spreading {
    struct tbd_window *window;
    struct tbd_reader *in; /* segments */
    struct tbd_unlogged unlogged;
    struct tbd_log_entry *log;
    size_t log_left;
    uint8_t *at;
    size_t space;
    struct tbd_checkpoint here;
    uint64_t index;
    size_t due; /* entries at the next checkpoint */
};

/* The log's next message, which then lies at s->at.  NULL: it is another one. */
static const struct tbd_message *next_logged(struct spreading *s, uint32_t kind)
{
    const struct tbd_message *message = s->log->message;

    if (!s->log_left || tbd_message_kind(message) != kind ||
        s->log->time != s->here.time - s->window->first_time)
        return NULL;
    s->log->message = (const void *)s->at;
    s->log++;
    s->log_left--;
    return message;
}

static enum tbd_status spread_message(struct spreading *s, uint32_t kind)
{
    const struct tbd_message *message = tbd_message_is_logged(kind)
                                            ? next_logged(s, kind)
                                            : tbd_unlogged_next(&s->unlogged, s->in, kind);
    struct tbd_msg_thread thread;
    uint64_t bytes;

    if (!message)
        return TBD_CORRUPT;
    bytes = message_bytes(message);
    if (bytes > s->space)
        return TBD_CORRUPT;
    memcpy(s->at, message, bytes);
    if (kind == TBD_MSG_THREAD) {
        thread = tbd_thread_message((const void *)s->at);
        if (thread.event == TBD_THREAD_SWITCH)
            s->here.thread = thread.thread;
    }
    s->at += bytes;
    s->space -= bytes;
    s->index++;
    return TBD_OK;
}

/* Writes records up to the next message; returns how many entries, SIZE_MAX if the operands are too
 * short. */
static size_t spread_blocks(const struct tbd_coder *coder, const uint32_t *entries, size_t count,
                            struct spreading *s)
{
    const struct slim *slim = coder->slim;
    uint64_t index = s->index;
    uint8_t *at = s->at;
    size_t space = s->space, i;

    for (i = 0; i < count && !(entries[i] & TBD_ENTRY_MESSAGE); i++) {
        struct slim block = slim[entries[i]];
        uint32_t *next;

        index += 1u + block.op_count;
        if (!block.operand_bytes)
            continue;
        if (block.operand_bytes > space)
            return SIZE_MAX;
        next = &coder->next[block.set - 1];
        tbd_row_copy(at, coder->rows + *next, block.operand_bytes);
        *next += block.operand_bytes;
        at += block.operand_bytes;
        space -= block.operand_bytes;
    }
    s->index = index;
    s->at = at;
    s->space = space;
    s->here.time += i;
    return i;
}

static bool put_checkpoint(struct spreading *s, size_t entry)
{
    s->here.entry = entry;
    s->here.operand = (size_t)(s->at - s->window->operands);
    s->here.index = (uint32_t)s->index;
    s->due = entry + TBD_CHECKPOINT_ENTRIES;
    return tbd_window_put_checkpoint(s->window, &s->here);
}

/* Writes the rows of the segment that begins with entry `from`, and messages, in the order of the
 * entries. */
static enum tbd_status spread(struct tbd_coder *coder, size_t from, size_t count,
                              struct spreading *s)
{
    const uint32_t *entries = s->window->entries;

    for (size_t i = from; i < from + count;) {
        size_t most = from + count - i, taken;

        if (entries[i] & TBD_ENTRY_MESSAGE) {
            enum tbd_status status = spread_message(s, entries[i++] & ~TBD_ENTRY_MESSAGE);

            if (status)
                return status;
            continue;
        }
        if (i >= s->due && !put_checkpoint(s, i))
            return TBD_NOMEM;
        taken = spread_blocks(coder, entries + i, most < s->due - i ? most : s->due - i, s);
        if (taken == SIZE_MAX)
            return TBD_CORRUPT;
        i += taken;
    }
    return TBD_OK;
}

enum tbd_status tbd_records_decode(const uint8_t *content, size_t bytes, struct tbd_window *window,
                                   uint8_t *operands)
{
    struct tbd_coder *coder = tbd_coder_new(window->blocks_by_id);
    struct tbd_reader in = { content, content + bytes, false };
    // clang-format off
    struct spreading s = {
        .window = window, .in = &in, .log = (struct tbd_log_entry *)(uintptr_t)window->log,
        .log_left = window->log_count, .at = operands, .space = window->operand_bytes,
        .here = { .time = window->first_time, .thread = window->regs.thread },
    };
    // clang-format on
    enum tbd_status status = coder ? TBD_OK : TBD_NOMEM;

    window->operands = operands;
    for (size_t i = 0; i < window->entry_count && !status; i += TBD_SEGMENT_ENTRIES) {
        size_t count = segment_entries(window, i);

        status = lay_out(coder, window->entries + i, count);
        if (!status)
            status = get_segment(coder, &in);
        if (!status)
            status = spread(coder, i, count, &s);
    }
    tbd_coder_free(coder);
    if (!status &&
        (in.at != in.end || !tbd_unlogged_are_over(&s.unlogged) || s.space || s.log_left ||
         s.index > UINT32_MAX || s.here.time - window->first_time != window->blocks))
        status = TBD_CORRUPT;
    return status;
}
