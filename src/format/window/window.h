// SPDX-License-Identifier: MIT
/* window.h - a window in memory: state at both ends, summaries, log and perhaps events
 *
 * The same struct serves for a window from disk (format/reading/window_read.h), from a replay, or
 * being recorded: checked when made, and immutable afterwards.
 *
 * Time: TIME is the number of block entries before; position TIME+K is the state just
 * before instruction K (from 0) of the block entered at TIME executes. */
#ifndef TBD_FORMAT_WINDOW_H
#define TBD_FORMAT_WINDOW_H

#include "format/files/disk.h"
#include "format/stream/stream.h"

#include <stdbool.h>
#include <stddef.h>

struct tbd_position {
    uint64_t time;
    uint32_t offset; /* K */
};

/* A window without its files. */
struct tbd_window_summary { /* in memory for every window, from the trace's index */
    uint32_t number;        /* number of its first window as recorded */
    uint32_t span;          /* number of windows in it; more than 1: merged */
    uint64_t first_time;
    uint64_t blocks; /* block entries in it */
    enum tbd_level level;
    bool complete; /* false: the last window of a killed program (no end state) */
    bool
        is_uncounted; /* its lists of words and blocks have more than what happened; stores, calls, returns are 0 */
    bool is_lost; /* its files and its index record are damaged: nothing else is known */
    uint64_t toc_bytes, trace_bytes, block_bytes; /* on disk */
    uint64_t stores, calls, returns, syscalls, specials, signals;
    uint64_t switches; /* of threads */
    uint64_t words;    /* stored to, also by the kernel and by others */
};

/* Summaries: counts in the window and the last occurrence, sorted by key.  At level 1 only
 * "happened or not" is kept: then counts that are not 0 are 1, and `last` and `previous` are 0. */
struct tbd_word_summary {
    uint64_t word;     /* address of the 8-byte aligned word */
    uint32_t count;    /* stores that touch it in this window */
    uint32_t last;     /* event index (see tbd_cursor.index) of the last such store */
    uint32_t previous; /* window of the latest store before this window + 1; 0 = none */
};
struct tbd_block_summary {
    uint32_t id;
    uint32_t count;      /* block entries in this window */
    uint32_t last;       /* time of the last one, relative to the window's first time */
    uint32_t previous;   /* window of the latest before + 1; 0 = none */
    uint32_t enters;     /* entries by TBD_OP_CALL: function entries */
    uint32_t last_enter; /* relative time of the last of these */
};

struct tbd_early_call {
    uint32_t thread; /* tid */
    uint32_t id;
    uint32_t time; /* relative */
};

struct tbd_page_contents {
    uint64_t address;
    /* relative: 0 = at the window's start; else after the mapping made at this time */
    uint64_t time;
    uint32_t order;       /* log messages (tbd_window.log) of the window before this moment */
    const uint8_t *bytes; /* 4096; borrowed from the window */
    /* bytes NULL: the window is being recorded natively, and the page was packed when it came.  Borrowed from the window; none: all zero */
    const uint8_t *packed;
    uint32_t packed_bytes;
    bool is_difference; /* to what the page held before the window */
};

struct tbd_block_table; /* blocks.h */
struct tbd_trace;
struct tbd_window_state;

/* A thread that does not run at the moment.  One that waits in a system call has rip on that
 * instruction. */
struct tbd_thread_state {
    struct tbd_regs regs;
    const uint8_t *xsave; /* regs.xsave_bytes */
};

/* At a window's start: the thread's last block ended with a call, so its next block is entered by
 * it. */
struct tbd_called_thread {
    uint32_t thread; /* tid */
    uint32_t id;     /* of that last block */
};

/* A window in memory, whether it came from disk or from a replay. */
struct tbd_window {
    const struct tbd_trace *trace; /* block ids are this trace's; NULL while it is being recorded */
    /* the program ended in the block with the absolute time `last_time`, before */
    bool has_last_block;
    uint64_t last_time; /* its instruction `last_offset` */
    uint64_t last_offset;
    struct tbd_block_table *blocks_by_id; /* the blocks its entries name (holds one reference) */
    uint32_t index;
    uint32_t number; /* of its files; as in struct tbd_window_summary */
    uint64_t first_time;
    uint64_t blocks;
    enum tbd_level level; /* of its summaries: BITS, or more */
    bool complete;
    bool is_uncounted; /* as in struct tbd_window_summary */
    bool has_events;   /* entries and operands are there (level 3 or raised) */
    bool has_loads;    /* replayed with TBD_HOOK_LOADS: ops come from load_ops */
    bool is_picked;    /* only some blocks' entries are there, for walks alone
                                      (format/coding/pick.h) */

    struct tbd_regs regs;     /* at its start */
    const uint8_t *xsave;     /* regs.xsave_bytes */
    struct tbd_regs end_regs; /* valid if complete */
    const uint8_t *end_xsave;
    const struct tbd_thread_state *threads; /* all but the running one, at its start, by tid */
    size_t thread_count;
    const struct tbd_called_thread *called; /* only if there are other threads; else the end of the
                                             * window before tells */
    size_t called_count;
    const struct tbd_thread_state *end_threads; /* at its end; valid if complete */
    size_t end_thread_count;
    uint64_t digest; /* of the end state: all threads' registers and xsave images,
                                      dirty pages by address (of native play: as they are packed) */

    const struct tbd_page_contents *dirty; /* final contents of pages modified, sorted by address */
    size_t dirty_count;
    const struct tbd_page_contents *first; /* contents at the start of pages that the trace did not
                                            * know before; other pages: tbd_trace_page_at_start() */
    size_t first_count;
    const struct tbd_page_contents *gone; /* modified pages just before their mapping went away */
    size_t gone_count;
    const uint64_t *read_pages; /* addresses, sorted */
    size_t read_page_count;

    const struct tbd_word_summary *words; /* sorted by word */
    size_t word_count;
    /* addresses, sorted, of pages all of whose words count as stored to, beside `words`: an uncounted
     * window that is being recorded */
    const uint64_t *all_words;
    size_t all_words_count;
    const struct tbd_block_summary *block_summaries; /* sorted by id */
    size_t block_summary_count;

    uint64_t stores, calls, returns; /* where a replay has counted them; else 0 */

    /* Blocks that were entered by a call in an earlier window: they count among `enters`. */
    const struct tbd_early_call *early_calls;
    size_t early_call_count;

    /* When block entries were made, by the clock on the wall; ascending by time. */
    const struct tbd_stamp *stamps;
    size_t stamp_count;

    /* What the descriptors lead to that its system calls have made: see opened.h. */
    const uint8_t *opened;
    size_t opened_bytes;

    /* The log of messages replay needs (system calls, specials, signals, ...), at every level:
     * the same bytes as in `operands`, each with its relative time. */
    const struct tbd_log_entry *log;
    size_t log_count;

    const uint32_t *entries; /* block ids and messages in order (stream.h); the block file */
    size_t entry_count;
    const uint8_t *operands; /* the trace file */
    size_t operand_bytes;

    /* A slice of a long window (replay/slices.h) looks like a window of its own, from its first
     * time and start state on.  But `index`, `number` and `words` (level 1) are the whole window's,
     * and moments of `gone` count from the whole window's start.  All 0 if the window is whole. */
    bool is_slice;
    uint64_t slice_time;                   /* block entries of the whole window before the slice */
    uint32_t slice_order;                  /* log messages of the whole window before the slice */
    const struct tbd_page_contents *start; /* contents when the slice begins of pages that the
                                              whole window modifies, sorted */
    size_t start_count;

    struct tbd_window_state *state;
};

struct tbd_stamp {
    uint64_t time; /* relative: of the next block entry */
    uint64_t ns;   /* CLOCK_REALTIME */
};

struct tbd_log_entry {
    uint64_t time; /* relative: of the next block entry (it follows block time-1) */
    const struct tbd_message *message; /* payload follows; may be unaligned: use memcpy */
};

void tbd_window_free(struct tbd_window *window); /* NULL is fine */
/* The page's final contents, if the window modified it; NULL if not. */
const struct tbd_page_contents *tbd_window_dirty(const struct tbd_window *window, uint64_t address);
/* For each of the window's words (level 1, with events): 1 + the index of an event after which no
 * other stores to it.  Borrowed from the window; NULL without memory. */
const uint32_t *tbd_window_last_stores(const struct tbd_window *window);

#endif
