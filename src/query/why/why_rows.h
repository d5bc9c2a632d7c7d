// SPDX-License-Identifier: MIT
/* why_rows.h - the rows of `why` (cmd_why.c): a hop each, with the value it is about */
#ifndef TBD_QUERY_WHY_ROWS_H
#define TBD_QUERY_WHY_ROWS_H

#include "query/commands/rows.h"
#include "query/why/why_inputs.h"
#include "query/channels/channels.h"

#define TBD_WHY_ROWS_MAX  256u
#define TBD_WHY_LIMIT_MAX 16u
#define TBD_WHY_OWN       UINT32_MAX /* the process of the trace that is asked */

/* Something whose last writer before `at` is wanted. */
struct tbd_why_value {
    struct tbd_position at;
    uint32_t thread;
    enum tbd_why_place place;
    ZydisRegister reg; /* REGISTER: the whole one */
    uint64_t first;    /* REGISTER: of its bytes, the first that is asked about */
    uint64_t bytes;    /* REGISTER, MEMORY */
    ZydisAccessedFlagsMask flags;
    uint64_t address; /* MEMORY */
    uint64_t mask;    /* MEMORY: of a bit-field, its bits in these bytes; 0: all */
    uint32_t process; /* TBD_WHY_OWN, or as in channels.h */
    const char *sent; /* MEMORY: the call at `at` writes it to this kind of channel; else NULL */
    uint64_t sent_by; /* number of that system call */
};

struct tbd_why {
    struct tbd_command_run *run;   /* about the process that is being looked at: own, or beside */
    struct tbd_command_run *own;   /* about the trace that is asked */
    struct tbd_command_run beside; /* about another process */
    uint32_t process;              /* as in struct tbd_why_value */
    bool has_others;               /* rows are about other processes, too */
    struct tbd_channels *channels; /* owned; NULL until needed */
    json_t *leads_to;              /* owned: for the key `followed` of the next row; NULL: none */
    ZydisDecoder decoder;
    struct tbd_rows rows;
    uint32_t limit; /* how many calculations deep */
    struct tbd_why_value followed[TBD_WHY_ROWS_MAX];
    size_t followed_count;
    char what[320]; /* of the hop */
    enum tbd_status status;
};

/* What the hop says; in a table the inputs of a calculation stand below it, indented. */
void tbd_why_set_what(const struct tbd_why *why, json_t *row, uint32_t depth);
/* The value that is asked for, where it is used. */
void tbd_why_set_value(struct tbd_why *why, const struct tbd_why_value *value, json_t *row);
/* Adds to what the hop says. */
__attribute__((format(printf, 2, 3))) void tbd_why_say(struct tbd_why *why, const char *format,
                                                       ...);
/* Releases `row`. */
void tbd_why_put_row(struct tbd_why *why, json_t *row);
/* The row of an instruction: a position, or where a thread came back from a call; `value`: what it is
 * about. */
void tbd_why_add_row(struct tbd_why *why, const struct tbd_why_value *value,
                     const struct tbd_event *event, uint32_t depth);

#endif
