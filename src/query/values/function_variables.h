// SPDX-License-Identifier: MIT
/* function_variables.h - the parameters and variables of a function that are visible at a place
 *
 * Of the place's function alone, innermost block first, also those that the compiler has removed from this copy of it.  Any thread. */
#ifndef TBD_QUERY_FUNCTION_VARIABLES_H
#define TBD_QUERY_FUNCTION_VARIABLES_H

#include "query/debuginfo/dwarf_location.h"

enum tbd_function_variables {
    TBD_FUNCTION_PARAMETERS = 1,
    TBD_FUNCTION_LOCALS = 2, /* variables that are no parameters */
    TBD_FUNCTION_ALL = 3,
};

/* Calls `each` with the entry of each one, for tbd_location_value(), and its name; returns how many there are. */
size_t tbd_function_variables(const struct tbd_place_of *place, enum tbd_function_variables which,
                              void (*each)(void *context, const Dwarf_Die *variable,
                                           const char *name),
                              void *context);

#endif
