// SPDX-License-Identifier: MIT
/* pick_columns.c - picks records out of coded segments (coding.c), without decoding other blocks'
 * records
 *
 * The entries say how many rows each block has in a segment.  If accesses of a block may touch a
 * range, the columns of their bases are scanned; only if one does, the block's rows are decoded.
 * Other blocks are skipped by the lengths of their values, segments without a wanted block by their
 * heads.
 *
 * Invariants
 * PICK_COLUMNS-1  Whatever the contents are, rows are decoded only into memory reserved for them,
 *     and entries, messages and totals are checked here as in tbd_records_decode(). (not checked:
 *     it is what decoding checks of its input) */
#include "format/coding/pick_private.h"

#include "base/array.h"
#include "format/files/large_buffers.h"
#include "format/window/block_lookup.h"
#include "format/coding/coding_private.h"
#include "format/coding/unlogged.h"
#include "format/window/window_make.h"

#include <stdlib.h>

#define NONE        SIZE_MAX
#define SPARE_LEAST ((size_t)64 << 10) /* bytes of a piece of memory for rows */
#define SPARE_MOST  ((size_t)4 << 20)

/* A block of the current segment. */
struct set {
    uint32_t id;
    uint32_t next; /* row of its next entry */
    size_t rows;   /* where its rows are; NONE: they are not wanted */
    size_t hits;   /* a bit for each row that touches a range; NONE: all are wanted */
};

struct tbd_pick_columns {
    struct tbd_coder *coder;
    uint32_t *counts; /* by id: rows in the segment */
    uint32_t *set_of; /* by id */
    size_t ids;
    struct set *sets; /* as blocks first occur */
    size_t set_count, set_capacity;
    uint8_t *rows;
    size_t rows_used, rows_capacity;
    uint64_t *hits;
    size_t hits_used, hits_capacity;
    uint8_t *spare; /* the window's memory for picked records */
    size_t spare_left;
    size_t spare_bytes; /* of the last piece of it */
    /* the current window */
    struct tbd_reader in;
    struct tbd_unlogged unlogged;
    uint64_t operand_bytes, index;
    uint32_t time;
    size_t log_next;
    bool has_messages, is_wanted; /* of the segment */
};

static void empty(struct tbd_pick_columns *c)
{
    tbd_coder_free(c->coder);
    free(c->counts);
    free(c->set_of);
    free(c->sets);
    free(c->rows);
    free(c->hits);
    *c = (struct tbd_pick_columns){ 0 };
}

void tbd_pick_columns_free(struct tbd_pick_columns *columns)
{
    if (columns)
        empty(columns);
    free(columns);
}

void tbd_pick_columns_forget(struct tbd_picker *p)
{
    if (p->columns)
        empty(p->columns);
}

/* ---- what a segment has ---- */

static bool grow_ids(struct tbd_pick_columns *c, uint32_t id)
{
    return tbd_array_reach_both(&c->counts, sizeof(*c->counts), &c->set_of, sizeof(*c->set_of), id,
                                &c->ids);
}

static enum tbd_status meet(struct tbd_picker *p, uint32_t id)
{
    struct tbd_pick_columns *c = p->columns;

    if (!tbd_picker_look(p, id))
        return p->status ? p->status : TBD_CORRUPT;
    if ((id >= c->ids && !grow_ids(c, id)) ||
        !tbd_array_grow(&c->sets, c->set_count, &c->set_capacity, sizeof(*c->sets)))
        return TBD_NOMEM;
    c->set_of[id] = (uint32_t)c->set_count;
    c->sets[c->set_count++] = (struct set){ .id = id, .rows = NONE, .hits = NONE };
    p->looks[id].now = 0;
    return TBD_OK;
}

/* TBD_CORRUPT if an entry is no block. */
static enum tbd_status count_rows(struct tbd_picker *p, size_t from, size_t to)
{
    struct tbd_pick_columns *c = p->columns;
    enum tbd_status status;

    c->set_count = 0;
    c->has_messages = false;
    for (size_t i = from; i < to; i++) {
        uint32_t id = p->from[i];

        if (__builtin_expect(id < c->ids && c->counts[id], 1)) {
            c->counts[id]++;
            continue;
        }
        if (id & TBD_ENTRY_MESSAGE) {
            c->has_messages = true;
            continue;
        }
        status = meet(p, id);
        if (status)
            return status;
        c->counts[id] = 1;
    }
    return TBD_OK;
}

/* Marks the calls that lead to wanted blocks, as blocks occur. */
static void find_calls(struct tbd_picker *p, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        uint32_t id = p->from[i];

        if (!(id & TBD_ENTRY_MESSAGE) && p->looks[id].what & TBD_LOOK_CALL &&
            tbd_picker_leads(p, i))
            p->looks[id].now |= TBD_LOOK_CALL;
    }
}

/* Decides from the entries alone what is wanted of the segment's blocks; adds up its part of the
 * totals. */
static void sum_up(struct tbd_picker *p, uint64_t *out_values)
{
    struct tbd_pick_columns *c = p->columns;
    const uint8_t kept = TBD_LOOK_ENTRIES | TBD_LOOK_OPS | TBD_LOOK_TEST | TBD_LOOK_TARGET |
                         TBD_LOOK_LED | TBD_LOOK_LEADING;

    c->is_wanted = false;
    *out_values = 0;
    for (size_t i = 0; i < c->set_count; i++) {
        uint32_t id = c->sets[i].id, count = c->counts[id];
        const struct tbd_block *block = tbd_block_at(p->table, id);
        const struct tbd_record_fields *fields = tbd_coder_fields(c->coder, id);
        struct tbd_look *look = &p->looks[id];

        if (!fields) {
            p->status = TBD_NOMEM;
            return;
        }
        look->now |= look->what & kept;
        c->is_wanted |= (look->now & (TBD_LOOK_OPS | TBD_LOOK_TEST | TBD_LOOK_CALL)) != 0;
        *out_values += (uint64_t)fields->count * count;
        c->operand_bytes += (uint64_t)block->def.operand_bytes * count;
        c->index += (1u + (uint64_t)block->def.op_count) * count;
    }
}

/* ---- columns ---- */

#define LOW_HALVES 0x0f0f0f0f0f0f0f0full
#define EACH       0x0101010101010101ull

/* The sum of `count` lengths from number `n` on; UINT64_MAX if one is impossible. */
static uint64_t sum_lengths(const uint8_t *lengths, uint64_t n, uint64_t count)
{
    uint64_t sum = 0, end = n + count, impossible = 0;

    for (; n < end && (n & 1 || end - n < 16); n++) {
        unsigned length = lengths[n >> 1] >> ((n & 1) * 4) & 15;

        sum += length;
        impossible |= length + 7;
    }
    for (; end - n >= 16; n += 16) {
        uint64_t two, low, high;

        memcpy(&two, lengths + (n >> 1), sizeof(two));
        low = two & LOW_HALVES;
        high = two >> 4 & LOW_HALVES;
        impossible |= ((low + 7 * EACH) | (high + 7 * EACH)) & 16 * EACH ? 16 : 0;
        sum += (low + high) * EACH >> 56;
    }
    for (; n < end; n++) {
        unsigned length = lengths[n >> 1] >> ((n & 1) * 4) & 15;

        sum += length;
        impossible |= length + 7;
    }
    return impossible < 16 ? sum : UINT64_MAX;
}

static bool skip_values(struct tbd_decoder *d, uint64_t count)
{
    uint64_t bytes = sum_lengths(d->lengths, d->n, count);

    if (bytes > (size_t)(d->end - d->values))
        return false;
    d->values += bytes;
    d->n += count;
    return true;
}

static bool is_near(const struct tbd_pick_test *tests, uint32_t count, uint32_t base,
                    uint64_t value)
{
    for (uint32_t i = 0; i < count; i++) {
        if (tests[i].base == base && value - tests[i].low < tests[i].span)
            return true;
    }
    return false;
}

/* Only values in [low, low + span) may pass any test of the base; span 0: all values may. */
struct hull {
    uint64_t low, span;
};

#define FAR (INT64_MAX / 2)

static struct hull make_hull(const struct tbd_pick_test *tests, uint32_t count, uint32_t base)
{
    const struct tbd_pick_test *first = NULL;
    int64_t low = 0, high = 0;

    for (const struct tbd_pick_test *test = tests; test < tests + count; test++) {
        int64_t from, span = (int64_t)test->span;

        if (test->base != base)
            continue;
        first = first ? first : test;
        from = (int64_t)(test->low - first->low);
        if (from > FAR || from < -FAR || span < 0 || span > FAR)
            return (struct hull){ 0, 0 };
        low = from < low ? from : low;
        high = from + span > high ? from + span : high;
    }
    return first ? (struct hull){ first->low + (uint64_t)low, (uint64_t)(high - low) }
                 : (struct hull){ 0, 0 };
}

/* Scans the column of a base, and notes the rows that pass a test. */
static bool test_column(struct tbd_decoder *d, uint32_t rows, const struct tbd_pick_test *tests,
                        uint32_t test_count, uint32_t base, uint64_t *hits, bool *io_any)
{
    const struct hull hull = make_hull(tests, test_count, base);
    struct tbd_decoder local = *d;
    uint64_t value = 0, z;
    unsigned lengths = 0;

    for (uint32_t i = 0; i < rows; i++) {
        if (__builtin_expect((size_t)(local.end - local.values) >= TBD_VALUE_MOST, 1)) {
            unsigned length = local.lengths[local.n >> 1] >> ((local.n & 1) * 4) & 15;

            memcpy(&z, local.values, sizeof(z));
            z &= tbd_value_masks[length];
            lengths |= length + 7;
            local.values += length;
            local.n++;
        } else if (!tbd_decoder_get(&local, &z)) {
            return false;
        }
        value += (uint64_t)tbd_unzigzag(z);
        if (__builtin_expect((value - hull.low < hull.span || !hull.span) &&
                                 is_near(tests, test_count, base, value),
                             0)) {
            hits[i / 64] |= 1ull << (i % 64);
            *io_any = true;
        }
    }
    *d = local;
    return lengths < 16;
}

static uint64_t *make_hits(struct tbd_pick_columns *c, struct set *set, uint32_t rows)
{
    size_t words = (rows + 63) / 64;

    if (!tbd_array_reserve(&c->hits, c->hits_used + words, &c->hits_capacity, sizeof(*c->hits)))
        return NULL;
    memset(c->hits + c->hits_used, 0, words * sizeof(*c->hits));
    set->hits = c->hits_used;
    c->hits_used += words;
    return c->hits + set->hits;
}

static bool has_test(const struct tbd_pick_test *tests, uint32_t count, uint32_t base)
{
    for (uint32_t i = 0; i < count; i++) {
        if (tests[i].base == base)
            return true;
    }
    return false;
}

/* Is each base a whole column?  (In a forged block a base may overlap several fields.) */
static bool has_columns(const struct tbd_record_fields *f, const struct tbd_pick_test *tests,
                        uint32_t count)
{
    uint32_t found = 0, wanted = 0;

    for (uint32_t i = 0; i < f->count; i++)
        found += f->field[i].bytes == 8 && has_test(tests, count, f->field[i].offset);
    for (uint32_t i = 0; i < count; i++)
        wanted += !has_test(tests, i, tests[i].base);
    return found == wanted;
}

static enum tbd_status test_set(struct tbd_picker *p, struct tbd_decoder *d, struct set *set,
                                const struct tbd_record_fields *f, bool *out_any)
{
    struct tbd_pick_columns *c = p->columns;
    const struct tbd_pick_test *tests = &p->tests[p->tests_of[set->id].first];
    uint32_t count = p->tests_of[set->id].count, rows = c->counts[set->id];
    uint64_t *hits = make_hits(c, set, rows);
    bool good = true;

    if (!hits)
        return TBD_NOMEM;
    for (uint32_t i = 0; i < f->count && good; i++) {
        if (has_test(tests, count, f->field[i].offset))
            good = test_column(d, rows, tests, count, f->field[i].offset, hits, out_any);
        else
            good = skip_values(d, rows);
    }
    return good ? TBD_OK : TBD_CORRUPT;
}

static enum tbd_status decode_set(struct tbd_pick_columns *c, struct tbd_decoder *d,
                                  struct set *set, const struct tbd_record_fields *f)
{
    size_t bytes = (size_t)f->record_bytes * c->counts[set->id];

    if (!tbd_array_reserve(&c->rows, c->rows_used + bytes + TBD_ROW_SLACK, &c->rows_capacity, 1))
        return TBD_NOMEM;
    set->rows = c->rows_used;
    c->rows_used += bytes;
    return tbd_decode_rows(d, f, c->rows + set->rows, c->counts[set->id]) ? TBD_OK : TBD_CORRUPT;
}

/* Tests, decodes, or skips a set's values. */
static enum tbd_status take_set(struct tbd_picker *p, struct tbd_decoder *d, struct set *set)
{
    struct tbd_pick_columns *c = p->columns;
    const struct tbd_record_fields *f = tbd_coder_fields(c->coder, set->id);
    struct tbd_look *look = &p->looks[set->id];
    struct tbd_decoder begin = *d;
    enum tbd_status status = TBD_OK;
    bool any = false;

    if (look->now & (TBD_LOOK_OPS | TBD_LOOK_CALL))
        return decode_set(c, d, set, f);
    if (!(look->now & TBD_LOOK_TEST))
        return skip_values(d, (uint64_t)f->count * c->counts[set->id]) ? TBD_OK : TBD_CORRUPT;
    if (!has_columns(f, &p->tests[p->tests_of[set->id].first], p->tests_of[set->id].count))
        return decode_set(c, d, set, f);
    status = test_set(p, d, set, f, &any);
    if (any && !status) {
        *d = begin;
        return decode_set(c, d, set, f);
    }
    look->now &= (uint8_t)~TBD_LOOK_TEST;
    return status;
}

static enum tbd_status take_values(struct tbd_picker *p, uint64_t values)
{
    struct tbd_pick_columns *c = p->columns;
    const uint8_t *at = tbd_reader_take(&c->in, 2 * sizeof(uint32_t));
    enum tbd_status status = TBD_OK;
    struct tbd_decoder d = { 0 };
    uint32_t head[2];

    if (!at)
        return TBD_CORRUPT;
    memcpy(head, at, sizeof(head));
    d.lengths = tbd_reader_take(&c->in, head[0]);
    d.values = tbd_reader_take(&c->in, head[1]);
    if (c->in.failed || head[0] != (values + 1) / 2)
        return TBD_CORRUPT;
    if (!c->is_wanted)
        return TBD_OK;
    d.end = d.values + head[1];
    c->rows_used = c->hits_used = 0;
    for (size_t i = 0; i < c->set_count && !status; i++)
        status = take_set(p, &d, &c->sets[i]);
    return status ? status : d.values == d.end ? TBD_OK : TBD_CORRUPT;
}

/* ---- entries ---- */

/* Each piece of memory for rows is twice the one before, so that large windows need few. */
static void take_spare(struct tbd_picker *p, uint32_t bytes)
{
    struct tbd_pick_columns *c = p->columns;
    size_t next = c->spare_bytes * 2;

    next = next < SPARE_LEAST ? SPARE_LEAST : next > SPARE_MOST ? SPARE_MOST : next;
    c->spare_bytes = c->spare_left = next > bytes ? next : (size_t)bytes + 1;
    c->spare = tbd_window_large_buffer(p->out, c->spare_left);
    if (c->spare)
        tbd_large_buffer_ready(c->spare, c->spare_left < SPARE_MOST ? c->spare_left : SPARE_MOST);
}

/* A copy of a row that lives as long as the window. */
static const uint8_t *keep(struct tbd_picker *p, const uint8_t *row, uint32_t bytes)
{
    struct tbd_pick_columns *c = p->columns;
    uint8_t *at;

    if (bytes >= c->spare_left)
        take_spare(p, bytes);
    if (!c->spare) {
        c->spare_left = 0;
        p->status = TBD_NOMEM;
        return NULL;
    }
    at = c->spare;
    if (bytes) /* an empty one may have no row */
        memcpy(at, row, bytes);
    c->spare += bytes + 1; /* an empty record needs an address, too */
    c->spare_left -= bytes + 1;
    return at;
}

/* The record of the entry, if it is wanted with its ops. */
static const uint8_t *take_row(struct tbd_picker *p, size_t i, uint8_t now)
{
    struct tbd_pick_columns *c = p->columns;
    uint32_t id = p->from[i], bytes = p->looks[id].operand_bytes;
    struct set *set = &c->sets[c->set_of[id]];
    /* without rows its operands are empty, or nobody wants them */
    const uint8_t *row = set->rows == NONE ? NULL : c->rows + set->rows + (size_t)set->next * bytes;
    bool is_hit = now & TBD_LOOK_TEST && set->hits != NONE &&
                  c->hits[set->hits + set->next / 64] >> (set->next % 64) & 1;

    set->next++;
    if (now & TBD_LOOK_OPS || is_hit || (now & TBD_LOOK_CALL && tbd_picker_leads(p, i)) ||
        (now & TBD_LOOK_TEST && set->hits == NONE && tbd_picker_touches(p, id, row)))
        return keep(p, row, bytes);
    return NULL;
}

/* The log's next message, where it is due; NULL: it is another one. */
static const struct tbd_message *next_logged(const struct tbd_picker *p, uint32_t kind)
{
    struct tbd_pick_columns *c = p->columns;
    const struct tbd_log_entry *log = &p->out->log[c->log_next];

    if (c->log_next == p->out->log_count || tbd_message_kind(log->message) != kind ||
        log->time != c->time)
        return NULL;
    c->log_next++;
    return log->message;
}

static enum tbd_status take_message(struct tbd_picker *p, size_t i)
{
    struct tbd_pick_columns *c = p->columns;
    uint32_t kind = p->from[i] & ~TBD_ENTRY_MESSAGE, bytes;
    bool is_logged = tbd_message_is_logged(kind);
    const struct tbd_message *message =
        is_logged ? next_logged(p, kind) : tbd_unlogged_next(&c->unlogged, &c->in, kind);

    if (!message)
        return TBD_CORRUPT;
    bytes = (uint32_t)sizeof(*message) + tbd_message_payload_bytes(message);
    if (!is_logged) /* it is in the content, which goes away */
        message = (const void *)keep(p, (const uint8_t *)message, bytes);
    if (!message)
        return TBD_NOMEM;
    tbd_picker_put_message(p, i, c->time, message);
    c->operand_bytes += bytes;
    c->index++;
    return TBD_OK;
}

static enum tbd_status take_entries(struct tbd_picker *p, size_t from, size_t to)
{
    const uint8_t rows = TBD_LOOK_OPS | TBD_LOOK_TEST | TBD_LOOK_CALL;
    struct tbd_pick_columns *c = p->columns;
    enum tbd_status status = TBD_OK;

    for (size_t i = from; i < to && !status && !p->status; i++) {
        uint32_t id = p->from[i];
        struct tbd_look look;

        if (id & TBD_ENTRY_MESSAGE) {
            status = take_message(p, i);
            continue;
        }
        look = p->looks[id];
        if (__builtin_expect(look.now || p->is_beside, 0))
            tbd_picker_decide(p, i, look.what, c->time,
                              look.now & rows ? take_row(p, i, look.now) : NULL);
        c->time++;
    }
    return status;
}

/* ---- a segment, a window ---- */

static bool is_passed(const struct tbd_picker *p)
{
    const struct tbd_pick_columns *c = p->columns;
    uint8_t now = 0;

    for (size_t i = 0; i < c->set_count; i++)
        now |= p->looks[c->sets[i].id].now;
    return !now && !c->has_messages && !p->is_beside;
}

static enum tbd_status take_segment(struct tbd_picker *p, size_t from, size_t to, bool has_records)
{
    struct tbd_pick_columns *c = p->columns;
    enum tbd_status status = count_rows(p, from, to);
    uint64_t values = 0;

    if (!status && p->wanted & TBD_PICK_ENTERED)
        find_calls(p, from, to);
    if (!status)
        sum_up(p, &values);
    status = status ? status : p->status;
    if (!status && has_records)
        status = take_values(p, values);
    if (!status && is_passed(p))
        c->time += (uint32_t)(to - from);
    else if (!status)
        status = take_entries(p, from, to);
    for (size_t i = 0; i < c->set_count; i++)
        c->counts[c->sets[i].id] = 0;
    return status ? status : p->status;
}

static bool begin(struct tbd_picker *p, const uint8_t *content, size_t bytes)
{
    struct tbd_pick_columns *c = p->columns ? p->columns : calloc(1, sizeof(*c));

    p->columns = c;
    if (c && !c->coder)
        c->coder = tbd_coder_new(p->table);
    if (!c || !c->coder)
        return false;
    c->in = (struct tbd_reader){ content, content ? content + bytes : NULL, false };
    c->unlogged = (struct tbd_unlogged){ 0 };
    c->spare = NULL;
    c->spare_left = c->spare_bytes = 0;
    c->operand_bytes = c->index = 0;
    c->time = 0;
    c->log_next = 0;
    return true;
}

/* Do entries, log and TOC agree about the totals? */
static bool is_complete(const struct tbd_pick_columns *c, const struct tbd_window *window)
{
    return c->in.at == c->in.end && tbd_unlogged_are_over(&c->unlogged) &&
           c->operand_bytes == window->operand_bytes && c->log_next == window->log_count &&
           c->index <= UINT32_MAX && c->time == window->blocks;
}

enum tbd_status tbd_picker_decode(struct tbd_picker *p, struct tbd_window *window,
                                  const uint32_t *entries, const uint8_t *content, size_t bytes)
{
    size_t count = window->entry_count;
    enum tbd_status status = tbd_picker_begin(p, window, entries, count);

    if (!status && !begin(p, content, bytes))
        status = TBD_NOMEM;
    for (size_t i = 0; i < count && !status; i += TBD_SEGMENT_ENTRIES) {
        size_t left = count - i;

        status = take_segment(p, i, i + (left < TBD_SEGMENT_ENTRIES ? left : TBD_SEGMENT_ENTRIES),
                              content != NULL);
    }
    if (!status && !is_complete(p->columns, window))
        status = TBD_CORRUPT;
    return status ? status : tbd_picker_finish(p, p->columns->time);
}
