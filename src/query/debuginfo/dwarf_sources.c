// SPDX-License-Identifier: MIT
/* dwarf_sources.c - see dwarf_sources.h */
#include "query/debuginfo/dwarf_sources.h"

#include "query/debuginfo/dwarf_private.h"

#include <string.h>

void tbd_dwarf_sources(struct tbd_dwarf *dwarf, bool (*each)(void *context, const char *path),
                       void *context)
{
    Dwarf_Files *files;
    Dwarf_Die unit;
    size_t count;

    for (size_t i = 0; i < tbd_dwarf_unit_count(dwarf); i++) {
        if (!tbd_dwarf_unit(dwarf, i, &unit) || tbd_dwarf_is_shared_unit(&unit) ||
            dwarf_getsrcfiles(&unit, &files, &count) != 0)
            continue;
        for (size_t k = 0; k < count; k++) {
            const char *path = dwarf_filesrc(files, k, NULL, NULL);

            /* Lists begin with an entry that means no file. */
            if (path != NULL && strcmp(path, "???") != 0 &&
                !each(context, tbd_dwarf_whole_path(dwarf, &unit, path)))
                return;
        }
    }
}
