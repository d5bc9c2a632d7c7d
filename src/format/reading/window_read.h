// SPDX-License-Identifier: MIT
/* window_read.h - windows of a trace, loaded from their files: whole, in part, or one summary */
#ifndef TBD_FORMAT_WINDOW_READ_H
#define TBD_FORMAT_WINDOW_READ_H

#include "format/coding/pick.h"
#include "format/trace/trace.h"

/* Loads window `index`.  Without events a level-3 window's trace and block files are not opened.
 * TBD_NOTKEPT when events are asked for and the level is below 3: raise it by replay
 * (replay/replay.h).  On TBD_OK *out is owned by the caller: tbd_window_free(). */
TBD_MUST_CHECK enum tbd_status tbd_window_load(struct tbd_trace *trace, uint32_t index,
                                               bool with_events, struct tbd_window **out,
                                               struct tbd_error *why);
/* The same without events; modified pages that are not wanted have no contents (`bytes` NULL). */
struct tbd_wanted_pages {
    bool (*is_wanted)(void *context, uint64_t address);
    void *context;
};
TBD_MUST_CHECK enum tbd_status tbd_window_load_wanted(struct tbd_trace *trace, uint32_t index,
                                                      const struct tbd_wanted_pages *wanted,
                                                      struct tbd_window **out,
                                                      struct tbd_error *why);
/* The same; pages at the window's end are as they are packed in its file (struct tbd_page_contents).  TBD_UNSUPPORTED: some are packed together
 * with others. */
TBD_MUST_CHECK enum tbd_status tbd_window_load_packed(struct tbd_trace *trace, uint32_t index,
                                                      struct tbd_window **out,
                                                      struct tbd_error *why);
/* Loads only registers, summaries, pages read and log, which tell what events the window has; no
 * contents of pages. */
TBD_MUST_CHECK enum tbd_status tbd_window_load_summaries(struct tbd_trace *trace, uint32_t index,
                                                         struct tbd_window **out,
                                                         struct tbd_error *why);
/* Like tbd_window_load() with events, then tbd_picker_pick(). */
TBD_MUST_CHECK enum tbd_status tbd_window_load_picked(struct tbd_trace *trace, uint32_t index,
                                                      struct tbd_picker *picker,
                                                      struct tbd_window **out,
                                                      struct tbd_error *why);

/* One summary from a window's TOC without loading it.  TBD_NOTFOUND: no store touched the word, the
 * block was not entered. */
TBD_MUST_CHECK enum tbd_status tbd_trace_find_word(struct tbd_trace *trace, uint32_t window,
                                                   uint64_t word, struct tbd_word_summary *out);
TBD_MUST_CHECK enum tbd_status tbd_trace_find_block(struct tbd_trace *trace, uint32_t window,
                                                    uint32_t id, struct tbd_block_summary *out);

/* When block entries of the window were made, from its TOC.  The caller frees *out; NULL and 0: the
 * trace has no times. */
TBD_MUST_CHECK enum tbd_status tbd_trace_stamps(struct tbd_trace *trace, uint32_t window,
                                                struct tbd_stamp **out, size_t *out_count);

#endif
