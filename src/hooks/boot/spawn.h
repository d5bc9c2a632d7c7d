// SPDX-License-Identifier: MIT
/* spawn.h - starting the organizer.  Context: BOOT. */
#ifndef TBD_HOOKS_SPAWN_H
#define TBD_HOOKS_SPAWN_H

#include <stdbool.h>

/* tbd_spawn_begin() starts the organizer on the stream file `fd`; tbd_spawn_finish() waits until it
 * is ready, some milliseconds later.  The program cannot see it as a child: no SIGCHLD, nothing to
 * wait for, no descriptor.  The program must not run between the two calls.  False: the reason was
 * reported. */
bool tbd_spawn_begin(int fd, char **envp);
bool tbd_spawn_finish(void);

#endif
