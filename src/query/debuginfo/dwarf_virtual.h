// SPDX-License-Identifier: MIT
/* dwarf_virtual.h - what overrides a virtual function that has no code of its own */
#ifndef TBD_QUERY_DWARF_VIRTUAL_H
#define TBD_QUERY_DWARF_VIRTUAL_H

#include "query/debuginfo/dwarf_file.h"

/* The class and the function may have namespaces, as the user wrote them: "Shape::area".  True: a class declares such a virtual function.  Then
 * `each` is called with the name of every function of a class derived from it, with the same parameters, that overrides it; perhaps with
 * one name several times. */
bool tbd_dwarf_overriders(struct tbd_dwarf *dwarf, const char *name,
                          void (*each)(void *context, const char *name), void *context);

#endif
