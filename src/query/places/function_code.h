// SPDX-License-Identifier: MIT
/* function_code.h - the instructions of a function, as a disassembler finds them from its start
 *
 * One thread. */
#ifndef TBD_QUERY_FUNCTION_CODE_H
#define TBD_QUERY_FUNCTION_CODE_H

#include "query/places/running_process.h"

/* Adds those that are wanted: at an offset (ENTRY), the returns, or all but those that raise a signal; none where data lies in
 * the code.  False: no memory. */
bool tbd_function_places(struct tbd_elf_file *file, uint64_t bias,
                         const struct tbd_elf_symbol *symbol, const struct tbd_where *where,
                         struct tbd_probe_places *out);

/* Is the address in the middle of an instruction of a function around it?  A trap there would change it. */
bool tbd_function_splits(struct tbd_elf_file *file, uint64_t address);

#endif
