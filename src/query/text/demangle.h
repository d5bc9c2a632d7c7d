// SPDX-License-Identifier: MIT
/* demangle.h - names of functions and variables in C++ and Rust as people write them */
#ifndef TBD_QUERY_DEMANGLE_H
#define TBD_QUERY_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

static inline bool tbd_is_mangled(const char *name)
{
    return name[0] == '_' && name[1] == 'Z';
}

/* "_ZN4shop4Item4costEi" -> "shop::Item::cost": with namespaces and template arguments, without
 * parameters and result type; the caller frees it. NULL if it is no such name. Rust's have no hash. */
char *tbd_demangle(const char *name);
/* "non-virtual thunk to Circle::area": no function of the source, it goes on to that one with another `this`. */
bool tbd_is_thunk(const char *readable);
/* With parameters: "shop::Item::cost(int) const"; for telling overloads apart. */
char *tbd_demangle_whole(const char *name);
/* Does `name` have parameters, and does it agree with `whole` up to their end? Blanks do not count,
 * nor does a `const` after them. */
bool tbd_is_overload(const char *whole, const char *name);
/* Could `mangled` be "shop::Item::cost", "Item::cost" or "cost"?  A quick test: "no" is always
 * right, "yes" may be wrong. */
bool tbd_may_be_called(const char *mangled, const char *name);
/* Is `readable` called `name`: the whole name, or the part after some "::"? If `name` has no
 * template arguments, any arguments match. */
bool tbd_is_name_for(const char *readable, const char *name);

#endif
