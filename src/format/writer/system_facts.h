// SPDX-License-Identifier: MIT
/* system_facts.h - the file `facts` of a crash dump: what the system says about a process that is about to end
 *
 * Text (docs/FORMAT.md).  Ordinary process, of the same user as the other. */
#ifndef TBD_FORMAT_SYSTEM_FACTS_H
#define TBD_FORMAT_SYSTEM_FACTS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define TBD_FACTS_FILE     "facts"
#define TBD_FACT_MAX_BYTES 65536u /* of one; more is cut */

/* `wanted`: "all", "none", or names joined by '+'; NULL: all.  What cannot be read is left out. */
TBD_MUST_CHECK enum tbd_status tbd_facts_write(int dir, uint32_t pid, const char *wanted);

/* The first name in `wanted` that no fact has; NULL: there is none. */
const char *tbd_facts_unknown(const char *wanted, size_t *out_length);

#endif
