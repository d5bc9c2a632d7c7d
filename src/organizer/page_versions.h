// SPDX-License-Identifier: MIT
/* page_versions.h - what pages held at the end of the last windows: lean windows' pages are stored as differences to it
 *
 * A window's pages are taken in three steps: copied (by any worker), joined in order of windows, and
 * asked for while its file is written (by any worker again).  Only joining is serialized, and no page is
 * touched in it.
 *
 * Windows go in groups of TBD_PAGE_VERSIONS_GROUP: a page's first version in a group is whole.  So a reader puts
 * a page together from at most so many files, and damage to one costs no window outside of its group. */
#ifndef TBD_ORGANIZER_PAGE_VERSIONS_H
#define TBD_ORGANIZER_PAGE_VERSIONS_H

#include "organizer/build.h"

#define TBD_PAGE_VERSIONS_GROUP 8u

struct tbd_page_versions;
/* At most `pages` pages are held; what does not fit is stored whole.  NULL without memory. */
struct tbd_page_versions *tbd_page_versions_new(uint32_t pages);
void tbd_page_versions_free(struct tbd_page_versions *versions);

/* What one window's pages are differences to. */
struct tbd_page_bases {
    struct tbd_page_versions *versions; /* borrowed; NULL: there are none */
    const struct tbd_window *window;    /* borrowed */
    /* owned; for each of window->dirty its copy, from joining on what it was before; 0: none */
    uint32_t *numbers;
};

/* Copies the window's pages, to be differences' bases themselves.  Without memory they are stored whole. */
void tbd_page_bases_copy(struct tbd_page_bases *bases, struct tbd_page_versions *versions,
                         const struct tbd_window *window);
/* In order of windows, each one that goes into the trace and has its number; `bases` without copies if its pages are to
 * stay whole. */
void tbd_page_bases_join(struct tbd_page_bases *bases, struct tbd_page_versions *versions,
                         const struct tbd_product *product);
/* The same for one that does not go into the trace: its messages may say what was unmapped. */
void tbd_page_versions_unmap(struct tbd_page_versions *versions, const struct tbd_product *product);
/* For struct tbd_toc_content: `bases` of a window that was joined. */
const uint8_t *tbd_page_bases_find(void *bases, uint64_t address);
void tbd_page_bases_free(struct tbd_page_bases *bases);

#endif
