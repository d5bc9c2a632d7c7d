// SPDX-License-Identifier: MIT
/* probe_parse.h - the reader of a script, for probe_parse.c, probe_where.c, probe_expression.c and probe_program.c
 *
 * One pass: expressions become code as they are read.  Registers 0 to 7 hold the values of an expression
 * from the left, 8 to 15 the clause's variables ($name). */
#ifndef TBD_QUERY_PROBE_PARSE_H
#define TBD_QUERY_PROBE_PARSE_H

#include "query/probe/probe_script.h"

#define TBD_PARSE_TEMPORARIES 8u
#define TBD_PARSE_VARIABLES   8u

struct tbd_probe_parser {
    const char *text;
    size_t at;
    struct tbd_probe_script *script;
    struct tbd_query_error *error;
    char variables[TBD_PARSE_VARIABLES][TBD_SCRIPT_NAME_BYTES];
    uint32_t variable_count;
    uint32_t nesting;
    uint32_t parentheses; /* open; a / outside them ends a condition */
    bool in_condition;
    const struct tbd_script_place
        *place;        /* a clause is read again for it; NULL: the script is read */
    bool asks_program; /* the clause has expressions of the program's */
    bool asks_arguments;
    uint32_t print; /* number of the next printf */
};

/* ---- text ---- */

void tbd_parse_skip_blanks(struct tbd_probe_parser *p);
/* If `sign` comes next, takes it. */
bool tbd_parse_take(struct tbd_probe_parser *p, const char *sign);
bool tbd_parse_expect(struct tbd_probe_parser *p, const char *sign);
/* Takes a name of letters, digits and underscores; false if none comes. */
bool tbd_parse_name(struct tbd_probe_parser *p, char *out, size_t bytes);
bool tbd_parse_number(struct tbd_probe_parser *p, uint64_t *out);
/* Fills in the error at the current place; returns false. */
bool tbd_parse_wrong(struct tbd_probe_parser *p, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- places ---- */

bool tbd_parse_where(struct tbd_probe_parser *p, struct tbd_where *where);

/* ---- code ---- */

bool tbd_parse_emit(struct tbd_probe_parser *p, enum tbd_probe_op op, uint32_t d, uint32_t a,
                    uint32_t b, int64_t imm);

/* ---- expressions ---- */

/* What an expression is; a number is in register `d`, a text's address too. */
bool tbd_parse_value(struct tbd_probe_parser *p, uint32_t d, struct tbd_script_part *out);
/* A number, into register `d`. */
bool tbd_parse_expression(struct tbd_probe_parser *p, uint32_t d);
/* A value that the language names: arg0, retval, tid, str ... */
bool tbd_parse_is_word(const char *name, size_t length);
/* "(int32 *)" or "(uint8)" at text[at]. */
bool tbd_parse_is_type(const struct tbd_probe_parser *p, size_t at);
/* A type's name at the current place, which stays. */
bool tbd_parse_is_type_name(const struct tbd_probe_parser *p);
/* An expression over variables of the program (probe_program.c): does one come? */
bool tbd_parse_is_program(const struct tbd_probe_parser *p);
/* Its value, into register `d`. */
bool tbd_parse_program(struct tbd_probe_parser *p, uint32_t d);
/* The register of a variable; TBD_PROBE_REGISTERS: there is none. */
uint32_t tbd_parse_variable(struct tbd_probe_parser *p, const char *name, bool may_be_new);

#endif
