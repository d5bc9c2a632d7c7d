// SPDX-License-Identifier: MIT
/* begin.h - what a recording begins with: at boot, and again in a forked child
 *
 * A function here that returns false has reported the reason, unless its comment says otherwise.
 * Context: BOOT, FORK_CHILD. */
#ifndef TBD_HOOKS_BEGIN_H
#define TBD_HOOKS_BEGIN_H

#include "patcher/patcher.h"

#include <stdbool.h>
#include <stdint.h>

/* Says why there is no memory for the engine: a limit, if there is one. */
void tbd_begin_say_no_memory(void);
/* Says why the process's mappings are not known. */
void tbd_begin_say_no_proc(void);

/* Keeps a copy of the environment for the organizers of this process and its children, and
 * determines the folder of the traces. */
bool tbd_begin_environment(char **envp);
/* Reads the regions from the kernel, without the engine's, and finds the heap.  `library`: an
 * address in libtbd.so, whose folder is noted; 0: it is known already.  Reports nothing. */
bool tbd_begin_mappings(uint64_t library);
/* tbd_begin_stream() makes the stream and starts an organizer, if one is wanted
 * (tbd_recording.is_on); tbd_begin_recording() waits until the organizer is ready.  Between the two
 * calls, the program must not be changed. */
bool tbd_begin_stream(void);
bool tbd_begin_recording(void);
/* Called instead of tbd_begin_recording(): ends the stream without events. */
void tbd_begin_nothing(void);

struct tbd_codegen_config tbd_begin_codegen(void);

#endif
