// SPDX-License-Identifier: MIT
/* ring.h - the producer's side of a stream (format/stream/stream.h)
 *
 * Used by play and by the replay stub.  One producer thread at a time.  The open chunk's cursors are
 * thread->entry_next and thread->operand_next (in translated code r15 and r14).
 *
 * A ring that only counts (count=later) takes messages alone: block entries go into one small area
 * again and again, and TBD_MSG_PASSED says before a message how many there were.
 * Contexts: APP, BOOT; functions with _sigsafe SIG as well. */
#ifndef TBD_HOOKS_RING_H
#define TBD_HOOKS_RING_H

#include "base/status.h"
#include "patcher/thread.h"

#include <stdbool.h>

#define TBD_TIME_NEVER UINT64_MAX

struct tbd_ring {
    struct tbd_stream_head *head;
    uint64_t bytes; /* of the mapping */
    uint64_t
        first_time; /* time of the open chunk's first block entry; when counting, of the next one at `counted` */
    /* time at which `boundary` must be called: the entries area ends there */
    uint64_t due;
    uint64_t window_bytes;  /* operands of the window's chunks before the open one */
    uint32_t number;        /* of the open chunk; described at number % chunk_count */
    uint32_t slot;          /* where it lies */
    uint32_t used_slots;    /* slots below this number have been used before */
    uint32_t operands_most; /* operand bytes of the largest chunk so far */
    uint32_t collected;     /* number of chunks given back whose slots were put into `free` */
    uint32_t free_count;
    /* slots; on top the one given back last, which is in the caches */
    uint8_t free[TBD_STREAM_MAX_CHUNKS];
    /* the slot of chunk `number`, at number % chunk_count, until it is collected */
    uint8_t taken[TBD_STREAM_MAX_CHUNKS];
    uint32_t messages; /* message entries in the open chunk */
    /* id of the last block entered in the chunks before; 0 if there is none */
    uint32_t last_block;
    bool discard;          /* nobody consumes: chunks are reused, nothing is handed over */
    bool is_protected;     /* a signal handler has made an entries area inaccessible: */
    uint64_t protected_at; /* this one */
    uint64_t protected_bytes;
    bool full; /* block table or heap is full: recording must stop */
    /* replay: the area for the window's operands (tbd_ring_area(), set before tbd_ring_start());
     * 0: each chunk has its own operands */
    uint64_t area;
    uint64_t area_at; /* with `area`: where the open chunk's operands begin */
    /* replay: translated code writes records here, for each chunk from the beginning, and nobody reads them; the chunks' operands have
     * messages alone.  0: records go there, too */
    uint64_t aside;
    uint64_t aside_bytes;
    uint64_t message_operand; /* with `aside`: where the open chunk's next message goes */
    /* replay: the area for entries that are only counted while `discard` is set; 0: the open chunk's */
    uint64_t discards_into;
    uint64_t discards_bytes;
    uint64_t counting; /* the area in which block entries are counted; 0: they are in the chunks */
    uint64_t counting_bytes;
    bool
        omits_records; /* blocks' entries have no operands, whatever their definitions say (replays) */
    uint64_t counted;        /* then: entries of it before this one are in head->passed */
    uint64_t counting_start; /* what is not 0 in it begins here */
    uint64_t message_at;     /* where the open chunk's next entry goes: a message's */
};

struct tbd_ring_config {
    uint32_t chunks;
    uint32_t def_capacity;
    uint64_t heap_capacity;
    uint64_t window_blocks;
    uint32_t hook_set;
    uint32_t pid;
    bool only_counts;
    bool is_native; /* block entries are stops of native play */
    uint32_t areas; /* operand areas, and bytes in each: a multiple of the page size */
    uint64_t area_bytes;
};

/* Bytes that a stream with these sizes takes in its file. */
/* Has the organizer died, or given up? */
bool tbd_ring_consumer_died(const struct tbd_ring *ring);
uint64_t tbd_ring_bytes(const struct tbd_ring_config *config);
/* Sets the size of the empty memory file `fd`, maps it at TBD_STREAM_BASE and formats it; then
 * the consumer may open it.  With fd < 0 the stream is private memory without a consumer
 * (`discard`). */
TBD_MUST_CHECK enum tbd_status tbd_ring_create(struct tbd_ring *ring, int fd,
                                               const struct tbd_ring_config *config);

/* Protects the guard pages, where there are any, before tbd_ring_start().  False: there are too many mappings. */
TBD_MUST_CHECK bool tbd_ring_guard(const struct tbd_ring *ring);

/* Where an operand area begins; a guard page follows it. */
uint64_t tbd_ring_area(const struct tbd_ring *ring, uint32_t index);
/* Opens the first chunk: time `time`, next boundary due at `due`. */
void tbd_ring_start(struct tbd_ring *ring, struct tbd_thread *thread, uint64_t time, uint64_t due);
/* Time of the next block entry. */
uint64_t tbd_ring_time(const struct tbd_ring *ring, const struct tbd_thread *thread);
/* Id of the block entered last; 0 if there is none. */
uint32_t tbd_ring_last_block(const struct tbd_ring *ring, const struct tbd_thread *thread);
/* Hands the open chunk over (if anything is in it) and opens the next, waiting until one is free. */
void tbd_ring_turn(struct tbd_ring *ring, struct tbd_thread *thread, uint32_t flags);
/* Native play: enters the block `id`, as translated code does. */
void tbd_ring_enter(struct tbd_ring *ring, struct tbd_thread *thread, uint32_t id);
/* A block's entry store has reached the entries area's end: opens the next chunk, or the area anew. */
void tbd_ring_go_on(struct tbd_ring *ring, struct tbd_thread *thread);
/* Sets the next due time; takes effect at once. */
void tbd_ring_set_due(struct tbd_ring *ring, struct tbd_thread *thread, uint64_t due);

struct tbd_part {
    const void *data;
    size_t bytes;
};
/* Appends a message made of `count` parts, at most TBD_MESSAGE_MAX_BYTES in all. */
void tbd_ring_send(struct tbd_ring *ring, struct tbd_thread *thread, enum tbd_message_kind kind,
                   const struct tbd_part *parts, size_t count);
/* Reserves space for a message whose payload (`bytes` bytes) the caller writes to the returned
 * address before it calls tbd_ring_commit().  NULL when discarding. */
uint8_t *tbd_ring_reserve(struct tbd_ring *ring, struct tbd_thread *thread,
                          enum tbd_message_kind kind, size_t bytes);
void tbd_ring_commit(struct tbd_ring *ring, struct tbd_thread *thread);

/* Publishes a block definition and returns its id, never 0.  Sets `full` if it does not fit. */
uint32_t tbd_ring_define(struct tbd_ring *ring, const struct tbd_block_def *def,
                         const struct tbd_op *ops, const uint8_t *code);

/* ---- SIG ---- */

enum tbd_guard {
    TBD_GUARD_NONE,
    TBD_GUARD_ENTRIES, /* after the entries area, or in it while it is protected */
    TBD_GUARD_OPERANDS,
};
enum tbd_guard tbd_ring_guard_sigsafe(const struct tbd_ring *ring, uint64_t address);
/* Where the area of the open chunk's records ends and its guard page begins. */
uint64_t tbd_ring_records_end_sigsafe(const struct tbd_ring *ring);
/* Makes the next entry store fault. */
void tbd_ring_protect_sigsafe(struct tbd_ring *ring);
void tbd_ring_unprotect_sigsafe(struct tbd_ring *ring);
/* Moves the block with the unfinished record (entry at *entry_next - 4, `record_bytes` operand
 * bytes at *operand_next) to the beginning of the next chunk, and both cursors with it. */
void tbd_ring_move_record_sigsafe(struct tbd_ring *ring, uint64_t *entry_next,
                                  uint64_t *operand_next, uint32_t record_bytes);

/* A fault stopped the block entered last after `record_bytes` of its operands.  Fills the rest of
 * the record with zeros, so that it has its defined length, and moves operand_next past it.  On
 * entry, the cursors (thread->entry_next, thread->operand_next) are as in the middle of the
 * block. */
void tbd_ring_close_record_sigsafe(struct tbd_ring *ring, struct tbd_thread *thread,
                                   uint32_t record_bytes);
/* The same once the record is complete: the cursors are as after the block. */
void tbd_ring_shorten_record(struct tbd_ring *ring, struct tbd_thread *thread,
                             uint32_t record_bytes);

#endif
