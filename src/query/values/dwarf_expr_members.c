// SPDX-License-Identifier: MIT
/* dwarf_expr_members.c - members and elements, of the program's types and of the C++ library's
 * (dwarf_expr_private.h) */
#include "query/values/dwarf_expr_private.h"

#include "query/values/cxx_object.h"
#include "query/values/cxx_print.h"

#include <inttypes.h>
#include <string.h>

/* A member of the object's class; else of the class that its virtual functions are of. */
static bool find_member(struct tbd_c_run *r, const struct tbd_data *object, const char *name,
                        size_t length, struct tbd_member *found, struct tbd_data *out)
{
    const struct tbd_c_scope *scope = r->scope;
    struct tbd_class_finder finder = { scope->type, scope->context };
    struct tbd_data whole;

    return tbd_data_find_member(scope->place, object, name, length, found, out) ||
           (tbd_object_whole(scope->place, &finder, object, &whole) &&
            tbd_data_find_member(scope->place, &whole, name, length, found, out));
}

bool tbd_c_member(struct tbd_c_run *r, const struct tbd_c_node *node, struct tbd_data *data)
{
    const char *name = r->text + node->at;
    struct tbd_type_view view;
    struct tbd_member found;
    struct tbd_data part;

    view = tbd_type_look(&data->type);
    if (view.kind != TBD_TYPE_STRUCT)
        return tbd_query_wrong(r->error, TBD_TYPE, (size_t)node->number, 1,
                               "this is not a struct or union");
    if (!find_member(r, data, name, node->length, &found, &part))
        return tbd_query_wrong(r->error, TBD_NAME, node->at, node->length,
                               "there is no member '%.*s'", (int)node->length, name);
    if (found.is_static)
        (void)tbd_c_static_member(r->scope->place, &found, data);
    else
        *data = part;
    return true;
}

/* A key that is looked for: a number, a variable, or a string between quotes. */
struct wanted_key {
    struct tbd_c_run *run;
    const struct tbd_c_node *node;   /* of [] or at() */
    const struct tbd_c_node *string; /* NULL: `value` */
    struct tbd_data value;
};

/* The characters of a std::string, in a buffer of TBD_C_STRING_MAX bytes. */
static bool string_bytes(struct tbd_c_run *r, const struct tbd_data *data, char *out,
                         size_t *length)
{
    struct tbd_cxx text;

    if (!tbd_cxx_open(r->scope->place, data, &text) || text.kind != TBD_CXX_STRING ||
        text.count > TBD_C_STRING_MAX)
        return false;
    *length = (size_t)text.count;
    return tbd_data_read(r->scope->place, &text.data, 0, out, *length);
}

static bool is_wanted_key(void *context, const struct tbd_data *key)
{
    struct wanted_key *wanted = context;
    struct tbd_c_run *r = wanted->run;
    struct tbd_c_node equal = { .op = TBD_C_EQUAL, .at = wanted->node->at, .length = 1 };
    struct tbd_data left = *key, right = wanted->value;
    char text[2][TBD_C_STRING_MAX];
    size_t length[2];
    struct tbd_c_operand truth;

    if (r->error->status != TBD_OK)
        return false;
    if (wanted->string == NULL && string_bytes(r, &left, text[0], &length[0]) &&
        string_bytes(r, &right, text[1], &length[1]))
        return length[0] == length[1] && memcmp(text[0], text[1], length[0]) == 0;
    if (!(wanted->string != NULL ? tbd_c_compare_string(r, &equal, &left, wanted->string, &left)
                                 : tbd_c_combine(r, TBD_C_EQUAL, &left, &right)))
        return false;
    return tbd_c_operand(r, &left, &truth) && truth.number != 0;
}

/* The value of a key in a map. */
static bool mapped(struct tbd_c_run *r, const struct tbd_c_node *node, struct tbd_data *data)
{
    struct wanted_key wanted = { .run = r,
                                 .node = node,
                                 .string = tbd_c_string_of(r, node->right) };
    struct tbd_data found;

    if (wanted.string == NULL && !tbd_c_evaluate_node(r, node->right, &wanted.value))
        return false;
    tbd_c_follow(r, &wanted.value);
    if (!tbd_cxx_find(r->scope->place, data, is_wanted_key, &wanted, &found)) {
        if (r->error->status != TBD_OK && r->error->length == 0) {
            r->error->at = node->at;
            r->error->length = 1;
        }
        return tbd_query_wrong(r->error, TBD_NOTFOUND, node->at, 1, "it has no such key here");
    }
    *data = found;
    return true;
}

/* An element of a vector, string, deque, map, ... of the C++ library. */
static bool library_element(struct tbd_c_run *r, const struct tbd_c_node *node,
                            struct tbd_data *data)
{
    struct tbd_data found, index;
    struct tbd_c_operand number;

    if (tbd_cxx_is_map(r->scope->place, data))
        return mapped(r, node, data);
    if (!tbd_c_evaluate_node(r, node->right, &index))
        return false;
    if (!tbd_c_operand(r, &index, &number))
        return r->error->status == TBD_OK;
    if (!tbd_cxx_element(r->scope->place, data, number.number, &found))
        return tbd_query_wrong(r->error, TBD_TYPE, node->at, 1,
                               "it has no element %" PRIu64 " here", number.number);
    *data = found;
    return true;
}

/* The result of a member function of the C++ library. */
bool tbd_c_call(struct tbd_c_run *r, const struct tbd_c_node *node, struct tbd_data *data)
{
    const struct tbd_c_node *of = &r->tree->nodes[node->left];
    char name[TBD_C_NAME_BYTES];
    struct tbd_data found;

    tbd_c_name_of(r, of, name);
    if (!tbd_c_evaluate_node(r, of->left, data) ||
        (of->op == TBD_C_ARROW && !tbd_c_dereference(r, (size_t)of->number, data)))
        return false;
    tbd_c_follow(r, data);
    if (!data->is_known)
        return true;
    if (node->right >= 0 && strcmp(name, "at") == 0 &&
        tbd_type_look(&data->type).kind == TBD_TYPE_STRUCT)
        return library_element(r, node, data);
    if (node->right >= 0 || !tbd_cxx_ask(r->scope->place, data, name, &found))
        return tbd_query_wrong(
            r->error, TBD_TYPE, of->at, of->length,
            "functions of the program are not called, and this is no `%s` of the C++ library "
            "with a value here",
            name);
    *data = found;
    return true;
}

bool tbd_c_element(struct tbd_c_run *r, const struct tbd_c_node *node, struct tbd_data *data)
{
    struct tbd_data index;
    struct tbd_type_view view;
    struct tbd_type type;
    struct tbd_c_operand number;

    if (!tbd_c_evaluate_node(r, node->left, data))
        return false;
    tbd_c_follow(r, data);
    view = tbd_type_look(&data->type);
    if (view.kind == TBD_TYPE_STRUCT && data->is_known)
        return library_element(r, node, data);
    if (!tbd_c_evaluate_node(r, node->right, &index))
        return false;
    /* An array in registers has no address. */
    if (view.kind == TBD_TYPE_ARRAY && data->is_known && !data->in_memory) {
        if (!tbd_c_operand(r, &index, &number))
            return r->error->status == TBD_OK;
        (void)tbd_type_target(&data->type, &type);
        tbd_data_part(data, number.number * tbd_type_look(&type).bytes, &type, data);
        return true;
    }
    return tbd_c_combine(r, TBD_C_PLUS, data, &index) && tbd_c_dereference(r, node->at, data);
}
