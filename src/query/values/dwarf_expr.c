// SPDX-License-Identifier: MIT
/* dwarf_expr.c - C expressions evaluated at a place: variables, members, elements, contents of the
 * C++ library's types
 *
 * DWARF_EXPR-1  An unknown value (optimized out, not mapped) goes up as the result; only wrong
 *     text, wrong types and unknown names are errors. (not checked: test_dwarf does)
 * DWARF_EXPR-2  Trees are bounded (c_parse.h), and so is the recursion here. (not checked: it is
 *     the bound of a loop) */
#include "query/values/dwarf_expr_private.h"

#include "query/values/cxx_print.h"
#include "query/debuginfo/register_names.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void tbd_c_name_of(const struct tbd_c_run *r, const struct tbd_c_node *node, char *out)
{
    memcpy(out, r->text + node->at, node->length);
    out[node->length] = '\0';
}

/* ---- binary operators ---- */

/* A string on one side of == or !=: the string that the other side points to, up to its NUL, or the
 * array itself. */
bool tbd_c_compare_string(struct tbd_c_run *r, const struct tbd_c_node *node, struct tbd_data *data,
                          const struct tbd_c_node *string, struct tbd_data *out)
{
    struct tbd_type_view view = tbd_type_look(&data->type);
    bool is_array = view.kind == TBD_TYPE_ARRAY && !data->in_memory;
    char wanted[TBD_C_STRING_MAX + 1];
    size_t length = tbd_c_unescape(r->text + string->at, string->length, wanted, TBD_C_STRING_MAX);
    struct tbd_cxx text;
    struct tbd_data at;
    struct tbd_c_operand a;

    wanted[length] = '\0';
    tbd_c_follow(r, data);
    if (tbd_cxx_open(r->scope->place, data, &text) && text.kind == TBD_CXX_STRING) {
        *data = text.data;
        if (text.count != length) {
            tbd_c_give_int(node->op == TBD_C_UNEQUAL, out);
            return true;
        }
        is_array = true; /* its characters, where they are */
    } else {
        length++; /* the NUL, too */
    }
    if (!is_array && !tbd_c_operand(r, data, &a)) {
        *out = *data;
        return r->error->status == TBD_OK;
    }
    if (!is_array && !a.is_pointer)
        return tbd_query_wrong(r->error, TBD_TYPE, node->at, node->length,
                               "a string is compared with pointers and arrays");
    at = *data;
    if (!is_array)
        tbd_data_at(a.number, &data->type, &at);
    for (size_t i = 0; i < length; i++) {
        char c = '\0';

        if (!tbd_data_read(r->scope->place, &at, i, &c, 1)) {
            tbd_data_unknown(out, "the string's memory is not known");
            return true;
        }
        if (c != wanted[i]) {
            tbd_c_give_int(node->op == TBD_C_UNEQUAL, out);
            return true;
        }
    }
    tbd_c_give_int(node->op == TBD_C_EQUAL, out);
    return true;
}

const struct tbd_c_node *tbd_c_string_of(const struct tbd_c_run *r, int32_t index)
{
    const struct tbd_c_node *node = &r->tree->nodes[index];

    return node->op == TBD_C_STRING ? node : NULL;
}

static bool evaluate_binary(struct tbd_c_run *r, const struct tbd_c_node *node,
                            struct tbd_data *out)
{
    const struct tbd_c_node *left = tbd_c_string_of(r, node->left),
                            *string = tbd_c_string_of(r, node->right);
    struct tbd_data right;
    bool good;

    if ((left != NULL) != (string != NULL) &&
        (node->op == TBD_C_EQUAL || node->op == TBD_C_UNEQUAL))
        return tbd_c_evaluate_node(r, left != NULL ? node->right : node->left, &right) &&
               tbd_c_compare_string(r, node, &right, left != NULL ? left : string, out);
    if (!tbd_c_evaluate_node(r, node->left, out))
        return false;
    if (tbd_c_is_decided(r, node->op, out)) {
        r->dead++;
        good = tbd_c_evaluate_node(r, node->right, &right);
        r->dead--;
        return good;
    }
    if (!tbd_c_evaluate_node(r, node->right, &right))
        return false;
    if (tbd_c_combine(r, node->op, out, &right))
        return true;
    if (r->error->length == 0) {
        r->error->at = node->at;
        r->error->length = node->length;
    }
    return false;
}

/* The side that is not chosen need not have a value, but it has a say in the type. */
static bool evaluate_choice(struct tbd_c_run *r, const struct tbd_c_node *node,
                            struct tbd_data *out)
{
    struct tbd_query_error before;
    struct tbd_c_operand a;
    struct tbd_data other;
    bool truth, has_other;

    if (!tbd_c_evaluate_node(r, node->left, out))
        return false;
    if (!tbd_c_operand(r, out, &a))
        return r->error->status == TBD_OK;
    truth = tbd_c_truth(&a);
    if (!tbd_c_evaluate_node(r, truth ? node->right : node->third, out))
        return false;
    before = *r->error;
    r->dead++;
    has_other = tbd_c_evaluate_node(r, truth ? node->third : node->right, &other);
    r->dead--;
    *r->error = before;
    return !has_other || tbd_c_take_common_type(r, out, &other);
}

/* ---- unary operators ---- */

/* The smart pointers of the C++ library can be dereferenced too. */
static void take_pointer(struct tbd_c_run *r, struct tbd_data *data)
{
    struct tbd_data pointer;

    if (tbd_type_look(&data->type).kind == TBD_TYPE_STRUCT &&
        tbd_cxx_pointer(r->scope->place, data, &pointer))
        *data = pointer;
}

/* What an unknown pointer leads to is not known either, and says that it is the pointer. */
static void unknown_target(struct tbd_data *data)
{
    char why[TBD_DATA_WHY];
    size_t said = strlen(TBD_DATA_NO_POINTER);

    if (strncmp(data->why, TBD_DATA_NO_POINTER, said) == 0)
        return;
    memcpy(why, data->why, sizeof(why));
    tbd_data_unknown(data, TBD_DATA_NO_POINTER "%s", why);
}

bool tbd_c_dereference(struct tbd_c_run *r, size_t at, struct tbd_data *data)
{
    struct tbd_type target;
    struct tbd_data held;
    struct tbd_c_operand a;
    enum tbd_type_kind kind;

    tbd_c_follow(r, data);
    tbd_c_decay(data);
    if (tbd_type_look(&data->type).kind == TBD_TYPE_STRUCT &&
        tbd_cxx_target(r->scope->place, data, &held)) {
        *data = held;
        return true;
    }
    take_pointer(r, data);
    kind = tbd_type_look(&data->type).kind;
    if (data->is_known && kind != TBD_TYPE_POINTER)
        return tbd_query_wrong(r->error, TBD_TYPE, at, 1, "this is not a pointer");
    if (!tbd_c_operand(r, data, &a)) {
        if (a.is_pointer && tbd_type_target(&a.type, &target)) {
            data->type = target;
            unknown_target(data);
        }
        return r->error->status == TBD_OK;
    }
    if (!a.is_pointer || !tbd_type_target(&a.type, &target))
        return tbd_query_wrong(r->error, TBD_TYPE, at, 1, "this is not a pointer");
    if (tbd_type_look(&target).kind == TBD_TYPE_VOID && target.die.addr == NULL &&
        target.pointers == 0 && a.type.die.addr != NULL)
        return tbd_query_wrong(r->error, TBD_TYPE, at, 1,
                               "a void pointer must be cast to the type it points to");
    tbd_data_at(a.number, &target, data);
    return true;
}

static bool address_of(struct tbd_c_run *r, size_t at, struct tbd_data *data)
{
    struct tbd_type pointer;

    tbd_c_follow(r, data);
    pointer = tbd_type_pointer_to(&data->type);
    if (!data->is_known) {
        data->type = pointer;
        return true;
    }
    if (!data->in_memory || data->bits != 0)
        return tbd_query_wrong(r->error, TBD_TYPE, at, 1,
                               "it has no address: it is in a register or a bit-field");
    tbd_data_number(data->address, &pointer, data);
    return true;
}

static bool negate(struct tbd_c_run *r, const struct tbd_c_node *node, struct tbd_data *data)
{
    char sign = r->text[node->at];
    struct tbd_c_operand a;
    struct tbd_type type;

    if (!tbd_c_operand(r, data, &a))
        return r->error->status == TBD_OK;
    if (sign == '!') {
        tbd_c_give_int(!tbd_c_truth(&a), data);
        return true;
    }
    if (a.is_pointer || (a.is_float && sign == '~'))
        return tbd_query_wrong(r->error, TBD_TYPE, node->at, 1, "'%c' takes a number", sign);
    if (a.is_float) {
        tbd_c_give_float(sign == '-' ? -a.real : a.real, a.is_narrow, data);
        return true;
    }
    type = tbd_c_common(&a, &a);
    tbd_data_number(tbd_c_narrow(&type, sign == '-'   ? 0 - a.number
                                        : sign == '~' ? ~a.number
                                                      : a.number),
                    &type, data);
    return true;
}

/* ---- primary ---- */

/* Does the place's frame still have this register?  The flags are those of the innermost one, segment bases the thread's. */
static bool is_register_known(const struct tbd_place_of *place, uint32_t which)
{
    const struct tbd_frame *frame = place->frame;

    if (frame == NULL || which == TBD_REGISTER_RIP)
        return frame != NULL;
    if (which < TBD_REG_COUNT)
        return (frame->known >> which & 1) != 0;
    return place->regs != NULL && (which != TBD_REGISTER_RFLAGS || frame->how == TBD_FRAME_REGS);
}

static bool take_register(struct tbd_c_run *r, const struct tbd_c_node *node, struct tbd_data *out)
{
    char name[TBD_C_NAME_BYTES];
    size_t length = node->length;
    const struct tbd_place_of *place = r->scope->place;
    const struct tbd_frame *frame = place->frame;
    struct tbd_type type = tbd_type_made(DW_ATE_unsigned, 8);
    struct tbd_register_name reg;
    uint64_t value;

    tbd_c_name_of(r, node, name);
    if (strcmp(name, "$pc") == 0)
        reg = (struct tbd_register_name){ TBD_REGISTER_RIP, 0, 64 };
    else if (strcmp(name, "$sp") == 0)
        reg = (struct tbd_register_name){ TBD_RSP, 0, 64 };
    else if (strcmp(name, "$eflags") == 0)
        reg = (struct tbd_register_name){ TBD_REGISTER_RFLAGS, 0, 32 };
    else if (!tbd_register_find(name + 1, length - 1, &reg))
        return (r->scope->kept != NULL && r->scope->kept(r->scope->context, name, out)) ||
               tbd_query_wrong(r->error, TBD_NAME, node->at, length,
                               "there is no register '%s', and no `set %s = ...`", name, name);
    if (!is_register_known(place, reg.which)) {
        *out = (struct tbd_data){ .type = type };
        tbd_data_unknown(out,
                         frame != NULL && frame->how == TBD_FRAME_REGS
                             ? "%s is not known here"
                             : "a called function may have changed %s",
                         name + 1);
        return true;
    }
    value = reg.which == TBD_REGISTER_RIP ? frame->pc
            : reg.which < TBD_REG_COUNT   ? frame->gpr[reg.which]
                                          : tbd_register_value(place->regs, reg.which);
    value >>= reg.shift;
    tbd_data_number(reg.width == 64 ? value : value & ((1ull << reg.width) - 1), &type, out);
    return true;
}

static bool take_name(struct tbd_c_run *r, const struct tbd_c_node *node, struct tbd_data *out)
{
    char name[TBD_C_NAME_BYTES];
    const struct tbd_place_of *place = r->scope->place;
    struct tbd_register_name register_name;
    const char *missing;
    struct tbd_place_of where;
    struct tbd_type type;
    uint64_t value;
    Dwarf_Die self;

    tbd_c_name_of(r, node, name);
    if (tbd_c_find_this(r->scope->place, name, &self)) {
        tbd_c_take(r->scope->place, &self, out);
        return tbd_c_dereference(r, node->at, out) && tbd_c_member(r, node, out);
    }
    if (tbd_c_constant(name, node->length, &type, &value) &&
        !tbd_c_find_entry(place, name, &where, &self)) {
        tbd_data_number(value, &type, out);
        return true;
    }
    if (tbd_c_find(r->scope, name, out))
        return true;
    (void)tbd_query_wrong(r->error, TBD_NAME, node->at, node->length,
                          "there is no variable '%s' here", name);
    if (r->error->hint[0] != '\0')
        return false;
    if (tbd_register_find(name, node->length, &register_name)) {
        snprintf(r->error->hint, sizeof(r->error->hint), "the register is $%.16s here", name);
        return false;
    }
    missing = place->dwarf != NULL ? tbd_dwarf_missing_file(place->dwarf, place->address) : NULL;
    if (missing != NULL)
        snprintf(r->error->hint, sizeof(r->error->hint),
                 "the debug information cannot be read: %.100s", missing);
    else if (place->dwarf == NULL)
        snprintf(r->error->hint, sizeof(r->error->hint),
                 "no debug information (-g); `up` selects the caller's frame; `bt` shows all");
    return false;
}

static bool size_of(struct tbd_c_run *r, const struct tbd_c_node *node, struct tbd_data *out)
{
    struct tbd_type result = tbd_type_made(DW_ATE_unsigned, 8);

    if (!tbd_c_evaluate_node(r, node->left, out))
        return false;
    tbd_data_number(tbd_type_look(&out->type).bytes, &result, out);
    return true;
}

static bool evaluate_leaf(struct tbd_c_run *r, const struct tbd_c_node *node, struct tbd_data *out)
{
    switch (node->op) {
    case TBD_C_NUMBER: tbd_data_number(node->number, &node->type, out); return true;
    case TBD_C_REAL: tbd_c_give_float(node->real, node->number != 0, out); return true;
    case TBD_C_REGISTER: return take_register(r, node, out);
    case TBD_C_STRING:
        return tbd_query_wrong(r->error, TBD_TYPE, node->at, node->length,
                               "a string is compared with == or != only");
    default: return take_name(r, node, out);
    }
}

static bool evaluate_unary(struct tbd_c_run *r, const struct tbd_c_node *node, struct tbd_data *out)
{
    if (!tbd_c_evaluate_node(r, node->left, out))
        return false;
    switch (node->op) {
    case TBD_C_MEMBER: tbd_c_follow(r, out); return tbd_c_member(r, node, out);
    case TBD_C_ARROW:
        return tbd_c_dereference(r, (size_t)node->number, out) && tbd_c_member(r, node, out);
    case TBD_C_CAST: return tbd_c_cast(r, node, &node->type, out);
    case TBD_C_DEREF: return tbd_c_dereference(r, node->at, out);
    case TBD_C_ADDRESS: return address_of(r, node->at, out);
    default: return negate(r, node, out);
    }
}

bool tbd_c_evaluate_node(struct tbd_c_run *r, int32_t index, struct tbd_data *out)
{
    const struct tbd_c_node *node = &r->tree->nodes[index];

    memset(out, 0, sizeof(*out));
    if (node->op == TBD_C_SIZEOF)
        return size_of(r, node, out);
    if (node->op == TBD_C_INDEX)
        return tbd_c_element(r, node, out);
    if (node->op == TBD_C_CALL)
        return tbd_c_call(r, node, out);
    if (node->op == TBD_C_CHOICE)
        return evaluate_choice(r, node, out);
    if (node->left < 0)
        return evaluate_leaf(r, node, out);
    return node->right < 0 ? evaluate_unary(r, node, out) : evaluate_binary(r, node, out);
}

/* ---- types by name ---- */

static bool find_type(void *context, const char *name, struct tbd_type *out)
{
    const struct tbd_c_scope *scope = context;
    const struct tbd_place_of *place = scope->place;
    const Dwarf_Die *unit = place->scopes.count != 0 ? &place->scopes.unit : NULL;

    return (place->dwarf != NULL && tbd_type_find(place->dwarf, unit, name, out)) ||
           (scope->type != NULL && scope->type(scope->context, name, out));
}

struct tbd_c_types tbd_c_types_of(const struct tbd_c_scope *scope)
{
    /* The callback only reads it. */
    return (struct tbd_c_types){ .find = find_type, .context = (void *)(uintptr_t)scope };
}

enum tbd_status tbd_c_evaluate(const struct tbd_c_scope *scope, const char *text, size_t from,
                               size_t to, struct tbd_data *out, struct tbd_query_error *error)
{
    struct tbd_c_types types = tbd_c_types_of(scope);
    struct tbd_c_tree tree;
    struct tbd_c_run r = { .scope = scope, .text = text, .tree = &tree, .error = error };

    memset(out, 0, sizeof(*out));
    if (tbd_c_parse(&types, text, from, to, &tree, error) != TBD_OK)
        return error->status;
    (void)tbd_c_evaluate_node(&r, tree.root, out);
    tbd_c_tree_free(&tree);
    return error->status;
}

enum tbd_status tbd_c_type(const struct tbd_c_scope *scope, const char *text, struct tbd_type *out)
{
    struct tbd_c_types types = tbd_c_types_of(scope);

    return tbd_c_parse_type(&types, text, out);
}
