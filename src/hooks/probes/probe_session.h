// SPDX-License-Identifier: MIT
/* probe_session.h - what the probes of one consumer do
 *
 * The keeper fills a session and starts it; handlers read it.  It ends in three steps: it becomes inactive,
 * the traps go away, and when no handler is inside any more, its memory is given back.
 * Contexts: keeper; SIG for what is said so. */
#ifndef TBD_HOOKS_PROBE_SESSION_H
#define TBD_HOOKS_PROBE_SESSION_H

#include "format/probe/probe.h"

#include <stdbool.h>
#include <stddef.h>

/* One piece of code at one place. */
struct tbd_probe_use {
    uint32_t code;
    uint32_t next; /* of the same place, plus 1; 0: the last */
};

struct tbd_probe_session {
    uint32_t active; /* atomic: hits are reported; then it is the session's number */
    uint32_t number; /* not 0, and no other session's */
    uint32_t flags;  /* TBD_PROBE_DROP */
    struct tbd_probe_shared *shared;
    uint64_t shared_bytes;
    struct tbd_probe_insn *code;
    uint32_t code_count;
    struct tbd_probe_use *uses;
    uint32_t use_count; /* that were ever used; TBD_PROBE_MAX_USES at most */
    uint32_t *gone;     /* uses plus 1 that no probe has any more (probe_uses.c) */
    uint32_t gone_count;
    uint32_t reusable_count; /* of these */
    struct tbd_probe_map maps[TBD_PROBE_MAX_MAPS];
    uint64_t map_at[TBD_PROBE_MAX_MAPS + 1];
    uint32_t map_count;
    struct {
        _Alignas(64) uint64_t inside; /* atomic: handlers in the session */
    } shard[TBD_PROBE_SHARDS];
};

extern struct tbd_probe_session tbd_probe_session;

/* Checks all code that has arrived from `from` on.  Returns the index of the first wrong instruction, or
 * the number of instructions. */
uint32_t tbd_probe_check_code(const struct tbd_probe_insn *code, uint32_t count,
                              const struct tbd_probe_map *maps, uint32_t map_count);
bool tbd_probe_check_maps(const struct tbd_probe_map *maps, uint32_t count);

#endif
