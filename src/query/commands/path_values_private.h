// SPDX-License-Identifier: MIT
/* path_values_private.h - the parts of path_values.h: what is wanted, values as text, of instructions, of variables */
#ifndef TBD_QUERY_PATH_VALUES_PRIVATE_H
#define TBD_QUERY_PATH_VALUES_PRIVATE_H

#include "query/commands/path_values.h"
#include "query/past/past.h"
#include "query/past/past_condition.h"

enum { TBD_PATH_WANTED_MAX = 64, TBD_PATH_NAME_BYTES = 256 };

struct tbd_wanted_value {
    const char *name;  /* within `words` */
    uint64_t from, to; /* of an address range; to 0: a name */
};

struct tbd_path_values {
    struct tbd_command_run *run;
    struct tbd_rings *ring;
    struct tbd_session *session; /* on the dump: the command's own, or `other` */
    struct tbd_session other;
    bool is_open; /* it was tried */
    struct tbd_path_wanted what;
    struct tbd_past_condition condition;
    enum tbd_status opened;
    enum tbd_status failed; /* the first thread that has no values */
    struct tbd_error why;   /* and why */
    size_t with, without;   /* threads */
    char *words;            /* owned */
    struct tbd_wanted_value wanted[TBD_PATH_WANTED_MAX];
    size_t wanted_count;
    struct tbd_past *past; /* owned; NULL: no values */
};

/* Is it wanted where an instruction uses it? */
bool tbd_path_values_want_register(const struct tbd_path_values *values, const char *name);
bool tbd_path_values_want_address(const struct tbd_path_values *values, uint64_t address,
                                  bool is_known, unsigned bytes);

/* ---- one value (path_values_shown.c) ---- */

/* Before and after, as text; NULL: there is none.  What is unknown may have parts that are known. */
struct tbd_shown_value {
    char *text[2];
    enum tbd_certainty certainty[2];
    bool is_partial[2];
    uint64_t address[2]; /* of a variable in memory; 0: it is not, or none */
    uint32_t why;
};

void tbd_shown_value_free(struct tbd_shown_value *value);
/* " (inferred)", or nothing. */
const char *tbd_path_values_mark(enum tbd_certainty certainty);
/* To the list of a row's values. */
void tbd_path_values_put_one(const struct tbd_path_values *values, json_t *list, const char *name,
                             const struct tbd_shown_value *value);

/* ---- a row's values ---- */

/* path_values_insn.c: registers and memory of the instruction. */
void tbd_path_values_put_insn(struct tbd_path_values *values, const struct tbd_path_span *span,
                              json_t *list);
/* path_values_names.c: variables that the line names, or that are wanted. */
void tbd_path_values_put_variables(struct tbd_path_values *values, const struct tbd_path_span *span,
                                   json_t *list);

#endif
