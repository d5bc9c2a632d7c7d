// SPDX-License-Identifier: MIT
/* trace.h - reading a trace: the one door for questions and for replay
 *
 * Three levels of use: tbd_trace_open() and the tables (info, blocks, regions);
 * tbd_window_load() for one window; tbd_cursor to walk its events in order.
 *
 * All that is read from disk is hostile and validated at load: offsets, counts, ids, times,
 * sizes; afterwards the accessors need no checks.  Different handles may be used
 * from different threads; one handle from one thread, but windows, once loaded, are
 * immutable and may be read from any.  Nothing here prints.
 *
 * Time: TIME is the number of block entries before; position TIME+K is the state just
 * before instruction K (from 0) of the block entered at TIME executes.
 */
#ifndef TBD_FORMAT_TRACE_H
#define TBD_FORMAT_TRACE_H

#include "base/status.h"
#include "format/stream/stream.h"

#include <stdbool.h>
#include <stddef.h>

struct tbd_trace;
struct tbd_window;

struct tbd_position {
    uint64_t time;
    uint32_t offset; /* K */
};

struct tbd_trace_info {
    const char *path;    /* of the trace directory */
    const char *program; /* path of the executable */
    const char *cwd;
    char *const *argv; /* argc strings, then NULL */
    int argc;
    uint32_t pid;
    uint32_t parent_pid;
    bool is_forked;         /* begins where fork returned 0 in the parent's program */
    uint64_t realtime_ns;   /* CLOCK_REALTIME at take-over */
    uint64_t window_blocks; /* N */
    uint64_t budget;        /* bytes that it may have; 0: no limit, or not known */
    uint64_t xcr0;
    uint64_t brk_end;   /* end of the heap at take-over */
    uint32_t hook_set;  /* TBD_HOOK_*: what was recorded */
    uint32_t max_insns; /* instructions in a block at most */
    uint32_t xsave_bytes;
    bool finished;          /* false: still being recorded */
    struct tbd_msg_end end; /* valid if finished */
    const char *end_text;
    uint64_t blocks; /* block entries in all windows: one past the last time */
    uint64_t stores, calls, returns, syscalls, specials, signals;
    uint64_t switches;     /* of threads */
    uint32_t main_thread;  /* tid of the thread it began with */
    uint64_t dropped;      /* 0, always: nothing is dropped */
    uint64_t note_count;   /* what is missing, in words: tbd_trace_note() */
    uint64_t damage_count; /* what is damaged: tbd_trace_damage() */
};

/* Opens the trace directory at `path`.  With NULL the latest one under the trace root
 * ($TBD_DIR or $XDG_DATA_HOME/tbd or ~/.local/share/tbd).  On failure *out is NULL and
 * `why`, if given, says which file and offset. */
TBD_MUST_CHECK enum tbd_status tbd_trace_open(const char *path, struct tbd_trace **out,
                                              struct tbd_error *why);
/* The same trace once more, for another thread: with the windows that `of` has, under the same indexes, whatever was
 * merged, dropped or added since `of` was opened.  `of` outlives it. */
TBD_MUST_CHECK enum tbd_status tbd_trace_open_again(const struct tbd_trace *of,
                                                    struct tbd_trace **out, struct tbd_error *why);
/* Only what tbd_trace_info(), notes and window summaries need: for a look at many traces.  No
 * blocks, no windows can be had from it. */
TBD_MUST_CHECK enum tbd_status tbd_trace_open_summary(const char *path, struct tbd_trace **out,
                                                      struct tbd_error *why);
void tbd_trace_close(struct tbd_trace *trace); /* NULL is fine */
/* The trace root: where new traces go and `latest` is. */
TBD_MUST_CHECK enum tbd_status tbd_trace_root(char *out, size_t bytes);
const struct tbd_trace_info *tbd_trace_info(const struct tbd_trace *trace);
const char *tbd_trace_note(const struct tbd_trace *trace, uint64_t index);
/* What of the trace's files is damaged, in words; what is not, is read all the same. */
const char *tbd_trace_damage(const struct tbd_trace *trace, uint64_t index);

/* Paths of the files that were mapped executable, as the program knew them; NULL behind the last
 * one. */
const char *tbd_trace_module(const struct tbd_trace *trace, uint32_t index);

/* ---- threads: in the order in which they were made, the first is the main thread ----
 * A tid may occur twice: the kernel gives numbers of threads that have ended again. */
struct tbd_thread_info {
    uint32_t tid;
    uint32_t creator;    /* tid; 0 for the main thread */
    uint64_t start_time; /* of the next block entry when it was made */
    uint64_t end_time;   /* when it ended; UINT64_MAX: it lived as long as the trace */
    uint32_t status;     /* its exit status, if it ended */
    bool has_ended;
    uint64_t blocks;       /* block entries */
    uint64_t switches;     /* how often it was given control */
    uint64_t name_time;    /* it named itself behind the block before this time, with ... */
    uint64_t name_address; /* ... the string at this address; 0: never, it has its creator's
                               name */
};
uint32_t tbd_trace_thread_count(const struct tbd_trace *trace);
const struct tbd_thread_info *tbd_trace_thread(const struct tbd_trace *trace, uint32_t index);
/* The thread with number `tid` that lives at `time`, else one that had the number; NULL: none
 * had. */
const struct tbd_thread_info *tbd_trace_thread_of(const struct tbd_trace *trace, uint32_t tid,
                                                  uint64_t time);
/* May a thread with this number have run in the window?  False is certain. */
bool tbd_trace_thread_ran(const struct tbd_trace *trace, uint32_t window, uint32_t tid);

/* ---- blocks: ids 1 .. tbd_trace_block_count() ---- */
struct tbd_block {
    struct tbd_block_def def;
    const struct tbd_op *ops; /* def.op_count; borrowed until the trace is closed */
    const uint8_t *code;      /* def.code_bytes; the application's bytes */
};
uint32_t tbd_trace_block_count(const struct tbd_trace *trace);
const struct tbd_block *tbd_trace_block(const struct tbd_trace *trace, uint32_t id);
struct tbd_block_table *tbd_trace_blocks(const struct tbd_trace *trace); /* borrowed */

/* ---- regions: the program's mappings as they change; sorted by start, no overlap ---- */
struct tbd_region {
    uint64_t start, end, file_offset, inode;
    uint32_t device, prot, map_flags, flags; /* as struct tbd_msg_region */
    const char *path;                        /* "" for anonymous memory */
    const char *copy; /* path of the trace's own copy of that file, or NULL */
};

/* Regions at the start of window `window`.  The array is borrowed until the trace is closed. */
TBD_MUST_CHECK enum tbd_status tbd_trace_regions(struct tbd_trace *trace, uint32_t window,
                                                 const struct tbd_region **out, size_t *out_count,
                                                 struct tbd_error *why);
/* The same where `slice` begins, a slice of a window (below). */
TBD_MUST_CHECK enum tbd_status tbd_slice_regions(struct tbd_trace *trace,
                                                 const struct tbd_window *slice,
                                                 const struct tbd_region **out, size_t *out_count,
                                                 struct tbd_error *why);

/* How often mappings had changed when window `window` began; the number of windows is fine too. */
size_t tbd_trace_mapping_changes(const struct tbd_trace *trace, uint32_t window);
/* What change `number` (from 0) put there, as the call said; false if it took a mapping away, or if
 * there is none. */
bool tbd_trace_mapping_change(const struct tbd_trace *trace, size_t number, struct tbd_region *out);

/* ---- windows ---- */
/* Windows have places 0 .. count-1 in the trace; that is what everything here calls `window` or
 * `index`.  Windows also have numbers, in the order in which they were recorded, which stay when
 * windows are merged or the oldest are dropped; files and index use those. */
struct tbd_window_summary { /* in core for every window, from the trace's index */
    uint32_t number;        /* of the first window recorded that is in it */
    uint32_t span;          /* how many are in it; more than 1: merged */
    uint64_t first_time;
    uint64_t blocks; /* block entries in it */
    uint8_t level;   /* 1, 2, 3 */
    bool complete;   /* false: the last window of a killed program (no end state) */
    bool is_lost;    /* its files and its part of the index are damaged: nothing else is
                                 known */
    uint64_t toc_bytes, trace_bytes, block_bytes; /* on disk */
    uint64_t stores, calls, returns, syscalls, specials, signals;
    uint64_t switches; /* of threads */
};
uint32_t tbd_trace_window_count(const struct tbd_trace *trace);
const struct tbd_window_summary *tbd_trace_window(const struct tbd_trace *trace, uint32_t window);
/* Window that holds the one recorded as number `number`; UINT32_MAX: it was dropped, or never
 * was. */
uint32_t tbd_trace_window_with(const struct tbd_trace *trace, uint32_t number);
/* Window that holds time `time`; UINT32_MAX if none. */
uint32_t tbd_trace_window_of(const struct tbd_trace *trace, uint64_t time);

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
    uint32_t enters;     /* of those entries, how many came by TBD_OP_CALL: function entries */
    uint32_t last_enter; /* relative time of the last such entry's block */
};

struct tbd_early_call {
    uint32_t thread; /* tid */
    uint32_t id;
    uint32_t time; /* relative */
};

struct tbd_page_contents {
    uint64_t address;
    uint64_t time;        /* relative: 0 = at its start; else after the mapping made there */
    uint32_t order;       /* log messages (tbd_window.log) of the window before this moment */
    const uint8_t *bytes; /* 4096; borrowed from the window */
};

struct tbd_block_table; /* format/window/blocks.h */
struct tbd_window_private;

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
    struct tbd_block_table *blocks_by_id; /* the blocks its entries name (one reference is held) */
    uint32_t index;
    uint32_t number; /* of its files; as in struct tbd_window_summary */
    uint64_t first_time;
    uint64_t blocks;
    uint8_t level; /* of its summaries: 1, or more */
    bool complete;
    bool has_events; /* entries and operands are there (level 3 or raised) */
    bool has_loads;  /* replayed with TBD_HOOK_LOADS: ops come from load_ops */
    bool is_picked;  /* only some blocks' entries are there, for walks alone
                                      (format/window/pick.h) */

    struct tbd_regs regs;     /* at its start */
    const uint8_t *xsave;     /* regs.xsave_bytes */
    struct tbd_regs end_regs; /* valid if complete */
    const uint8_t *end_xsave;
    const struct tbd_thread_state *threads; /* all but the running one, at its start, by tid */
    size_t thread_count;
    const struct tbd_called_thread *called; /* only where there are other threads; where not, the
                                      window before tells by its end */
    size_t called_count;
    const struct tbd_thread_state *end_threads; /* at its end; valid if complete */
    size_t end_thread_count;
    uint64_t digest; /* of the end state: all threads' registers and xsave images,
                                      dirty pages by address */

    const struct tbd_page_contents *dirty; /* final contents of pages modified, sorted by address */
    size_t dirty_count;
    const struct tbd_page_contents *first; /* contents at the start of pages that the trace did not
                                              know before; of others: tbd_trace_page_at_start() */
    size_t first_count;
    const struct tbd_page_contents *gone; /* modified pages just before their mapping went away */
    size_t gone_count;
    const uint64_t *read_pages; /* addresses, sorted */
    size_t read_page_count;

    const struct tbd_word_summary *words; /* sorted by word */
    size_t word_count;
    const struct tbd_block_summary *block_summaries; /* sorted by id */
    size_t block_summary_count;

    /* Blocks that were entered by a call in an earlier window: they count among `enters`. */
    const struct tbd_early_call *early_calls;
    size_t early_call_count;

    /* The log of messages replay needs (system calls, specials, signals, ...), at every level:
     * the same bytes as in `operands`, each with its relative time. */
    const struct tbd_log_entry *log;
    size_t log_count;

    const uint32_t *entries; /* block ids and messages in order (stream.h); the block file */
    size_t entry_count;
    const uint8_t *operands; /* the trace file */
    size_t operand_bytes;

    /* A slice of a long window (replay/slices.h) is as a window of its own: from its first time,
     * with its start state, on.  But `index` and `number` are those of the whole window, `words`
     * (level 1) are what that stores to, and moments of `gone` are counted from its start.  All 0
     * where it is whole. */
    bool is_slice;
    uint64_t slice_time;  /* of the whole window's block entries, so many come before */
    uint32_t slice_order; /* of its log messages */
    const struct tbd_page_contents *start; /* contents when the slice begins of pages that the
                                              whole window modifies, sorted */
    size_t start_count;

    struct tbd_window_private *private;
};

struct tbd_log_entry {
    uint64_t time; /* relative: of the next block entry (it follows block time-1) */
    const struct tbd_message *message; /* payload follows; may be unaligned: use memcpy */
};

/* Loads window `index`.  Without events a level-3 window's trace and block files are not opened.
 * TBD_NOTKEPT when events are asked for and the level is below 3: raise it by replay
 * (replay/replay.h).  On TBD_OK *out is owned by the caller: tbd_window_free(). */
TBD_MUST_CHECK enum tbd_status tbd_window_load(struct tbd_trace *trace, uint32_t index,
                                               bool with_events, struct tbd_window **out,
                                               struct tbd_error *why);
/* ... without events, and without contents (`bytes` NULL) of those pages it modified that are not
 * wanted. */
struct tbd_wanted_pages {
    bool (*is_wanted)(void *context, uint64_t address);
    void *context;
};
TBD_MUST_CHECK enum tbd_status tbd_window_load_wanted(struct tbd_trace *trace, uint32_t index,
                                                      const struct tbd_wanted_pages *wanted,
                                                      struct tbd_window **out,
                                                      struct tbd_error *why);
/* Only what tells which events it has: registers, summaries, pages read, log; no contents of
 * pages. */
TBD_MUST_CHECK enum tbd_status tbd_window_load_summaries(struct tbd_trace *trace, uint32_t index,
                                                         struct tbd_window **out,
                                                         struct tbd_error *why);
void tbd_window_free(struct tbd_window *window);

/* One summary from a window's TOC without loading it.  TBD_NOTFOUND: no store touched the word, the
 * block was not entered. */
TBD_MUST_CHECK enum tbd_status tbd_trace_find_word(struct tbd_trace *trace, uint32_t window,
                                                   uint64_t word, struct tbd_word_summary *out);
TBD_MUST_CHECK enum tbd_status tbd_trace_find_block(struct tbd_trace *trace, uint32_t window,
                                                    uint32_t id, struct tbd_block_summary *out);

/* ---- walking a window's events ----
 * The cursor stands on one event: a block entry, an op of a block, or a message.
 * Order: a block's entry, its ops in program order, then messages that follow it. */
enum tbd_cursor_kind { TBD_AT_END = 0, TBD_AT_BLOCK, TBD_AT_OP, TBD_AT_MESSAGE };

struct tbd_cursor {
    const struct tbd_window *window;
    enum tbd_cursor_kind kind;
    uint32_t index; /* number of this event within the window, from 0 */
    uint64_t time;  /* absolute: of the current block */
    uint32_t id;    /* current block's id; 0 before the first */
    const struct tbd_block *block;
    const struct tbd_op *op;           /* TBD_AT_OP */
    const uint8_t *record;             /* the block's operands */
    const struct tbd_message *message; /* TBD_AT_MESSAGE; may be unaligned */
    uint32_t thread;   /* whose event it is; a switch is the event of the thread that
                                  comes */
    uint64_t began;    /* TBD_AT_MESSAGE: time of the block it belongs to.  Other than
                                  `time` where the thread waited in a system call, and `block`,
                                  `record` are another thread's then */
    uint32_t op_limit; /* so many of the block's ops happened: fewer than def.op_count only
                                  where a fault left it in the middle */
    /* private */
    size_t entry;   /* of the current block or message */
    size_t operand; /* of its record or message */
    uint32_t op_index;
    uint64_t next_time;
};
void tbd_cursor_first(const struct tbd_window *window, struct tbd_cursor *out);
bool tbd_cursor_next(struct tbd_cursor *cursor); /* false at the end */
/* Onto the entry of the block with absolute time `time`, or to the end if the window has no such
 * time. Cheap: starts from the nearest of the checkpoints made at load. */
bool tbd_cursor_seek(const struct tbd_window *window, uint64_t time, struct tbd_cursor *out);
/* Onto the event with this index (as in tbd_word_summary.last), or to the end. */
bool tbd_cursor_seek_index(const struct tbd_window *window, uint32_t index, struct tbd_cursor *out);
/* From a cursor on a block's entry (or on any of its events) past all of its ops, to the
 * next block entry or message.  false at the end. */
bool tbd_cursor_skip_block(struct tbd_cursor *cursor);
/* Before which instruction of its block, on which (or on whose events) the cursor is, was the block
 * left?  UINT64_MAX if it was not. */
uint64_t tbd_cursor_insn_limit(const struct tbd_cursor *cursor);
/* Blocks of which nothing is wanted. */
struct tbd_pass {
    const uint8_t *blocks; /* by id: 0 = nothing is; NULL: of none */
    uint8_t accesses;      /* of the others, only TBD_OP_STOREs (or LOADs) that touch [start, end);
                              0: anything */
    uint64_t start, end;
    uint64_t watch_start, watch_end; /* stores that touch this are wanted of all blocks; empty:
                                        none */
    bool calls;                      /* function entries and exits are wanted of all blocks */
    uint64_t until;                  /* no further than behind this time */
};
/* From a block's entry on, over such blocks, quickly: to one of which something may be wanted, or
 * that a message or the window's end follows. */
void tbd_cursor_pass(struct tbd_cursor *cursor, const struct tbd_pass *pass);
/* Address of a STORE or LOAD op the cursor is on. */
static inline uint64_t tbd_cursor_address(const struct tbd_cursor *c)
{
    uint64_t base = 0;

    if (c->op->base != TBD_BASE_NONE)
        __builtin_memcpy(&base, c->record + c->op->base, 8);
    return base + (uint64_t)c->op->add;
}

/* ---- memory without replay ---- */
/* The page's final contents, if the window modified it; NULL if not. */
const struct tbd_page_contents *tbd_window_dirty(const struct tbd_window *window, uint64_t address);
/* Contents of one page at the start of the window, which may be a slice.  `out` has 4096 bytes. */
TBD_MUST_CHECK enum tbd_status tbd_window_page_at_start(struct tbd_trace *trace,
                                                        const struct tbd_window *window,
                                                        uint64_t address, uint8_t *out);

/* Copies `bytes` bytes at `address` as they were at `pos`, into `out`.  `window` is pos's window
 * with events.  TBD_UNMAPPED if some of it is not mapped there, TBD_NOTKEPT if the trace has no
 * contents for a page. */
TBD_MUST_CHECK enum tbd_status tbd_trace_read(struct tbd_trace *trace,
                                              const struct tbd_window *window,
                                              struct tbd_position pos, uint64_t address, void *out,
                                              size_t bytes);

/* The same for bytes that no store of the window touches at or after `pos`: it is not gone
 * through. */
TBD_MUST_CHECK enum tbd_status tbd_trace_read_unstored(struct tbd_trace *trace,
                                                       const struct tbd_window *window,
                                                       struct tbd_position pos, uint64_t address,
                                                       void *out, size_t bytes);

/* The same for bytes that no store of the window touches, by its summaries: its events are not
 * needed (tbd_window_load_summaries()), so any detail level will do.  TBD_NOTKEPT: some are
 * touched. */
TBD_MUST_CHECK enum tbd_status tbd_trace_read_untouched(struct tbd_trace *trace,
                                                        const struct tbd_window *window,
                                                        struct tbd_position pos, uint64_t address,
                                                        void *out, size_t bytes);

/* Contents of one page at the start of window `index`: from dirty pages of earlier windows, first
 * touches, the initial image, or the mapped file's copy.  `out` has 4096 bytes. */
TBD_MUST_CHECK enum tbd_status tbd_trace_page_at_start(struct tbd_trace *trace, uint32_t index,
                                                       uint64_t address, uint8_t *out);

/* Is it certain that no window of `first` .. `last` modified the page or changed a mapping, so that
 * the page holds the same before and after them?  True if `last` < `first`. */
bool tbd_trace_page_stays(struct tbd_trace *trace, uint32_t first, uint32_t last, uint64_t address);

/* Why that, or the function below, said that the trace is damaged: file, offset and page. */
void tbd_trace_page_why(struct tbd_trace *trace, struct tbd_error *out);

/* As tbd_trace_page_at_start() for a mapping made inside window `index`: contents when it was made,
 * at relative time `time` by the last of the first `order` messages of the window's log. */
TBD_MUST_CHECK enum tbd_status tbd_trace_page_after(struct tbd_trace *trace, uint32_t index,
                                                    uint64_t time, uint32_t order, uint64_t address,
                                                    uint8_t *out);

#endif
