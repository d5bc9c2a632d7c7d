// SPDX-License-Identifier: MIT
/* expr_nodes.h - what the parts of a condition's parser share */
#ifndef TBD_QUERY_EXPR_NODES_H
#define TBD_QUERY_EXPR_NODES_H

#include "query/condition/expr.h"
#include "query/text/lexer.h"

#define TBD_PARSER_NONE (-1)

struct tbd_parser {
    struct tbd_lexer lexer;
    enum tbd_event_type type;
    struct tbd_expr *expr;
    const struct tbd_expr_words *words; /* NULL: none */
    unsigned depth;
    bool failed;
    int32_t closed; /* the node that was last in parentheses; 0: none, no operator is node 0 */
};

/* Every failure calls this; its TBD_PARSER_NONE is returned through all levels. */
#define TBD_PARSER_FAIL(p, status, hint, ...)                                                      \
    ((p)->failed = true, (void)tbd_lexer_fail(&(p)->lexer, status, hint, __VA_ARGS__),             \
     TBD_PARSER_NONE)

static inline void tbd_parser_next(struct tbd_parser *p)
{
    tbd_lexer_next(&p->lexer);
}

/* ---- expr_nodes.c: nodes of an expression, with or without a text; NONE without memory ---- */

int32_t tbd_expr_add(struct tbd_expr *expr, const struct tbd_expr_node *node);
/* An operator; NONE also if an operand is NONE. */
int32_t tbd_expr_add_operator(struct tbd_expr *expr, const struct tbd_expr_node *node);
bool tbd_expr_add_word(struct tbd_expr *expr, const char *text, size_t bytes);
/* Takes `text`; NULL: no memory. */
int32_t tbd_expr_add_name(struct tbd_expr *expr, const struct tbd_expr_name *name);
/* Frees what the name is bound to. */
void tbd_expr_forget_name(struct tbd_expr_name *name);
/* Is the field's type known only at the event's place: the source line; what a call returned? */
static inline bool tbd_field_is_typed(enum tbd_event_type type, enum tbd_event_field field)
{
    return field == TBD_FIELD_LINE || (type == TBD_EVENT_CALL && field == TBD_FIELD_RETVAL);
}
/* Notes what an event's own value needs. */
void tbd_expr_note_field(struct tbd_expr *expr, enum tbd_event_type type,
                         enum tbd_event_field field);

/* ---- expr_nodes.c: nodes with a place in the text ---- */

int32_t tbd_parser_out_of_memory(struct tbd_parser *p);
int32_t tbd_parser_number(struct tbd_parser *p, const struct tbd_token *token, uint64_t value);
/* The number that the token is, with the type that C gives it. */
int32_t tbd_parser_literal(struct tbd_parser *p, const struct tbd_token *token);
/* A quoted or bare name: text without quotes, the caller's to free. */
char *tbd_parser_token_name(const struct tbd_token *token);
/* Index of a copy of `node`. */
int32_t tbd_parser_add(struct tbd_parser *p, const struct tbd_expr_node *node);
struct tbd_expr_node tbd_parser_leaf(const struct tbd_token *token, enum tbd_expr_op op);
int32_t tbd_parser_add_binary(struct tbd_parser *p, const struct tbd_token *token,
                              enum tbd_expr_op op, int32_t left, int32_t right);
/* A MEMORY node, whose operand, size and time are filled in. */
int32_t tbd_parser_add_memory(struct tbd_parser *p, const struct tbd_expr_node *node);
/* Takes the sign, or fails. */
bool tbd_parser_expect(struct tbd_parser *p, char sign, const char *where);
/* Slot of a text in expr->symbols; takes `text`. */
int32_t tbd_parser_add_symbol(struct tbd_parser *p, char *text);
int32_t tbd_parser_add_name(struct tbd_parser *p, char *text, enum tbd_name_kind kind,
                            const struct tbd_token *token);

/* ---- expr_parse.c, expr_parse_operators.c, expr_parse_stack.c ---- */

int32_t tbd_parser_primary(struct tbd_parser *p);
int32_t tbd_parser_or(struct tbd_parser *p);
int32_t tbd_parser_unary(struct tbd_parser *p);
/* The node of the current word, which stands for this value in memory. */
int32_t tbd_parser_stand_in(struct tbd_parser *p, const struct tbd_expr_stand_in *value);
/* "stack=<...>" at the word stack. */
int32_t tbd_parser_stack(struct tbd_parser *p);

/* ---- expr_parse_c.c ---- */

/* A variable of the program, at the current word, and the . -> [] after it. */
int32_t tbd_parser_variable(struct tbd_parser *p);
/* . -> [] after a value. */
int32_t tbd_parser_postfix(struct tbd_parser *p, int32_t value);
/* "(TYPE) value" at the current '(': if it is no cast, *is_cast is false and no token is taken. */
int32_t tbd_parser_cast(struct tbd_parser *p, bool *is_cast);
int32_t tbd_parser_sizeof(struct tbd_parser *p);
/* "*value", at the sign; the place after '&'. */
int32_t tbd_parser_deref(struct tbd_parser *p);
int32_t tbd_parser_address(struct tbd_parser *p);
/* Is the word after '&' more than a symbol: a variable followed by . -> []? */
bool tbd_parser_is_place(const struct tbd_parser *p);
/* "src=<file.c,7>" at the word src. */
int32_t tbd_parser_src(struct tbd_parser *p);
/* Strings and regular expressions on the right of == != =~, at the string. */
int32_t tbd_parser_string(struct tbd_parser *p);
int32_t tbd_parser_like(struct tbd_parser *p, const struct tbd_token *sign, int32_t left);

#endif
