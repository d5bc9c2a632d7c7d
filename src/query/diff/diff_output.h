// SPDX-License-Identifier: MIT
/* diff_output.h - the first bytes that two runs with equal steps gave out differently */
#ifndef TBD_QUERY_DIFF_OUTPUT_H
#define TBD_QUERY_DIFF_OUTPUT_H

#include "query/diff/diff_writer.h"

/* A system call that gives bytes out. */
struct tbd_diff_output_call {
    struct tbd_position at;
    uint32_t thread, index; /* its id; its number in the trace's table */
    uint64_t nth;           /* of its thread */
    uint64_t number;        /* of the system call */
    uint64_t address, bytes;
};

struct tbd_diff_output_calls {
    struct tbd_diff_output_call *all; /* owned; in order */
    size_t count, capacity;
    size_t next; /* the one to be looked at next */
    bool no_memory;
};

/* The calls of a side, for B by thread.  Free them in any case. */
TBD_MUST_CHECK enum tbd_status tbd_diff_output_read(const struct tbd_command_run *run,
                                                    struct tbd_diff_side *side,
                                                    struct tbd_diff_output_calls *out);
void tbd_diff_output_free(struct tbd_diff_output_calls *calls);
/* The next pair of calls of a thread that differ, in the order of A: *out_values are the bytes from the first other one on,
 * *out_byte its number among those of the call.  False: there is none. */
bool tbd_diff_output_next(struct tbd_diff_side sides[2], struct tbd_diff_output_calls calls[2],
                          struct tbd_diff_value out_values[2], uint32_t *out_stream,
                          uint64_t *out_byte);

#endif
