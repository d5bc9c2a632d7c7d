// SPDX-License-Identifier: MIT
/* launch.h - starts a replay process, apart from the rest of the system as far as that goes
 *
 * Context: ORG; any thread. */
#ifndef TBD_REPLAY_LAUNCH_H
#define TBD_REPLAY_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

struct tbd_launch {
    const char *path;
    int plan_fd, stream_fd; /* borrowed */
    int life_fd;            /* the end of a pipe that is closed when this process ends; borrowed */

    pid_t pid;
    bool is_apart; /* in user, pid, mount, net and ipc namespaces of its own, with an empty root */
};

/* 0, or an error number.  The process gets the three descriptors (replay/plan.h) and no others, no
 * environment, and does not outlive this one. */
int tbd_launch(struct tbd_launch *wanted);

#endif
