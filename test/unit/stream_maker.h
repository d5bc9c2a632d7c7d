// SPDX-License-Identifier: MIT
/* stream_maker.h - a producer of streams without engine, for tests of all consumers of streams
 *
 * Lower half: a stream in memory, chunk by chunk.  Upper half: a simulated program (struct sim)
 * whose memory is a model: it enters random blocks that store, makes system calls, maps and unmaps,
 * ends windows, and logs enough to restore its memory at any position. */
#ifndef STREAM_MAKER_H
#define STREAM_MAKER_H

#include "format/stream/stream.h"

#include <stdbool.h>
#include <stddef.h>

struct maker {
    int fd; /* owned */
    uint8_t *bytes;
    size_t size;
    struct tbd_stream_head *head;
    uint32_t number;        /* of the open chunk */
    uint32_t chunk_entries; /* hand over after this many, to move chunk borders around */
    uint32_t entries, operands;
    uint64_t time; /* of the next block entry */
    bool alone;    /* nobody consumes while it is filled */
};

/* `chunk_entries` 0: as many as fit. */
void maker_open(struct maker *m, uint32_t chunk_entries);
void maker_close(struct maker *m);
uint32_t maker_define(struct maker *m, struct tbd_block_def *def, const struct tbd_op *ops,
                      const uint8_t *code);
void maker_enter(struct maker *m, uint32_t id, const void *record, uint32_t bytes);
void maker_message(struct maker *m, uint32_t kind, const void *payload, size_t bytes);
void maker_turn(struct maker *m, uint32_t flags);
void maker_finish(struct maker *m); /* hands the rest over, engine_state ENDED */

#define SIM_BASE   0x10000000ull
#define SIM_PAGES  24u
#define SIM_BLOCKS 40u

struct sim_store {
    uint64_t time;
    uint32_t insn; /* SIM_MESSAGE: a kernel's write after the block */
    uint64_t address;
    uint32_t bytes;
    uint8_t old_bytes[64];
    bool remap;      /* the page at `address` was mapped anew, or unmapped; before, */
    uint8_t *page;   /* it held this (owned), */
    bool was_mapped; /* if it was mapped */
};
#define SIM_MESSAGE 0xffffu

struct sim {
    struct maker *maker;
    uint64_t seed;
    uint8_t memory[SIM_PAGES * 4096u];
    bool mapped[SIM_PAGES], known[SIM_PAGES], dirty[SIM_PAGES], read[SIM_PAGES];
    uint64_t born[SIM_PAGES]; /* time since which the page's contents are valid */
    uint32_t ids[SIM_BLOCKS];
    struct tbd_block_def defs[SIM_BLOCKS];
    struct tbd_op ops[SIM_BLOCKS][8];
    struct sim_store *stores;
    size_t store_count, store_capacity;
    uint64_t windows;
    uint64_t ops_stores, calls, returns, syscalls;
    struct tbd_regs regs;
};

/* Seeds, defines blocks, sends the start of a stream. */
void sim_start(struct sim *s, struct maker *m, uint64_t seed);
/* one block; perhaps a fault in it, or a system call after it */
void sim_step(struct sim *s);
void sim_end_window(struct sim *s);
void sim_end(struct sim *s);
/* A whole run: a start, `steps` blocks with a window's end after each `window_steps` and after the
 * last, an end. */
void sim_run(struct sim *s, struct maker *m, uint64_t seed, uint32_t steps, uint32_t window_steps);
void sim_free(struct sim *s);
uint64_t sim_random(struct sim *s);

#endif
