// SPDX-License-Identifier: MIT
/* dwarf_sources.h - the source files that an ELF file's debug information names */
#ifndef TBD_QUERY_DWARF_SOURCES_H
#define TBD_QUERY_DWARF_SOURCES_H

#include "query/debuginfo/dwarf_file.h"

/* Calls `each` until it returns false; a file of several units comes several times.  The path is borrowed from
 * the debug information. */
void tbd_dwarf_sources(struct tbd_dwarf *dwarf, bool (*each)(void *context, const char *path),
                       void *context);

#endif
