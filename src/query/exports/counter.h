// SPDX-License-Identifier: MIT
/* counter.h - the values of a variable over the whole run, as numbers
 *
 * The variable is one in memory, named by a C expression at the current position; its values are what was stored to its
 * address. */
#ifndef TBD_QUERY_COUNTER_H
#define TBD_QUERY_COUNTER_H

#include "query/commands/commands.h"
#include "query/session/source/source_place.h"

struct tbd_counter {
    struct tbd_command_run *run; /* borrowed */
    const char *text;            /* borrowed: the expression */
    struct tbd_source_place place;
    struct tbd_data data;
    bool is_real;
    uint32_t bytes;
    uint8_t now[sizeof(uint64_t)];
    bool has_now;
};

struct tbd_counter_value {
    uint64_t time;
    bool is_real;
    int64_t number;
    double real;
};

/* Prints why it cannot.  Close it only after TBD_EXIT_FOUND; it must not be moved in memory. */
enum tbd_exit tbd_counter_open(struct tbd_command_run *run, const char *text,
                               struct tbd_counter *out);
void tbd_counter_close(struct tbd_counter *counter);
/* Its value at the recording's start, if it is mapped then, and each one that differs from the one before, in order, until `each`
 * returns false. */
enum tbd_exit tbd_counter_each(struct tbd_counter *counter,
                               bool (*each)(void *context, const struct tbd_counter_value *value),
                               void *context);

#endif
