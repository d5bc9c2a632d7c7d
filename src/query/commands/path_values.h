// SPDX-License-Identifier: MIT
/* path_values.h - what rows of `path` held: registers and memory of an instruction, variables of a source line (query/past) */
#ifndef TBD_QUERY_PATH_VALUES_H
#define TBD_QUERY_PATH_VALUES_H

#include "query/commands/commands.h"
#include "query/rings/dump_rings.h"

#include <jansson.h>

struct tbd_path_values;

struct tbd_path_wanted {
    bool values, why; /* why: also what inferred values rest on */
    bool exact;       /* nothing is inferred: what rests on an assumption is unknown */
    bool
        variables; /* of an instruction, too, the variables that its line names, in place of registers and memory */
    /* Names, expressions, registers and address ranges (0x1000-0x1fff) with commas between them, which alone are wanted; NULL: what an
     * instruction uses, what a line's text names. */
    const char *only;
    const char *where; /* rows at whose beginning this expression is true; NULL: all */
};

/* Borrows all.  Prints errors. */
enum tbd_exit tbd_path_values_new(struct tbd_command_run *run, struct tbd_rings *ring,
                                  const struct tbd_path_wanted *wanted,
                                  struct tbd_path_values **out);
void tbd_path_values_free(struct tbd_path_values *values);

/* Rows of the thread follow, from ring step `first` on up to step `last`.  TBD_NOTKEPT: the dump does not have what the thread held at its end, or is of a
 * process that was killed; the rows have no values then. */
enum tbd_status tbd_path_values_begin(struct tbd_path_values *values,
                                      struct tbd_rings_thread *thread, uint64_t first,
                                      uint64_t last);

/* Says if a thread's rows had none, and where the condition was not decided. */
enum tbd_exit tbd_path_values_tell(const struct tbd_path_values *values);

/* A row: from an instruction on, up to another one of the same call (step UINT64_MAX: there is none, or it is not known). */
struct tbd_path_span {
    uint64_t step, end_step;
    uint32_t insn, end_insn;
    bool is_insn;     /* it is one instruction */
    const char *text; /* the source line's; NULL: not known */
};
/* Is it a row that is wanted? */
bool tbd_path_values_match(struct tbd_path_values *values, const struct tbd_path_span *span);
void tbd_path_values_put(struct tbd_path_values *values, const struct tbd_path_span *span,
                         json_t *row);

#endif
