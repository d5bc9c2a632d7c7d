// SPDX-License-Identifier: MIT
/* expr_make.c - see expr_make.h
 *
 * Joining appends one condition's arrays to the other's. The indices in the appended nodes (a slot
 * in `which`, operands in `left` and `right`) grow by the number of entries that were there before.
 *
 * EXPR_MAKE-1  A node's operands have smaller indices than the node, as in a parsed condition. (not
 *     checked: conditions of all kinds do, test_query_language)
 * EXPR_MAKE-2  A function that takes a condition over frees it or makes it part of the result. (not
 *     checked: asan does) */
#include "query/condition/expr_make.h"

#include "query/condition/expr_nodes.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define NONE TBD_PARSER_NONE

/* Makes this node the root of `expr`, which it takes. */
static struct tbd_expr *rooted(struct tbd_expr *expr, int32_t root)
{
    if (expr == NULL || root == NONE) {
        tbd_expr_free(expr);
        return NULL;
    }
    expr->root = root;
    return expr;
}

static struct tbd_expr_node node_of(enum tbd_expr_op op, int32_t left, int32_t right)
{
    return (struct tbd_expr_node){ .op = (uint8_t)op, .left = left, .right = right };
}

static int32_t add_operator(struct tbd_expr *expr, enum tbd_expr_op op, int32_t left, int32_t right)
{
    struct tbd_expr_node node = node_of(op, left, right);

    return tbd_expr_add_operator(expr, &node);
}

static int32_t add_number(struct tbd_expr *expr, uint64_t value)
{
    struct tbd_expr_node node = node_of(TBD_EXPR_NUMBER, NONE, NONE);

    node.value = value;
    return tbd_expr_add(expr, &node);
}

static int32_t add_field(struct tbd_expr *expr, enum tbd_event_type type,
                         enum tbd_event_field field)
{
    struct tbd_expr_node node = node_of(TBD_EXPR_FIELD, NONE, NONE);

    node.which = field;
    node.is_typed = tbd_field_is_typed(type, field);
    tbd_expr_note_field(expr, type, field);
    return tbd_expr_add(expr, &node);
}

struct tbd_expr *tbd_expr_compare(enum tbd_event_type type, enum tbd_event_field field,
                                  enum tbd_expr_op op, uint64_t value)
{
    struct tbd_expr *expr = calloc(1, sizeof(*expr));
    int32_t left;

    if (expr == NULL)
        return NULL;
    left = add_field(expr, type, field);
    return rooted(expr, add_operator(expr, op, left, add_number(expr, value)));
}

struct tbd_expr *tbd_expr_touches(uint64_t address, uint64_t bytes)
{
    struct tbd_expr *expr = calloc(1, sizeof(*expr));
    int32_t left;

    if (expr == NULL)
        return NULL;
    left = add_number(expr, address);
    return rooted(expr, add_operator(expr, TBD_EXPR_TOUCHES, left, add_number(expr, bytes)));
}

/* The bits that the store has changed, moved to where they lie in the number at `address`: down if the store begins
 * before it, up (TBD_EXPR_SHL) if it begins after.  The one of the two that does not fit is 0, as its distance is a
 * large number. */
static int32_t add_changed(struct tbd_expr *expr, uint64_t address, enum tbd_expr_op move)
{
    int32_t old = add_field(expr, TBD_EVENT_STORE, TBD_FIELD_OLDVAL);
    int32_t fresh = add_field(expr, TBD_EVENT_STORE, TBD_FIELD_NEWVAL);
    int32_t changed = add_operator(expr, TBD_EXPR_BITXOR, old, fresh);
    bool is_after = move == TBD_EXPR_SHL;
    int32_t from =
        is_after ? add_field(expr, TBD_EVENT_STORE, TBD_FIELD_ADDR) : add_number(expr, address);
    int32_t to =
        is_after ? add_number(expr, address) : add_field(expr, TBD_EVENT_STORE, TBD_FIELD_ADDR);
    int32_t bytes = add_operator(expr, TBD_EXPR_SUB, from, to);

    return add_operator(expr, move, changed,
                        add_operator(expr, TBD_EXPR_MUL, bytes, add_number(expr, 8)));
}

struct tbd_expr *tbd_expr_changes(uint64_t address, uint64_t mask)
{
    struct tbd_expr *expr = calloc(1, sizeof(*expr));
    int32_t right, left;

    if (expr == NULL)
        return NULL;
    left = add_changed(expr, address, TBD_EXPR_SHR);
    right = add_changed(expr, address, TBD_EXPR_SHL);
    left = add_operator(expr, TBD_EXPR_BITOR, left, right);
    left = add_operator(expr, TBD_EXPR_BITAND, left, add_number(expr, mask));
    expr = rooted(expr, add_operator(expr, TBD_EXPR_NE, left, add_number(expr, 0)));
    expr = tbd_expr_join(TBD_EXPR_OR,
                         tbd_expr_compare(TBD_EVENT_STORE, TBD_FIELD_SIZE, TBD_EXPR_GT, 8), expr);
    return tbd_expr_join(
        TBD_EXPR_AND, tbd_expr_touches(address, (71 - (uint64_t)__builtin_clzll(mask)) / 8), expr);
}

struct tbd_expr *tbd_expr_is_in(const struct tbd_expr_name *name)
{
    struct tbd_expr *expr = calloc(1, sizeof(*expr));
    bool is_module = name->kind == TBD_NAME_MODULE;
    struct tbd_expr_node node =
        node_of(is_module ? TBD_EXPR_MODULE : TBD_EXPR_FUNCTION, NONE, NONE);
    struct tbd_expr_name copy = *name;
    int32_t index;

    if (expr == NULL)
        return NULL;
    copy.text = strdup(name->text);
    index = tbd_expr_add_name(expr, &copy);
    if (index == NONE)
        return rooted(expr, NONE);
    node.which = (uint32_t)index;
    node.is_boolean = 1;
    return rooted(expr, tbd_expr_add(expr, &node));
}

struct tbd_expr *tbd_expr_not(struct tbd_expr *expr)
{
    return expr == NULL ? NULL : rooted(expr, add_operator(expr, TBD_EXPR_NOT, expr->root, NONE));
}

/* ---- one appended to the other ---- */

static void move_slot(struct tbd_expr_node *node, const struct tbd_expr *before)
{
    switch ((enum tbd_expr_op)node->op) {
    case TBD_EXPR_FUNCTION:
    case TBD_EXPR_CALLER:
    case TBD_EXPR_MODULE: node->which += before->name_count; break;
    case TBD_EXPR_STACK: node->which += before->pattern_count; break;
    case TBD_EXPR_LIKE: node->which += before->regex_count; break;
    case TBD_EXPR_MEMORY: node->which += before->memory_count; break;
    case TBD_EXPR_SYMBOL:
    case TBD_EXPR_VARIABLE:
    case TBD_EXPR_STRING:
    case TBD_EXPR_MEMBER:
    case TBD_EXPR_CAST: node->which += before->symbol_count; break;
    case TBD_EXPR_SIZEOF: node->which += node->left == NONE ? before->symbol_count : 0; break;
    default: break;
    }
}

/* The nodes' slots come after the entries of `before`; their operands move by `base` nodes. */
static bool append_nodes(struct tbd_expr *to, const struct tbd_expr *from,
                         const struct tbd_expr *before, int32_t base)
{
    for (uint32_t i = 0; i < from->node_count; i++) {
        struct tbd_expr_node node = from->nodes[i];

        node.left += node.left == NONE ? 0 : base;
        node.right += node.right == NONE ? 0 : base;
        move_slot(&node, before);
        if (tbd_expr_add(to, &node) == NONE)
            return false;
    }
    return true;
}

static bool append_names(struct tbd_expr *to, const struct tbd_expr *from)
{
    for (uint32_t i = 0; i < from->name_count; i++) {
        struct tbd_expr_name name = from->names[i];

        name.text = strdup(name.text);
        name.ranges = NULL;
        name.copies = NULL;
        name.count = name.copy_count = 0;
        if (tbd_expr_add_name(to, &name) == NONE)
            return false;
    }
    return true;
}

static bool append_patterns(struct tbd_expr *to, const struct tbd_expr *from, uint32_t names_before)
{
    for (uint32_t i = 0; i < from->pattern_count; i++) {
        const struct tbd_expr_pattern *pattern = &from->patterns[i];
        struct tbd_expr_pattern copy = { 0 };

        if (!tbd_array_double(&to->patterns, to->pattern_count, sizeof(*to->patterns)))
            return false;
        copy.items = calloc(pattern->count + 1, sizeof(*copy.items));
        if (copy.items == NULL)
            return false;
        for (; copy.count < pattern->count; copy.count++) {
            int32_t item = pattern->items[copy.count];

            copy.items[copy.count] = item < 0 ? item : item + (int32_t)names_before;
        }
        to->patterns[to->pattern_count++] = copy;
    }
    return true;
}

static bool append_symbols(struct tbd_expr *to, const struct tbd_expr *from)
{
    for (uint32_t i = 0; i < from->symbol_count; i++) {
        char *text = strdup(from->symbols[i]);

        if (text == NULL ||
            !tbd_array_double(&to->symbols, to->symbol_count, sizeof(*to->symbols)) ||
            !tbd_array_double(&to->symbol_found, to->symbol_count, sizeof(*to->symbol_found))) {
            free(text);
            return false;
        }
        to->symbol_found[to->symbol_count] = 0;
        to->symbols[to->symbol_count++] = text;
    }
    return true;
}

static bool append_words(struct tbd_expr *to, const struct tbd_expr *from)
{
    for (uint32_t i = 0; i < from->word_count; i++) {
        if (!tbd_expr_add_word(to, from->words[i], strlen(from->words[i])))
            return false;
    }
    return true;
}

static bool append_regexes(struct tbd_expr *to, const struct tbd_expr *from)
{
    for (uint32_t i = 0; i < from->regex_count; i++) {
        struct tbd_expr_regex *copy;

        if (!tbd_array_double(&to->regexes, to->regex_count, sizeof(*to->regexes)))
            return false;
        copy = &to->regexes[to->regex_count];
        copy->text = strdup(from->regexes[i].text);
        if (copy->text == NULL ||
            regcomp(&copy->compiled, copy->text, REG_EXTENDED | REG_NOSUB) != 0) {
            free(copy->text);
            return false;
        }
        to->regex_count++;
    }
    return true;
}

/* Index in `to` of the root of `from`; NONE if there is no memory. */
static int32_t append(struct tbd_expr *to, const struct tbd_expr *from)
{
    struct tbd_expr before = *to;
    int32_t base = (int32_t)to->node_count;

    if (!append_names(to, from) || !append_patterns(to, from, before.name_count) ||
        !append_symbols(to, from) || !append_words(to, from) || !append_regexes(to, from) ||
        !append_nodes(to, from, &before, base))
        return NONE;
    to->memory_count += from->memory_count;
    to->uses |= from->uses;
    to->registers |= from->registers;
    return base + from->root;
}

struct tbd_expr *tbd_expr_join(enum tbd_expr_op op, struct tbd_expr *left, struct tbd_expr *right)
{
    int32_t root = NONE;

    if (left != NULL && right != NULL)
        root = append(left, right);
    if (root != NONE)
        root = add_operator(left, op, left->root, root);
    tbd_expr_free(right);
    return rooted(left, root);
}

struct tbd_expr *tbd_expr_copy(const struct tbd_expr *expr)
{
    struct tbd_expr *copy = calloc(1, sizeof(*copy));

    return rooted(copy, copy == NULL ? NONE : append(copy, expr));
}

/* ---- split ---- */

struct split {
    struct tbd_expr *early, *late; /* copies, with these roots: */
    int32_t early_root, late_root;
    bool no_memory;
};

static bool is_late_field(uint32_t field)
{
    return field == TBD_FIELD_RETVAL || field == TBD_FIELD_NESTING || field == TBD_FIELD_DURATION ||
           field == TBD_FIELD_RETURNED;
}

static bool needs_end(const struct tbd_expr *expr, int32_t index)
{
    const struct tbd_expr_node *node = &expr->nodes[index];

    if (node->op == TBD_EXPR_FIELD)
        return is_late_field(node->which);
    return (node->left != NONE && needs_end(expr, node->left)) ||
           (node->right != NONE && needs_end(expr, node->right));
}

/* Copies keep the nodes of the other part, too: what these use does not count. */
static bool has_types(const struct tbd_expr *expr, int32_t index)
{
    const struct tbd_expr_node *node = &expr->nodes[index];

    return node->is_typed || (node->left != NONE && has_types(expr, node->left)) ||
           (node->right != NONE && has_types(expr, node->right));
}

static void take_conjunct(void *context, const struct tbd_expr *expr, int32_t index)
{
    struct split *split = context;
    bool is_late = needs_end(expr, index);
    int32_t *root = is_late ? &split->late_root : &split->early_root;

    if (*root != NONE)
        index = add_operator(is_late ? split->late : split->early, TBD_EXPR_AND, *root, index);
    split->no_memory |= index == NONE;
    *root = index;
}

bool tbd_expr_split(struct tbd_expr *expr, struct tbd_expr **early, struct tbd_expr **late)
{
    struct split split = { .early = tbd_expr_copy(expr),
                           .late = tbd_expr_copy(expr),
                           .early_root = NONE,
                           .late_root = NONE };

    split.no_memory = split.early == NULL || split.late == NULL;
    if (!split.no_memory)
        tbd_expr_conjuncts(expr, expr->root, take_conjunct, &split);
    tbd_expr_free(expr);
    if (split.no_memory)
        split.early_root = split.late_root = NONE;
    if (split.early_root != NONE && !has_types(split.early, split.early_root))
        split.early->uses &= ~(uint32_t)TBD_USES_TYPES;
    *early = rooted(split.early, split.early_root);
    *late = rooted(split.late, split.late_root);
    return !split.no_memory;
}
