// SPDX-License-Identifier: MIT
/* place_code.h - an expression over registers and variables at one place, as code for the engine
 *
 * The expression is lowered as for a search (query/condition/expr_lower.h); what is left, arithmetic over
 * registers and reads of memory, becomes probe code.  What the engine cannot compute is refused. */
#ifndef TBD_QUERY_PLACE_CODE_H
#define TBD_QUERY_PLACE_CODE_H

#include "format/probe/trigger.h"
#include "query/condition/expr.h"
#include "query/places/running_process.h"

struct tbd_place_code {
    struct tbd_probe_insn *all; /* borrowed */
    uint32_t count, capacity;
    uint32_t registers; /* of the interpreter's may be used, from 0 on */
    bool has_vectors;   /* vector registers can be read there: in triggers, not in probes */
};

/* Parses text[from, to); tbd_expr_free() it.  `is_entry`: at a function's first instruction. */
struct tbd_expr *tbd_place_expression(struct tbd_probe_process *process, const char *text,
                                      size_t from, size_t to, bool is_entry,
                                      struct tbd_query_error *error);
/* Appends the code for `address`: the value in register d, those after it are used.  TBD_UNMAPPED, and nothing
 * appended: a variable has no value there. */
enum tbd_status tbd_place_value(struct tbd_probe_process *process, struct tbd_expr *expr,
                                uint64_t address, bool is_entry, uint32_t d,
                                struct tbd_place_code *out, struct tbd_query_error *error);
/* The same for a condition, in register 0, and the code's end. */
enum tbd_status tbd_place_condition(struct tbd_probe_process *process, struct tbd_expr *condition,
                                    uint64_t address, bool is_entry, struct tbd_place_code *out,
                                    struct tbd_query_error *error);

#endif
