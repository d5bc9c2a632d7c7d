// SPDX-License-Identifier: MIT
/* unlinked_files.h - private mappings of files that nobody will find again
 *
 * The contents of a mapped file's page are sent at the end of the window that touched it.  If the
 * program is killed before, the organizer copies the file instead (organizer/mapped_files.h).  It
 * cannot do so when the file has been deleted, or written since the trace began: the contents of
 * such a file are sent when it is mapped. */
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
