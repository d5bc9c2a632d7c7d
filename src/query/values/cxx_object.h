// SPDX-License-Identifier: MIT
/* cxx_object.h - the class that an object really is of
 *
 * An object with virtual functions begins with a pointer to its class's table of them; before the
 * table stand the object's distance to the whole object, and the class's type_info with its name
 * (Itanium C++ ABI, 2.5.2). Memory may hold anything: an answer is given only if the class that is
 * named there has the known one as a base class at that distance. */
#ifndef TBD_QUERY_CXX_OBJECT_H
#define TBD_QUERY_CXX_OBJECT_H

#include "query/debuginfo/dwarf_location.h"

/* Finds types that the place's own module does not have; `type` may be NULL. */
struct tbd_class_finder {
    bool (*type)(void *context, const char *name, struct tbd_type *out);
    void *context;
};

/* The whole object of another class of which `part` is a part; false if there is none. */
bool tbd_object_whole(const struct tbd_place_of *place, const struct tbd_class_finder *finder,
                      const struct tbd_data *part, struct tbd_data *out);
bool tbd_is_same_class(const struct tbd_type *a, const struct tbd_type *b);
/* The type called `name`, which a demangler wrote. */
bool tbd_object_type(const struct tbd_place_of *place, const struct tbd_class_finder *finder,
                     const char *name, struct tbd_type *out);

#endif
