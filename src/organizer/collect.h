// SPDX-License-Identifier: MIT
/* collect.h - waits for the end of a program whose threads keep rings (mode=crash), and writes a dump if it died
 *
 * Ordinary process. */
#ifndef TBD_ORGANIZER_COLLECT_H
#define TBD_ORGANIZER_COLLECT_H

#include "organizer/organize.h"

/* Returns when the program has ended and the dump is written, or when there is nothing to write: it has ended
 * by itself, or has become another program. */
TBD_MUST_CHECK enum tbd_status tbd_collect(const struct tbd_organize_options *options,
                                           struct tbd_error *why);

#endif
