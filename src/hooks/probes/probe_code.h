// SPDX-License-Identifier: MIT
/* probe_code.h - carries out a probe's code at a hit
 *
 * Cannot fault, loop or wait, but for space in a ring: memory of the program is read by the kernel, code
 * goes forward only, and every number in it was checked.  Contexts: SIG; APP, by triggers. */
#ifndef TBD_HOOKS_PROBE_CODE_H
#define TBD_HOOKS_PROBE_CODE_H

#include "hooks/probes/probe_session.h"

struct tbd_probe_hit {
    const uint64_t *context; /* the program's registers, in the kernel's order */
    uint64_t pc;
    uint32_t shard;
    uint32_t pid; /* 0: not asked for yet */
    uint32_t tid;
    /* False: it cannot be read.  NULL: the kernel reads it. */
    bool (*read)(void *out, uint64_t address, size_t bytes);
};

/* False: a value could not be read. */
bool tbd_probe_run_code(struct tbd_probe_session *session, uint32_t code,
                        struct tbd_probe_hit *hit);

/* The value of register 0 after code that was checked and only computes.  False: a value could not be read. */
bool tbd_probe_value(const struct tbd_probe_insn *code, uint32_t count, uint32_t at,
                     struct tbd_probe_hit *hit, uint64_t *out);

#endif
