// SPDX-License-Identifier: MIT
/* call_shape.c - see call_shape.h */
#include "query/output/call_shape.h"

#include "base/address_table.h"
#include "base/array.h"
#include "base/safe_stream.h"
#include "query/values/dwarf_print.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>

/* In the table; the key is an address in the function, and what is mapped. */
struct kept_shape {
    uint64_t pc;
    uint32_t mapped;
    struct tbd_call_shape *shape; /* owned */
};

struct tbd_call_shapes {
    struct tbd_session *session;
    struct tbd_address_table table;
    struct tbd_time_mapped here;
    struct kept_shape last; /* that was asked for; its shape is borrowed from the table */
};

/* ---- moments ---- */

bool tbd_time_mapped_find(const struct tbd_session *session, uint64_t time,
                          struct tbd_time_mapped *inout)
{
    const struct tbd_window_summary *summary;
    uint32_t window;

    if (time >= inout->from && time < inout->to)
        return true;
    window = tbd_trace_window_of(session->trace, time);
    summary = window == UINT32_MAX ? NULL : tbd_trace_window(session->trace, window);
    *inout = (struct tbd_time_mapped){ .window = window,
                                       .mapped = tbd_symbols_mapped(session->symbols, window) };
    if (summary == NULL)
        return false;
    inout->from = summary->first_time;
    inout->to = summary->first_time + summary->blocks;
    return true;
}

/* ---- one function ---- */

static enum tbd_plain plain_of(const struct tbd_call_value *value, struct tbd_type_view *view)
{
    *view = tbd_type_look(&value->type);
    if (!value->passing.is_known || value->passing.is_address ||
        value->passing.classes[0] != TBD_PASS_INTEGER ||
        value->passing.classes[1] != TBD_PASS_NONE || view->bytes == 0 || view->bytes > 8)
        return TBD_PLAIN_NONE;
    if (view->kind == TBD_TYPE_POINTER)
        return TBD_PLAIN_POINTER;
    if (!tbd_print_is_number(view))
        return TBD_PLAIN_NONE;
    return view->is_signed ? TBD_PLAIN_SIGNED : TBD_PLAIN_UNSIGNED;
}

static void settle(struct tbd_call_value *value)
{
    struct tbd_type_view view;

    value->plain = plain_of(value, &view);
    value->bits = (uint32_t)view.bytes * 8;
}

static bool add_parameter(struct tbd_call_shape *shape, const Dwarf_Die *function,
                          const Dwarf_Die *die)
{
    const char *name = tbd_die_name(die);
    struct tbd_call_parameter *parameter;
    char *shown;

    if (!tbd_array_grow(&shape->parameters, shape->count, &shape->capacity,
                        sizeof(*shape->parameters)))
        return false;
    parameter = &shape->parameters[shape->count++];
    *parameter = (struct tbd_call_parameter){ .name = name == NULL ? "?" : name };
    shown = tbd_shown_copy(parameter->name);
    if (shown == NULL || asprintf(&parameter->label, "%s=", shown) < 0)
        parameter->label = NULL;
    free(shown);
    parameter->value.type = tbd_type_of(die);
    tbd_passing_parameter(function, die, &parameter->value.passing);
    settle(&parameter->value);
    return parameter->label != NULL;
}

/* False without memory. */
static bool take_function(struct tbd_call_shape *shape, const Dwarf_Die *function)
{
    bool has_memory = true;
    Dwarf_Die die;

    shape->has_function = true;
    for (bool more = tbd_die_child(function, &die); more && has_memory;
         more = tbd_die_next(&die, &die)) {
        if (dwarf_tag(&die) == DW_TAG_formal_parameter)
            has_memory = add_parameter(shape, function, &die);
    }
    shape->result.type = tbd_type_of(function);
    tbd_passing_result(function, &shape->result.passing);
    shape->has_result = tbd_type_look(&shape->result.type).kind != TBD_TYPE_VOID;
    settle(&shape->result);
    return has_memory;
}

/* The function that `pc` is in. */
static bool find_function(struct tbd_session *session, uint32_t window, uint64_t pc,
                          struct tbd_place_of *place, Dwarf_Die *out)
{
    const struct tbd_module *module = tbd_symbols_module_at(session->symbols, window, pc);

    if (module == NULL)
        return false;
    place->bias = module->bias;
    place->address = pc - module->bias;
    place->dwarf = tbd_dwarf_of(module->file);
    if (place->dwarf == NULL || !tbd_dwarf_scopes(place->dwarf, place->address, &place->scopes))
        return false;
    for (size_t i = place->scopes.count; i-- > 0;) {
        *out = place->scopes.dies[i];
        if (dwarf_tag(out) == DW_TAG_subprogram)
            return true;
    }
    return false;
}

static void free_shape(struct tbd_call_shape *shape)
{
    for (size_t i = 0; shape != NULL && i < shape->count; i++)
        free(shape->parameters[i].label);
    if (shape != NULL)
        free(shape->parameters);
    free(shape);
}

static struct tbd_call_shape *make(struct tbd_session *session, uint32_t window, uint64_t pc)
{
    struct tbd_call_shape *shape = calloc(1, sizeof(*shape));
    Dwarf_Die function;

    if (shape == NULL || !find_function(session, window, pc, &shape->place, &function) ||
        take_function(shape, &function))
        return shape;
    free_shape(shape);
    return NULL;
}

/* ---- all functions ---- */

struct tbd_call_shapes *tbd_call_shapes_new(struct tbd_session *session)
{
    struct tbd_call_shapes *shapes = calloc(1, sizeof(*shapes));

    if (shapes == NULL)
        return NULL;
    shapes->session = session;
    shapes->table =
        (struct tbd_address_table){ .element = sizeof(struct kept_shape), .has_more = true };
    return shapes;
}

void tbd_call_shapes_free(struct tbd_call_shapes *shapes)
{
    struct kept_shape *all;

    if (shapes == NULL)
        return;
    all = shapes->table.entries;
    for (size_t i = 0; all != NULL && i <= shapes->table.mask; i++)
        free_shape(all[i].shape);
    tbd_address_table_free(&shapes->table);
    free(shapes);
}

struct tbd_session *tbd_call_shapes_session(const struct tbd_call_shapes *shapes)
{
    return shapes->session;
}

struct tbd_call_shape *tbd_call_shapes_at(struct tbd_call_shapes *shapes, uint64_t time,
                                          uint64_t pc)
{
    struct tbd_time_mapped *here = &shapes->here;
    struct kept_shape *kept;

    (void)tbd_time_mapped_find(shapes->session, time, here);
    if (shapes->last.shape != NULL && shapes->last.pc == pc && shapes->last.mapped == here->mapped)
        return shapes->last.shape;
    kept = tbd_address_table_add(&shapes->table, pc, here->mapped);
    if (kept == NULL)
        return NULL;
    if (kept->shape == NULL)
        kept->shape = make(shapes->session, here->window, pc);
    shapes->last = *kept;
    return kept->shape;
}
