// SPDX-License-Identifier: MIT
/* processor.h - the processor that runs the engine: its vector state, and the bases of its segments
 *
 * One instance, tbd_processor, in play and in a replay process; written at boot, and when a replay adopts the
 * vector registers of its recording.  Contexts: BOOT, APP;
 * _sigsafe SIG. */
#ifndef TBD_HOOKS_PROCESSOR_H
#define TBD_HOOKS_PROCESSOR_H

#include "hooks/instructions/vector.h"

struct tbd_processor {
    struct tbd_vector_info vector;
    uint64_t gs_base; /* of the engine: in every thread; in free run in the first one */
    bool has_fsgsbase;
    bool is_hidden; /* the program is told of fewer features (cpu_limit.h) */
};

extern struct tbd_processor tbd_processor;

/* The patcher's callback for running the decoder library, which uses vector registers. */
void tbd_processor_decode(void (*fn)(void *), void *arg);

/* Do addresses have more than 48 bits here?  Context: SIG. */
bool tbd_processor_has_long_addresses(void);

/* Base of the thread's segment registers. */
void tbd_set_gs_base(uint64_t base);
void tbd_set_fs_base(uint64_t base);
/* Called when a signal handler begins, which may interrupt an instruction that runs with the
 * program's gs base (slot.h).  Sets the engine's base in this thread and returns the old one, which the
 * caller restores before that instruction continues.  Context: SIG. */
uint64_t tbd_gs_base_take_sigsafe(uint64_t engine);

#endif
