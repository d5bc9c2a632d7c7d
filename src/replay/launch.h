// SPDX-License-Identifier: MIT
/* launch.h - starts a replay process, isolated from the rest of the system as far as possible
 *
 * Context: ORG; any thread. */
#ifndef TBD_REPLAY_LAUNCH_H
#define TBD_REPLAY_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

struct tbd_launch {
    const char *path;
    int plan_fd, stream_fd; /* borrowed */
    int life_fd;            /* an end of a pipe that is closed when this process ends; borrowed */

    pid_t pid;
    bool is_apart; /* in user, pid, mount, net and ipc namespaces of its own, with an empty root */
};

/* Returns 0 or an error number.  The new process has only the three descriptors (replay/plan.h) and
 * no environment, and ends with this process. */
int tbd_launch(struct tbd_launch *wanted);

#endif
