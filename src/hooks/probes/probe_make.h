// SPDX-License-Identifier: MIT
/* probe_make.h - makes probes: the instruction at a place, and what carries it out elsewhere
 *
 * Context: keeper. */
#ifndef TBD_HOOKS_PROBES_PROBE_MAKE_H
#define TBD_HOOKS_PROBES_PROBE_MAKE_H

#include "format/probe/probe.h"
#include "hooks/probes/probe_table.h"

#include <stddef.h>

/* Once.  False: no memory. */
bool tbd_probe_make_begin(void);

/* Memory for ever, or NULL. */
void *tbd_probe_memory(size_t bytes);
/* The last one is not needed after all. */
void tbd_probe_memory_back(void *last);

/* The program's code as it is without probes; how many bytes could be read, 64 at most. */
size_t tbd_probe_read_code(int memory, uint64_t address, uint8_t *out, size_t bytes);

/* The probe of the address, without a use or a trap.  One of an earlier session serves again if the code is the same. */
enum tbd_probe_refusal tbd_probe_make(int memory, uint64_t address, struct tbd_probe **out);

#endif
