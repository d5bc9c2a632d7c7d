// SPDX-License-Identifier: MIT
/* page_packer.h - pages that native play has written, packed as they come
 *
 * They are most of what comes, and nobody reads them before they go into a file.  Packed at once, from the
 * stream's own memory, they take no other before: what waits are packed bytes.
 *
 * A page at a window's end is packed as a difference where less of it changes than it has: to its contents at the end of the
 * last window that has it (format/pages/page_base.c).  TBD_PAGE_PACKER_GROUP windows are a group: a page's first contents in
 * a group are packed whole, so a reader needs at most this many files for a page.  Context: ORG, one thread. */
#ifndef TBD_ORGANIZER_PAGE_PACKER_H
#define TBD_ORGANIZER_PAGE_PACKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_PAGE_PACKER_GROUP 8u

/* 16 bytes. */
struct tbd_packed_page {
    uint64_t address; /* with TBD_PACKED_DIFFERENCE */
    uint32_t offset;  /* in `bytes` */
    uint32_t length;  /* 0: a page of zeros */
};
#define TBD_PACKED_DIFFERENCE 1u /* in an address */

/* A window's pages, in the order in which they came. */
struct tbd_packed_pages {
    struct tbd_packed_page *list; /* owned, of format/files/large_buffers.h */
    size_t count, capacity;
    uint8_t *bytes; /* owned, too */
    size_t used, byte_capacity;
};
void tbd_packed_pages_free(struct tbd_packed_pages *pages);

struct tbd_page_packer;
/* Keeps the contents of at most `pages` pages: others are never differences.  NULL without memory. */
struct tbd_page_packer *tbd_page_packer_new(uint32_t pages);
void tbd_page_packer_free(struct tbd_page_packer *packer); /* NULL is fine */
/* Adds a page to `out`; `is_last`: as it is at the window's end.  False without memory. */
bool tbd_page_packer_add(struct tbd_page_packer *packer, struct tbd_packed_pages *out,
                         uint64_t address, const uint8_t *bytes, bool is_last);
/* The pages of [start, end) were unmapped, or the window has other contents of them. */
void tbd_page_packer_forget(struct tbd_page_packer *packer, uint64_t start, uint64_t end);
/* The window is over. */
void tbd_page_packer_next(struct tbd_page_packer *packer);
/* The contents of a page of the window that was packed last.  False: they are not known any more. */
bool tbd_page_packer_unpack(const struct tbd_page_packer *packer,
                            const struct tbd_packed_pages *pages, size_t index, uint8_t *out);

#endif
