// SPDX-License-Identifier: MIT
/* pages_private.h - shared by the files that find a page's contents at a moment (pages.c)
 *
 * Callers of `_locked` functions have the trace's lock. */
#ifndef TBD_FORMAT_PAGES_PRIVATE_H
#define TBD_FORMAT_PAGES_PRIVATE_H

#include "format/files/page_numbers.h"
#include "format/trace/mappings.h"
#include "format/trace/open_tocs.h"
#include "format/trace/trace_handle.h"

/* Which windows have contents of a page (page_history.c). */
struct tbd_page_visit {
    uint32_t window;
    uint32_t kinds;  /* TBD_PAGES_* */
    uint32_t before; /* index + 1 of the page's previous visit; once sorted, the page's visits */
};
struct tbd_page_history {
    struct tbd_page_numbers last;  /* by page number: index + 1 of the page's last visit */
    struct tbd_page_visit *visits; /* owned */
    size_t visit_count, visit_capacity;
    bool made;
    bool is_partial; /* between tbd_page_history_begin() and _end() */
};

struct tbd_page_kept;
struct tbd_mapped_copy;

/* The calls of mremap in a window's log (page_moved.c). */
#define TBD_PAGES_MOVES 64u
struct tbd_logged_move {
    uint64_t index; /* in the log */
    struct tbd_msg_syscall call;
};
struct tbd_window_moves {
    uint32_t window; /* place */
    bool is_read;
    size_t count, capacity;
    struct tbd_logged_move *list; /* owned; by index */
};

/* This folder's part of a trace's handle. */
struct tbd_trace_pages {
    struct tbd_page_history history;
    struct tbd_page_kept *kept;     /* owned; NULL until a difference was seen (page_kept.c) */
    struct tbd_mapped_copy *copies; /* owned; pages.c */
    size_t copy_count;
    struct tbd_window_moves moves[TBD_PAGES_MOVES]; /* by window, modulo */
};
/* NULL without memory. */
struct tbd_trace_pages *tbd_trace_pages_locked(struct tbd_trace *trace);

/* page_history.c: of all pages; TBD_NOMEM, TBD_CORRUPT. */
TBD_MUST_CHECK enum tbd_status tbd_page_history_locked(struct tbd_trace *trace,
                                                       const struct tbd_page_history **out);
void tbd_page_history_free(struct tbd_page_history *history);
/* The page's visits, oldest first, as [*out_begin, end); NULL if it has none. */
const struct tbd_page_visit *tbd_page_history_of(const struct tbd_page_history *h, uint64_t address,
                                                 const struct tbd_page_visit **out_begin);
/* First visit in or after `window`. */
const struct tbd_page_visit *tbd_page_visit_from(const struct tbd_page_visit *begin,
                                                 const struct tbd_page_visit *end, uint32_t window);

/* What a window's table has about one page: entries in order of time; none is fine. */
struct tbd_page_entries {
    struct tbd_toc *toc;              /* borrowed until others were opened */
    const struct tbd_disk_page *list; /* lies in `toc` */
    size_t count;
};
TBD_MUST_CHECK enum tbd_status tbd_page_entries_locked(struct tbd_trace *trace, uint32_t window,
                                                       uint64_t address,
                                                       struct tbd_page_entries *out);

/* page_base.c */
TBD_MUST_CHECK enum tbd_status tbd_page_in_image_locked(struct tbd_trace *trace, uint64_t address,
                                                        uint8_t *out);
/* The latest contents of a page that the trace has from before the events of `window`: the base of
 * a difference stored there.  `how` may be NULL.  TBD_NOTFOUND: it has none. */
struct tbd_page_base {
    struct tbd_moment from; /* the moment of the contents */
    bool from_image;
    uint32_t depth; /* the number of differences they were made from */
};
TBD_MUST_CHECK enum tbd_status tbd_page_before_locked(struct tbd_trace *trace, uint32_t window,
                                                      uint64_t address, uint8_t *out,
                                                      struct tbd_page_base *how);
/* Contents of an entry of this window's table, however they are stored. */
TBD_MUST_CHECK enum tbd_status tbd_page_of_entry_locked(struct tbd_trace *trace,
                                                        struct tbd_toc *toc,
                                                        const struct tbd_disk_page *page,
                                                        uint8_t *out);

/* page_kept.c: the page's contents at the window's end, if known, and the number of differences
 * they were made from; borrowed until the lock is released, or others are kept.  `pages` may be
 * NULL. */
const uint8_t *tbd_page_kept_locked(const struct tbd_trace_pages *pages, uint32_t window,
                                    uint64_t address, uint32_t *out_depth);
/* With `depth` 0 contents are kept only if the trace has differences. */
void tbd_page_keep_locked(struct tbd_trace_pages *pages, uint32_t window, uint64_t address,
                          uint32_t depth, const uint8_t *contents);
/* The window's pages are stored differently now. */
void tbd_page_kept_forget(struct tbd_trace_pages *pages, uint32_t window);

/* pages.c */
struct tbd_page_query {
    uint64_t address;
    struct tbd_moment at;
    struct tbd_moment died;                /* its mapping ends; window UINT32_MAX: never */
    const struct tbd_mapping_piece *piece; /* borrowed until the lock is released */
};
/* Finds the mapping that the page belongs to at the moment.  TBD_UNMAPPED. */
TBD_MUST_CHECK enum tbd_status tbd_page_ask_locked(struct tbd_trace *trace,
                                                   const struct tbd_moment *at, uint64_t address,
                                                   struct tbd_page_query *out);
/* page_moved.c: follows the page back through the call of mremap that made its mapping.  The question becomes one about
 * the page at its former address, just before the call; `*out_known`: `out` has the answer.  TBD_NOTFOUND: it was not
 * moved. */
TBD_MUST_CHECK enum tbd_status tbd_page_moved_locked(struct tbd_trace *trace,
                                                     struct tbd_page_query *q, uint8_t *out,
                                                     bool *out_known);
/* The window's log may be another now. */
void tbd_page_moves_forget(struct tbd_trace_pages *pages, uint32_t window);
void tbd_page_moves_free(struct tbd_trace_pages *pages);
/* Its contents, if its window does not modify it after the moment. */
TBD_MUST_CHECK enum tbd_status
tbd_page_unmodified_locked(struct tbd_trace *trace, const struct tbd_page_query *q, uint8_t *out);

static inline struct tbd_moment tbd_moment_of_page(uint32_t window,
                                                   const struct tbd_disk_page *page)
{
    return (struct tbd_moment){ window, page->order, page->time };
}

#endif
