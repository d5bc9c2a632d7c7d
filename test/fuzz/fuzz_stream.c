// SPDX-License-Identifier: MIT
// links: tbd_organizer tbd_format tbd_base
// sources: ../unit/stream_maker.c
// iterations: 1000
/* fuzz_stream.c - streams that a program scribbled over
 *
 * The input patches the memory of a good stream: (area 1 byte, offset 2 bytes, length 1 byte,
 * bytes).  Oracles: no crash; what is built of it passes the reader's own check (WINDOW-1); a
 * damaged window says so. */
#include "format/window/cursor.h"
#include "format/window/window_make.h"
#include "organizer/build.h"
#include "stream_maker.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool fine)
{
    if (!fine)
        abort();
}

static size_t area_start(const struct tbd_stream_head *head, uint8_t area)
{
    size_t chunk = head->chunks_offset + (size_t)(area >> 4 & 1) * TBD_CHUNK_STRIDE;

    switch (area % 8) {
    case 0: return 0;
    case 1: return 128;
    case 2: return head->defs_offset;
    case 3: return head->heap_offset;
    case 4:
    case 5: return chunk;
    default: return chunk + TBD_ENTRIES_BYTES + 4096;
    }
}

static void patch(const struct maker *m, const uint8_t *data, size_t size)
{
    struct tbd_stream_head head = *m->head;

    for (size_t at = 0; at + 5 <= size;) {
        size_t start = area_start(&head, data[at]);
        size_t offset = data[at + 1] | (size_t)data[at + 2] << 8;
        size_t n = data[at + 3] % 17;

        at += 4;
        for (size_t i = 0; i < n && at < size; i++)
            m->bytes[start + offset + i] = data[at++];
    }
}

static void walk(const struct tbd_window *window)
{
    uint64_t blocks = 0;
    struct tbd_cursor c;

    for (tbd_cursor_first(window, &c); c.kind != TBD_AT_END; tbd_cursor_next(&c))
        blocks += c.kind == TBD_AT_BLOCK;
    check(blocks == window->blocks);
}

static void build(struct tbd_builder *builder, struct tbd_consumer *consumer,
                  struct tbd_raw_window *raw)
{
    struct tbd_product product;
    size_t entry;

    check(!tbd_build(builder, raw, tbd_consumer_plans(consumer), tbd_consumer_table(consumer),
                     &product));
    check(!product.damaged || product.damage[0]);
    check(!tbd_window_index(product.window, &entry));
    walk(product.window);
    tbd_product_free(&product);
}

static void consume(const struct maker *m)
{
    struct tbd_block_table *table = tbd_block_table_new();
    struct tbd_builder *builder = tbd_builder_new();
    struct tbd_consumer *consumer;
    struct tbd_raw_window raw;
    struct tbd_error why = { 0 };
    enum tbd_status status;

    check(table && builder);
    status = tbd_consumer_new(m->fd, table, NULL, &consumer, &why);
    while (!status) {
        status = tbd_consumer_take(consumer, &raw, &why);
        if (!status)
            build(builder, consumer, &raw);
    }
    if (status == TBD_NOTFOUND) {
        status = tbd_consumer_salvage(consumer, &raw, &why);
        if (!status)
            build(builder, consumer, &raw);
    }
    check(status == TBD_OK || status == TBD_NOTFOUND || why.detail[0]);
    tbd_consumer_free(consumer);
    tbd_builder_free(builder);
    tbd_block_table_release(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct sim s;
    struct maker m;

    if (size < 2)
        return 0;
    maker_open(&m, data[0] % 4 ? 0 : data[0]);
    m.alone = true;
    sim_start(&s, &m, 1 + data[1] % 4);
    for (int i = 0; i < 30; i++)
        sim_step(&s);
    if (data[0] & 0x40)
        sim_end_window(&s);
    if (data[0] & 0x80)
        sim_end(&s);
    patch(&m, data + 2, size - 2);
    consume(&m);
    maker_close(&m);
    sim_free(&s);
    return 0;
}
