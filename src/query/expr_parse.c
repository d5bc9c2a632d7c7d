// SPDX-License-Identifier: MIT
/* expr_parse.c - recursive descent from text to typed nodes
 *
 *   or     := and { "or" and }                 sum     := product { (+ | -) product }
 *   and    := not { "and" not }                product := unary { (* | / | %) unary }
 *   not    := "not" not | compare              unary   := (- | ~) unary | primary
 *   compare:= bits [ (== != < <= > >=) bits ]  primary := number | "(" or ")" | name | register
 *   bits   := | over ^ over & over shift                | "&" symbol | "mem" "[" or "," number "]"
 *   shift  := sum { (<< | >>) sum }                     | "touches" "[" or "," or "]"
 *                                                       | "signed" "(" or ")"
 *                                                       | "stack" "=" "<" items ">"
 *
 * func, module: only compared with a name by == and !=; the name may be quoted and may be a
 * pattern.
 *
 * I1  A node's operands have smaller indices than the node.
 * I2  Depth of recursion is bounded by MAX_DEPTH, number of nodes by MAX_NODES. */
#include "query/lexer.h"
#include "query/names.h"
#include "hooks/syscalls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 200
#define MAX_NODES 4096u
#define NONE      (-1)

struct parser {
    struct tbd_lexer lexer;
    enum tbd_event_type type;
    struct tbd_expr *expr;
    unsigned depth;
    bool failed;
};

static int32_t parse_or(struct parser *p);
static int32_t parse_unary(struct parser *p);

/* Every failure ends here: NONE goes up through all levels. */
#define FAIL(p, status, hint, ...)                                                                 \
    (fail_flag(p), (void)tbd_lexer_fail(&(p)->lexer, status, hint, __VA_ARGS__), NONE)

static void fail_flag(struct parser *p)
{
    p->failed = true;
}

static void next(struct parser *p)
{
    tbd_lexer_next(&p->lexer);
}

static int32_t out_of_memory(struct parser *p)
{
    return FAIL(p, TBD_NOMEM, NULL, "out of memory");
}

static bool grow(void **array, uint32_t count, size_t item)
{
    void *bigger;

    if ((count & (count - 1)) != 0)
        return true;
    bigger = realloc(*array, (count == 0 ? 1 : (size_t)count * 2) * item);
    if (bigger == NULL)
        return false;
    *array = bigger;
    return true;
}

static int32_t add_node(struct parser *p, const struct tbd_expr_node *node)
{
    struct tbd_expr *expr = p->expr;

    if (expr->node_count >= MAX_NODES)
        return FAIL(p, TBD_SYNTAX, NULL, "the condition is too long");
    if (!grow((void **)&expr->nodes, expr->node_count, sizeof(*node)))
        return out_of_memory(p);
    expr->nodes[expr->node_count] = *node;
    return (int32_t)expr->node_count++;
}

static struct tbd_expr_node leaf(const struct tbd_token *token, enum tbd_expr_op op)
{
    return (struct tbd_expr_node){ .op = (uint8_t)op,
                                   .left = NONE,
                                   .right = NONE,
                                   .at = (uint32_t)token->at,
                                   .length = (uint32_t)token->length };
}

static int32_t add_number(struct parser *p, const struct tbd_token *token, uint64_t value)
{
    struct tbd_expr_node node = leaf(token, TBD_EXPR_NUMBER);

    node.value = value;
    return add_node(p, &node);
}

static bool op_is_boolean(enum tbd_expr_op op)
{
    return (op >= TBD_EXPR_TOUCHES && op <= TBD_EXPR_GE) && op != TBD_EXPR_NUMBER;
}

static int32_t add_binary(struct parser *p, const struct tbd_token *token, enum tbd_expr_op op,
                          int32_t left, int32_t right)
{
    struct tbd_expr_node node = leaf(token, op);

    if (left == NONE || (right == NONE && op != TBD_EXPR_NOT && op != TBD_EXPR_NEG &&
                         op != TBD_EXPR_BITNOT && op != TBD_EXPR_SIGNED))
        return NONE;
    node.left = left;
    node.right = right;
    node.is_boolean = op_is_boolean(op);
    node.is_signed = p->expr->nodes[left].is_signed ||
                     (right != NONE && p->expr->nodes[right].is_signed) || op == TBD_EXPR_SIGNED;
    return add_node(p, &node);
}

static char *copy_text(const char *text, size_t bytes)
{
    return strndup(text, bytes);
}

/* A quoted or bare name: text without quotes. */
static char *token_name(const struct tbd_token *token)
{
    if (token->kind == TBD_TOKEN_STRING)
        return copy_text(token->text, token->length - 2);
    return copy_text(token->text, token->length);
}

/* Index of a new name; takes `text`. */
static int32_t add_name(struct parser *p, char *text, bool is_module, const struct tbd_token *token)
{
    struct tbd_expr *expr = p->expr;

    if (text == NULL || !grow((void **)&expr->names, expr->name_count, sizeof(*expr->names))) {
        free(text);
        return out_of_memory(p);
    }
    expr->names[expr->name_count] = (struct tbd_expr_name){ .text = text,
                                                            .is_module = is_module,
                                                            .at = (uint32_t)token->at,
                                                            .length = (uint32_t)token->length };
    expr->uses |= TBD_USES_NAMES;
    return (int32_t)expr->name_count++;
}

static bool expect_sign(struct parser *p, char sign, const char *where)
{
    if (tbd_token_is_sign(&p->lexer.token, (unsigned char)sign)) {
        next(p);
        return true;
    }
    (void)FAIL(p, TBD_SYNTAX, NULL, "expected '%c' %s", sign, where);
    return false;
}

/* ---- names ---- */

static void types_text(uint32_t types, char *out, size_t bytes)
{
    size_t used = (size_t)snprintf(out, bytes, "it has one at:");

    for (unsigned i = TBD_EVENT_FUNC_ENTER; i < TBD_EVENT_TYPE_COUNT && used < bytes; i++) {
        if ((types & 1u << i) != 0)
            used += (size_t)snprintf(out + used, bytes - used, " %s",
                                     tbd_event_type_name((enum tbd_event_type)i));
    }
}

static void note_field_use(struct parser *p, enum tbd_field field)
{
    bool calls = p->type == TBD_EVENT_FUNC_ENTER || p->type == TBD_EVENT_FUNC_EXIT;

    if (field == TBD_FIELD_NEWVAL || (field == TBD_FIELD_OLDVAL && p->type == TBD_EVENT_LOAD))
        p->expr->uses |= TBD_USES_VALUE;
    if (field == TBD_FIELD_SP && !calls)
        p->expr->uses |= TBD_USES_REGS;
}

static int32_t parse_field(struct parser *p, const struct tbd_field_name *row)
{
    struct tbd_expr_node node = leaf(&p->lexer.token, TBD_EXPR_FIELD);
    char hint[128];

    if ((row->types & 1u << p->type) == 0) {
        types_text(row->types, hint, sizeof(hint));
        return FAIL(p, TBD_TYPE, hint, "'%s' has no value at a %s", row->name,
                    tbd_event_type_name(p->type));
    }
    node.which = row->field;
    note_field_use(p, row->field);
    next(p);
    return add_node(p, &node);
}

static bool event_knows_register(enum tbd_event_type type, uint32_t which)
{
    struct tbd_event probe = { .type = type, .flags = TBD_EVENT_HAS_SP };
    uint64_t value;

    if (type != TBD_EVENT_FUNC_ENTER && type != TBD_EVENT_FUNC_EXIT)
        probe.flags = 0;
    return which == TBD_EXPR_RIP ||
           (which < TBD_REG_COUNT && tbd_event_register(&probe, which, &value));
}

static int32_t parse_register(struct parser *p, const struct tbd_register_name *reg)
{
    struct tbd_expr_node node = leaf(&p->lexer.token, TBD_EXPR_REGISTER);

    node.which = reg->which;
    node.width = reg->width;
    node.value = reg->shift;
    if (!event_knows_register(p->type, reg->which))
        p->expr->uses |= TBD_USES_REGS;
    next(p);
    return add_node(p, &node);
}

/* func == NAME, module != "NAME*" */
static int32_t parse_name_compare(struct parser *p, bool is_module)
{
    struct tbd_token word = p->lexer.token;
    const struct tbd_token *token = &p->lexer.token;
    struct tbd_expr_node node = leaf(&word, is_module ? TBD_EXPR_MODULE : TBD_EXPR_FUNCTION);
    bool unequal;
    int32_t index;

    next(p);
    unequal = tbd_token_is_sign(token, TBD_SIGN('!', '='));
    if (!unequal && !tbd_token_is_sign(token, TBD_SIGN('=', '=')))
        return FAIL(p, TBD_TYPE, "for example func==main or func!=\"str*\"",
                    "'%.*s' can only be compared with a name, by == or !=", (int)word.length,
                    word.text);
    next(p);
    if (token->kind != TBD_TOKEN_WORD && token->kind != TBD_TOKEN_STRING)
        return FAIL(p, TBD_TYPE, "names may be quoted: \"operator new*\"",
                    "expected the name of a %s", is_module ? "module" : "function");
    index = add_name(p, token_name(token), is_module, token);
    if (index == NONE)
        return NONE;
    node.which = (uint32_t)index;
    node.is_boolean = 1;
    next(p);
    index = add_node(p, &node);
    return unequal ? add_binary(p, &word, TBD_EXPR_NOT, index, NONE) : index;
}

static int32_t parse_symbol(struct parser *p)
{
    const struct tbd_token *token = &p->lexer.token;
    struct tbd_expr_node node = leaf(token, TBD_EXPR_SYMBOL);
    struct tbd_expr *expr = p->expr;

    next(p);
    if (token->kind != TBD_TOKEN_WORD && token->kind != TBD_TOKEN_STRING)
        return FAIL(p, TBD_SYNTAX, "for example &counter or &libc!stdout",
                    "expected a symbol after '&'");
    if (!grow((void **)&expr->symbols, expr->symbol_count, sizeof(*expr->symbols)))
        return out_of_memory(p);
    node.which = expr->symbol_count;
    node.length = (uint32_t)(token->at + token->length) - node.at;
    expr->symbols[expr->symbol_count] = token_name(token);
    if (expr->symbols[expr->symbol_count] == NULL)
        return out_of_memory(p);
    expr->symbol_count++;
    next(p);
    return add_node(p, &node);
}

static int32_t parse_memory(struct parser *p)
{
    struct tbd_expr_node node = leaf(&p->lexer.token, TBD_EXPR_MEMORY);
    const struct tbd_token *token = &p->lexer.token;

    next(p);
    if (!expect_sign(p, '[', "after mem: mem[ADDR,SIZE]"))
        return NONE;
    node.left = parse_or(p);
    if (node.left == NONE || !expect_sign(p, ',', "and a size: mem[ADDR,SIZE]"))
        return NONE;
    if (token->kind != TBD_TOKEN_NUMBER || token->number < 1 || token->number > 8)
        return FAIL(p, TBD_TYPE, NULL, "the size in mem[ADDR,SIZE] is a number from 1 to 8");
    node.value = token->number;
    next(p);
    if (!expect_sign(p, ']', "at the end of mem[ADDR,SIZE]"))
        return NONE;
    node.which = p->expr->memory_count++;
    p->expr->uses |= TBD_USES_MEMORY;
    return add_node(p, &node);
}

static int32_t parse_touches(struct parser *p)
{
    struct tbd_token word = p->lexer.token;
    int32_t left;
    int32_t right;

    if (p->type != TBD_EVENT_STORE && p->type != TBD_EVENT_LOAD)
        return FAIL(p, TBD_TYPE, "it has one at: store load", "'touches' has no value at a %s",
                    tbd_event_type_name(p->type));
    next(p);
    if (!expect_sign(p, '[', "after touches: touches[ADDR,SIZE]"))
        return NONE;
    left = parse_or(p);
    if (left == NONE || !expect_sign(p, ',', "and a size: touches[ADDR,SIZE]"))
        return NONE;
    right = parse_or(p);
    if (right == NONE || !expect_sign(p, ']', "at the end of touches[ADDR,SIZE]"))
        return NONE;
    return add_binary(p, &word, TBD_EXPR_TOUCHES, left, right);
}

static int32_t parse_signed(struct parser *p)
{
    struct tbd_token word = p->lexer.token;
    int32_t inner;

    next(p);
    if (!expect_sign(p, '(', "after signed: signed(VALUE)"))
        return NONE;
    inner = parse_or(p);
    if (inner == NONE || !expect_sign(p, ')', "at the end of signed(VALUE)"))
        return NONE;
    return add_binary(p, &word, TBD_EXPR_SIGNED, inner, NONE);
}

/* ---- stack patterns ---- */

static bool add_item(struct parser *p, struct tbd_expr_pattern *pattern, int32_t item)
{
    if (!grow((void **)&pattern->items, pattern->count, sizeof(*pattern->items))) {
        (void)out_of_memory(p);
        return false;
    }
    pattern->items[pattern->count++] = item;
    return true;
}

/* One item of a pattern, read from the raw text: a name may hold any character but , > and blanks.
 */
static bool parse_item(struct parser *p, struct tbd_expr_pattern *pattern)
{
    struct tbd_lexer *lexer = &p->lexer;
    const char *s;
    size_t n = 0;
    int32_t index;

    while (lexer->source[lexer->at] == ' ')
        lexer->at++;
    s = lexer->source + lexer->at;
    lexer->token = (struct tbd_token){ .kind = TBD_TOKEN_STRING, .at = lexer->at, .text = s };
    if (*s == '"')
        n = strcspn(s + 1, "\"") + 1;
    n = *s == '"' ? n + (s[n] == '"') : strcspn(s, ",> \t");
    lexer->token.length = n;
    lexer->at += n;
    if (n == 0 || (*s == '"' && n < 3))
        return FAIL(p, TBD_SYNTAX, "for example stack=<**,main,*,strlen>; the innermost is last",
                    "expected a function name, * or **") != NONE;
    if (n == 1 && s[0] == '*')
        return add_item(p, pattern, TBD_PATTERN_ONE);
    if (n == 2 && s[0] == '*' && s[1] == '*')
        return add_item(p, pattern, TBD_PATTERN_RUN);
    index =
        add_name(p, *s == '"' ? copy_text(s + 1, n - 2) : copy_text(s, n), false, &lexer->token);
    return index != NONE && add_item(p, pattern, index);
}

static bool parse_items(struct parser *p, struct tbd_expr_pattern *pattern)
{
    struct tbd_lexer *lexer = &p->lexer;

    for (;;) {
        if (!parse_item(p, pattern))
            return false;
        while (lexer->source[lexer->at] == ' ')
            lexer->at++;
        if (lexer->source[lexer->at] == '>')
            break;
        if (lexer->source[lexer->at] != ',') {
            lexer->token = (struct tbd_token){ .at = lexer->at, .length = 1 };
            return FAIL(p, TBD_SYNTAX, NULL, "expected ',' or '>' in the stack pattern") != NONE;
        }
        lexer->at++;
    }
    lexer->at++;
    next(p);
    return true;
}

/* The current token is the word "stack"; what follows is raw text. */
static int32_t parse_stack(struct parser *p)
{
    struct tbd_lexer *lexer = &p->lexer;
    struct tbd_expr *expr = p->expr;
    struct tbd_expr_node node = leaf(&lexer->token, TBD_EXPR_STACK);
    const char *s = lexer->source + lexer->at;

    s += strspn(s, " ");
    s += strspn(s, "=");
    s += strspn(s, " ");
    lexer->at = (size_t)(s - lexer->source);
    if (*s != '<') {
        next(p);
        return FAIL(p, TBD_SYNTAX, "for example stack=<**,main,parse>; the innermost is last",
                    "expected a pattern: stack=<...>");
    }
    lexer->at++;
    if (expr->pattern_count >= TBD_EXPR_MAX_PATTERNS)
        return FAIL(p, TBD_SYNTAX, NULL, "too many stack patterns");
    if (!grow((void **)&expr->patterns, expr->pattern_count, sizeof(*expr->patterns)))
        return out_of_memory(p);
    expr->patterns[expr->pattern_count] = (struct tbd_expr_pattern){ 0 };
    node.which = expr->pattern_count++;
    node.is_boolean = 1;
    expr->uses |= TBD_USES_STACK;
    if (!parse_items(p, &expr->patterns[node.which]))
        return NONE;
    return add_node(p, &node);
}

/* ---- values ---- */

/* A bare word that is no name of the language: perhaps a system call. */
static int32_t parse_other_word(struct parser *p)
{
    struct tbd_token word = p->lexer.token;
    int64_t number = tbd_syscall_number(word.text, word.length);

    if (p->type == TBD_EVENT_SYSCALL && number >= 0) {
        next(p);
        return add_number(p, &word, (uint64_t)number);
    }
    return FAIL(p, TBD_NAME,
                "the address of a symbol is written &NAME; `tbdq help context` lists all names",
                "unknown name '%.*s'", (int)word.length, word.text);
}

static int32_t parse_word(struct parser *p)
{
    const struct tbd_token *token = &p->lexer.token;
    const struct tbd_field_name *field = tbd_field_find(token->text, token->length);
    struct tbd_register_name reg;

    if (field != NULL)
        return parse_field(p, field);
    if (tbd_token_is_word(token, "func") || tbd_token_is_word(token, "module"))
        return parse_name_compare(p, tbd_token_is_word(token, "module"));
    if (tbd_token_is_word(token, "mem"))
        return parse_memory(p);
    if (tbd_token_is_word(token, "touches"))
        return parse_touches(p);
    if (tbd_token_is_word(token, "signed"))
        return parse_signed(p);
    if (tbd_token_is_word(token, "stack"))
        return parse_stack(p);
    if (tbd_register_find(token->text, token->length, &reg))
        return parse_register(p, &reg);
    return parse_other_word(p);
}

static int32_t parse_string(struct parser *p)
{
    struct tbd_token token = p->lexer.token;
    int64_t number = tbd_syscall_number(token.text, token.length - 2);

    if (p->type != TBD_EVENT_SYSCALL)
        return FAIL(p, TBD_TYPE, "func, module and syscall are compared with names",
                    "a name has no value here");
    if (number < 0)
        return FAIL(p, TBD_NAME, NULL, "there is no system call of this name");
    next(p);
    return add_number(p, &token, (uint64_t)number);
}

static int32_t parse_primary(struct parser *p)
{
    struct tbd_token token = p->lexer.token;
    int32_t inner;

    if (token.kind == TBD_TOKEN_NUMBER) {
        next(p);
        return add_number(p, &token, token.number);
    }
    if (token.kind == TBD_TOKEN_STRING)
        return parse_string(p);
    if (token.kind == TBD_TOKEN_WORD)
        return parse_word(p);
    if (tbd_token_is_sign(&token, '&'))
        return parse_symbol(p);
    if (token.kind == TBD_TOKEN_END)
        return FAIL(p, TBD_SYNTAX, NULL, "the condition ends too early: a value is missing");
    if (!tbd_token_is_sign(&token, '('))
        return FAIL(p, TBD_SYNTAX, token.sign == '!' ? "'not' negates a condition" : NULL,
                    "expected a value, found '%.*s'", (int)token.length,
                    p->lexer.source + token.at);
    next(p);
    inner = parse_or(p);
    if (inner == NONE || !expect_sign(p, ')', "to close '('"))
        return NONE;
    return inner;
}

static int32_t parse_unary(struct parser *p)
{
    struct tbd_token token = p->lexer.token;
    enum tbd_expr_op op = TBD_EXPR_NEG;
    int32_t inner;

    if (tbd_token_is_sign(&token, '~'))
        op = TBD_EXPR_BITNOT;
    else if (!tbd_token_is_sign(&token, '-'))
        return parse_primary(p);
    if (p->depth >= MAX_DEPTH)
        return FAIL(p, TBD_SYNTAX, NULL, "the condition is nested too deeply");
    p->depth++;
    next(p);
    inner = parse_unary(p);
    p->depth--;
    return inner == NONE ? NONE : add_binary(p, &token, op, inner, NONE);
}

/* ---- binary operators: one table, binding tighter with the level ---- */

// clang-format off
static const struct {
    unsigned sign;
    uint8_t op;
    uint8_t level;
} operators[] = {
    { TBD_SIGN('=', '='), TBD_EXPR_EQ, 0 },  { TBD_SIGN('!', '='), TBD_EXPR_NE, 0 },
    { '<', TBD_EXPR_LT, 0 },                 { TBD_SIGN('<', '='), TBD_EXPR_LE, 0 },
    { '>', TBD_EXPR_GT, 0 },                 { TBD_SIGN('>', '='), TBD_EXPR_GE, 0 },
    { '|', TBD_EXPR_BITOR, 1 },              { '^', TBD_EXPR_BITXOR, 2 },
    { '&', TBD_EXPR_BITAND, 3 },             { TBD_SIGN('<', '<'), TBD_EXPR_SHL, 4 },
    { TBD_SIGN('>', '>'), TBD_EXPR_SHR, 4 }, { '+', TBD_EXPR_ADD, 5 },
    { '-', TBD_EXPR_SUB, 5 },                { '*', TBD_EXPR_MUL, 6 },
    { '/', TBD_EXPR_DIV, 6 },                { '%', TBD_EXPR_REM, 6 },
};
// clang-format on
#define LEVEL_COMPARE 0u
#define LEVEL_UNARY   7u

static int operator_at(const struct tbd_token *token, unsigned level)
{
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        if (operators[i].level == level && tbd_token_is_sign(token, operators[i].sign))
            return operators[i].op;
    }
    return -1;
}

static bool is_name_node(const struct tbd_expr_node *node)
{
    return node->op == TBD_EXPR_FUNCTION || node->op == TBD_EXPR_MODULE ||
           node->op == TBD_EXPR_STACK;
}

/* Values are unsigned, so x < 0 never holds: a signed value was meant. */
static int32_t check_compare(struct parser *p, int32_t index)
{
    const struct tbd_expr_node *node;
    const struct tbd_expr_node *right;

    if (index == NONE)
        return NONE;
    node = &p->expr->nodes[index];
    right = &p->expr->nodes[node->right];
    if (node->op != TBD_EXPR_LT || node->is_signed || right->op != TBD_EXPR_NUMBER ||
        right->value != 0)
        return index;
    p->lexer.token.at = node->at;
    p->lexer.token.length = node->length;
    return FAIL(p, TBD_TYPE, "values are unsigned: write signed(retval) < 0",
                "nothing is less than 0 here");
}

static int32_t parse_binary(struct parser *p, unsigned level)
{
    int32_t left = level == LEVEL_UNARY ? parse_unary(p) : parse_binary(p, level + 1);
    int op;

    while (left != NONE && level < LEVEL_UNARY && (op = operator_at(&p->lexer.token, level)) >= 0) {
        struct tbd_token token = p->lexer.token;

        if (is_name_node(&p->expr->nodes[left]))
            return FAIL(p, TBD_TYPE, NULL, "a condition on a name cannot be calculated with");
        if (level == LEVEL_COMPARE && p->expr->nodes[left].is_boolean &&
            p->expr->nodes[left].op >= TBD_EXPR_EQ)
            return FAIL(p, TBD_SYNTAX, "write a<b and b<c, or use ( )",
                        "comparisons cannot be chained");
        next(p);
        left = add_binary(p, &token, (enum tbd_expr_op)op, left, parse_binary(p, level + 1));
        if (level == LEVEL_COMPARE)
            left = check_compare(p, left);
    }
    return left;
}

static int32_t parse_not(struct parser *p)
{
    struct tbd_token token = p->lexer.token;
    int32_t inner;

    if (p->depth >= MAX_DEPTH)
        return FAIL(p, TBD_SYNTAX, NULL, "the condition is nested too deeply");
    p->depth++;
    if (tbd_token_is_word(&token, "not")) {
        next(p);
        inner = parse_not(p);
        inner = inner == NONE ? NONE : add_binary(p, &token, TBD_EXPR_NOT, inner, NONE);
    } else {
        inner = parse_binary(p, LEVEL_COMPARE);
    }
    p->depth--;
    return inner;
}

static int32_t parse_and(struct parser *p)
{
    int32_t left = parse_not(p);

    while (left != NONE && tbd_token_is_word(&p->lexer.token, "and")) {
        struct tbd_token token = p->lexer.token;

        next(p);
        left = add_binary(p, &token, TBD_EXPR_AND, left, parse_not(p));
    }
    return left;
}

static int32_t parse_or(struct parser *p)
{
    int32_t left = parse_and(p);

    while (left != NONE && tbd_token_is_word(&p->lexer.token, "or")) {
        struct tbd_token token = p->lexer.token;

        next(p);
        left = add_binary(p, &token, TBD_EXPR_OR, left, parse_and(p));
    }
    return left;
}

static const char *tail_hint(const struct tbd_token *token)
{
    if (tbd_token_is_sign(token, '='))
        return "equality is written ==";
    if (tbd_token_is_sign(token, TBD_SIGN('&', '&')))
        return "write 'and'";
    if (tbd_token_is_sign(token, TBD_SIGN('|', '|')))
        return "write 'or'";
    return "conditions are joined by 'and' and 'or'";
}

enum tbd_status tbd_expr_parse(const char *text, size_t from, enum tbd_event_type type,
                               struct tbd_expr **out, struct tbd_query_error *error)
{
    struct parser p = { .type = type };
    const struct tbd_token *token = &p.lexer.token;

    *out = NULL;
    p.expr = calloc(1, sizeof(*p.expr));
    tbd_lexer_start(&p.lexer, text, from, error);
    if (p.expr == NULL)
        return tbd_lexer_fail(&p.lexer, TBD_NOMEM, NULL, "out of memory");
    p.expr->root = parse_or(&p);
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

void tbd_expr_free(struct tbd_expr *expr)
{
    if (expr == NULL)
        return;
    for (uint32_t i = 0; i < expr->name_count; i++) {
        free(expr->names[i].text);
        free(expr->names[i].ranges);
    }
    for (uint32_t i = 0; i < expr->pattern_count; i++)
        free(expr->patterns[i].items);
    for (uint32_t i = 0; i < expr->symbol_count; i++)
        free(expr->symbols[i]);
    free(expr->names);
    free(expr->patterns);
    free(expr->symbols);
    free(expr->nodes);
    free(expr);
}
