// SPDX-License-Identifier: MIT
/* build.h - understands a raw window: checks it, separates events from state, counts, summarises
 *
 * The product's window has everything except what only the order of windows tells (index, registers
 * at its start, previous windows of summaries): join.h or the caller fills that in.  A builder
 * holds reusable memory; one thread each. */
#ifndef TBD_ORGANIZER_BUILD_H
#define TBD_ORGANIZER_BUILD_H

#include "format/coding/coding.h"
#include "organizer/consume.h"
#include "organizer/turns.h"

struct tbd_builder;
struct tbd_builder *tbd_builder_new(void); /* NULL without memory */
void tbd_builder_free(struct tbd_builder *builder);
/* The next window's `plans` belong to another stream. */
void tbd_builder_forget(struct tbd_builder *builder);
/* Shall records be coded from now on?  They are for windows that will be written with their
 * events. */
void tbd_builder_code(struct tbd_builder *builder, bool codes);

/* A message that is about the trace, not about the order of the program's events. */
struct tbd_side_message {
    uint32_t kind; /* TBD_MSG_REGION, UNMAP, NOTE */
    uint32_t bytes;
    const uint8_t *payload; /* borrowed from the window */
    uint64_t time;          /* relative */
    uint32_t order;         /* log messages before */
};

struct tbd_product {
    struct tbd_window *window; /* owned */
    const struct tbd_buffer
        *coded; /* its records, coded; borrowed until the builder's next window, or
                                       tbd_builder_give_coded(); NULL unless tbd_builder_code() asks for it */
    struct tbd_window_summary counts;
    struct tbd_side_message *side; /* lives in the window */
    size_t side_count;
    const struct tbd_page_contents
        *image; /* initial image, in the order in which its pages came; lives in the window */
    size_t image_count;
    const uint8_t *start; /* payload of TBD_MSG_START or NULL; lives in the window */
    uint32_t start_bytes;
    bool has_start_regs; /* window->regs came with the stream (take-over) */
    bool has_end;
    struct tbd_msg_end end;
    char end_text[256];
    const uint8_t *end_siginfo; /* TBD_SIGINFO_BYTES or NULL; lives in the window */
    struct tbd_turns turns;     /* whose turn it was; its arrays live in the window */
    uint64_t thread_messages;
    uint64_t end_time; /* as WINDOW_END says */
    bool damaged;      /* cut at the first thing that is wrong; `damage` says what */
    char damage[200];
};

/* Takes over the raw window's memory, whatever the outcome.  `plans` and `table` are the
 * consumer's.  On failure (TBD_NOMEM) everything is freed. */
TBD_MUST_CHECK enum tbd_status tbd_build(struct tbd_builder *builder, struct tbd_raw_window *raw,
                                         const struct tbd_block_plan *plans,
                                         struct tbd_block_table *table, struct tbd_product *out);
/* Builds the first part of a window that is still being collected and whose records are not coded.
 * `raw` stays the caller's, and may have moved at the next call; tbd_build() with the same builder
 * does the rest.  False without memory; then tbd_build() fails, too. */
bool tbd_build_early(struct tbd_builder *builder, const struct tbd_raw_window *raw,
                     const struct tbd_block_plan *plans, struct tbd_block_table *table);
void tbd_product_free(struct tbd_product *product);
/* Moves the coded records that `product` borrows from the builder into `out`, which is empty: the
 * builder may then build other windows while this one is needed. */
void tbd_builder_give_coded(struct tbd_builder *builder, struct tbd_product *product,
                            struct tbd_buffer *out);
/* Gives the builder a buffer's memory, for the next window that is coded. */
void tbd_builder_take_coded(struct tbd_builder *builder, struct tbd_buffer *buffer);

#endif
