// SPDX-License-Identifier: MIT
/* page_base.h - a page's latest contents from before a window: what differences are made to
 *
 * Who makes differences, or an image, asks about few pages of a long trace, one window after the other:
 * tbd_page_history_begin() says which. */
#ifndef TBD_FORMAT_PAGE_BASE_H
#define TBD_FORMAT_PAGE_BASE_H

#include "format/trace/toc.h"

/* Until the end, only pages that these windows have contents of will be asked for, and only what
 * these and earlier windows have of them. */
TBD_MUST_CHECK enum tbd_status tbd_page_history_begin(struct tbd_trace *trace, uint32_t first,
                                                      uint32_t count);
void tbd_page_history_end(struct tbd_trace *trace);

/* Contents of `page`, an END entry in the window's table: `bytes` are what is stored of it. */
TBD_MUST_CHECK enum tbd_status tbd_trace_page_at_end(struct tbd_trace *trace,
                                                     const struct tbd_toc *toc,
                                                     const struct tbd_disk_page *page,
                                                     uint8_t *bytes);

/* The latest contents of the page from before window `first`, if it may serve for a difference that is
 * stored for the windows from `first` to `last` as one: it is of the mapping that is there at their end,
 * and no more than `depth` differences were put together for it. */
bool tbd_trace_delta_base(struct tbd_trace *trace, uint32_t first, uint32_t last, uint64_t address,
                          uint32_t depth, uint8_t *out);

/* The latest contents from before window `first`, if the page's mapping is there when it begins and
 * the window does not have them itself.  TBD_NOTFOUND. */
TBD_MUST_CHECK enum tbd_status tbd_trace_page_for_image(struct tbd_trace *trace, uint32_t first,
                                                        uint64_t address, uint8_t *out);
/* Pages that the image and the windows before `first` have contents of, in any order, perhaps more
 * than once; owned by the caller. */
TBD_MUST_CHECK enum tbd_status tbd_trace_known_pages(struct tbd_trace *trace, uint32_t first,
                                                     uint64_t **out, size_t *out_count);

#endif
