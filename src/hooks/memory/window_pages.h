// SPDX-License-Identifier: MIT
/* window_pages.h - sends the pages, and WINDOW_END, at a window's end
 *
 * Used by play and by the replay stub.  The touch map (base/layout.h) says which pages were read and
 * written in the window.  Contexts: BOOT, APP. */
#ifndef TBD_HOOKS_WINDOW_PAGES_H
#define TBD_HOOKS_WINDOW_PAGES_H

#include "hooks/stream/ring.h"

/* `known` has one bit for each page: does the trace know its contents?  NULL in a replay, which
 * sends only written pages. */
struct tbd_pages {
    uint8_t *touch; /* the thread's touch map (gs base) */
    uint8_t *known;
    uint64_t dirty; /* pages sent as dirty in this window, for WINDOW_END */
    uint64_t read;
    /* stores are not recorded: what a page held before the window's stores cannot be found from what
     * it holds after them, so pages that were written are never sent as FIRST */
    bool omits_stores;
    bool ends_window; /* native play: what is sent now is as it is at the window's end */
    /* The first pages in a large range that may have marks, at least; false: none has.  NULL: all may. */
    bool (*next_marked)(uint64_t start, uint64_t end, struct tbd_range *out);
};
#define TBD_KNOWN_BYTES (TBD_USER_END >> TBD_PAGE_SHIFT >> 3)

/* A stretch of the program's address space whose touched pages are to be sent. */
struct tbd_stretch {
    uint64_t start;
    uint64_t end;
    /* other pages may share these marks (tbd_regions_folds), so they are not cleared */
    bool folds;
};

/* Sends the touched pages of the stretches and clears their marks, except where cells are shared.
 * The page after one that was read counts as read. */
void tbd_window_send_pages(struct tbd_ring *ring, struct tbd_thread *thread,
                           struct tbd_pages *pages, const struct tbd_stretch *stretches,
                           size_t count);
/* The first page in [start, end) that has marks; `end` if there is none. */
uint64_t tbd_pages_next_marked(const struct tbd_pages *pages, uint64_t start, uint64_t end);
/* Clears all marks of a stretch, after every stretch's pages were sent. */
void tbd_window_clear_marks(struct tbd_pages *pages, const struct tbd_stretch *stretch);
/* Sends the touched pages whose contents the trace does not know; marks stay.  Called where the
 * trace may end (execve). */
void tbd_window_send_unknown(struct tbd_ring *ring, struct tbd_thread *thread,
                             struct tbd_pages *pages, const struct tbd_stretch *stretches,
                             size_t count);
/* Pages are read from the snapshot until this is called with NULL: they are gone from memory. */
struct tbd_snapshot;
void tbd_window_read_from(const struct tbd_snapshot *snapshot);
/* Is the page among those that tbd_pages_set_known() was told of? */
bool tbd_pages_is_known(const struct tbd_pages *pages, uint64_t address);
/* Sends a page as it is now; false if it cannot be read. */
bool tbd_window_send_page(struct tbd_ring *ring, struct tbd_thread *thread, uint64_t address,
                          uint64_t flags);
/* Sends a page, unless the trace knows its contents; marks stay.  False if it cannot be read. */
bool tbd_window_send_first(struct tbd_ring *ring, struct tbd_thread *thread,
                           struct tbd_pages *pages, uint64_t address);
/* Called after the registers were sent (instructions/registers.h).  Sends WINDOW_END, hands over
 * the chunk, and opens the next window's first chunk, with `due` as its boundary. */
void tbd_window_send_end(struct tbd_ring *ring, struct tbd_thread *thread, struct tbd_pages *pages,
                         uint64_t due);

/* Was the page used in this window, or does the trace know its contents? */
bool tbd_pages_is_used(const struct tbd_pages *pages, uint64_t address);
/* Was the page written in this window? */
bool tbd_pages_is_written(const struct tbd_pages *pages, uint64_t address);
/* Was the page written in this window by stores that are not recorded?  Then what it held before is not to be found in it. */
bool tbd_pages_is_changed(const struct tbd_pages *pages, uint64_t address);
void tbd_pages_mark_written(struct tbd_pages *pages, uint64_t start, uint64_t end);
/* Clears these marks. */
void tbd_pages_forget(struct tbd_pages *pages, uint64_t start, uint64_t end);
void tbd_pages_mark_read(struct tbd_pages *pages, uint64_t start, uint64_t end);
void tbd_pages_set_known(struct tbd_pages *pages, uint64_t start, uint64_t end, bool known);

#endif
