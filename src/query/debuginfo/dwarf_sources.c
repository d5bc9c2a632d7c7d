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

/* False: it is no row of a statement. */
static bool read_row(struct tbd_dwarf *dwarf, const Dwarf_Die *unit, Dwarf_Line *from,
                     struct tbd_dwarf_row *out)
{
    bool begins = false, ends = true;
    Dwarf_Addr address = 0;
    int line = 0;
    const char *path;

    if (from == NULL || dwarf_lineendsequence(from, &ends) != 0 || ends ||
        dwarf_linebeginstatement(from, &begins) != 0 || !begins || dwarf_lineno(from, &line) != 0 ||
        line <= 0 || dwarf_lineaddr(from, &address) != 0)
        return false;
    path = dwarf_linesrc(from, NULL, NULL);
    if (path == NULL)
        return false;
    *out = (struct tbd_dwarf_row){ .path = tbd_dwarf_whole_path(dwarf, unit, path),
                                   .line = (uint32_t)line,
                                   .address = address };
    return true;
}

void tbd_dwarf_rows(struct tbd_dwarf *dwarf,
                    bool (*each)(void *context, const struct tbd_dwarf_row *row), void *context)
{
    struct tbd_dwarf_row row;
    Dwarf_Lines *lines;
    Dwarf_Die unit;
    size_t count;

    for (size_t i = 0; i < tbd_dwarf_unit_count(dwarf); i++) {
        if (!tbd_dwarf_unit(dwarf, i, &unit) || tbd_dwarf_is_shared_unit(&unit) ||
            dwarf_getsrclines(&unit, &lines, &count) != 0)
            continue;
        for (size_t k = 0; k < count; k++) {
            if (read_row(dwarf, &unit, dwarf_onesrcline(lines, k), &row) && !each(context, &row))
                return;
        }
    }
}
