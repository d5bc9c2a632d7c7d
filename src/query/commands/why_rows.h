// SPDX-License-Identifier: MIT
/* why_rows.h - the rows of `why` (cmd_why.c): a hop each, with the value it is about */
#ifndef TBD_QUERY_WHY_ROWS_H
#define TBD_QUERY_WHY_ROWS_H

#include "query/commands/rows.h"
#include "query/commands/why_inputs.h"

#define TBD_WHY_ROWS_MAX  256u
#define TBD_WHY_LIMIT_MAX 16u

/* Something whose last writer before `at` is wanted. */
struct tbd_why_value {
    struct tbd_position at;
    uint32_t thread;
    enum tbd_why_place place;
    ZydisRegister reg; /* REGISTER: the whole one */
    ZydisAccessedFlagsMask flags;
    uint64_t address, bytes; /* MEMORY */
};

struct tbd_why {
    struct tbd_command_run *run;
    ZydisDecoder decoder;
    struct tbd_rows rows;
    uint32_t limit; /* how many calculations deep */
    struct tbd_why_value followed[TBD_WHY_ROWS_MAX];
    size_t followed_count;
    char what[160]; /* of the hop */
    enum tbd_status status;
};

/* What the hop says; in a table the inputs of a calculation stand below it, indented. */
void tbd_why_set_what(const struct tbd_why *why, json_t *row, uint32_t depth);
/* The value that is asked for, where it is used. */
void tbd_why_set_value(struct tbd_why *why, const struct tbd_why_value *value, json_t *row);
/* The row of the instruction at `at`; `value`: what it is about. */
void tbd_why_add_row(struct tbd_why *why, const struct tbd_why_value *value, struct tbd_position at,
                     const struct tbd_place *place, uint32_t depth);

#endif
