// SPDX-License-Identifier: MIT
/* pages_private.h - what the files share that tell a page's contents at a moment (pages.c)
 *
 * The trace's lock is held around all of it (`_locked`). */
#ifndef TBD_FORMAT_PAGES_PRIVATE_H
#define TBD_FORMAT_PAGES_PRIVATE_H

#include "format/trace/trace_private.h"

/* page_history.c */
TBD_MUST_CHECK enum tbd_status tbd_page_history_make(struct tbd_trace *trace);
/* Until the end, only pages that these windows have contents of will be asked for, and only what
 * these and earlier windows have of them. */
TBD_MUST_CHECK enum tbd_status tbd_page_history_begin(struct tbd_trace *trace, uint32_t first,
                                                      uint32_t count);
void tbd_page_history_end(struct tbd_trace *trace);
void tbd_page_history_free(struct page_history *history);
/* The page's visits, oldest first, as [*out_begin, end); NULL if it has none. */
const struct page_visit *tbd_page_history_of(const struct page_history *h, uint64_t address,
                                             const struct page_visit **out_begin);
/* First visit in or after `window`. */
const struct page_visit *tbd_page_visit_from(const struct page_visit *begin,
                                             const struct page_visit *end, uint32_t window);

/* open_tocs.c */
/* Borrowed until others were opened.  NULL: trace->toc_failure says why. */
struct toc *tbd_toc_of_locked(struct tbd_trace *trace, uint32_t window);
/* What a window's table has about one page: entries in order of time; none is fine. */
struct tbd_page_entries {
    struct toc *toc;                  /* borrowed until others were opened */
    const struct tbd_disk_page *list; /* lies in `toc` */
    size_t count;
};
TBD_MUST_CHECK enum tbd_status tbd_page_entries_locked(struct tbd_trace *trace, uint32_t window,
                                                       uint64_t address,
                                                       struct tbd_page_entries *out);

/* page_base.c */
/* An image that cannot be read must not pass for one that lacks a page. */
TBD_MUST_CHECK enum tbd_status tbd_open_image_locked(struct tbd_trace *trace);
TBD_MUST_CHECK enum tbd_status tbd_page_in_image_locked(struct tbd_trace *trace, uint64_t address,
                                                        uint8_t *out);
/* The latest contents of a page that the trace has from before the events of `window`: what a difference stored there is
 * to.  `how` may be NULL.  TBD_NOTFOUND: it has none. */
struct tbd_page_base {
    struct tbd_moment from; /* when the contents are from */
    bool from_image;
    uint32_t depth; /* differences that were put together for them */
};
TBD_MUST_CHECK enum tbd_status tbd_page_before_locked(struct tbd_trace *trace, uint32_t window,
                                                      uint64_t address, uint8_t *out,
                                                      struct tbd_page_base *how);
/* Contents of an entry of this window's table, whatever they are stored as. */
TBD_MUST_CHECK enum tbd_status tbd_page_of_entry_locked(struct tbd_trace *trace, struct toc *toc,
                                                        const struct tbd_disk_page *page,
                                                        uint8_t *out);

/* page_kept.c: what the page held at the window's end, if that is known, and how many differences it was put together
 * from; borrowed until the lock is given back, or others are kept. */
const uint8_t *tbd_page_kept_locked(const struct tbd_trace *trace, uint32_t window,
                                    uint64_t address, uint32_t *out_depth);
/* `depth` 0: only if others are. */
void tbd_page_keep_locked(struct tbd_trace *trace, uint32_t window, uint64_t address,
                          uint32_t depth, const uint8_t *contents);
/* Its pages are stored in another way now. */
void tbd_page_kept_forget_locked(struct tbd_trace *trace, uint32_t window);

/* pages.c */
struct tbd_page_query {
    uint64_t address;
    struct tbd_moment at;
    struct tbd_moment died;           /* its mapping ends; window UINT32_MAX: never */
    const struct region_piece *piece; /* borrowed until the lock is given back */
    unsigned moves;                   /* how many calls of mremap it was followed through */
};
/* What mapping the page belongs to at the moment.  TBD_UNMAPPED. */
TBD_MUST_CHECK enum tbd_status tbd_page_ask_locked(struct tbd_trace *trace,
                                                   const struct tbd_moment *at, uint64_t address,
                                                   struct tbd_page_query *out);
/* page_moved.c: what it held before mremap brought it there.  TBD_NOTFOUND: it did not. */
TBD_MUST_CHECK enum tbd_status tbd_page_moved_locked(struct tbd_trace *trace,
                                                     const struct tbd_page_query *q, uint8_t *out);
/* Its contents, if its window does not modify it after the moment. */
TBD_MUST_CHECK enum tbd_status
tbd_page_unmodified_locked(struct tbd_trace *trace, const struct tbd_page_query *q, uint8_t *out);

static inline struct tbd_moment tbd_moment_of_page(uint32_t window,
                                                   const struct tbd_disk_page *page)
{
    return (struct tbd_moment){ window, page->order, page->time };
}

#endif
