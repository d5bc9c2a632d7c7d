// SPDX-License-Identifier: MIT
/* frame_unset.h - variables that have no value yet
 *
 * Unoptimized code says of a variable that it is in the frame, for all of its function.  From the
 * function's entry until the first store there, what lies there is left over from calls before.
 * Parameters are in registers meanwhile (dwarf_parameter.h).  A struct or array counts as a whole:
 * it is set with its first part.  One file from one thread. */
#ifndef TBD_QUERY_FRAME_UNSET_H
#define TBD_QUERY_FRAME_UNSET_H

#include "query/debuginfo/dwarf_location.h"

enum tbd_unset {
    TBD_UNSET_NO = 0, /* it may be set, or nobody can say */
    TBD_UNSET_VALUE, /* nothing is stored to it on any way from the function's entry to the place */
    TBD_UNSET_PLACE, /* nor is known where it will be: the frame pointer is still the caller's */
};

/* *out_written, unless it is TBD_UNSET_NO: registers written on the ways, a bit each: 1 << TBD_RAX
 * and so on, TBD_UNSET_XMM0 and so on. */
#define TBD_UNSET_XMM0 (1u << 16)
enum tbd_unset tbd_frame_unset(const struct tbd_place_of *place, const Dwarf_Die *function,
                               const Dwarf_Die *variable, uint32_t *out_written);

#endif
