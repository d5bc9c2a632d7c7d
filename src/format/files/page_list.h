// SPDX-License-Identifier: MIT
/* page_list.h - the index's PAGES record: which pages a window has contents of, and of which
 * kinds */
#ifndef TBD_FORMAT_PAGE_LIST_H
#define TBD_FORMAT_PAGE_LIST_H

#include "base/layout.h"
#include "format/files/codec.h"
#include "format/files/disk_window.h"

/* Appends the PAGES payload for these pages of a TOC. */
void tbd_page_list_put(const struct tbd_disk_page *pages, size_t count, struct tbd_buffer *out);

struct tbd_page_walk {
    struct tbd_reader in; /* failed: the rest is impossible */
    uint64_t page;        /* number */
    uint32_t kinds;       /* TBD_PAGES_* */
};
static inline struct tbd_page_walk tbd_page_list_walk(const uint8_t *list, size_t bytes)
{
    return (struct tbd_page_walk){ { list, list + bytes, false }, 0, 0 };
}
/* The next page; false: there are no more, or it failed. */
static inline bool tbd_page_walk_next(struct tbd_page_walk *walk)
{
    uint64_t value;

    if (walk->in.at >= walk->in.end)
        return false;
    value = tbd_reader_varint(&walk->in);
    walk->page += value >> 2;
    walk->kinds = value & 3;
    walk->in.failed |= walk->page >= TBD_USER_END / 4096;
    return !walk->in.failed;
}

#endif
