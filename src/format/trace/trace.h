// SPDX-License-Identifier: MIT
/* trace.h - reading a trace: the handle, and the tables that are known once it is open
 *
 * Windows are loaded with format/reading/window_read.h, memory is read with format/pages/pages.h,
 * and events are walked with format/window/cursor.h.
 *
 * All that is read from disk is hostile and validated at load: offsets, counts, ids, times,
 * sizes; afterwards the accessors need no checks.  Different handles may be used
 * from different threads; one handle from one thread, but windows, once loaded, are
 * immutable and may be read from any.  Nothing here prints. */
#ifndef TBD_FORMAT_TRACE_H
#define TBD_FORMAT_TRACE_H

#include "base/status.h"
#include "format/stream/stream.h"
#include "format/window/blocks.h"
#include "format/window/window.h"

#include <stdbool.h>
#include <stddef.h>

struct tbd_trace;

#define TBD_RINGS_ONLY_TEXT                                                                        \
    "the program was killed: its dump has what ran last, and what follows from that: see `path`"

struct tbd_trace_info {
    const char *path;    /* of the trace directory */
    uint32_t owner;      /* user id */
    bool is_foreign;     /* the owner is not this user */
    const char *program; /* path of the executable */
    const char *cwd;
    char *const *argv; /* argc strings, then NULL */
    int argc;
    uint32_t pid;
    uint32_t parent_pid;
    bool is_forked; /* begins where fork returned 0 in the parent's program */
    bool is_dump;   /* of a crash: only the state at its one block entry is known */
    bool
        has_rings_only; /* a dump without a state: nothing here is known but path and realtime_ns */
    uint64_t realtime_ns;   /* CLOCK_REALTIME at take-over; with has_rings_only at the end */
    uint64_t window_blocks; /* N */
    uint64_t budget;        /* bytes that it may have; 0: no limit, or not known */
    bool counts_later;      /* windows were recorded uncounted (count=later) */
    /* native play whose blocks no replay has found yet: times are numbers of stops */
    bool counts_stops;
    bool own_code; /* recorded by native play */
    uint64_t xcr0;
    uint64_t brk_end;   /* end of the heap at take-over */
    uint32_t hook_set;  /* TBD_HOOK_*: what was recorded */
    uint32_t max_insns; /* instructions in a block at most */
    uint32_t xsave_bytes;
    bool finished;          /* false: still being recorded */
    struct tbd_msg_end end; /* valid if finished */
    const char *end_text;
    const uint8_t
        *end_siginfo; /* TBD_SIGINFO_BYTES of the signal that ended it; NULL if not known */
    uint64_t blocks;  /* block entries in all windows: one past the last time */
    uint64_t stores, calls, returns, syscalls, specials, signals;
    uint64_t switches;     /* of threads */
    uint32_t main_thread;  /* tid of the first thread */
    uint64_t dropped;      /* 0, always: nothing is dropped */
    uint64_t note_count;   /* what is missing, in words: tbd_trace_note() */
    uint64_t damage_count; /* what is damaged: tbd_trace_damage() */
    bool has_lost_end;     /* of the index: nobody knows what came after the last window */
};

/* Opens the trace directory at `path`.  With NULL the latest one under the trace root
 * ($TBD_DIR or $XDG_DATA_HOME/tbd or ~/.local/share/tbd), if it is this user's and this user's
 * `latest` leads there.  On failure *out is NULL and `why`, if given, says which file and offset. */
TBD_MUST_CHECK enum tbd_status tbd_trace_open(const char *path, struct tbd_trace **out,
                                              struct tbd_error *why);
/* Opens the same trace again, for another thread: with the windows of `of`, under the same indexes,
 * whatever was merged, dropped or added since `of` was opened.  `of` must outlive it. */
TBD_MUST_CHECK enum tbd_status tbd_trace_open_again(const struct tbd_trace *of,
                                                    struct tbd_trace **out, struct tbd_error *why);
/* Opens only what tbd_trace_info(), notes and window summaries need: for a list of many traces.  It
 * gives no blocks and no windows. */
TBD_MUST_CHECK enum tbd_status tbd_trace_open_summary(const char *path, struct tbd_trace **out,
                                                      struct tbd_error *why);
/* The same for the dump of a program that could not say anything before its end (`crash` alone, format/files/crash_file.h), which
 * all others refuse by TBD_NOTKEPT: it has no windows.  Other traces are opened as ever. */
TBD_MUST_CHECK enum tbd_status tbd_trace_open_rings(const char *path, struct tbd_trace **out,
                                                    struct tbd_error *why);
/* From then on such a trace has the files that were mapped executable, and code, as its file `crash` has them, which `dump` is; others are
 * left alone.  TBD_NOMEM.  (trace_crash.c) */
struct tbd_crash_dump;
TBD_MUST_CHECK enum tbd_status tbd_trace_take_crash(struct tbd_trace *trace,
                                                    const struct tbd_crash_dump *dump);
void tbd_trace_close(struct tbd_trace *trace); /* NULL is fine */
/* The trace root: where new traces go and `latest` is. */
TBD_MUST_CHECK enum tbd_status tbd_trace_root(char *out, size_t bytes);
const struct tbd_trace_info *tbd_trace_info(const struct tbd_trace *trace);
const char *tbd_trace_note(const struct tbd_trace *trace, uint64_t index);
/* Damage of the trace's files, in words; undamaged parts are read all the same. */
const char *tbd_trace_damage(const struct tbd_trace *trace, uint64_t index);

/* Paths of the files that were mapped executable, as the program knew them; NULL after the last
 * one. */
const char *tbd_trace_module(const struct tbd_trace *trace, uint32_t index);

/* ---- threads: in the order in which they were made, the first is the main thread ----
 * A tid may occur twice: the kernel reuses the numbers of threads that have ended. */
struct tbd_thread_info {
    uint32_t tid;
    uint32_t creator;    /* tid; 0 for the main thread */
    uint64_t start_time; /* of the next block entry when it was made */
    uint64_t end_time;   /* when it ended; UINT64_MAX: it lived as long as the trace */
    uint32_t status;     /* its exit status, if it ended */
    bool has_ended;
    uint64_t blocks;       /* block entries */
    uint64_t switches;     /* how often it was given control */
    uint64_t name_time;    /* it named itself after the block before this time, with ... */
    uint64_t name_address; /* ... the string at this address; 0: never, it has its creator's
                               name */
};
static inline bool tbd_thread_lives_at(const struct tbd_thread_info *thread, uint64_t time)
{
    return thread->start_time <= time && time < thread->end_time;
}
uint32_t tbd_trace_thread_count(const struct tbd_trace *trace);
const struct tbd_thread_info *tbd_trace_thread(const struct tbd_trace *trace, uint32_t index);
/* The thread with number `tid` that lives at `time`, else one that had the number; NULL: none
 * had. */
const struct tbd_thread_info *tbd_trace_thread_of(const struct tbd_trace *trace, uint32_t tid,
                                                  uint64_t time);
/* May a thread with this number have run in the window?  False is certain. */
bool tbd_trace_thread_ran(const struct tbd_trace *trace, uint32_t window, uint32_t tid);

/* ---- blocks: ids 1 .. tbd_trace_block_count() ---- */
uint32_t tbd_trace_block_count(const struct tbd_trace *trace);
const struct tbd_block *tbd_trace_block(const struct tbd_trace *trace, uint32_t id);
struct tbd_block_table *tbd_trace_blocks(const struct tbd_trace *trace); /* borrowed */

/* ---- regions: the program's mappings as they change; sorted by start, no overlap ---- */
struct tbd_region {
    uint64_t start, end, file_offset, inode;
    uint32_t device, prot, map_flags, flags; /* as struct tbd_msg_region */
    const char *path;                        /* "" for anonymous memory */
    const char *copy; /* name of the trace's own copy of that file below its directory, or NULL */
};

/* Regions at the start of window `window`.  The array is borrowed until the trace is closed. */
TBD_MUST_CHECK enum tbd_status tbd_trace_regions(struct tbd_trace *trace, uint32_t window,
                                                 const struct tbd_region **out, size_t *out_count,
                                                 struct tbd_error *why);
/* The same before block entry `time`. */
TBD_MUST_CHECK enum tbd_status tbd_trace_regions_at(struct tbd_trace *trace, uint64_t time,
                                                    const struct tbd_region **out,
                                                    size_t *out_count, struct tbd_error *why);
/* The same where `slice` begins, a slice of a window. */
TBD_MUST_CHECK enum tbd_status tbd_slice_regions(struct tbd_trace *trace,
                                                 const struct tbd_window *slice,
                                                 const struct tbd_region **out, size_t *out_count,
                                                 struct tbd_error *why);

/* How often mappings had changed when window `window` began; `window` may be the number of
 * windows. */
size_t tbd_trace_mapping_changes(const struct tbd_trace *trace, uint32_t window);
/* The region that change `number` (from 0) mapped, as the call said; false if the change removed a
 * mapping, or does not exist. */
bool tbd_trace_mapping_change(const struct tbd_trace *trace, size_t number, struct tbd_region *out);

/* ---- windows ---- */
/* Windows have places 0 .. count-1 in the trace, which everything here calls `window` or `index`.
 * Windows also have numbers, in the order of recording, which stay when windows are merged or the
 * oldest are dropped; files and the index use numbers. */
uint32_t tbd_trace_window_count(const struct tbd_trace *trace);
const struct tbd_window_summary *tbd_trace_window(const struct tbd_trace *trace, uint32_t window);
/* Window that holds the one recorded as number `number`; UINT32_MAX: it was dropped, or never
 * was. */
uint32_t tbd_trace_window_with(const struct tbd_trace *trace, uint32_t number);
/* Window that holds time `time`; UINT32_MAX if none. */
uint32_t tbd_trace_window_of(const struct tbd_trace *trace, uint64_t time);

#endif
