// SPDX-License-Identifier: MIT
/* dwarf_words.h - is anything in the debug information called so?
 *
 * Looks for the bytes of the name in the sections that hold names, without reading entries: variables of
 * functions, members and enumerators are found, too, in a moment.  dwarf_index.h knows what is at the top of units. */
#ifndef TBD_QUERY_DWARF_WORDS_H
#define TBD_QUERY_DWARF_WORDS_H

#include "query/debuginfo/dwarf_file.h"

/* False: nothing is.  True: perhaps.  `name` is one name, with namespaces before it or without. */
bool tbd_dwarf_may_say(const struct tbd_dwarf *dwarf, const char *name);

#endif
