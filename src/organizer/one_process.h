// SPDX-License-Identifier: MIT
/* one_process.h - the recordings of one process, which executes one program after another
 *
 * Each program has an organizer of its own, which may still write when the next program has ended.  Who waits for the process
 * finds all of its traces whole: the last organizer waits for the others before it says that it is done.
 *
 * Context: ORG. */
#ifndef TBD_ORGANIZER_ONE_PROCESS_H
#define TBD_ORGANIZER_ONE_PROCESS_H

#include <sys/types.h>

struct tbd_one_process {
    int fd;         /* owned; -1: not known */
    off_t position; /* the process has the lock of this byte */
};

/* The recording of process `pid` in the folder of traces `root` begins. */
void tbd_one_process_begin(struct tbd_one_process *out, const char *root, pid_t pid);
/* This recording is written. */
void tbd_one_process_end(const struct tbd_one_process *process);
/* Waits until no other recording of the process is being written. */
void tbd_one_process_wait(const struct tbd_one_process *process);
void tbd_one_process_free(struct tbd_one_process *process);

#endif
