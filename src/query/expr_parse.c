// SPDX-License-Identifier: MIT
/* expr_parse.c - recursive descent from text to typed nodes
 *
 *   or     := and { "or" and }                 sum     := product { (+ | -) product }
 *   and    := not { "and" not }                product := unary { (* | / | %) unary }
 *   not    := "not" not | compare              unary   := (- | ~ | !) unary | primary
 *   compare:= bits [ (== != < <= > >=) bits ]  primary := number | "(" or ")" | name | register
 *           | bits "=~" string                          | "&" symbol | "mem" "[" or "," number "]"
 *   bits   := | over ^ over & over shift                | "touches" "[" or "," or "]"
 *   shift  := sum { (<< | >>) sum }                     | "signed" "(" or ")"
 *                                                       | "stack" "=" "<" items ">"
 *
 * Variables, members, casts and strings: expr_parse_c.c.
 *
 * func, module: only compared with a name by == and !=; the name may be quoted and may be a
 * pattern.
 *
 * I1  A node's operands have smaller indices than the node.
 * I2  Depth of recursion is bounded by MAX_DEPTH, number of nodes by MAX_NODES. */
#include "query/expr_parser.h"

#include "query/names.h"
#include "hooks/syscalls.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 200
#define MAX_NODES 4096u
#define NONE      TBD_PARSER_NONE
#define FAIL      TBD_PARSER_FAIL

int32_t tbd_parser_out_of_memory(struct tbd_parser *p)
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

int32_t tbd_parser_add(struct tbd_parser *p, const struct tbd_expr_node *node)
{
    struct tbd_expr *expr = p->expr;

    if (expr->node_count >= MAX_NODES)
        return FAIL(p, TBD_SYNTAX, NULL, "the condition is too long");
    if (!grow((void **)&expr->nodes, expr->node_count, sizeof(*node)))
        return tbd_parser_out_of_memory(p);
    expr->nodes[expr->node_count] = *node;
    tbd_expr_note_level(expr, &expr->nodes[expr->node_count]);
    if (expr->levels > TBD_EXPR_MAX_LEVELS)
        return FAIL(p, TBD_SYNTAX, NULL, "too many reads of memory inside each other");
    return (int32_t)expr->node_count++;
}

struct tbd_expr_node tbd_parser_leaf(const struct tbd_token *token, enum tbd_expr_op op)
{
    return (struct tbd_expr_node){ .op = (uint8_t)op,
                                   .left = NONE,
                                   .right = NONE,
                                   .at = (uint32_t)token->at,
                                   .length = (uint32_t)token->length };
}

static int32_t add_number(struct tbd_parser *p, const struct tbd_token *token, uint64_t value)
{
    struct tbd_expr_node node = tbd_parser_leaf(token, TBD_EXPR_NUMBER);

    node.value = value;
    return tbd_parser_add(p, &node);
}

static bool op_is_boolean(enum tbd_expr_op op)
{
    return (op >= TBD_EXPR_TOUCHES && op <= TBD_EXPR_GE) && op != TBD_EXPR_NUMBER;
}

int32_t tbd_parser_add_binary(struct tbd_parser *p, const struct tbd_token *token,
                              enum tbd_expr_op op, int32_t left, int32_t right)
{
    struct tbd_expr_node node = tbd_parser_leaf(token, op);

    if (left == NONE || (right == NONE && op != TBD_EXPR_NOT && op != TBD_EXPR_NEG &&
                         op != TBD_EXPR_BITNOT && op != TBD_EXPR_SIGNED))
        return NONE;
    node.is_typed =
        p->expr->nodes[left].is_typed || (right != NONE && p->expr->nodes[right].is_typed);
    node.left = left;
    node.right = right;
    node.is_boolean = op_is_boolean(op);
    node.is_signed = p->expr->nodes[left].is_signed ||
                     (right != NONE && p->expr->nodes[right].is_signed) || op == TBD_EXPR_SIGNED;
    return tbd_parser_add(p, &node);
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

int32_t tbd_parser_add_symbol(struct tbd_parser *p, char *text)
{
    struct tbd_expr *expr = p->expr;

    if (text == NULL ||
        !grow((void **)&expr->symbols, expr->symbol_count, sizeof(*expr->symbols)) ||
        !grow((void **)&expr->symbol_found, expr->symbol_count, sizeof(*expr->symbol_found))) {
        free(text);
        return tbd_parser_out_of_memory(p);
    }
    expr->symbols[expr->symbol_count] = text;
    expr->symbol_found[expr->symbol_count] = 0;
    return (int32_t)expr->symbol_count++;
}

/* Index of a new name; takes `text`. */
int32_t tbd_parser_add_name(struct tbd_parser *p, char *text, enum tbd_name_kind kind,
                            const struct tbd_token *token)
{
    struct tbd_expr *expr = p->expr;

    if (text == NULL || !grow((void **)&expr->names, expr->name_count, sizeof(*expr->names))) {
        free(text);
        return tbd_parser_out_of_memory(p);
    }
    expr->names[expr->name_count] = (struct tbd_expr_name){
        .text = text, .kind = kind, .at = (uint32_t)token->at, .length = (uint32_t)token->length
    };
    expr->uses |= TBD_USES_NAMES;
    return (int32_t)expr->name_count++;
}

bool tbd_parser_expect(struct tbd_parser *p, char sign, const char *where)
{
    if (tbd_token_is_sign(&p->lexer.token, (unsigned char)sign)) {
        tbd_parser_next(p);
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

static void note_field_use(struct tbd_parser *p, enum tbd_field field)
{
    bool calls = p->type == TBD_EVENT_FUNC_ENTER || p->type == TBD_EVENT_FUNC_EXIT;

    if (field == TBD_FIELD_NEWVAL || (field == TBD_FIELD_OLDVAL && p->type == TBD_EVENT_LOAD))
        p->expr->uses |= TBD_USES_VALUE;
    if (field == TBD_FIELD_SP && !calls)
        tbd_expr_note_register(p->expr, TBD_RSP);
    if (field == TBD_FIELD_FRAME)
        p->expr->uses |= TBD_USES_FRAME;
    if (field == TBD_FIELD_LINE)
        p->expr->uses |= TBD_USES_TYPES;
}

static int32_t parse_field(struct tbd_parser *p, const struct tbd_field_name *row)
{
    struct tbd_expr_node node = tbd_parser_leaf(&p->lexer.token, TBD_EXPR_FIELD);
    char hint[128];

    if ((row->types & 1u << p->type) == 0) {
        types_text(row->types, hint, sizeof(hint));
        return FAIL(p, TBD_TYPE, hint, "'%s' has no value at a %s", row->name,
                    tbd_event_type_name(p->type));
    }
    node.which = row->field;
    node.is_typed = row->field == TBD_FIELD_LINE;
    note_field_use(p, row->field);
    tbd_parser_next(p);
    return tbd_parser_add(p, &node);
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

static int32_t parse_register(struct tbd_parser *p, const struct tbd_register_name *reg)
{
    struct tbd_expr_node node = tbd_parser_leaf(&p->lexer.token, TBD_EXPR_REGISTER);

    node.which = reg->which;
    node.width = reg->width;
    node.value = reg->shift;
    if (!event_knows_register(p->type, reg->which))
        tbd_expr_note_register(p->expr, reg->which);
    tbd_parser_next(p);
    return tbd_parser_add(p, &node);
}

/* func == NAME, module != "NAME*" */
static int32_t parse_name_compare(struct tbd_parser *p, bool is_module)
{
    struct tbd_token word = p->lexer.token;
    const struct tbd_token *token = &p->lexer.token;
    struct tbd_expr_node node =
        tbd_parser_leaf(&word, is_module ? TBD_EXPR_MODULE : TBD_EXPR_FUNCTION);
    bool unequal;
    int32_t index;

    tbd_parser_next(p);
    unequal = tbd_token_is_sign(token, TBD_SIGN('!', '='));
    if (!unequal && !tbd_token_is_sign(token, TBD_SIGN('=', '=')))
        return FAIL(p, TBD_TYPE, "for example func==main or func!=\"str*\"",
                    "'%.*s' can only be compared with a name, by == or !=", (int)word.length,
                    word.text);
    tbd_parser_next(p);
    if (token->kind != TBD_TOKEN_WORD && token->kind != TBD_TOKEN_STRING)
        return FAIL(p, TBD_TYPE, "names may be quoted: \"operator new*\"",
                    "expected the name of a %s", is_module ? "module" : "function");
    index = tbd_parser_add_name(p, token_name(token),
                                is_module ? TBD_NAME_MODULE : TBD_NAME_FUNCTION, token);
    if (index == NONE)
        return NONE;
    node.which = (uint32_t)index;
    node.is_boolean = 1;
    tbd_parser_next(p);
    index = tbd_parser_add(p, &node);
    return unequal ? tbd_parser_add_binary(p, &word, TBD_EXPR_NOT, index, NONE) : index;
}

/* The address of a symbol; behind '&'. */
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
    slot = tbd_parser_add_symbol(p, token_name(token));
    if (slot == NONE)
        return NONE;
    node.which = (uint32_t)slot;
    tbd_parser_next(p);
    return tbd_parser_add(p, &node);
}

/* mem[ADDR,SIZE]; after[ADDR,SIZE]: as the event's instruction leaves it; real[ADDR,4 or 8],
 * real_after[ADDR,SIZE]: floating point. */
static int32_t parse_memory(struct tbd_parser *p, bool is_after, bool is_real)
{
    struct tbd_token word = p->lexer.token;
    struct tbd_expr_node node = tbd_parser_leaf(&word, TBD_EXPR_MEMORY);
    const struct tbd_token *token = &p->lexer.token;
    int32_t index;

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
    node.which = p->expr->memory_count++;
    node.is_after = is_after;
    node.is_real = is_real;
    node.is_typed = is_real || p->expr->nodes[node.left].is_typed;
    p->expr->uses |= TBD_USES_MEMORY | (is_real ? TBD_USES_TYPES : 0u);
    index = tbd_parser_add(p, &node);
    return index;
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

/* ---- stack patterns ---- */

static bool add_item(struct tbd_parser *p, struct tbd_expr_pattern *pattern, int32_t item)
{
    if (!grow((void **)&pattern->items, pattern->count, sizeof(*pattern->items))) {
        (void)tbd_parser_out_of_memory(p);
        return false;
    }
    pattern->items[pattern->count++] = item;
    return true;
}

/* One item of a pattern, read from the raw text: a name may hold any character but , > and blanks.
 */
static bool parse_item(struct tbd_parser *p, struct tbd_expr_pattern *pattern)
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
    index = tbd_parser_add_name(p, *s == '"' ? copy_text(s + 1, n - 2) : copy_text(s, n),
                                TBD_NAME_FUNCTION, &lexer->token);
    return index != NONE && add_item(p, pattern, index);
}

static bool parse_items(struct tbd_parser *p, struct tbd_expr_pattern *pattern)
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
    tbd_parser_next(p);
    return true;
}

/* The current token is the word "stack"; what follows is raw text. */
static int32_t parse_stack(struct tbd_parser *p)
{
    struct tbd_lexer *lexer = &p->lexer;
    struct tbd_expr *expr = p->expr;
    struct tbd_expr_node node = tbd_parser_leaf(&lexer->token, TBD_EXPR_STACK);
    const char *s = lexer->source + lexer->at;

    s += strspn(s, " ");
    s += strspn(s, "=");
    s += strspn(s, " ");
    lexer->at = (size_t)(s - lexer->source);
    if (*s != '<') {
        tbd_parser_next(p);
        return FAIL(p, TBD_SYNTAX, "for example stack=<**,main,parse>; the innermost is last",
                    "expected a pattern: stack=<...>");
    }
    lexer->at++;
    if (expr->pattern_count >= TBD_EXPR_MAX_PATTERNS)
        return FAIL(p, TBD_SYNTAX, NULL, "too many stack patterns");
    if (!grow((void **)&expr->patterns, expr->pattern_count, sizeof(*expr->patterns)))
        return tbd_parser_out_of_memory(p);
    expr->patterns[expr->pattern_count] = (struct tbd_expr_pattern){ 0 };
    node.which = expr->pattern_count++;
    node.is_boolean = 1;
    expr->uses |= TBD_USES_STACK;
    if (!parse_items(p, &expr->patterns[node.which]))
        return NONE;
    return tbd_parser_add(p, &node);
}

/* ---- values ---- */

static int32_t parse_function(struct tbd_parser *p)
{
    return parse_name_compare(p, false);
}

static int32_t parse_module(struct tbd_parser *p)
{
    return parse_name_compare(p, true);
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

/* SIGALRM, or ALRM; 0 if there is none. */
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

    if (p->type == TBD_EVENT_SYSCALL && number >= 0) {
        tbd_parser_next(p);
        return add_number(p, &word, (uint64_t)number);
    }
    number = p->type == TBD_EVENT_SIGNAL ? signal_number(&word) : 0;
    if (number > 0) {
        tbd_parser_next(p);
        return add_number(p, &word, (uint64_t)number);
    }
    return tbd_parser_variable(p);
}

/* Words that begin more than a field or register. */
static const struct {
    const char *word;
    int32_t (*parse)(struct tbd_parser *p);
} constructs[] = {
    { "func", parse_function },
    { "module", parse_module },
    { "mem", parse_mem },
    { "after", parse_after },
    { "real", parse_real },
    { "real_after", parse_real_after },
    { "touches", parse_touches },
    { "signed", parse_signed },
    { "stack", parse_stack },
    { "src", tbd_parser_src },
    { "sizeof", tbd_parser_sizeof },
};

/* Is the word followed by what makes it a construct?  Programs have variables of these names. */
static bool is_construct(const struct tbd_parser *p, const char *word)
{
    const char *s = p->lexer.source + p->lexer.at;

    if (strcmp(word, "after") != 0 && strncmp(word, "real", 4) != 0)
        return true;
    return s[strspn(s, " \t")] == '[';
}

static int32_t parse_word(struct tbd_parser *p)
{
    const struct tbd_token *token = &p->lexer.token;
    const struct tbd_field_name *field = tbd_field_find(token->text, token->length);
    struct tbd_register_name reg;

    if (field != NULL)
        return parse_field(p, field);
    for (size_t i = 0; i < sizeof(constructs) / sizeof(constructs[0]); i++) {
        if (tbd_token_is_word(token, constructs[i].word) && is_construct(p, constructs[i].word))
            return constructs[i].parse(p);
    }
    if (tbd_register_find(token->text, token->length, &reg) ||
        (token->length > 1 && token->text[0] == '$' &&
         tbd_register_find(token->text + 1, token->length - 1, &reg)))
        return parse_register(p, &reg);
    return parse_other_word(p);
}

static int32_t parse_string(struct tbd_parser *p)
{
    struct tbd_token token = p->lexer.token;
    int64_t number = tbd_syscall_number(token.text, token.length - 2);

    if (p->type != TBD_EVENT_SYSCALL || number < 0)
        return tbd_parser_string(p);
    tbd_parser_next(p);
    return add_number(p, &token, (uint64_t)number);
}

static int32_t parse_real_number(struct tbd_parser *p)
{
    struct tbd_expr_node node = tbd_parser_leaf(&p->lexer.token, TBD_EXPR_NUMBER);

    node.value = p->lexer.token.number;
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
    return tbd_parser_postfix(p, inner);
}

static int32_t parse_primary(struct tbd_parser *p)
{
    struct tbd_token token = p->lexer.token;

    if (token.kind == TBD_TOKEN_NUMBER) {
        tbd_parser_next(p);
        return add_number(p, &token, token.number);
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

/* - ~ ! *: operators in front of a value; -1 if there is none. */
static int prefix_at(const struct tbd_token *token)
{
    static const struct {
        char sign;
        uint8_t op;
    } prefixes[] = { { '-', TBD_EXPR_NEG },
                     { '~', TBD_EXPR_BITNOT },
                     { '!', TBD_EXPR_NOT },
                     { '*', TBD_EXPR_DEREF } };

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (tbd_token_is_sign(token, (unsigned char)prefixes[i].sign))
            return prefixes[i].op;
    }
    return -1;
}

int32_t tbd_parser_unary(struct tbd_parser *p)
{
    struct tbd_token token = p->lexer.token;
    int op = prefix_at(&token);
    int32_t inner;

    if (p->depth >= MAX_DEPTH)
        return FAIL(p, TBD_SYNTAX, NULL, "the condition is nested too deeply");
    p->depth++;
    if (op < 0)
        inner = parse_primary(p);
    else if (op == TBD_EXPR_DEREF)
        inner = tbd_parser_deref(p);
    else {
        tbd_parser_next(p);
        inner = tbd_parser_unary(p);
        inner = inner == NONE ? NONE
                              : tbd_parser_add_binary(p, &token, (enum tbd_expr_op)op, inner, NONE);
    }
    p->depth--;
    return inner;
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
static int32_t check_compare(struct tbd_parser *p, int32_t index)
{
    const struct tbd_expr_node *node;
    const struct tbd_expr_node *right;

    if (index == NONE)
        return NONE;
    node = &p->expr->nodes[index];
    right = &p->expr->nodes[node->right];
    if (node->op != TBD_EXPR_LT || node->is_signed || node->is_typed ||
        right->op != TBD_EXPR_NUMBER || right->value != 0)
        return index;
    p->lexer.token.at = node->at;
    p->lexer.token.length = node->length;
    return FAIL(p, TBD_TYPE, "values are unsigned: write signed(retval) < 0",
                "nothing is less than 0 here");
}

static int32_t parse_binary(struct tbd_parser *p, unsigned level)
{
    int32_t left = level == LEVEL_UNARY ? tbd_parser_unary(p) : parse_binary(p, level + 1);
    int op;

    if (left != NONE && level == LEVEL_COMPARE &&
        tbd_token_is_sign(&p->lexer.token, TBD_SIGN('=', '~'))) {
        struct tbd_token token = p->lexer.token;

        tbd_parser_next(p);
        return tbd_parser_like(p, &token, left);
    }

    while (left != NONE && level < LEVEL_UNARY && (op = operator_at(&p->lexer.token, level)) >= 0) {
        struct tbd_token token = p->lexer.token;

        if (is_name_node(&p->expr->nodes[left]))
            return FAIL(p, TBD_TYPE, NULL, "a condition on a name cannot be calculated with");
        if (level == LEVEL_COMPARE && p->expr->nodes[left].is_boolean &&
            p->expr->nodes[left].op >= TBD_EXPR_EQ)
            return FAIL(p, TBD_SYNTAX, "write a<b and b<c, or use ( )",
                        "comparisons cannot be chained");
        tbd_parser_next(p);
        left = tbd_parser_add_binary(p, &token, (enum tbd_expr_op)op, left,
                                     parse_binary(p, level + 1));
        if (level == LEVEL_COMPARE)
            left = check_compare(p, left);
    }
    return left;
}

static int32_t parse_not(struct tbd_parser *p)
{
    struct tbd_token token = p->lexer.token;
    int32_t inner;

    if (p->depth >= MAX_DEPTH)
        return FAIL(p, TBD_SYNTAX, NULL, "the condition is nested too deeply");
    p->depth++;
    if (tbd_token_is_word(&token, "not")) {
        tbd_parser_next(p);
        inner = parse_not(p);
        inner = inner == NONE ? NONE : tbd_parser_add_binary(p, &token, TBD_EXPR_NOT, inner, NONE);
    } else {
        inner = parse_binary(p, LEVEL_COMPARE);
    }
    p->depth--;
    return inner;
}

static int32_t parse_and(struct tbd_parser *p)
{
    int32_t left = parse_not(p);

    while (left != NONE && (tbd_token_is_word(&p->lexer.token, "and") ||
                            tbd_token_is_sign(&p->lexer.token, TBD_SIGN('&', '&')))) {
        struct tbd_token token = p->lexer.token;

        tbd_parser_next(p);
        left = tbd_parser_add_binary(p, &token, TBD_EXPR_AND, left, parse_not(p));
    }
    return left;
}

int32_t tbd_parser_or(struct tbd_parser *p)
{
    int32_t left = parse_and(p);

    while (left != NONE && (tbd_token_is_word(&p->lexer.token, "or") ||
                            tbd_token_is_sign(&p->lexer.token, TBD_SIGN('|', '|')))) {
        struct tbd_token token = p->lexer.token;

        tbd_parser_next(p);
        left = tbd_parser_add_binary(p, &token, TBD_EXPR_OR, left, parse_and(p));
    }
    return left;
}

static const char *tail_hint(const struct tbd_token *token)
{
    if (tbd_token_is_sign(token, '='))
        return "equality is written ==";
    return "conditions are joined by 'and' and 'or'";
}

enum tbd_status tbd_expr_parse(const char *text, size_t from, enum tbd_event_type type,
                               struct tbd_expr **out, struct tbd_query_error *error)
{
    struct tbd_parser p = { .type = type };
    const struct tbd_token *token = &p.lexer.token;

    *out = NULL;
    p.expr = calloc(1, sizeof(*p.expr));
    tbd_lexer_start(&p.lexer, text, from, error);
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

/* What lowered expressions borrow. */
static void free_borrowed(struct tbd_expr *expr)
{
    for (uint32_t i = 0; i < expr->name_count; i++) {
        free(expr->names[i].text);
        free(expr->names[i].ranges);
    }
    for (uint32_t i = 0; i < expr->pattern_count; i++)
        free(expr->patterns[i].items);
    for (uint32_t i = 0; i < expr->symbol_count; i++)
        free(expr->symbols[i]);
    for (uint32_t i = 0; i < expr->regex_count; i++)
        regfree(&expr->regexes[i]);
    free(expr->names);
    free(expr->patterns);
    free(expr->symbols);
    free(expr->symbol_found);
    free(expr->regexes);
}

void tbd_expr_free(struct tbd_expr *expr)
{
    if (expr == NULL)
        return;
    if (expr->from == NULL)
        free_borrowed(expr);
    free(expr->nodes);
    free(expr);
}
