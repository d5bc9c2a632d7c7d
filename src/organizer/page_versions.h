// SPDX-License-Identifier: MIT
/* page_versions.h - contents of pages at the end of the last windows: lean windows store their
 * pages as differences to them
 *
 * A window's pages take three steps: they are copied (by any worker), joined in order of windows,
 * and asked for while its file is written (by any worker again).  Only joining is serialized, and
 * no page is touched in it.
 *
 * TBD_PAGE_VERSIONS_GROUP windows are a group: a page's first version in a group is whole.  So a
 * reader needs at most this many files for a page, and damage to one file affects only its
 * group. */
#ifndef TBD_ORGANIZER_PAGE_VERSIONS_H
#define TBD_ORGANIZER_PAGE_VERSIONS_H

#include "organizer/build.h"

#define TBD_PAGE_VERSIONS_GROUP 8u

struct tbd_page_versions;
/* Keeps at most `pages` pages; others are stored whole.  NULL without memory. */
struct tbd_page_versions *tbd_page_versions_new(uint32_t pages);
void tbd_page_versions_free(struct tbd_page_versions *versions);

/* The bases of one window's page differences. */
struct tbd_page_bases {
    struct tbd_page_versions *versions; /* borrowed; NULL: there are none */
    const struct tbd_window *window;    /* borrowed */
    /* owned; for each of window->dirty its copy, after joining the version before; 0: none */
    uint32_t *numbers;
};

/* Copies the window's pages: they are the bases of later windows.  Without memory they are stored
 * whole. */
void tbd_page_bases_copy(struct tbd_page_bases *bases, struct tbd_page_versions *versions,
                         const struct tbd_window *window);
/* For each window that goes into the trace, in order, once it has its number; `bases` without
 * copies if its pages stay whole. */
void tbd_page_bases_join(struct tbd_page_bases *bases, struct tbd_page_versions *versions,
                         const struct tbd_product *product);
/* For a window that does not go into the trace: takes out what its messages unmapped. */
void tbd_page_versions_unmap(struct tbd_page_versions *versions, const struct tbd_product *product);
/* For struct tbd_toc_content: `bases` of a window that was joined. */
const uint8_t *tbd_page_bases_find(void *bases, uint64_t address);
void tbd_page_bases_free(struct tbd_page_bases *bases);

#endif
