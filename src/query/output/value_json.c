// SPDX-License-Identifier: MIT
/* value_json.c - see value_json.h
 *
 * VALUE_JSON-1  Output is bounded: ELEMENTS_MAX elements and members in all, NESTING_MAX levels; "..."
 *     stands for what was left out. (not checked: it is the bound of a count) */
#include "query/output/value_json.h"

#include "query/output/output.h"
#include "query/values/cxx_print.h"

#include "base/safe_stream.h"

#include <dwarf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ELEMENTS_MAX 2000u
#define NESTING_MAX  12
#define STRING_MAX   4096u

struct value_walk {
    const struct tbd_printer *printer;
    unsigned elements;
    int nesting;
};

static json_t *value_of(struct value_walk *w, const struct tbd_data *data);

/* The value as `print` shows it. */
static json_t *as_text(struct value_walk *w, const struct tbd_data *data)
{
    struct tbd_printer printer = *w->printer;
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    json_t *found;

    if (out == NULL)
        return json_null();
    printer.format = 0;
    printer.options = (struct tbd_print_options){ 0 };
    tbd_data_print(&printer, data, out);
    fclose(out);
    found = tbd_output_text(text);
    free(text);
    return found;
}

/* Up to a NUL, or `count` characters; NULL: they go on in memory that is not known. */
static json_t *characters(struct value_walk *w, const struct tbd_data *first, uint64_t count,
                          bool ends_at_nul)
{
    char text[STRING_MAX + 1];
    size_t used = 0;

    for (; used < STRING_MAX && used < count; used++) {
        if (!tbd_data_read(w->printer->place, first, used, &text[used], 1))
            return NULL;
        if (ends_at_nul && text[used] == '\0')
            break;
    }
    text[used] = '\0';
    return tbd_output_text(text);
}

static bool may_go_on(struct value_walk *w, json_t *array)
{
    if (w->elements++ < ELEMENTS_MAX)
        return true;
    if (json_is_array(array))
        json_array_append_new(array, json_string("..."));
    return false;
}

/* ---- scalars ---- */

static json_t *integer(struct value_walk *w, const struct tbd_data *data,
                       const struct tbd_type_view *view)
{
    uint64_t value;

    if (view->bytes > 8 || !tbd_data_scalar(w->printer->place, data, &value))
        return as_text(w, data);
    if (view->encoding == DW_ATE_boolean)
        return json_boolean(value != 0);
    if (!view->is_signed && value > INT64_MAX)
        return as_text(w, data);
    return json_integer((json_int_t)value);
}

static json_t *real(struct value_walk *w, const struct tbd_data *data)
{
    long double value;

    if (!tbd_data_float(w->printer->place, data, &value))
        return json_null();
    return isfinite((double)value) ? json_real((double)value) : as_text(w, data);
}

static bool is_char(const struct tbd_type *type)
{
    struct tbd_type_view view = tbd_type_look(type);

    return view.kind == TBD_TYPE_INTEGER && view.bytes == 1 &&
           (view.encoding == DW_ATE_signed_char || view.encoding == DW_ATE_unsigned_char);
}

/* The address; pointers to characters also have the text there. */
static json_t *pointer(struct value_walk *w, const struct tbd_data *data)
{
    struct tbd_type target;
    struct tbd_data first;
    uint64_t address;
    json_t *object, *text;
    char byte;

    if (!tbd_data_scalar(w->printer->place, data, &address))
        return json_null();
    if (address == 0 || !tbd_type_target(&data->type, &target) || !is_char(&target))
        return tbd_output_hex(address);
    tbd_data_at(address, &target, &first);
    if (!tbd_data_read(w->printer->place, &first, 0, &byte, 1))
        return tbd_output_hex(address);
    object = json_object();
    json_object_set_new(object, "addr", tbd_output_hex(address));
    text = characters(w, &first, STRING_MAX, true);
    json_object_set_new(object, "text", text != NULL ? text : json_null());
    return object;
}

static json_t *reference(struct value_walk *w, const struct tbd_data *data)
{
    struct tbd_type target;
    struct tbd_data inner;
    uint64_t address;

    if (!tbd_data_scalar(w->printer->place, data, &address) ||
        !tbd_type_target(&data->type, &target))
        return json_null();
    tbd_data_at(address, &target, &inner);
    return value_of(w, &inner);
}

/* ---- what has parts ---- */

static json_t *array(struct value_walk *w, const struct tbd_data *data,
                     const struct tbd_type_view *view)
{
    struct tbd_type element;
    struct tbd_data part;
    json_t *found;
    uint64_t bytes;

    if (!tbd_type_target(&data->type, &element))
        return json_null();
    tbd_data_part(data, 0, &element, &part);
    if (is_char(&element)) {
        found = characters(w, &part, view->count, true);
        return found != NULL ? found : as_text(w, data);
    }
    bytes = tbd_type_look(&element).bytes;
    found = json_array();
    for (uint64_t i = 0; bytes != 0 && i < view->count && may_go_on(w, found); i++) {
        tbd_data_part(data, i * bytes, &element, &part);
        json_array_append_new(found, value_of(w, &part));
    }
    return found;
}

static json_t *map_entry(struct value_walk *w, const struct tbd_data *key,
                         const struct tbd_data *value)
{
    json_t *entry = json_object();

    json_object_set_new(entry, "key", value_of(w, key));
    json_object_set_new(entry, "value", value_of(w, value));
    return entry;
}

static json_t *elements(struct value_walk *w, struct tbd_cxx *cxx)
{
    json_t *found = json_array();
    struct tbd_data element, second;
    bool is_bits = cxx->kind == TBD_CXX_NUMBERED && strncmp(cxx->name, "bitset<", 7) == 0;

    for (uint64_t i = 0; i < cxx->count && may_go_on(w, found); i++) {
        if (!tbd_cxx_next(w->printer->place, cxx, &element, &second)) {
            json_array_append_new(found, json_null());
            break;
        }
        json_array_append_new(found, is_bits ? json_integer((json_int_t)cxx->number)
                                     : cxx->kind == TBD_CXX_MAP ? map_entry(w, &element, &second)
                                                                : value_of(w, &element));
    }
    return found;
}

/* A container of the C++ library; NULL if it is none. */
static json_t *container(struct value_walk *w, const struct tbd_data *data)
{
    struct tbd_data element, second;
    struct tbd_cxx cxx;
    json_t *text;

    if (!tbd_cxx_open(w->printer->place, data, &cxx))
        return NULL;
    switch (cxx.kind) {
    case TBD_CXX_STRING:
        text = characters(w, &cxx.data, cxx.count, false);
        return text != NULL ? text : as_text(w, data);
    case TBD_CXX_WIDE: return as_text(w, data);
    case TBD_CXX_SEQUENCE:
        if (strncmp(cxx.name, "variant<", 8) != 0)
            return elements(w, &cxx);
        break; /* the alternative itself */
    case TBD_CXX_NUMBERED:
    case TBD_CXX_MAP: return elements(w, &cxx);
    default: break;
    }
    return tbd_cxx_next(w->printer->place, &cxx, &element, &second) ? value_of(w, &element)
                                                                    : json_null();
}

static json_t *members(struct value_walk *w, const struct tbd_data *data)
{
    struct tbd_type_view view = tbd_type_look(&data->type);
    Dwarf_Die of = tbd_type_complete(w->printer->place->dwarf, &view.die), at;
    json_t *object = json_object(), *value;
    struct tbd_member member;
    struct tbd_data part;
    char name[256];

    for (bool first = true; tbd_type_next_member(&of, first, &at, &member); first = false) {
        if (member.is_static)
            continue;
        if (!may_go_on(w, object))
            break;
        tbd_data_member(w->printer->place, data, &member, &part);
        value = value_of(w, &part);
        if (member.is_base && json_object_size(value) == 0)
            json_decref(value);
        else if (member.name == NULL && !member.is_base && json_is_object(value)) {
            json_object_update(object,
                               value); /* an anonymous struct's members are the outer one's */
            json_decref(value);
        } else {
            const char *key =
                member.is_base ? tbd_type_text(&member.type, name, sizeof(name)) : member.name;

            json_object_set_new(object, tbd_shown(key == NULL ? "" : key), value);
        }
    }
    return object;
}

static json_t *known_value(struct value_walk *w, const struct tbd_data *data)
{
    struct tbd_type_view view = tbd_type_look(&data->type);
    json_t *found;

    switch (view.kind) {
    case TBD_TYPE_VOID: return json_null();
    case TBD_TYPE_INTEGER: return integer(w, data, &view);
    case TBD_TYPE_FLOAT: return real(w, data);
    case TBD_TYPE_POINTER: return pointer(w, data);
    case TBD_TYPE_REFERENCE: return reference(w, data);
    case TBD_TYPE_ARRAY: return array(w, data, &view);
    case TBD_TYPE_STRUCT:
        found = container(w, data);
        return found != NULL ? found : members(w, data);
    case TBD_TYPE_FUNCTION: return tbd_output_hex(data->address);
    case TBD_TYPE_ENUM:
    case TBD_TYPE_UNKNOWN: break;
    }
    return as_text(w, data);
}

static json_t *value_of(struct value_walk *w, const struct tbd_data *data)
{
    json_t *found;

    if (!data->is_known)
        return json_null();
    if (w->nesting >= NESTING_MAX)
        return json_string("...");
    w->nesting++;
    found = known_value(w, data);
    w->nesting--;
    return found;
}

json_t *tbd_value_json(const struct tbd_printer *printer, const struct tbd_data *data)
{
    struct value_walk w = { .printer = printer };

    return value_of(&w, data);
}
