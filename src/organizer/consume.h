// SPDX-License-Identifier: MIT
/* consume.h - the consumer's side of a stream (format/stream/stream.h)
 *
 * Takes published chunks in order, copies their contents and gives them back; collects the copies
 * until a window is complete (struct tbd_raw_window), for build.h.  Used by the organizer and by
 * the replay driver.  One thread at a time per consumer.
 *
 * Block ids: every definition is checked and copied into `table`.  In play (`known` NULL) blocks
 * that are equal in everything share one id, and ids are given in order of definition.  In replay a
 * block gets the id that `known`, the trace's table, has for it; `table` may be the same table
 * (hook set TBD_HOOKS_FULL) or one of its own (TBD_HOOK_LOADS), which then gets the block under
 * that id. */
#ifndef TBD_ORGANIZER_CONSUME_H
#define TBD_ORGANIZER_CONSUME_H

#include "format/window/blocks.h"
#include "organizer/page_packer.h"

struct tbd_consumer;

/* A window as it came: entries and operands in order, everything in one place.  Not yet checked. */
struct tbd_raw_window {
    uint32_t *entries; /* owned, of format/files/large_buffers.h */
    size_t entry_count;
    size_t entry_capacity;
    uint8_t *operands; /* owned, too; TBD_ROW_SLACK more bytes are there */
    size_t operand_bytes;
    size_t operand_capacity;
    /* native play: pages that were written.  Their messages have no contents, and TBD_PAGE_PACKED */
    struct tbd_packed_pages packed;
    uint64_t first_time;
    uint32_t plan_count; /* stream ids defined when the window was given out */
    uint32_t highest_id; /* of the table */
    bool is_last;        /* nothing follows: the producer ended or died */
    bool cut;            /* the producer died: the last entry may lack operands */
    bool takes_frames;   /* pages may come as frames (TBD_PAGE_FRAME) */
};
/* In a page's flags: its contents are the next ones of `packed`. */
#define TBD_PAGE_PACKED 0x80000000u
void tbd_raw_window_free(struct tbd_raw_window *raw);

/* What build.h needs to know about a block of the stream, in the order of the stream's ids. */
struct tbd_plan_store {
    uint32_t base; /* as in struct tbd_op */
    uint32_t bytes;
    int64_t add;
    uint32_t index; /* of the event in the block: 1 .. op_count */
    uint32_t insn;  /* of its instruction in the block */
};
struct tbd_block_plan {
    const struct tbd_plan_store *stores;
    uint32_t id; /* in `table`; 0: the trace does not know this block */
    uint16_t operand_bytes;
    uint16_t op_count;
    uint16_t store_count;
    uint8_t calls;
    uint8_t returns;
    uint32_t reserved;
};

/* Maps the stream of `fd` (which stays the caller's) and checks its head.  The consumer keeps
 * references on the tables until it is freed. */
TBD_MUST_CHECK enum tbd_status tbd_consumer_new(int fd, struct tbd_block_table *table,
                                                struct tbd_block_table *known,
                                                struct tbd_consumer **out, struct tbd_error *why);
void tbd_consumer_free(struct tbd_consumer *consumer);
struct tbd_stream_head *tbd_consumer_head(const struct tbd_consumer *consumer);
/* From now on pages that were written are packed when they come.  `packer` stays the caller's.  The stream has TBD_STREAM_NATIVE:
 * operands are messages, one after another. */
void tbd_consumer_pack(struct tbd_consumer *consumer, struct tbd_page_packer *packer);
/* From now on pages may come as frames, which are taken as they are: the producer is one of tbd's own (replay/native/). */
void tbd_consumer_take_frames(struct tbd_consumer *consumer);
/* Limits what comes until the next call to this many entries, where each chunk counts as one more,
 * and this many bytes of operands: beyond, the stream is TBD_CORRUPT.  Without a call there are no
 * limits. */
void tbd_consumer_expect(struct tbd_consumer *consumer, uint64_t entries, uint64_t operand_bytes);
/* Is half of the stream's space for definitions used? */
bool tbd_consumer_is_half_full(const struct tbd_consumer *consumer);
/* Definitions that come from now on go into `table`. */
void tbd_consumer_use(struct tbd_consumer *consumer, struct tbd_block_table *table);

/* Takes what is published.  TBD_OK: *out is the next complete window (moved out: owned by the
 * caller). TBD_NOTFOUND: not complete yet.  TBD_CORRUPT: the stream is not usable any more.
 * TBD_NOMEM. */
TBD_MUST_CHECK enum tbd_status tbd_consumer_take(struct tbd_consumer *consumer,
                                                 struct tbd_raw_window *out, struct tbd_error *why);

/* The alternative: a chunk at a time, in place.  The producer shares that memory, and may change
 * it. */
struct tbd_chunk_view {
    const volatile uint32_t *entries;
    size_t entry_count;
    const uint8_t *operands;
    size_t operand_bytes;
    bool ends_window;
    /* the operand area is full: copy what is needed of it before tbd_consumer_pass() */
    bool wraps;
};
/* TBD_OK: the next chunk, to be given back with tbd_consumer_pass(); the definitions of its blocks
 * have been imported.  Its entries are not zeroed, so such a stream cannot be salvaged.  Other
 * statuses as for tbd_consumer_take(). */
TBD_MUST_CHECK enum tbd_status tbd_consumer_peek(struct tbd_consumer *consumer,
                                                 struct tbd_chunk_view *out, struct tbd_error *why);
void tbd_consumer_pass(struct tbd_consumer *consumer);
/* From now on, operands of consecutive chunks follow one another in the area with this index, as
 * the producer was told; TBD_NO_AREA: each chunk has its own operands. */
#define TBD_NO_AREA UINT32_MAX
void tbd_consumer_area(struct tbd_consumer *consumer, uint32_t index);

/* The stream's operand areas: `count` of `bytes` each, `offset` in its file, `stride` apart.  count 0: there are none. */
struct tbd_stream_areas {
    uint64_t offset;
    uint64_t bytes;
    uint64_t stride;
    uint32_t count;
};
struct tbd_stream_areas tbd_consumer_areas(const struct tbd_consumer *consumer);

/* Waits until something is published, at most `timeout_ms`, or uses the time to warm slots. */
void tbd_consumer_wait(struct tbd_consumer *consumer, unsigned timeout_ms);
/* The producer ended or died: what is left, with the open chunk's complete entries, is the last
 * window. TBD_NOTFOUND if there is nothing. */
TBD_MUST_CHECK enum tbd_status tbd_consumer_salvage(struct tbd_consumer *consumer,
                                                    struct tbd_raw_window *out,
                                                    struct tbd_error *why);
/* The window that is being collected, as far as it is there: borrowed until `before_move(context)`
 * is called (or the window is given out).  More may be appended meanwhile. */
struct tbd_raw_window tbd_consumer_collected(const struct tbd_consumer *consumer);
void tbd_consumer_watch(struct tbd_consumer *consumer, void (*before_move)(void *context),
                        void *context);
/* Drops the window that is being collected. */
void tbd_consumer_drop(struct tbd_consumer *consumer);

/* Plans of the stream's ids 1 .. raw.plan_count; entry 0 is unused.  Stay where they are. */
const struct tbd_block_plan *tbd_consumer_plans(const struct tbd_consumer *consumer);
uint32_t tbd_consumer_plan_count(const struct tbd_consumer *consumer);
struct tbd_block_table *tbd_consumer_table(const struct tbd_consumer *consumer);

#endif
