// SPDX-License-Identifier: MIT
/* probe_follow.h - a process executes another program, in which the script goes on
 *
 * The engine of the new program looks whether somebody listens for its process (TBD_PROBE_FOLLOW_ADDRESS), and then
 * waits for its first session, as long as the connection lasts. */
#ifndef TBD_QUERY_PROBE_FOLLOW_H
#define TBD_QUERY_PROBE_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tbd_follower {
    pid_t pid;
    int listener;   /* -1: nobody is to wait */
    int connection; /* of the program that waits; -1: none */
    uint64_t mark;  /* differs after an execve; 0: not known */
};

void tbd_follow_begin(struct tbd_follower *follower, pid_t pid);
/* From now on, when a session has started: an engine that comes into the process by ptrace must find nobody to wait
 * for, because who listens waits for it. */
void tbd_follow_listen(struct tbd_follower *follower);
/* Since it was asked last. */
bool tbd_follow_executes(struct tbd_follower *follower);
/* The path of what it runs now.  False: it has ended. */
bool tbd_follow_program(const struct tbd_follower *follower, char *out, size_t bytes);
/* Waits some seconds until a new program under tbd says that it waits; then nobody listens any more. */
bool tbd_follow_await(struct tbd_follower *follower);
/* The program that waits has its session, or none. */
void tbd_follow_go_on(struct tbd_follower *follower);
void tbd_follow_end(struct tbd_follower *follower);

#endif
