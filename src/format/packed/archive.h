// SPDX-License-Identifier: MIT
/* archive.h - one file that holds many: POSIX ustar in a zstd frame, as `tar --zstd` reads and writes it
 *
 * Names are relative, of up to 255 bytes, without "." and ".." in them; only regular files and folders occur.  What is
 * read is hostile: names, sizes and the amount that comes out are checked before anything is written. */
#ifndef TBD_FORMAT_ARCHIVE_H
#define TBD_FORMAT_ARCHIVE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct tbd_archive; /* being written */

/* Writes to `fd`, which stays the caller's. */
TBD_MUST_CHECK enum tbd_status tbd_archive_new(int fd, struct tbd_archive **out);
/* Adds a file with the content of `from`, from its start.  TBD_USAGE: its name cannot be in an archive. */
TBD_MUST_CHECK enum tbd_status tbd_archive_add(struct tbd_archive *archive, const char *name,
                                               int from);
/* Writes what is left. */
TBD_MUST_CHECK enum tbd_status tbd_archive_finish(struct tbd_archive *archive);
void tbd_archive_free(struct tbd_archive *archive); /* NULL is fine */

/* Does the file begin like one? */
bool tbd_archive_is(int fd);
/* Makes the files of the archive at `fd` below the empty folder `dir`, without the folder that is first in all
 * their names.  `most`: bytes that may come out.  On failure *why says what is wrong; what was made stays. */
TBD_MUST_CHECK enum tbd_status tbd_archive_unpack(int fd, int dir, uint64_t most, const char **why);

#endif
