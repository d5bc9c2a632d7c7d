// SPDX-License-Identifier: MIT
/* user_values.h - values that a session keeps: $name, and those that were printed
 *
 * As in gdb: `set $x = EXPR`; $1, $2, ... are the values printed, $ the last, $$ the one before it, and
 * $$3 the third before the last.  A value is kept as it was: its bytes, wherever the session goes. */
#ifndef TBD_QUERY_USER_VALUES_H
#define TBD_QUERY_USER_VALUES_H

#include "query/debuginfo/dwarf_location.h"

#define TBD_USER_PRINTED_MAX 10000u

struct tbd_user_value {
    char *name; /* owned: "$x" */
    struct tbd_data data;
};

struct tbd_user_values {
    struct tbd_user_value *named; /* owned */
    size_t named_count;
    struct tbd_data **printed; /* owned, each too */
    size_t printed_count;
};

void tbd_user_values_free(struct tbd_user_values *values);
/* `name` begins with '$'. */
bool tbd_user_values_find(const struct tbd_user_values *values, const char *name,
                          struct tbd_data *out);
TBD_MUST_CHECK enum tbd_status tbd_user_values_set(struct tbd_user_values *values,
                                                   const struct tbd_place_of *place,
                                                   const char *name, const struct tbd_data *data);
/* The number of a value that is printed; 0 if it is not kept. */
size_t tbd_user_values_print(struct tbd_user_values *values, const struct tbd_place_of *place,
                             const struct tbd_data *data);

#endif
