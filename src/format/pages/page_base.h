// SPDX-License-Identifier: MIT
/* page_base.h - a page's latest contents from before a window: the bases of differences
 *
 * Making differences, or an image, asks about few pages of a long trace, one window after another:
 * tbd_page_history_begin() says which. */
#ifndef TBD_FORMAT_PAGE_BASE_H
#define TBD_FORMAT_PAGE_BASE_H

#include "format/trace/mappings.h"
#include "format/trace/toc.h"

/* Until tbd_page_history_end(), only pages that these windows have contents of are asked for, and
 * only contents in these and earlier windows. */
TBD_MUST_CHECK enum tbd_status tbd_page_history_begin(struct tbd_trace *trace, uint32_t first,
                                                      uint32_t count);
void tbd_page_history_end(struct tbd_trace *trace);

/* Contents of `page`, an END entry in the window's table, from its stored `bytes`. */
TBD_MUST_CHECK enum tbd_status tbd_trace_page_at_end(struct tbd_trace *trace,
                                                     const struct tbd_toc *toc,
                                                     const struct tbd_disk_page *page,
                                                     uint8_t *bytes);

/* The latest contents of the page from before window `first`, if they may be the base of a
 * difference stored for windows `first` to `last` as one: they belong to the mapping that exists at
 * the end of `last`, and were made from at most `depth` differences. */
bool tbd_trace_delta_base(struct tbd_trace *trace, uint32_t first, uint32_t last, uint64_t address,
                          uint32_t depth, uint8_t *out);

/* The latest contents from before window `first`, if the page's mapping exists when it begins and
 * the window does not have them itself.  Else TBD_NOTFOUND. */
TBD_MUST_CHECK enum tbd_status tbd_trace_page_for_image(struct tbd_trace *trace, uint32_t first,
                                                        uint64_t address, uint8_t *out);
/* Pages that the image and the windows before `first` have contents of, in any order, perhaps more
 * than once; owned by the caller. */
/* A mapping that mremap has made of private anonymous memory: the part of it that was mapped before, elsewhere; the rest
 * was zeroes.  TBD_NOTFOUND: it is no such mapping.  With the trace's lock. */
TBD_MUST_CHECK enum tbd_status tbd_moved_range_locked(struct tbd_trace *trace,
                                                      const struct tbd_mapping_piece *piece,
                                                      struct tbd_range *out);
TBD_MUST_CHECK enum tbd_status tbd_trace_known_pages(struct tbd_trace *trace, uint32_t first,
                                                     uint64_t **out, size_t *out_count);

#endif
