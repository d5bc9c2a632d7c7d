// SPDX-License-Identifier: MIT
/* remote_libraries.h - the shared libraries at a position, as the dynamic linker lists them in memory */
#ifndef TBD_QUERY_REMOTE_LIBRARIES_H
#define TBD_QUERY_REMOTE_LIBRARIES_H

#include "query/remote/remote_motion.h"

#include <stdio.h>

/* As the object libraries-svr4; without libraries where the program has not made its list yet. */
void tbd_remote_print_libraries(struct tbd_remote_motion *motion, FILE *out);

#endif
