// SPDX-License-Identifier: MIT
/* expr_parse.c - recursive descent from text to typed nodes
 *
 *   choice := or [ "?" choice ":" choice ]
 *   or     := and { "or" and }                 sum     := product { (+ | -) product }
 *   and    := not { "and" not }                product := unary { (* | / | %) unary }
 *   not    := "not" not | compare              unary   := (- | ~ | !) unary | primary
 *   compare:= bits [ (== != < <= > >=) bits ]  primary := number | "(" or ")" | name | register
 *           | bits "=~" string                          | "&" symbol | "mem" "[" or "," number "]"
 *   bits   := | over ^ over & over shift                | "touches" "[" or "," or "]"
 *   shift  := sum { (<< | >>) sum }                     | "signed" "(" or ")"
 *                                                       | "stack" "=" "<" items ">"
 *
 * Operators: expr_parse_operators.c; variables, members, casts and strings: expr_parse_c.c; stack
 * patterns: expr_parse_stack.c; here: events' names and values.
 *
 * func, module: only compared with a name by == and !=; the name may be quoted and may be a
 * pattern. */
#include "query/condition/expr_nodes.h"
#include "query/condition/expr_needs.h"

#include "query/condition/field_names.h"
#include "query/values/c_parse.h"
#include "hooks/table/syscalls.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE TBD_PARSER_NONE
#define FAIL TBD_PARSER_FAIL

/* ---- names ---- */

static void types_text(uint32_t types, char *out, size_t bytes)
{
    size_t used = (size_t)snprintf(out, bytes, "it has one at:");

    for (unsigned i = TBD_EVENT_FUNC_ENTER; i <= TBD_EVENT_CALL && used < bytes; i++) {
        if ((types & 1u << i) != 0)
            used += (size_t)snprintf(out + used, bytes - used, " %s",
                                     tbd_event_type_name((enum tbd_event_type)i));
    }
}

static int32_t parse_field(struct tbd_parser *p, const struct tbd_field_name *row)
{
    struct tbd_expr_node node = tbd_parser_leaf(&p->lexer.token, TBD_EXPR_FIELD);
    char events[128], hint[192];

    if ((row->types & 1u << p->type) == 0) {
        types_text(row->types, events, sizeof(events));
        snprintf(hint, sizeof(hint), "%s; a variable is var(%s)", events, row->name);
        return FAIL(p, TBD_TYPE, hint, "'%s' has no value at a %s", row->name,
                    tbd_event_type_name(p->type));
    }
    node.which = row->field;
    node.is_typed = tbd_field_is_typed(p->type, row->field);
    tbd_expr_note_field(p->expr, p->type, row->field);
    tbd_parser_next(p);
    return tbd_parser_add(p, &node);
}

static bool event_knows_register(enum tbd_event_type type, uint32_t which)
{
    struct tbd_event probe = { .type = type, .flags = TBD_EVENT_HAS_SP };
    uint64_t value;

    if (type != TBD_EVENT_FUNC_ENTER && type != TBD_EVENT_FUNC_EXIT && type != TBD_EVENT_CALL)
        probe.flags = 0;
    return which == TBD_REGISTER_RIP ||
           (which < TBD_REG_COUNT && tbd_event_register(&probe, which, &value));
}

static int32_t parse_register(struct tbd_parser *p, const struct tbd_register_name *reg)
{
    struct tbd_expr_node node = tbd_parser_leaf(&p->lexer.token, TBD_EXPR_REGISTER);

    node.which = reg->which;
    node.width = reg->width;
    node.value = reg->shift;
    if (!event_knows_register(p->type, reg->which))
        tbd_expr_note_register(p->expr, reg->which);
    else if (p->type == TBD_EVENT_FUNC_ENTER && reg->which != TBD_REGISTER_RIP)
        p->expr->uses |= TBD_USES_OPERANDS;
    tbd_parser_next(p);
    return tbd_parser_add(p, &node);
}

/* The end of the brackets that open at `s`, which hold types only; NULL: they are none. */
static const char *brackets_end(const char *s)
{
    int depth = 0;

    for (; *s != '\0' && strchr("=!|\"+-/", *s) == NULL; s++) {
        depth += (*s == '<' || *s == '(') - (*s == '>' || *s == ')');
        if (depth == 0)
            return s + 1;
    }
    return NULL;
}

/* A C++ name goes on with template arguments and parameters: twice<int>, over(int, char *). */
static void take_whole_name(struct tbd_parser *p)
{
    struct tbd_lexer *lexer = &p->lexer;
    const char *s = lexer->source + lexer->at, *end;

    if (lexer->token.kind != TBD_TOKEN_WORD)
        return;
    while ((*s == '<' || *s == '(') && (end = brackets_end(s)) != NULL) {
        s = end;
        if (s[0] == ':' && s[1] == ':')
            s += 2 +
                 strspn(s + 2, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_~");
    }
    lexer->at = (size_t)(s - lexer->source);
    lexer->token.length = lexer->at - lexer->token.at;
}

/* func == NAME, module != "NAME*", caller == NAME */
static int32_t parse_name_compare(struct tbd_parser *p, enum tbd_expr_op op)
{
    struct tbd_token word = p->lexer.token;
    const struct tbd_token *token = &p->lexer.token;
    struct tbd_expr_node node = tbd_parser_leaf(&word, op);
    bool unequal, is_module = op == TBD_EXPR_MODULE;
    int32_t index;

    tbd_parser_next(p);
    unequal = tbd_token_is_sign(token, TBD_SIGN('!', '='));
    if (!unequal && !tbd_token_is_sign(token, TBD_SIGN('=', '=')))
        return FAIL(p, TBD_TYPE, "for example func==main or func!=\"str*\"",
                    "'%.*s' can only be compared with a name, by == or !=", (int)word.length,
                    word.text);
    tbd_parser_next(p);
    take_whole_name(p);
    if (token->kind != TBD_TOKEN_WORD && token->kind != TBD_TOKEN_STRING)
        return FAIL(p, TBD_TYPE, "names may be quoted: \"operator new*\"",
                    "expected the name of a %s", is_module ? "module" : "function");
    index = tbd_parser_add_name(p, tbd_parser_token_name(token),
                                is_module ? TBD_NAME_MODULE : TBD_NAME_FUNCTION, token);
    if (index == NONE)
        return NONE;
    node.which = (uint32_t)index;
    node.is_boolean = 1;
    tbd_parser_next(p);
    index = tbd_parser_add(p, &node);
    return unequal ? tbd_parser_add_binary(p, &word, TBD_EXPR_NOT, index, NONE) : index;
}

/* The address of a symbol, after '&'. */
static int32_t parse_symbol(struct tbd_parser *p)
{
    const struct tbd_token *token = &p->lexer.token;
    struct tbd_expr_node node = tbd_parser_leaf(token, TBD_EXPR_SYMBOL);
    int32_t slot;

    tbd_parser_next(p);
    if (token->kind != TBD_TOKEN_WORD && token->kind != TBD_TOKEN_STRING)
        return tbd_parser_address(p);
    if (token->kind == TBD_TOKEN_WORD && tbd_parser_is_place(p))
        return tbd_parser_address(p);
    node.length = (uint32_t)(token->at + token->length) - node.at;
    slot = tbd_parser_add_symbol(p, tbd_parser_token_name(token));
    if (slot == NONE)
        return NONE;
    node.which = (uint32_t)slot;
    tbd_parser_next(p);
    return tbd_parser_add(p, &node);
}

/* mem[ADDR,SIZE]; after[ADDR,SIZE]: memory after the event's instruction; real[ADDR,4 or 8],
 * real_after[ADDR,SIZE]: floating point. */
static int32_t parse_memory(struct tbd_parser *p, bool is_after, bool is_real)
{
    struct tbd_token word = p->lexer.token;
    struct tbd_expr_node node = tbd_parser_leaf(&word, TBD_EXPR_MEMORY);
    const struct tbd_token *token = &p->lexer.token;

    tbd_parser_next(p);
    if (!tbd_parser_expect(p, '[', "after mem: mem[ADDR,SIZE]"))
        return NONE;
    node.left = tbd_parser_or(p);
    if (node.left == NONE || !tbd_parser_expect(p, ',', "and a size: mem[ADDR,SIZE]"))
        return NONE;
    if (token->kind != TBD_TOKEN_NUMBER || token->number < 1 || token->number > 8 ||
        (is_real && token->number != 4 && token->number != 8))
        return FAIL(p, TBD_TYPE, NULL, "the size in %.*s[ADDR,SIZE] is %s", (int)word.length,
                    word.text, is_real ? "4 or 8" : "a number from 1 to 8");
    node.value = token->number;
    tbd_parser_next(p);
    if (!tbd_parser_expect(p, ']', "at the end of mem[ADDR,SIZE]"))
        return NONE;
    node.is_after = is_after;
    node.is_real = is_real;
    return tbd_parser_add_memory(p, &node);
}

static int32_t parse_touches(struct tbd_parser *p)
{
    struct tbd_token word = p->lexer.token;
    int32_t left;
    int32_t right;

    if (p->type != TBD_EVENT_STORE && p->type != TBD_EVENT_LOAD)
        return FAIL(p, TBD_TYPE, "it has one at: store load", "'touches' has no value at a %s",
                    tbd_event_type_name(p->type));
    tbd_parser_next(p);
    if (!tbd_parser_expect(p, '[', "after touches: touches[ADDR,SIZE]"))
        return NONE;
    left = tbd_parser_or(p);
    if (left == NONE || !tbd_parser_expect(p, ',', "and a size: touches[ADDR,SIZE]"))
        return NONE;
    right = tbd_parser_or(p);
    if (right == NONE || !tbd_parser_expect(p, ']', "at the end of touches[ADDR,SIZE]"))
        return NONE;
    return tbd_parser_add_binary(p, &word, TBD_EXPR_TOUCHES, left, right);
}

static int32_t parse_signed(struct tbd_parser *p)
{
    struct tbd_token word = p->lexer.token;
    int32_t inner;

    tbd_parser_next(p);
    if (!tbd_parser_expect(p, '(', "after signed: signed(VALUE)"))
        return NONE;
    inner = tbd_parser_or(p);
    if (inner == NONE || !tbd_parser_expect(p, ')', "at the end of signed(VALUE)"))
        return NONE;
    return tbd_parser_add_binary(p, &word, TBD_EXPR_SIGNED, inner, NONE);
}

/* ---- values ---- */

static int32_t parse_function(struct tbd_parser *p)
{
    return parse_name_compare(p, TBD_EXPR_FUNCTION);
}

static int32_t parse_caller(struct tbd_parser *p)
{
    return parse_name_compare(p, TBD_EXPR_CALLER);
}

static int32_t parse_module(struct tbd_parser *p)
{
    return parse_name_compare(p, TBD_EXPR_MODULE);
}

static int32_t parse_mem(struct tbd_parser *p)
{
    return parse_memory(p, false, false);
}

static int32_t parse_after(struct tbd_parser *p)
{
    return parse_memory(p, true, false);
}

static int32_t parse_real(struct tbd_parser *p)
{
    return parse_memory(p, false, true);
}

static int32_t parse_real_after(struct tbd_parser *p)
{
    return parse_memory(p, true, true);
}

/* The number of a signal, by SIGALRM or ALRM; 0 if there is no such signal. */
static int64_t signal_number(const struct tbd_token *word)
{
    const char *text = word->text;
    size_t bytes = word->length;

    if (bytes > 3 && strncmp(text, "SIG", 3) == 0) {
        text += 3;
        bytes -= 3;
    }
    for (int number = 1; number < NSIG; number++) {
        const char *name = sigabbrev_np(number);

        if (name != NULL && strlen(name) == bytes && memcmp(name, text, bytes) == 0)
            return number;
    }
    return 0;
}

/* A bare word that is no name of the language: a variable, or a system call. */
static int32_t parse_other_word(struct tbd_parser *p)
{
    struct tbd_token word = p->lexer.token;
    int64_t number = tbd_syscall_number(word.text, word.length);
    const char *what = NULL;

    if (p->type == TBD_EVENT_SYSCALL && number >= 0) {
        tbd_parser_next(p);
        return tbd_parser_number(p, &word, (uint64_t)number);
    }
    number = p->type == TBD_EVENT_SIGNAL ? signal_number(&word) : 0;
    if (number > 0) {
        tbd_parser_next(p);
        return tbd_parser_number(p, &word, (uint64_t)number);
    }
    if (tbd_field_is_compared(p->lexer.source, word.at, "syscall"))
        what = "system call";
    else if (tbd_field_is_compared(p->lexer.source, word.at, "signal"))
        what = "signal";
    if (what == NULL)
        return tbd_parser_variable(p);
    tbd_query_wrong(p->lexer.error, TBD_NAME, word.at, word.length,
                    "there is no %s called '%.*s'; a variable is var(%.*s)", what, (int)word.length,
                    word.text, (int)word.length, word.text);
    p->failed = true;
    return NONE;
}

/* Words that begin a longer construct than a field or register. */
static const struct {
    const char *word;
    int32_t (*parse)(struct tbd_parser *p);
} constructs[] = {
    { "func", parse_function },         { "caller", parse_caller },
    { "module", parse_module },         { "mem", parse_mem },
    { "after", parse_after },           { "real", parse_real },
    { "real_after", parse_real_after }, { "touches", parse_touches },
    { "signed", parse_signed },         { "stack", tbd_parser_stack },
    { "src", tbd_parser_src },          { "sizeof", tbd_parser_sizeof },
};

/* Does the sign after the word make it a construct? Programs have variables of these names too. */
static bool is_construct(const struct tbd_parser *p, const char *word)
{
    const char *s = p->lexer.source + p->lexer.at;

    if (strcmp(word, "caller") == 0)
        return p->type == TBD_EVENT_FUNC_ENTER || p->type == TBD_EVENT_CALL;
    if (strcmp(word, "after") != 0 && strncmp(word, "real", 4) != 0)
        return true;
    return s[strspn(s, " \t")] == '[';
}

/* Does the word have a meaning of the caller's? If the caller finds it wrong, parsing has
 * failed. */
static bool is_stand_in(struct tbd_parser *p, struct tbd_expr_stand_in *out)
{
    const struct tbd_token *token = &p->lexer.token;
    bool found = p->words != NULL && p->words->find(p->words->context, p->lexer.source, token->at,
                                                    token->length, out, p->lexer.error);

    p->failed |= p->lexer.error->status != TBD_OK;
    return found;
}

/* The program may have a variable of this name: the word is kept, so that it can be said. */
static bool keep_word(struct tbd_parser *p)
{
    const struct tbd_token *token = &p->lexer.token;

    return tbd_expr_add_word(p->expr, token->text, token->length) ||
           tbd_parser_out_of_memory(p) != NONE;
}

static int32_t parse_constant(struct tbd_parser *p, uint64_t value)
{
    struct tbd_token word = p->lexer.token;

    tbd_parser_next(p);
    return tbd_parser_number(p, &word, value);
}

static int32_t parse_word(struct tbd_parser *p)
{
    const struct tbd_token *token = &p->lexer.token;
    const struct tbd_field_name *field = tbd_field_find(token->text, token->length);
    struct tbd_expr_stand_in value;
    struct tbd_register_name reg;
    struct tbd_type type;
    uint64_t constant;

    if (is_stand_in(p, &value))
        return tbd_parser_postfix(p, tbd_parser_stand_in(p, &value));
    if (p->failed)
        return NONE;
    if (field != NULL && field->types == 1u << TBD_EVENT_CALL && p->type != TBD_EVENT_CALL)
        field = NULL; /* there it is the program's word */
    if (field != NULL && !keep_word(p))
        return NONE;
    if (field != NULL) /* "newval->key", of a pointer */
        return tbd_parser_postfix(p, parse_field(p, field));
    for (size_t i = 0; i < sizeof(constructs) / sizeof(constructs[0]); i++) {
        if (tbd_token_is_word(token, constructs[i].word) && is_construct(p, constructs[i].word))
            return constructs[i].parse(p);
    }
    if (tbd_register_find(token->text, token->length, &reg))
        return keep_word(p) ? parse_register(p, &reg) : NONE;
    if (token->length > 1 && token->text[0] == '$' &&
        tbd_register_find(token->text + 1, token->length - 1, &reg))
        return parse_register(p, &reg);
    if (tbd_c_constant(token->text, token->length, &type, &constant))
        return keep_word(p) ? parse_constant(p, constant) : NONE;
    return parse_other_word(p);
}

static int32_t parse_string(struct tbd_parser *p)
{
    struct tbd_token token = p->lexer.token;
    int64_t number = tbd_syscall_number(token.text, token.length - 2);

    if (p->type != TBD_EVENT_SYSCALL || number < 0)
        return tbd_parser_string(p);
    tbd_parser_next(p);
    return tbd_parser_number(p, &token, (uint64_t)number);
}

static int32_t parse_real_number(struct tbd_parser *p)
{
    struct tbd_expr_node node = tbd_parser_leaf(&p->lexer.token, TBD_EXPR_NUMBER);

    node.value = p->lexer.token.number;
    if (strchr("fF", p->lexer.source[node.at + node.length - 1]) != NULL)
        node.which = TBD_LITERAL_FLOAT;
    node.is_real = 1;
    node.is_typed = 1;
    p->expr->uses |= TBD_USES_TYPES;
    tbd_parser_next(p);
    return tbd_parser_add(p, &node);
}

static int32_t parse_parentheses(struct tbd_parser *p)
{
    bool is_cast;
    int32_t inner = tbd_parser_cast(p, &is_cast);

    if (is_cast || p->failed)
        return inner;
    tbd_parser_next(p);
    inner = tbd_parser_or(p);
    if (inner == NONE || !tbd_parser_expect(p, ')', "to close '('"))
        return NONE;
    p->closed = inner;
    return tbd_parser_postfix(p, inner);
}

int32_t tbd_parser_primary(struct tbd_parser *p)
{
    struct tbd_token token = p->lexer.token;
    struct tbd_expr_stand_in value;

    if (token.kind == TBD_TOKEN_NUMBER) {
        if (tbd_field_is_compared(p->lexer.source, token.at, "thread") && is_stand_in(p, &value))
            return tbd_parser_stand_in(p, &value); /* the caller knows it by another number */
        tbd_parser_next(p);
        return tbd_parser_literal(p, &token);
    }
    if (token.kind == TBD_TOKEN_REAL)
        return parse_real_number(p);
    if (token.kind == TBD_TOKEN_STRING)
        return parse_string(p);
    if (token.kind == TBD_TOKEN_WORD)
        return parse_word(p);
    if (tbd_token_is_sign(&token, '&'))
        return parse_symbol(p);
    if (token.kind == TBD_TOKEN_END)
        return FAIL(p, TBD_SYNTAX, NULL, "the condition ends too early: a value is missing");
    if (!tbd_token_is_sign(&token, '('))
        return FAIL(p, TBD_SYNTAX, NULL, "expected a value, found '%.*s'", (int)token.length,
                    p->lexer.source + token.at);
    return parse_parentheses(p);
}

static const char *tail_hint(const struct tbd_token *token)
{
    if (tbd_token_is_sign(token, '='))
        return "equality is written ==";
    return "conditions are joined by 'and' and 'or'";
}

static enum tbd_status parse_text(const struct tbd_expr_source *source, const char *text,
                                  struct tbd_expr **out, struct tbd_query_error *error)
{
    struct tbd_parser p = { .type = source->type, .words = source->words };
    const struct tbd_token *token = &p.lexer.token;

    p.expr = calloc(1, sizeof(*p.expr));
    tbd_lexer_start(&p.lexer, text, source->from, error);
    if (p.expr == NULL)
        return tbd_lexer_fail(&p.lexer, TBD_NOMEM, NULL, "out of memory");
    p.expr->root = tbd_parser_or(&p);
    if (!p.failed && token->kind != TBD_TOKEN_END)
        (void)FAIL(&p, TBD_SYNTAX, tail_hint(token), "'%.*s' is not expected here",
                   (int)token->length, text + token->at);
    if (p.failed || error->status != TBD_OK) {
        tbd_expr_free(p.expr);
        return error->status;
    }
    *out = p.expr;
    return TBD_OK;
}

/* The parser's text is cut where the condition ends, but begins where it began: places stay the
 * same. */
enum tbd_status tbd_expr_parse_source(const struct tbd_expr_source *source, struct tbd_expr **out,
                                      struct tbd_query_error *error)
{
    char *text = strndup(source->text, source->to);
    enum tbd_status status = TBD_NOMEM;

    *out = NULL;
    if (text == NULL)
        *error = (struct tbd_query_error){ .status = TBD_NOMEM, .message = "out of memory" };
    else
        status = parse_text(source, text, out, error);
    free(text);
    return status;
}

enum tbd_status tbd_expr_parse(const char *text, size_t from, enum tbd_event_type type,
                               struct tbd_expr **out, struct tbd_query_error *error)
{
    struct tbd_expr_source source = {
        .text = text, .from = from, .to = strlen(text), .type = type
    };

    return tbd_expr_parse_source(&source, out, error);
}
