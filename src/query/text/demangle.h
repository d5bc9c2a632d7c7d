// SPDX-License-Identifier: MIT
/* demangle.h - C++ names of functions and variables as people write them */
#ifndef TBD_QUERY_DEMANGLE_H
#define TBD_QUERY_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

static inline bool tbd_is_mangled(const char *name)
{
    return name[0] == '_' && name[1] == 'Z';
}

/* "_ZN4shop4Item4costEi" -> "shop::Item::cost": with namespaces and template arguments, without
 * parameters and result; the caller's to free, NULL if it is no such name. */
char *tbd_demangle(const char *name);
/* With parameters: "shop::Item::cost(int) const"; for telling overloads apart. */
char *tbd_demangle_whole(const char *name);
/* Does `name` have parameters, and are they and all before those of `whole`?  Blanks do not count,
 * nor a `const` behind. */
bool tbd_is_overload(const char *whole, const char *name);
/* Could `mangled` be "shop::Item::cost", "Item::cost" or "cost"?  A quick test that is never wrong
 * when it says no. */
bool tbd_may_be_called(const char *mangled, const char *name);
/* Is `readable` called `name`: all of it, or all behind some "::"?  With template arguments left
 * out of `name`, any match. */
bool tbd_is_name_for(const char *readable, const char *name);

#endif
