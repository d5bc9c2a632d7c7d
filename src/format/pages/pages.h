// SPDX-License-Identifier: MIT
/* pages.h - contents of memory at any position of a trace, without replay */
#ifndef TBD_FORMAT_PAGES_H
#define TBD_FORMAT_PAGES_H

#include "format/trace/trace.h"

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

/* The time from which on stores to the address belong to another mapping than at `pos`; UINT64_MAX: in this
 * window there is none. */
uint64_t tbd_window_mapping_until(struct tbd_trace *trace, const struct tbd_window *window,
                                  struct tbd_position pos, uint64_t address);

/* tbd_trace_read() for bytes that no store of the window touches at or after `pos`: its events are not
 * walked. */
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
 * its contents are the same before and after them?  True if `last` < `first`. */
bool tbd_trace_page_stays(struct tbd_trace *trace, uint32_t first, uint32_t last, uint64_t address);

/* Why tbd_trace_page_at_start() or tbd_trace_page_after() said that the trace is damaged: file,
 * offset and page. */
void tbd_trace_page_why(struct tbd_trace *trace, struct tbd_error *out);

/* As tbd_trace_page_at_start() for a mapping made inside window `index`: contents when it was made,
 * at relative time `time` by the last of the first `order` messages of the window's log. */
TBD_MUST_CHECK enum tbd_status tbd_trace_page_after(struct tbd_trace *trace, uint32_t index,
                                                    uint64_t time, uint32_t order, uint64_t address,
                                                    uint8_t *out);

#endif
