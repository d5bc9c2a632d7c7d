// SPDX-License-Identifier: MIT
/* c_parse.h - C expressions as trees, which dwarf_expr.c evaluates
 *
 *   ?: || && | ^ & == != < <= > >= << >> + - * / %   ! ~ - + * & (TYPE) sizeof   [] . -> ()   x.size()
 *   numbers, 'c', "strings", names (also A::b and ::b), $rax and other registers
 *
 * Text may be anything: depth and the number of nodes are bounded, and an error names its place in
 * the text. */
#ifndef TBD_QUERY_C_PARSE_H
#define TBD_QUERY_C_PARSE_H

#include "query/debuginfo/dwarf_type.h"
#include "query/text/query_error.h"

#define TBD_C_NODES_MAX  512
#define TBD_C_NAME_BYTES 256

enum tbd_c_op {
    TBD_C_NUMBER, /* `number`, of `type` */
    TBD_C_REAL,   /* `real` */
    TBD_C_STRING, /* the text between the quotes, escapes and all */
    TBD_C_NAME,
    TBD_C_REGISTER, /* the text is "$rax" */
    TBD_C_MEMBER,   /* left . text; `number` is where the sign stands */
    TBD_C_ARROW,    /* left -> text */
    TBD_C_INDEX,    /* left [right] */
    /* left (right): left is a MEMBER or an ARROW; without an argument right is -1 */
    TBD_C_CALL,
    TBD_C_CAST,   /* (type) left */
    TBD_C_SIZEOF, /* of the expression on the left */
    TBD_C_DEREF,
    TBD_C_ADDRESS,
    TBD_C_MINUS_SIGN,
    TBD_C_PLUS_SIGN,
    TBD_C_NOT,
    TBD_C_COMPLEMENT,
    TBD_C_CHOICE, /* left ? right : third */
    TBD_C_OR_ELSE,
    TBD_C_AND_THEN,
    TBD_C_BIT_OR,
    TBD_C_BIT_XOR,
    TBD_C_BIT_AND,
    TBD_C_EQUAL,
    TBD_C_UNEQUAL,
    TBD_C_LESS_EQUAL,
    TBD_C_GREATER_EQUAL,
    TBD_C_LEFT,
    TBD_C_RIGHT,
    TBD_C_LESS,
    TBD_C_GREATER,
    TBD_C_PLUS,
    TBD_C_MINUS,
    TBD_C_TIMES,
    TBD_C_DIVIDED,
    TBD_C_MODULO,
};

static inline bool tbd_c_is_comparison(enum tbd_c_op op)
{
    return op == TBD_C_EQUAL || op == TBD_C_UNEQUAL || op == TBD_C_LESS || op == TBD_C_GREATER ||
           op == TBD_C_LESS_EQUAL || op == TBD_C_GREATER_EQUAL;
}

struct tbd_c_node {
    enum tbd_c_op op;
    int32_t left, right, third; /* -1: none */
    size_t at, length;          /* the word or sign in the text */
    uint64_t number;
    double real;
    struct tbd_type type;
};

struct tbd_c_tree {
    struct tbd_c_node *nodes; /* owned */
    size_t count;
    int32_t root;
};

/* Finds types, for casts and sizeof: a name is a type if this says so. */
struct tbd_c_types {
    bool (*find)(void *context, const char *name, struct tbd_type *out);
    void *context;
};

/* text[from, to) must be one expression.  On failure *error points at the wrong word, and the tree
 * is empty.  Free it with tbd_c_tree_free() in any case. */
TBD_MUST_CHECK enum tbd_status tbd_c_parse(const struct tbd_c_types *types, const char *text,
                                           size_t from, size_t to, struct tbd_c_tree *out,
                                           struct tbd_query_error *error);
void tbd_c_tree_free(struct tbd_c_tree *tree);
/* `text` must be a type: "struct node *". */
TBD_MUST_CHECK enum tbd_status tbd_c_parse_type(const struct tbd_c_types *types, const char *text,
                                                struct tbd_type *out);
/* `true`, `false` and `nullptr`, which no debug information names. */
bool tbd_c_constant(const char *word, size_t length, struct tbd_type *type, uint64_t *out);
/* The characters of a string between quotes, without escapes; how many (at most `bytes`). */
size_t tbd_c_unescape(const char *text, size_t length, char *out, size_t bytes);

#endif
