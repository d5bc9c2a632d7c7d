// SPDX-License-Identifier: MIT
/* page_wait.h - waiting without the turn lock for pages that somebody else fills
 * (hooks/memory/userfault.h)
 *
 * Context: APP. */
#ifndef TBD_HOOKS_PAGE_WAIT_H
#define TBD_HOOKS_PAGE_WAIT_H

#include "hooks/memory/userfault.h"
#include "hooks/threads/threads.h"

/* At a block boundary: waits until the page is there, or a signal comes.  Does not return if the
 * program is let go. */
void tbd_page_wait(struct tbd_thread *thread, const struct tbd_page_wait *wait);
/* Waits until the range can be written.  The caller has given the turn lock away. */
void tbd_page_fill(const struct tbd_saved_context *saved, uint64_t address, uint64_t bytes);

#endif
