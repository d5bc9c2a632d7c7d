// SPDX-License-Identifier: MIT
/* expr_lower.h - translates a condition over variables to its meaning at one instruction
 *
 * Variables, members, casts and strings become reads of memory and registers, with the conversions
 * of C: a new expression that tbd_expr_eval() understands.  Names are looked up and locations
 * resolved here, once per instruction, and not per event.
 *
 *   key == 5     at one place   mem[FRAME-20,4], sign-extended == 5
 *                at another     the low 32 bits of rsi == 5
 *
 * A variable without a value at the place (not in scope, optimized out) becomes a node without a
 * value: such events do not match. */
#ifndef TBD_QUERY_EXPR_LOWER_H
#define TBD_QUERY_EXPR_LOWER_H

#include "query/values/dwarf_expr.h"
#include "query/condition/expr.h"

struct tbd_lower {
    const struct tbd_c_scope *scope; /* its place has no frame: locations are resolved, not read */
    enum tbd_event_type type;
    bool is_entry; /* the place is a function's first instruction */
    bool is_value; /* the number itself is asked, not whether it is true: no floating-point one */
    uint32_t line; /* 0: not known */
};

/* *out borrows names, patterns and regular expressions from `expr`: free *out first, with
 * tbd_expr_free(). *problem describes the first operand without a value there (TBD_OK: there is
 * none; TBD_UNMAPPED: a variable that was optimized out). Fails with TBD_NOMEM only. */
TBD_MUST_CHECK enum tbd_status tbd_expr_lower(struct tbd_expr *expr, const struct tbd_lower *lower,
                                              struct tbd_expr **out,
                                              struct tbd_query_error *problem);

/* ---- for expr_lower.c, expr_lower_operators.c, expr_values.c and expr_location.c ---- */

struct tbd_lowering {
    const struct tbd_lower *at;
    struct tbd_expr *from;
    struct tbd_expr *out;
    struct tbd_query_error *problem;
    const struct tbd_expr_node *node; /* the node being lowered: problems point to its text */
    bool no_memory;
};

#define TBD_PIECES_MAX 4u
/* A part of a value that lies in several places, or in registers. */
struct tbd_piece {
    int32_t node;       /* the node of its value, or with in_memory of its address; -1: nowhere */
    int32_t upper_node; /* for 16 bytes in a register: the node of the upper half */
    uint32_t bytes;
    bool in_memory;
};

/* A value while it is lowered. */
struct tbd_lowered {
    enum { TBD_LOWERED_GONE = 0, TBD_LOWERED_NUMBER, TBD_LOWERED_PLACE, TBD_LOWERED_PIECES } kind;
    int32_t node;    /* NUMBER: the value; PLACE: its address */
    uint64_t offset; /* PIECES: offset of the value in `pieces` */
    struct tbd_piece pieces[TBD_PIECES_MAX];
    uint32_t piece_count;
    bool has_type; /* if false: an unsigned number of 64 bits */
    bool is_literal;
    bool is_wide;    /* without a type: 64 bits, of which none are cut off */
    bool is_unset;   /* PLACE, or the address of an array: nothing was stored there yet */
    bool is_address; /* the result of &: pointer arithmetic counts bytes; `type` is the object's */
    struct tbd_type type;
    uint32_t bits, bit_offset; /* PLACE: a bit-field */
};

/* Adds a node; -1 if there is no memory. */
int32_t tbd_lowering_add(struct tbd_lowering *l, const struct tbd_expr_node *node);
int32_t tbd_lowering_number(struct tbd_lowering *l, uint64_t value);
int32_t tbd_lowering_binary(struct tbd_lowering *l, enum tbd_expr_op op, int32_t left,
                            int32_t right);
int32_t tbd_lowering_memory(struct tbd_lowering *l, int32_t address, uint64_t bytes);
int32_t tbd_lowering_register(struct tbd_lowering *l, uint32_t which);
/* The low `bits` bits of a value. */
int32_t tbd_lowering_extend(struct tbd_lowering *l, int32_t value, uint32_t bits, bool is_signed);
/* What is said of a variable that nothing here is called; takes its name, and tbd_field_meant() of it. */
#define TBD_LOWER_NO_VARIABLE "there is no variable '%.100s' in scope%s"
/* Notes why there is no value, and returns a result without one. */
struct tbd_lowered tbd_lowering_gone(struct tbd_lowering *l, enum tbd_status status,
                                     const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same for a value with is_unset. */
struct tbd_lowered tbd_lowering_unset(struct tbd_lowering *l);

/* ---- values (expr_values.c) ---- */

/* A number of a C base type (DW_ATE_*, bytes); a number without a type; the object at an
 * address. */
struct tbd_lowered tbd_lowered_made(int32_t node, uint8_t encoding, uint8_t bytes);
struct tbd_lowered tbd_lowered_untyped(int32_t node);
struct tbd_lowered tbd_lowered_place(int32_t address, const struct tbd_type *type);
/* The value at a place; for an array its address. */
struct tbd_lowered tbd_lowered_load(struct tbd_lowering *l, const struct tbd_lowered *v);
bool tbd_lowered_is_real(const struct tbd_lowered *v);
bool tbd_lowered_is_pointer(const struct tbd_lowered *v);
/* A node that is not 0 if C takes the value for true. */
int32_t tbd_lowered_truth(struct tbd_lowering *l, const struct tbd_lowered *v);
/* As a double; `narrow`: that a float can hold. */
int32_t tbd_lowered_to_real(struct tbd_lowering *l, const struct tbd_lowered *v, bool narrow);
/* Do C's rules make floats of these, and not doubles? */
bool tbd_lowered_are_narrow(const struct tbd_lowered *a, const struct tbd_lowered *b);

/* ---- the walk (expr_lower.c) ---- */

struct tbd_lowered tbd_lower_value(struct tbd_lowering *l, int32_t index);
/* The node of a value that is not available. */
int32_t tbd_lowering_nowhere(struct tbd_lowering *l);
/* Compares the string at `index` with `text`, by == or !=. */
struct tbd_lowered tbd_lower_compare_string(struct tbd_lowering *l, int32_t index, const char *text,
                                            bool unequal);

/* ---- operators (expr_lower_operators.c) ---- */

/* The node being lowered, with these operands. */
int32_t tbd_lowering_operator(struct tbd_lowering *l, int32_t left, int32_t right, bool is_signed,
                              bool real);
/* pointer + number (or -), in steps of what it points to. */
struct tbd_lowered tbd_lowering_step(struct tbd_lowering *l, enum tbd_expr_op op,
                                     const struct tbd_lowered *pointer,
                                     const struct tbd_lowered *number);
/* The node being lowered: two operands, one, `and` or `or`, ?:. */
struct tbd_lowered tbd_lower_binary(struct tbd_lowering *l);
struct tbd_lowered tbd_lower_unary(struct tbd_lowering *l);
struct tbd_lowered tbd_lower_logical(struct tbd_lowering *l);
struct tbd_lowered tbd_lower_choice(struct tbd_lowering *l);

/* ---- places (expr_location.c) ---- */

/* A local variable or parameter, from its debug information. */
struct tbd_lowered tbd_lowering_local(struct tbd_lowering *l, const Dwarf_Die *variable);

#endif
