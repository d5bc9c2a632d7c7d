// SPDX-License-Identifier: MIT
/* modules.h - copies of the files a program has mapped, shared by the traces of one root
 *
 * ROOT/.modules holds one copy of each version of a file; a trace's modules/NAME is another name
 * (hard link) of it, so that traces stay complete by themselves and a hundred of them hold libc
 * once. */
#ifndef TBD_FORMAT_MODULES_H
#define TBD_FORMAT_MODULES_H

#include "format/files/disk.h"

#include <stdbool.h>

/* Deletes copies that no trace has any more.  `root` is a descriptor of the trace root. */
void tbd_modules_clean(int root);

/* Makes modules/NAME in the trace directory `trace` from the file at `path`, if that still has
 * disk->inode; fills in size, time and digest.  False: no copy could be made, and the trace goes on without
 * it. */
bool tbd_modules_keep(int root, int trace, const char *path, const char *name,
                      struct tbd_disk_module *disk);

/* Is this the file that was kept?  By its size, and a digest of pieces all over it: enough to tell
 * another version or another file, in bounded time, not to find each damaged byte. */
bool tbd_module_is(int fd, const struct tbd_disk_module *disk);

#endif
