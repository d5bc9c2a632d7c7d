// SPDX-License-Identifier: MIT
/* diff_origin.h - values that come from outside of the program's own code */
#ifndef TBD_QUERY_DIFF_ORIGIN_H
#define TBD_QUERY_DIFF_ORIGIN_H

#include "query/diff/diff_cause.h"
#include "query/diff/diff_writer.h"

/* What both writers are, in words; TBD_DIFF_NOT_FOUND: instructions with inputs, which are to be followed. */
enum tbd_diff_origin tbd_diff_origin_of(struct tbd_diff_side sides[2],
                                        const struct tbd_diff_writer writers[2],
                                        const struct tbd_diff_value values[2], char *text,
                                        size_t bytes);

enum tbd_diff_memory {
    TBD_DIFF_MEMORY_NONE = 0, /* nothing is mapped there */
    TBD_DIFF_MEMORY_FILE,
    TBD_DIFF_MEMORY_STACK,
    TBD_DIFF_MEMORY_HEAP,
    TBD_DIFF_MEMORY_OTHER
};
enum tbd_diff_memory tbd_diff_memory_at(struct tbd_diff_side *side, struct tbd_position at,
                                        uint64_t address);

#endif
