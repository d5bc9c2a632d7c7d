// SPDX-License-Identifier: MIT
/* path_end.h - what a crash dump's program died of, as its rings' file says */
#ifndef TBD_QUERY_COMMANDS_PATH_END_H
#define TBD_QUERY_COMMANDS_PATH_END_H

#include "query/rings/dump_rings.h"

#include <jansson.h>
#include <stdio.h>

/* {"type":"end", ...}; `with_regs`: also the registers that the thread had when the signal came. */
json_t *tbd_path_end_object(struct tbd_rings *ring, bool with_regs);
/* The same as lines. */
void tbd_path_end_print(const struct tbd_rings *ring, const json_t *object, bool with_regs,
                        FILE *out);

#endif
