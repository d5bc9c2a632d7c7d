// SPDX-License-Identifier: MIT
/* remote_copy.h - a process with the state of one position, in which code can run: for a debugger that calls functions of the program
 *
 * Its memory comes out of the trace, a piece at a time as it is touched.  It has one thread, no descriptors, and makes no system
 * call: the few that functions need to work (memory, the time, output) are carried out for it, all others fail with
 * ENOSYS.  What it prints is given to `print`.  The trace does not change, nor does anything that the program had outside. */
#ifndef TBD_QUERY_REMOTE_COPY_H
#define TBD_QUERY_REMOTE_COPY_H

#include "query/session/session.h"

struct tbd_copy;

/* What the copy needs of its owner; borrowed as long as the copy lives. */
struct tbd_copy_owner {
    struct tbd_session *session;
    struct tbd_position at;
    uint32_t thread;
    void (*print)(void *context, const char *text, size_t bytes);
    bool (*is_interrupted)(void *context);
    void *context;
};

/* Begins with `state`, which has all registers.  NULL: `why` says why. */
struct tbd_copy *tbd_copy_start(const struct tbd_copy_owner *owner,
                                const struct tbd_reg_state *state, char why[128]);
void tbd_copy_end(struct tbd_copy *copy); /* NULL is fine */

struct tbd_reg_state *
tbd_copy_state(struct tbd_copy *copy); /* borrowed; may be changed while it stands */
/* False: nothing is mapped there, or the trace does not have it. */
TBD_MUST_CHECK bool tbd_copy_read(struct tbd_copy *copy, uint64_t address, void *out, size_t bytes);
TBD_MUST_CHECK bool tbd_copy_write(struct tbd_copy *copy, uint64_t address, const void *in,
                                   size_t bytes);
/* Memory of the copy's own, where the program has none. */
TBD_MUST_CHECK bool tbd_copy_map(struct tbd_copy *copy, uint64_t address, uint64_t bytes);

enum tbd_copy_end {
    TBD_COPY_STEPPED,
    TBD_COPY_TRAPPED,   /* at one of the places */
    TBD_COPY_SIGNALLED, /* *out_signal */
    TBD_COPY_INTERRUPTED,
    TBD_COPY_EXITED /* it would end, or wait for ever; or it was killed */
};
/* Runs up to one of `places`, or one instruction. */
enum tbd_copy_end tbd_copy_run(struct tbd_copy *copy, const uint64_t *places, size_t count,
                               bool steps, int *out_signal);

#endif
