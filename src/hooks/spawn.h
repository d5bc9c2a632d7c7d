// SPDX-License-Identifier: MIT
/* spawn.h - starting the organizer.  Context: BOOT. */
#ifndef TBD_HOOKS_SPAWN_H
#define TBD_HOOKS_SPAWN_H

#include <stdbool.h>

/* Starts the organizer on the stream file `fd` and waits until it is ready.  It is never a child that
 * the program could see: no SIGCHLD, nothing to wait for, no descriptor.  False: it was said why. */
bool tbd_spawn_organizer(int fd, char **envp);

#endif
