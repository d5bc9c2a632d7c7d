// SPDX-License-Identifier: MIT
/* open_tocs.h - TOCs that stay open for a while, and the image */
#ifndef TBD_FORMAT_OPEN_TOCS_H
#define TBD_FORMAT_OPEN_TOCS_H

#include "format/trace/toc.h"

/* Borrowed until the lock is released, or others are opened. */
TBD_MUST_CHECK enum tbd_status tbd_open_toc_locked(struct tbd_trace *trace, uint32_t window,
                                                   struct tbd_toc **out);
/* An unreadable image is an error: it must not look like one that lacks a page. */
TBD_MUST_CHECK enum tbd_status tbd_open_image_locked(struct tbd_trace *trace, struct tbd_toc **out);

/* Why the contents of a page could not be read last. */
struct tbd_error *tbd_page_why_locked(struct tbd_trace *trace);

/* The window has a new TOC: closes the old one, and drops what other folders keep of it. */
void tbd_trace_forget_toc(struct tbd_trace *trace, uint32_t window);

#endif
