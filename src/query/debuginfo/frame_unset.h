// SPDX-License-Identifier: MIT
/* frame_unset.h - variables that have no value yet
 *
 * The debug information of unoptimized code says that a variable is in the frame throughout its
 * function. From the function's entry until the first store there, the frame holds bytes left over
 * from earlier calls. Parameters are in registers meanwhile (dwarf_parameter.h).  A struct or array
 * counts as a whole: it is set with its first part.  One file from one thread. */
#ifndef TBD_QUERY_FRAME_UNSET_H
#define TBD_QUERY_FRAME_UNSET_H

#include "query/debuginfo/dwarf_location.h"

enum tbd_unset {
    TBD_UNSET_NO = 0, /* it may be set, or this is unknown */
    TBD_UNSET_VALUE,  /* no path from the function's entry to the place stores to it */
    TBD_UNSET_PLACE,  /* same, and its place is unknown: the frame pointer is still the caller's */
};

/* *out_written, unless it is TBD_UNSET_NO: registers written on the paths, one bit each: 1 <<
 * TBD_RAX and so on, TBD_UNSET_XMM0 and so on. */
#define TBD_UNSET_XMM0 (1u << 16)
enum tbd_unset tbd_frame_unset(const struct tbd_place_of *place, const Dwarf_Die *function,
                               const Dwarf_Die *variable, uint32_t *out_written);

#endif
