// SPDX-License-Identifier: MIT
/* remote_objects.h - what gdb asks of a target beside registers and memory: the objects of qXfer, the threads,
 * and files (vFile)
 *
 * Files are the trace's own copies of what the program had mapped, under the names that the program knew,
 * and /proc/PID/maps, made up from the recorded mappings.  No other file of this machine is given to a
 * client, who may be anybody who reaches the socket. */
#ifndef TBD_QUERY_REMOTE_OBJECTS_H
#define TBD_QUERY_REMOTE_OBJECTS_H

#include "query/remote/remote_motion.h"

/* An object's contents; owned by the caller, `bytes` without the NUL that follows.  NULL: there is
 * none, or no memory. */
char *tbd_remote_object(struct tbd_remote_motion *motion, const char *name, const char *annex,
                        size_t *out_bytes);

/* Calls `each` for the threads that live at the position. */
void tbd_remote_threads(struct tbd_remote_motion *motion,
                        void (*each)(void *context, const struct tbd_thread_info *thread),
                        void *context);
bool tbd_remote_lives(const struct tbd_remote_motion *motion, uint32_t tid);

/* What is mapped at the position around the address, or where nothing is, up to the next region: [*out_start, *out_end). NULL:
 * nothing is. */
const struct tbd_region *tbd_remote_region(struct tbd_remote_motion *motion, uint64_t address,
                                           uint64_t *out_start, uint64_t *out_end);

/* A descriptor of the file that the program knew under this name; -1 with errno. */
int tbd_remote_open(struct tbd_remote_motion *motion, const char *path);

#endif
