// SPDX-License-Identifier: MIT
/* build_private.h - a raw window being understood: what the files of build.h share
 *
 * build.c iterates over the entries; build_segment.c takes block entries, or build_lean.c if their
 * records are not coded (with lean_private.h); build_messages.c takes messages; build_finish.c
 * makes the window from what was collected. */
#ifndef TBD_ORGANIZER_BUILD_PRIVATE_H
#define TBD_ORGANIZER_BUILD_PRIVATE_H

#include "format/files/codec.h"
#include "organizer/build.h"
#include "organizer/end_regs.h"
#include "organizer/shadow.h"
#include "organizer/turns.h"
#include "organizer/undo.h"

#define PAGE_BYTES 4096u

/* What is counted for one id. */
struct block_count {
    uint32_t count;
    uint32_t last;
    uint32_t enters;
    uint32_t last_enter;
    uint32_t plan; /* an id of the stream */
    uint32_t slot; /* in the segment; 0: not met yet */
};

/* What the two passes over a segment's entries read and note for a block.  Slots and tallies are
 * small and lie in order of first occurrence, so a segment's stay in the cache; counts by id would
 * not. */
struct block_tally {
    uint32_t count; /* in the segment */
    uint32_t last;  /* block of the segment */
    uint32_t calls; /* 1: it ends with a call */
    uint32_t reserved;
};
struct block_slot {
    uint32_t row; /* where its next row is */
    uint32_t id;
    uint16_t operand_bytes;
    uint16_t stride; /* of its rows; 0: no operands, row 0 is a scratch row */
    uint16_t events; /* the entry and those of its operands */
    uint16_t reserved;
};
_Static_assert(sizeof(struct block_tally) == 16 && sizeof(struct block_slot) == 16,
               "four in a cache line");

#define PREFIX 4u /* a row begins with the event index of the block's entry */

/* A block whose stores are counted later, as the next message may say that it was left in the
 * middle. */
struct deferred_block {
    const struct tbd_block_plan *plan; /* NULL: none */
    uint32_t index;                    /* of its entry's event */
    uint8_t record[TBD_RECORD_MAX_BYTES];
};

struct begun_window;

struct tbd_builder {
    struct begun_window *begun; /* owned; NULL: none */
    struct tbd_shadow shadow;
    struct block_count *counts; /* by id of the table */
    size_t count_capacity;
    struct block_slot *slots;    /* of the segment: that of sets[k] is slots[k + 1] */
    struct block_tally *tallies; /* as many */
    size_t slot_capacity;
    uint32_t *slot_at; /* of the segment's blocks, in the order of their entries */
    uint32_t block_count, blocks_taken;
    uint32_t *run_ends; /* blocks before each message */
    size_t run_count, runs_taken, run_capacity;
    uint32_t *call_at; /* blocks that end with a call */
    size_t call_count, calls_taken;
    uint32_t longest;  /* of the segment's records, in bytes */
    bool renames;      /* some entries are not the trace's ids */
    uint32_t *slot_of; /* by id of the stream; 0: not met in the segment */
    size_t slot_of_capacity;
    uint32_t *met; /* ids of the stream that have a slot */
    size_t met_count, met_capacity;
    struct tbd_row_set *sets; /* of the segment, in order of first occurrence */
    size_t set_count, set_capacity;
    uint32_t *ids; /* of the window, in order of first occurrence */
    size_t id_count, id_capacity;
    uint8_t *rows;
    size_t row_capacity;
    struct deferred_block deferred;
    struct tbd_lean *lean; /* NULL until a window is built without coding its records */
    bool codes;
    struct tbd_coder *coder; /* for `coder_table` */
    struct tbd_block_table *coder_table;
    struct tbd_buffer coded;
};

/* How blocks are counted: rows if records are coded; else the fastest method (build_lean.c). */
enum tbd_count_method { TBD_COUNT_ROWS, TBD_COUNT_CHAIN, TBD_COUNT_TABLE, TBD_COUNT_BLOCKS };

struct work {
    struct tbd_builder *builder;
    const struct tbd_block_plan *plans;
    uint32_t plan_count;
    uint32_t highest_id;
    struct tbd_product *out;
    struct tbd_window *window;
    uint32_t *entries; /* the raw window's, rewritten in place */
    size_t entry_count;
    uint8_t *operands;
    size_t operand_bytes;
    struct tbd_packed_pages packed; /* the raw window's, until the window has adopted them */
    size_t packed_taken;
    bool cut;
    bool takes_frames;
    bool more_comes; /* the window is still being collected: an incomplete record is no damage */
    enum tbd_count_method method; /* how blocks are taken from here on */

    size_t in;         /* operand offset read */
    size_t kept;       /* operand offset written */
    size_t moved_from; /* operands [moved_from, in) still have to be moved to `kept` */
    size_t kept_entries;
    size_t segment_begin; /* in kept entries */
    uint32_t segment_time;
    size_t counted_end; /* entries before it are blocks or messages */
    bool counted_bad;   /* the next one is neither */
    uint64_t index;     /* of the next event */
    uint32_t time;      /* relative: of the next block entry */
    uint32_t called;    /* the thread's block before, if that ended with a call; else 0 */
    const struct tbd_block_plan *last_plan; /* of the last block entered */
    uint32_t last_index;                    /* and its entry's event */
    struct cut_block *cuts;
    size_t cut_count, cut_capacity;
    struct tbd_turns turns;
    struct tbd_end_regs regs; /* REGS messages since the last event */

    struct tbd_log_entry *log;
    size_t log_count, log_capacity;
    struct tbd_stamp *stamps; /* owned, until they are the window's */
    size_t stamp_count, stamp_capacity;
    struct tbd_buffer opened; /* owned, likewise */
    size_t *log_offsets;      /* operand offsets of messages; they become pointers at the end */
    struct tbd_page_note *pages;
    size_t page_count, page_capacity;
    size_t pages_pending; /* the last pages_pending pages may be the window's end state */
    uint64_t *reads;
    size_t read_count, read_capacity;
    size_t side_capacity;
};

/* A window that is being collected, and has been built as far as it was there. */
struct begun_window {
    struct work work;
    struct tbd_product product; /* what work.out points to */
    size_t next;                /* entry */
    enum tbd_status status;     /* of the pass so far */
};

/* build.c */
/* A copy that lives in the window; NULL without memory. */
void *tbd_build_keep(struct work *w, const void *data, size_t bytes);
/* The window ends here; returns TBD_NOTFOUND. */
enum tbd_status tbd_build_damage(struct work *w, const char *what);
/* The same, if no more comes; else TBD_TRUNCATED. */
enum tbd_status tbd_build_outside(struct work *w, const char *what);
void tbd_build_close_gap(struct work *w);
TBD_MUST_CHECK enum tbd_status tbd_build_go_on(struct work *w);

/* build_segment.c */
TBD_MUST_CHECK bool tbd_build_reserve(struct tbd_builder *builder, uint32_t plan_count,
                                      uint32_t highest_id);
/* Notes a block id that occurs in the window for the first time.  False without memory. */
TBD_MUST_CHECK bool tbd_build_note_id(struct tbd_builder *builder, uint32_t id);
/* False without memory. */
TBD_MUST_CHECK bool tbd_build_begin_segment(struct work *w, size_t i);
/* Takes blocks from entry i on; returns the entry it stops at. */
size_t tbd_build_take_run(struct work *w, size_t i);
void tbd_build_finish_segment(struct work *w, bool is_cut_short);
void tbd_build_forget_slots(struct tbd_builder *builder);
void tbd_build_defer(struct work *w, const struct tbd_block_plan *plan, uint32_t index,
                     const uint8_t *record);
/* The next block comes, or the window ends: counts the stores of the block that is held back. */
void tbd_build_count_deferred(struct work *w);

/* build_lean.c */
/* Chooses the method for a window whose records are not coded.  False without memory. */
TBD_MUST_CHECK bool tbd_lean_begin(struct work *w);
/* The stream may have more blocks than when the window was begun.  False without memory. */
TBD_MUST_CHECK bool tbd_lean_reach(struct work *w);
/* Takes some blocks from entry *io_i on, up to the next message, an impossible block, or one whose
 * record is outside the operands; may change the method.  False without memory. */
TBD_MUST_CHECK bool tbd_lean_take(struct work *w, size_t *io_i);
/* Before operands are moved. */
void tbd_lean_look(struct work *w);
/* The window ends: counts what was taken, except for the block that is held back.  False without
 * memory. */
TBD_MUST_CHECK bool tbd_lean_finish(struct work *w);
void tbd_lean_forget(struct tbd_lean *lean);
void tbd_lean_free(struct tbd_lean *lean);

/* build_messages.c: the message that is next in the operands. */
TBD_MUST_CHECK enum tbd_status tbd_build_message(struct work *w, uint32_t kind);

/* build_finish.c */
TBD_MUST_CHECK bool tbd_build_adopt(struct work *w, void *memory);
TBD_MUST_CHECK bool tbd_build_finish(struct work *w);

#endif
