// SPDX-License-Identifier: MIT
/* dwarf_alt.h - the file that several debug files share (dwz -m)
 *
 * It holds entries and strings that several of them use; .gnu_debugaltlink gives its name and build
 * id. */
#ifndef TBD_QUERY_DWARF_ALT_H
#define TBD_QUERY_DWARF_ALT_H

#include "query/debuginfo/elf_file.h"

struct tbd_dwarf_alt {
    struct tbd_elf_one one; /* fd -1: none */
    Dwarf *dwarf;           /* owned; NULL: none */
};

/* Finds and opens it for `dwarf`, which belongs to `file`, and tells libdw.  Close it
 * after `dwarf`. */
void tbd_dwarf_alt_open(const struct tbd_elf_file *file, Dwarf *dwarf, struct tbd_dwarf_alt *out);
void tbd_dwarf_alt_close(struct tbd_dwarf_alt *alt);

#endif
