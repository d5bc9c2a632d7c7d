// SPDX-License-Identifier: MIT
/* heap_shards.h - heap with --shard: what one shard gives, and the answer from all
 *
 *     heap, heap leaks    each call of the allocator that begins in the shard: which blocks it made and freed follows from those of all
 *     heap of ADDR        the blocks that are known there, with the shard's own stores
 *     heap errors         mistakes in the shard's times
 *
 * For the last two a shard finds out the calls from the beginning of the run to its own end. */
#ifndef TBD_QUERY_HEAP_SHARDS_H
#define TBD_QUERY_HEAP_SHARDS_H

#include "query/commands/rows.h"
#include "query/heap/heap.h"

#define TBD_HEAP_EDGE                                                                              \
    4u /* block entries beyond a shard's times in which vectors may have neighbours */

struct tbd_heap_form {
    bool is_of, is_errors;
    struct tbd_position position; /* that the live blocks are wanted at */
};

/* ---- one shard ---- */

/* The times of the shard, whatever --since and --until say: which blocks live depends on all calls. */
struct tbd_asked_span tbd_heap_span_own(const struct tbd_session *session);
/* Those up to the end of the times that are asked, for calls; and these times with some around, where the neighbours of
 * accesses matter. */
struct tbd_asked_span tbd_heap_span_before(const struct tbd_session *session);
struct tbd_asked_span tbd_heap_span_around(const struct tbd_session *session);
void tbd_heap_begin_shard(struct tbd_command_run *run, const struct tbd_heap_form *form);
/* Whether the program has such functions. */
void tbd_heap_write_known(struct tbd_command_run *run, const struct tbd_heap *heap);
enum tbd_exit tbd_heap_write_calls(struct tbd_command_run *run, const struct tbd_heap *heap);

/* ---- all shards ---- */

struct tbd_heap_parts {
    struct tbd_heap heap;
    size_t first_text; /* of this shard */
    json_t *blocks;    /* owned: rows, in the order of allocation */
    json_t *by_from;   /* owned: the same, by position */
    json_t *shown;     /* owned: how many accesses to each freed block */
};

bool tbd_heap_parts_new(struct tbd_heap_parts *out);
void tbd_heap_parts_free(struct tbd_heap_parts *parts);
/* The rows that follow are of the next shard. */
void tbd_heap_parts_next(struct tbd_heap_parts *parts);
/* They take what they need of a row; false: it is damaged, or there is no memory. */
bool tbd_heap_parts_call(struct tbd_heap_parts *parts, const json_t *row);
bool tbd_heap_parts_block(struct tbd_heap_parts *parts, json_t *row);
/* Gives the row to `rows`, unless there were enough of its block. */
bool tbd_heap_parts_error(struct tbd_heap_parts *parts, json_t *row, struct tbd_rows *rows);
/* Live blocks, as `heap` prints them; `at`: "TIME+K". */
enum tbd_exit tbd_heap_parts_live(struct tbd_command_run *run, struct tbd_heap_parts *parts,
                                  const char *at);

#endif
