// SPDX-License-Identifier: MIT
/* maps.h - reading /proc/self/maps without libc.  Contexts: BOOT, APP. */
#ifndef TBD_HOOKS_MAPS_H
#define TBD_HOOKS_MAPS_H

#include "format/stream/stream.h"

#include <stdbool.h>

/* Called for every mapping, in address order; `path` is borrowed.  False stops. */
typedef bool (*tbd_maps_visitor)(void *context, const struct tbd_msg_region *map, const char *path);

/* False when the file cannot be read. */
bool tbd_maps_read(tbd_maps_visitor visit, void *context);

#endif
