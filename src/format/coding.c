// SPDX-License-Identifier: MIT
/* coding.c - how the records of a window's blocks are coded before LZ4
 *
 *   uint64_t   bytes of lengths that follow
 *   lengths    4 bits per value, low half first: how many bytes it takes (0 .. 8)
 *   values     that many bytes each
 *
 * in this order: blocks by id, fields by offset, occurrences by time.  A value is the difference of a field to
 * the same field of the block's occurrence before (0 before the first), within the field's width, zigzag coded.
 * A field is a stretch of the record between two borders, at most 8 bytes; borders are where
 * addresses and data of the block's events begin and end.
 *
 * Invariants
 * C1  Fields cover a record without gap or overlap, whatever the ops are.
 * C2  Decoding writes only to rows that tbd_rows_make() made room for. */
#include "format/coding.h"

#include <stdlib.h>

struct field {
    uint16_t offset;
    uint16_t bytes; /* 1 .. 8 */
};

/* Memory for taking one block's record apart. */
struct fields {
    uint32_t count;
    struct field field[TBD_RECORD_MAX_BYTES];
    uint8_t border[TBD_RECORD_MAX_BYTES + 1];
};

/* ---- rows ---- */

void tbd_rows_free(struct tbd_rows *rows)
{
    free(rows->start);
    free(rows->count);
    free(rows->bytes);
    *rows = (struct tbd_rows){ 0 };
}

static uint64_t message_bytes(const struct tbd_log_entry *entry)
{
    struct tbd_message head;

    memcpy(&head, entry->message, sizeof(head));
    return sizeof(head) + (uint64_t)head.bytes;
}

/* Counts entries by id; the sum of what they take, or UINT64_MAX if one is impossible. */
static uint64_t count_ids(const struct tbd_window *window, struct tbd_rows *rows)
{
    size_t messages = 0;
    uint64_t sum = 0;

    for (size_t i = 0; i < window->entry_count; i++) {
        uint32_t entry = window->entries[i];
        const struct tbd_block *block;

        if (entry & TBD_ENTRY_MESSAGE) {
            if (messages == window->log_count)
                return UINT64_MAX;
            sum += message_bytes(&window->log[messages++]);
            continue;
        }
        block = tbd_window_block(window, entry);
        if (!block)
            return UINT64_MAX;
        sum += block->def.operand_bytes;
        rows->count[entry] += block->def.operand_bytes != 0;
    }
    return messages == window->log_count ? sum : UINT64_MAX;
}

static enum tbd_status lay_out(const struct tbd_window *window, struct tbd_rows *rows)
{
    uint64_t next = 0;

    if (count_ids(window, rows) != window->operand_bytes)
        return TBD_CORRUPT;
    for (uint32_t id = 0; id < rows->ids; id++) {
        rows->start[id] = (uint32_t)next;
        if (rows->count[id])
            next += (uint64_t)rows->count[id] * tbd_window_block(window, id)->def.operand_bytes +
                    TBD_ROW_STEP;
        if (next > UINT32_MAX)
            return TBD_CORRUPT;
    }
    rows->bytes = malloc(next + TBD_ROW_SLACK);
    return rows->bytes ? TBD_OK : TBD_NOMEM;
}

enum tbd_status tbd_rows_make(const struct tbd_window *window, struct tbd_rows *out)
{
    enum tbd_status status = TBD_NOMEM;

    *out = (struct tbd_rows){ .ids = tbd_block_table_count(window->blocks_by_id) + 1 };
    out->start = calloc(out->ids, sizeof(*out->start));
    out->count = calloc(out->ids, sizeof(*out->count));
    if (out->start && out->count)
        status = lay_out(window, out);
    if (status)
        tbd_rows_free(out);
    return status;
}

/* Where the next row of each block is, while rows are gone through. */
static uint32_t *copy_starts(const struct tbd_rows *rows)
{
    uint32_t *next = malloc(rows->ids * sizeof(*next));

    if (next)
        memcpy(next, rows->start, rows->ids * sizeof(*next));
    return next;
}

enum tbd_status tbd_rows_gather(struct tbd_rows *rows, const struct tbd_window *window)
{
    const uint8_t *at = window->operands;
    uint32_t *next = copy_starts(rows);
    size_t messages = 0;

    if (!next)
        return TBD_NOMEM;
    for (size_t i = 0; i < window->entry_count; i++) {
        uint32_t entry = window->entries[i];
        uint32_t bytes;

        if (entry & TBD_ENTRY_MESSAGE) {
            at += message_bytes(&window->log[messages++]);
            continue;
        }
        bytes = tbd_window_block(window, entry)->def.operand_bytes;
        if (bytes)
            tbd_row_copy(rows->bytes + next[entry], at, bytes);
        next[entry] += bytes;
        at += bytes;
    }
    free(next);
    return TBD_OK;
}

enum tbd_status tbd_rows_spread(const struct tbd_rows *rows, struct tbd_window *window,
                                uint8_t *operands)
{
    struct tbd_log_entry *log = (struct tbd_log_entry *)(uintptr_t)window->log;
    uint32_t *next = copy_starts(rows);
    uint8_t *at = operands;

    if (!next)
        return TBD_NOMEM;
    for (size_t i = 0; i < window->entry_count; i++) {
        uint32_t entry = window->entries[i];
        uint32_t bytes;

        if (entry & TBD_ENTRY_MESSAGE) {
            uint64_t length = message_bytes(log);

            memcpy(at, log->message, length);
            log++->message = (const void *)at;
            at += length;
            continue;
        }
        bytes = tbd_window_block(window, entry)->def.operand_bytes;
        if (bytes)
            tbd_row_copy(at, rows->bytes + next[entry], bytes);
        next[entry] += bytes;
        at += bytes;
    }
    free(next);
    return TBD_OK;
}

/* ---- fields ---- */

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

static void find_fields(struct fields *f, const struct tbd_block *block)
{
    uint32_t bytes = block->def.operand_bytes;

    memset(f->border, 0, bytes + 1);
    find_borders(f->border, block);
    f->count = 0;
    for (uint32_t at = 0; at < bytes;) {
        uint32_t end = at + 1;

        while (end < bytes && !f->border[end] && end - at < 8)
            end++;
        f->field[f->count++] = (struct field){ (uint16_t)at, (uint16_t)(end - at) };
        at = end;
    }
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

/* `bytes` is a constant in each caller, so that the shifts are. */
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

static void encode_block(struct encoder *e, const struct fields *f, const uint8_t *rows,
                         size_t stride, uint32_t count)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const uint8_t *at = rows + f->field[i].offset;

        switch (f->field[i].bytes) {
        case 8:
            encode_field(e, at, stride, count, 8);
            break;
        case 4:
            encode_field(e, at, stride, count, 4);
            break;
        case 1:
            encode_field(e, at, stride, count, 1);
            break;
        default:
            encode_field(e, at, stride, count, f->field[i].bytes);
            break;
        }
    }
}

/* Values and the bytes of all records: what the coded form can take at most. */
static void measure(const struct tbd_window *window, const struct tbd_rows *rows,
                    struct fields *f, uint64_t *out_values, uint64_t *out_bytes)
{
    *out_values = *out_bytes = 0;
    for (uint32_t id = 1; id < rows->ids; id++) {
        const struct tbd_block *block = rows->count[id] ? tbd_window_block(window, id) : NULL;

        if (!block)
            continue;
        find_fields(f, block);
        *out_values += (uint64_t)f->count * rows->count[id];
        *out_bytes += (uint64_t)block->def.operand_bytes * rows->count[id];
    }
}

void tbd_rows_encode(struct tbd_buffer *out, const struct tbd_window *window,
                     const struct tbd_rows *rows)
{
    struct fields *f = malloc(sizeof(*f));
    uint64_t values, bytes, lengths;
    struct encoder e = { 0 };
    uint8_t *at;

    if (!f) {
        out->failed = true;
        return;
    }
    measure(window, rows, f, &values, &bytes);
    lengths = (values + 1) / 2;
    at = tbd_buffer_room(out, sizeof(lengths) + lengths + bytes + 8);
    if (at) {
        memcpy(at, &lengths, sizeof(lengths));
        e.lengths = at + sizeof(lengths);
        e.values = e.lengths + lengths;
        for (uint32_t id = 1; id < rows->ids; id++) {
            if (!rows->count[id])
                continue;
            find_fields(f, tbd_window_block(window, id));
            encode_block(&e, f, rows->bytes + rows->start[id],
                         tbd_window_block(window, id)->def.operand_bytes, rows->count[id]);
        }
        if (e.n & 1)
            e.lengths[e.n >> 1] = (uint8_t)e.pending;
        out->used += (size_t)(e.values - at);
    }
    free(f);
}

/* ---- decoding ---- */

struct decoder {
    const uint8_t *lengths;
    const uint8_t *values;
    const uint8_t *end;
    uint64_t n;
};

static inline bool get_value(struct decoder *d, uint64_t *out)
{
    unsigned length = d->lengths[d->n >> 1] >> ((d->n & 1) * 4) & 15;
    size_t left = (size_t)(d->end - d->values);
    uint64_t value = 0;

    if (length > 8 || length > left)
        return false;
    if (left >= 8) {
        memcpy(&value, d->values, 8);
        value = length ? value << (64 - length * 8) >> (64 - length * 8) : 0;
    } else {
        memcpy(&value, d->values, length);
    }
    d->values += length;
    d->n++;
    *out = value;
    return true;
}

static inline __attribute__((always_inline)) bool
decode_field(struct decoder *d, uint8_t *at, size_t stride, uint32_t count, unsigned bytes)
{
    struct decoder local = *d;
    uint64_t value = 0;

    for (uint32_t i = 0; i < count; i++, at += stride) {
        uint64_t z;

        if (!get_value(&local, &z))
            return false;
        value += (uint64_t)tbd_unzigzag(z);
        memcpy(at, &value, bytes);
    }
    *d = local;
    return true;
}

static bool decode_block(struct decoder *d, const struct fields *f, uint8_t *rows, size_t stride,
                         uint32_t count)
{
    bool good = true;

    for (uint32_t i = 0; i < f->count && good; i++) {
        uint8_t *at = rows + f->field[i].offset;

        switch (f->field[i].bytes) {
        case 8:
            good = decode_field(d, at, stride, count, 8);
            break;
        case 4:
            good = decode_field(d, at, stride, count, 4);
            break;
        case 1:
            good = decode_field(d, at, stride, count, 1);
            break;
        default:
            good = decode_field(d, at, stride, count, f->field[i].bytes);
            break;
        }
    }
    return good;
}

enum tbd_status tbd_rows_decode(const uint8_t *content, size_t bytes,
                                const struct tbd_window *window, struct tbd_rows *rows)
{
    struct fields *f = malloc(sizeof(*f));
    uint64_t values, record_bytes, lengths;
    struct decoder d = { 0 };
    bool good;

    if (!f)
        return TBD_NOMEM;
    measure(window, rows, f, &values, &record_bytes);
    good = bytes >= sizeof(lengths);
    if (good)
        memcpy(&lengths, content, sizeof(lengths));
    good = good && lengths == (values + 1) / 2 && lengths <= bytes - sizeof(lengths);
    if (good)
        d = (struct decoder){ content + 8, content + 8 + lengths, content + bytes, 0 };
    for (uint32_t id = 1; id < rows->ids && good; id++) {
        if (!rows->count[id])
            continue;
        find_fields(f, tbd_window_block(window, id));
        good = decode_block(&d, f, rows->bytes + rows->start[id],
                            tbd_window_block(window, id)->def.operand_bytes, rows->count[id]);
    }
    good = good && d.values == d.end;
    free(f);
    return good ? TBD_OK : TBD_CORRUPT;
}
