// SPDX-License-Identifier: MIT
/* runtime.h - what belongs to the traced process as a whole: how it is recorded, and what its children inherit
 *
 * One instance, tbd_runtime, used only in boot/.  The rest of the process' state is in
 * stream/recording.h, memory/program_memory.h, memory/code_areas.h, threads/threads.h,
 * threads/signals.h; facts about the machine in instructions/processor.h; a thread's state in its
 * saved context (threads/threads.h) and the thread block (patcher/thread.h).  Contexts: BOOT,
 * FORK_CHILD. */
#ifndef TBD_HOOKS_RUNTIME_H
#define TBD_HOOKS_RUNTIME_H

#include "hooks/boot/options.h"

#include <stdbool.h>

struct tbd_runtime {
    struct tbd_options options;
    char **environment; /* as at boot: for organizers */
    bool has_placed;    /* the parent's triggers and parts are the engine's already */
    char lib_dir[1024]; /* where libtbd.so is, ends with a slash */
};

extern struct tbd_runtime tbd_runtime;

#endif
