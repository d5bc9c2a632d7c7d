// SPDX-License-Identifier: MIT
/* probe_show.h - what probes have found, as text or JSON Lines
 *
 * Shared memory is written by the program while it is read: every number from it is checked, and every text
 * escaped.  One thread. */
#ifndef TBD_QUERY_PROBE_SHOW_H
#define TBD_QUERY_PROBE_SHOW_H

#include "query/places/running_process.h"
#include "query/probe/probe_script.h"

#include <stdio.h>

struct tbd_probe_output {
    FILE *out;
    bool json;
    const struct tbd_probe_script *script;
    struct tbd_probe_process *process;
    struct tbd_probe_shared *shared;
    uint64_t shared_bytes;
    const struct tbd_script_print
        *trigger;   /* the first RECORD or DUMP that was met; NULL: none yet */
    uint64_t stops; /* triggers of the other kind */
};

/* A record, complete, at `record`; `bytes` follow its head. */
void tbd_show_record(struct tbd_probe_output *output, const struct tbd_probe_record *record,
                     const uint8_t *fields, uint32_t bytes);
/* A printf without values. */
void tbd_show_text(struct tbd_probe_output *output, const struct tbd_script_print *print);
void tbd_show_map(struct tbd_probe_output *output, uint32_t map);
void tbd_clear_map(struct tbd_probe_output *output, uint32_t map);

#endif
