// SPDX-License-Identifier: MIT
/* begin.h - what a recording begins with: at boot, and again in a forked child
 *
 * Whatever fails has been said when a function here returns false.  Context: BOOT, FORK_CHILD. */
#ifndef TBD_HOOKS_BEGIN_H
#define TBD_HOOKS_BEGIN_H

#include "patcher/patcher.h"

#include <stdbool.h>
#include <stdint.h>

/* Keeps the environment for the organizers of this process and its children, and settles which
 * folder traces go to. */
bool tbd_begin_environment(char **envp);
/* Regions as the kernel has them now, without the engine's; where the heap is.  `library`: an
 * address in libtbd.so, whose folder is noted; 0 = known.  Says nothing. */
bool tbd_begin_mappings(uint64_t library);
/* The stream, and an organizer that is about to take it, if one is wanted (tbd_recording.is_on); then that it is
 * ready.  In between may be done what does not change the program. */
bool tbd_begin_stream(void);
bool tbd_begin_recording(void);
/* In place of that: nothing will come. */
void tbd_begin_nothing(void);

struct tbd_codegen_config tbd_begin_codegen(void);

#endif
