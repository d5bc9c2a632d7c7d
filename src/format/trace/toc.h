// SPDX-License-Identifier: MIT
/* toc.h - a window's TOC file, mapped (and the image, which has the same page table) */
#ifndef TBD_FORMAT_TOC_H
#define TBD_FORMAT_TOC_H

#include "format/files/disk_window.h"
#include "format/files/file.h"
#include "format/trace/trace.h"

struct tbd_unpacked_group;

struct tbd_toc {
    struct tbd_file file;
    uint32_t window;
    uint64_t used; /* for closing the least recently used */
    struct tbd_disk_meta meta;
    const struct tbd_disk_page *pages;
    size_t page_count;
    const uint8_t *page_data;
    size_t page_data_bytes;
    const uint32_t *checks; /* of the image's page entries */
    size_t check_count;
    bool is_damaged; /* page_data as a whole: `checks` tell which pages are good */
    struct tbd_record_view state, read_pages, log, words, block_summaries, threads, called;
    struct tbd_record_view word_bits, block_bits, called_bits, early_calls, stamps, opened;
    struct tbd_unpacked_group
        *group;                 /* owned; NULL, or the group of pages that was unpacked last */
    struct tbd_error *page_why; /* why a page cannot be unpacked; NULL: not wanted */
};

TBD_MUST_CHECK enum tbd_status tbd_toc_open(const struct tbd_trace *trace, uint32_t window,
                                            struct tbd_toc *out, struct tbd_error *why);
/* Opens a TOC without comparing it with the index; `number`, `span`: as in struct
 * tbd_window_summary. */
TBD_MUST_CHECK enum tbd_status tbd_toc_peek(const struct tbd_trace *trace, uint32_t number,
                                            uint32_t span, struct tbd_toc *out);
TBD_MUST_CHECK enum tbd_status tbd_image_open(const struct tbd_trace *trace, struct tbd_toc *out,
                                              struct tbd_error *why);
void tbd_toc_close(struct tbd_toc *toc);
/* The stored bytes of one entry of the page table: its contents, or with DELTA a difference.  `out`
 * has 4096 bytes. */
TBD_MUST_CHECK enum tbd_status tbd_toc_page(struct tbd_toc *toc, const struct tbd_disk_page *page,
                                            uint8_t *out);
/* First entry of the table with this address; `*out_count` of them. */
const struct tbd_disk_page *tbd_toc_find_page(const struct tbd_toc *toc, uint64_t address,
                                              size_t *out_count);

#endif
