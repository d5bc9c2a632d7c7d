// SPDX-License-Identifier: MIT
/* unlinked_files.h - private mappings of files that nobody will find again
 *
 * What a page of a mapped file holds is sent at the end of the window that touched it; for a
 * program that is killed before, the organizer copies the file instead (organizer/mapped_files.h).
 * It can not when the file has been deleted, or written since the trace began: what such a file
 * holds is sent when it is mapped. */
#ifndef TBD_HOOKS_UNLINKED_FILES_H
#define TBD_HOOKS_UNLINKED_FILES_H

#include "format/stream/stream.h"
#include "patcher/thread.h"

/* `map` was just made, of the file `fd`, and the trace knows it.  Context: APP. */
void tbd_unlinked_files_send(struct tbd_thread *thread, const struct tbd_msg_region *map, int fd);
/* The range was emptied (madvise): private mappings in it, of whatever files, hold
 * what the files do. */
void tbd_unlinked_files_send_again(struct tbd_thread *thread, uint64_t start, uint64_t end);

#endif
