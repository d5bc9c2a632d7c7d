// SPDX-License-Identifier: MIT
/* spawn.h - starting the organizer.  Context: BOOT. */
#ifndef TBD_HOOKS_SPAWN_H
#define TBD_HOOKS_SPAWN_H

#include <stdbool.h>

/* Starts the organizer on the stream file `fd`, and waits until it is ready: that takes some milliseconds, in which
 * there are other things to do.  It is never a child that the program could see: no SIGCHLD, nothing to wait for, no
 * descriptor.  The program does not run before both were called.  False: it was said why. */
bool tbd_spawn_begin(int fd, char **envp);
bool tbd_spawn_finish(void);

#endif
