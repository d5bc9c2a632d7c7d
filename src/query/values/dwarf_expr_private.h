// SPDX-License-Identifier: MIT
/* dwarf_expr_private.h - what dwarf_expr.c (walking a tree), dwarf_expr_members.c (members and
 * elements) and dwarf_expr_values.c (operators) share
 *
 * Functions that return bool: false is an error, which is in r->error; an unknown value (optimized
 * out, not mapped) is a result.  Any thread; one evaluation belongs to one. */
#ifndef TBD_QUERY_DWARF_EXPR_PRIVATE_H
#define TBD_QUERY_DWARF_EXPR_PRIVATE_H

#include "query/values/dwarf_expr.h"

/* One evaluation; all is borrowed until its end. */
struct tbd_c_run {
    const struct tbd_c_scope *scope;
    const char *text;
    const struct tbd_c_tree *tree;
    struct tbd_query_error *error;
    int dead; /* > 0: the value will not count, as on the right of `1 || ...` */
};

/* A value that can be calculated with. */
struct tbd_c_operand {
    bool is_float;
    bool is_narrow; /* a float of 4 bytes */
    bool is_pointer;
    double real;
    uint64_t number;
    bool is_signed;
    uint8_t bytes;
    struct tbd_type type;
};

static inline bool tbd_c_truth(const struct tbd_c_operand *a)
{
    return a->is_float ? a->real != 0 : a->number != 0;
}

/* Arrays and functions become pointers to their first element, to themselves. */
void tbd_c_decay(struct tbd_data *data);
/* The object to which a C++ reference refers. */
void tbd_c_follow(struct tbd_c_run *r, struct tbd_data *data);
/* The value of `data` as an operand; false with *data unknown, or an error. */
bool tbd_c_operand(struct tbd_c_run *r, struct tbd_data *data, struct tbd_c_operand *out);

void tbd_c_give_int(uint64_t value, struct tbd_data *out);
/* `narrow`: as a float of 4 bytes. */
void tbd_c_give_float(double value, bool narrow, struct tbd_data *out);

/* The common type of two integers (C17, 6.3.1.8). */
struct tbd_type tbd_c_common(const struct tbd_c_operand *a, const struct tbd_c_operand *b);
/* To the width of its type, as if stored and loaded again. */
uint64_t tbd_c_narrow(const struct tbd_type *type, uint64_t value);

/* *left becomes the operator's result. */
bool tbd_c_combine(struct tbd_c_run *r, enum tbd_c_op operation, struct tbd_data *left,
                   struct tbd_data *right);
/* `a && b` with a false left side is decided, whatever the right side is. */
bool tbd_c_is_decided(struct tbd_c_run *r, enum tbd_c_op operation, struct tbd_data *left);
/* `node`: the cast in the text; NULL: a conversion of C's. */
bool tbd_c_cast(struct tbd_c_run *r, const struct tbd_c_node *node, const struct tbd_type *type,
                struct tbd_data *data);
/* *data, one side of `c ? a : b`, gets the type that C gives to both. */
bool tbd_c_take_common_type(struct tbd_c_run *r, struct tbd_data *data, struct tbd_data *other);

/* ---- dwarf_expr.c ---- */

#define TBD_C_STRING_MAX 1024u

/* The value of the node `index`. */
bool tbd_c_evaluate_node(struct tbd_c_run *r, int32_t index, struct tbd_data *out);
/* `at`: where the operator stands in the text. */
bool tbd_c_dereference(struct tbd_c_run *r, size_t at, struct tbd_data *data);
/* The node's text, in TBD_C_NAME_BYTES. */
void tbd_c_name_of(const struct tbd_c_run *r, const struct tbd_c_node *node, char *out);
/* The node `index` if it is a string between quotes, else NULL. */
const struct tbd_c_node *tbd_c_string_of(const struct tbd_c_run *r, int32_t index);
/* `node` is == or !=: *out tells how *data and the string between quotes compare. */
bool tbd_c_compare_string(struct tbd_c_run *r, const struct tbd_c_node *node, struct tbd_data *data,
                          const struct tbd_c_node *string, struct tbd_data *out);

/* ---- dwarf_expr_members.c ---- */

/* The node's left side is evaluated: *data becomes the member that the node names. */
bool tbd_c_member(struct tbd_c_run *r, const struct tbd_c_node *node, struct tbd_data *data);
/* a[i], and a.f() of the C++ library. */
bool tbd_c_element(struct tbd_c_run *r, const struct tbd_c_node *node, struct tbd_data *data);
bool tbd_c_call(struct tbd_c_run *r, const struct tbd_c_node *node, struct tbd_data *data);

#endif
