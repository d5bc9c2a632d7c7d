// SPDX-License-Identifier: MIT
/* toc_write.h - the contents of a window's TOC file, and of an image, as bytes */
#ifndef TBD_FORMAT_TOC_WRITE_H
#define TBD_FORMAT_TOC_WRITE_H

#include "format/files/codec.h"
#include "format/files/disk_window.h"
#include "format/files/file.h"
#include "format/window/window.h"

struct tbd_toc_content {
    const struct tbd_window *window;
    struct tbd_disk_window *disk; /* its counts of pages, words, blocks are filled in */
    uint64_t trace_id;
    enum tbd_level level; /* BITS, or more */
    bool is_old;          /* smaller, at the cost of time: for merged windows */
    /* packed quickly: it will soon be packed again, or the program waits for it */
    bool is_brief;
    /* Returns 4096 bytes as the base of a difference, or NULL.  If `base` itself is NULL, all pages
     * are stored whole. */
    const uint8_t *(*base)(void *context, uint64_t address);
    void *context;
};

/* Appends the file to `out`, and the index's PAGES payload to `for_index`. */
TBD_MUST_CHECK enum tbd_status tbd_toc_put(const struct tbd_toc_content *content,
                                           struct tbd_buffer *out, struct tbd_buffer *for_index);
/* The same for a window that was uncounted in `old`, its TOC: everything that play knew stays, byte for byte. */
TBD_MUST_CHECK enum tbd_status tbd_toc_put_counts(const struct tbd_toc_content *content,
                                                  struct tbd_file *old, struct tbd_buffer *out,
                                                  struct tbd_error *why);
TBD_MUST_CHECK enum tbd_status tbd_image_put(const struct tbd_page_contents *pages, size_t count,
                                             uint64_t trace_id, struct tbd_buffer *out);

#endif
