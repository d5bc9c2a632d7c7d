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
 * disk->inode; fills in size, time and digest.  False: no copy could be made, errno says why (ENOENT: it is no longer that
 * file). */
bool tbd_modules_keep(int root, int trace, const char *path, const char *name,
                      struct tbd_disk_module *disk);

/* The copies that another trace has, which this one is made from; all borrowed. */
struct tbd_kept_modules {
    int trace; /* its directory */
    size_t count;
    const struct tbd_kept_module {
        struct tbd_disk_module disk;
        const char *path, *copy; /* of the file; modules/NAME */
    } * list;
    /* those of later; set while others read, as the other trace grows */
    const struct tbd_kept_modules *more;
};

/* As tbd_modules_keep(), but the copy is another name of one that was made when the program ran, whatever the file is now.
 * False: there is none. */
bool tbd_modules_take(const struct tbd_kept_modules *kept, int trace, const char *path,
                      const char *name, struct tbd_disk_module *disk);

/* Is this the file that was kept?  By its size, and a digest of pieces all over it: enough to tell
 * another version or another file, in bounded time, not to find each damaged byte. */
bool tbd_module_is(int fd, const struct tbd_disk_module *disk);

#endif
