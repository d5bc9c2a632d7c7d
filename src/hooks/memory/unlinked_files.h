// SPDX-License-Identifier: MIT
/* unlinked_files.h - private mappings of files that may not be found later
 *
 * The contents of a mapped file's page are sent at the end of the window that touched it.  If the
 * program is killed before, the organizer copies the file instead (organizer/mapped_files.h).  It
 * cannot do so when the file has been deleted, or written since the trace began: the contents of
 * such a file are sent when it is mapped, or when the trace begins.
 *
 * Without a record of stores (count=later) nobody finds out what a page held that was written before it was read, so
 * writable mappings are sent as well, unless the trace has a copy of the file because its code is mapped. */
#ifndef TBD_HOOKS_UNLINKED_FILES_H
#define TBD_HOOKS_UNLINKED_FILES_H

#include "format/stream/stream.h"
#include "patcher/thread.h"

/* Called after `map`, a mapping of the file `fd`, was made and sent.  Context: APP. */
void tbd_unlinked_files_send(struct tbd_thread *thread, const struct tbd_msg_region *map, int fd);
/* The same for all that is mapped when the trace begins: the program itself may be such a file (fexecve of a memfd).
 * Context: BOOT, FORK_CHILD. */
void tbd_unlinked_files_send_mapped(struct tbd_thread *thread);
/* Mappings of files in the range may be written from here on.  Context: APP, BOOT, FORK_CHILD. */
void tbd_written_files_send(struct tbd_thread *thread, uint64_t start, uint64_t end);
/* Called after madvise has emptied the range: private mappings in it have their files' contents
 * again. */
void tbd_unlinked_files_send_again(struct tbd_thread *thread, uint64_t start, uint64_t end);

#endif
