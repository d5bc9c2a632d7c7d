// SPDX-License-Identifier: MIT
/* dwarf_sources.h - the source files that an ELF file's debug information names, and the lines that have code */
#ifndef TBD_QUERY_DWARF_SOURCES_H
#define TBD_QUERY_DWARF_SOURCES_H

#include "query/debuginfo/dwarf_file.h"

/* Calls `each` until it returns false; a file of several units comes several times.  The path is borrowed from
 * the debug information. */
void tbd_dwarf_sources(struct tbd_dwarf *dwarf, bool (*each)(void *context, const char *path),
                       void *context);
/* The same for the rows of its line tables at which a statement begins. */
struct tbd_dwarf_row {
    const char *path; /* borrowed */
    uint32_t line;
    uint64_t address; /* in the file */
};
void tbd_dwarf_rows(struct tbd_dwarf *dwarf,
                    bool (*each)(void *context, const struct tbd_dwarf_row *row), void *context);

#endif
