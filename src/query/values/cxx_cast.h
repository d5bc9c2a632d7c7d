// SPDX-License-Identifier: MIT
/* cxx_cast.h - casts between pointers to classes that derive from each other
 *
 * In C++ such a cast changes the pointer: to where the base class lies in the object, or back. */
#ifndef TBD_QUERY_CXX_CAST_H
#define TBD_QUERY_CXX_CAST_H

#include "query/values/cxx_object.h"

enum tbd_cast_kind {
    TBD_CAST_C = 0,       /* (T *)p, static_cast: as it is, if the classes have nothing in common */
    TBD_CAST_REINTERPRET, /* never changed */
    TBD_CAST_DYNAMIC,     /* 0 if the object is no T */
};

/* A pointer to an object of the class `from`, cast to one of the class `to`; false: it depends on
 * memory that is not known. 0 stays 0. */
bool tbd_object_cast(const struct tbd_place_of *place, const struct tbd_class_finder *finder,
                     enum tbd_cast_kind kind, uint64_t pointer, const struct tbd_type *from,
                     const struct tbd_type *to, uint64_t *out);
/* The same where memory is not known yet: what is added to the pointer. False: the object would have
 * to be asked, because a base class is virtual. */
bool tbd_object_cast_step(const struct tbd_place_of *place, const struct tbd_type *from,
                          const struct tbd_type *to, uint64_t *out);

#endif
