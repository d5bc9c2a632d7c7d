// SPDX-License-Identifier: MIT
/* output_call.c - parameters and results of a call, by the types of the program
 *
 * Only the event is used, which has the registers of the calling convention.  Memory is not read, so
 * a parameter passed in memory or in a vector register has no value here. */
#include "query/commands/output.h"
#include "query/commands/value_json.h"
#include "query/debuginfo/dwarf_parameter.h"
#include "query/values/dwarf_print.h"

#include "base/safe_stream.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The function's entry at a call's target. */
static bool find_function(struct tbd_session *session, const struct tbd_event *enter,
                          struct tbd_place_of *place, Dwarf_Die *out)
{
    const struct tbd_module *module = NULL;
    uint32_t window = tbd_trace_window_of(session->trace, enter->position.time);
    uint64_t pc = enter->pc;

    *place = (struct tbd_place_of){ 0 };
    module = tbd_symbols_module_at(session->symbols, window, pc);
    if (module == NULL)
        return false;
    place->bias = module->bias;
    place->address = pc - module->bias;
    place->dwarf = tbd_dwarf_of(module->file);
    if (place->dwarf == NULL || !tbd_dwarf_scopes(place->dwarf, place->address, &place->scopes) ||
        place->scopes.count == 0)
        return false;
    *out = place->scopes.dies[place->scopes.count - 1];
    return dwarf_tag(out) == DW_TAG_subprogram;
}

static char *value_text(const struct tbd_place_of *place, uint64_t value,
                        const struct tbd_type *type)
{
    struct tbd_printer printer = { .place = place };
    struct tbd_data data;
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL)
        return NULL;
    tbd_data_number(value, type, &data);
    tbd_data_print(&printer, &data, out);
    fclose(out);
    return text;
}

/* The parameter's value as JSON; null if the event does not have it. */
static json_t *value_json(const struct tbd_place_of *place, int number, const struct tbd_type *type,
                          const struct tbd_event *enter)
{
    struct tbd_printer printer = { .place = place };
    struct tbd_data data;

    if (number < 0 || tbd_parameter_is_address(type))
        return json_null();
    tbd_data_number(enter->args[number], type, &data);
    return tbd_value_json(&printer, &data);
}

static void add_parameter(const struct tbd_place_of *place, const Dwarf_Die *function,
                          const Dwarf_Die *die, const struct tbd_event *enter, json_t *values,
                          json_t *args)
{
    int number = tbd_parameter_register(function, die);
    struct tbd_type type = tbd_type_of(die);
    const char *name = tbd_die_name(die);
    char *value = NULL, *text;

    json_object_set_new(args, tbd_shown(name == NULL ? "?" : name),
                        value_json(place, number, &type, enter));
    if (number < 0)
        value = strdup("?");
    else if (!tbd_parameter_is_address(&type))
        value = value_text(place, enter->args[number], &type);
    else if (asprintf(&value, "@0x%" PRIx64, enter->args[number]) < 0)
        value = NULL;

    if (value != NULL && asprintf(&text, "%s=%s", name == NULL ? "?" : name, value) >= 0) {
        json_array_append_new(values, tbd_output_text(text));
        free(text);
    }
    free(value);
}

void tbd_output_parameters(struct tbd_session *session, const struct tbd_event *enter,
                           json_t *object)
{
    struct tbd_place_of place;
    json_t *values = json_array(), *args = json_object();
    Dwarf_Die function, die;

    if (find_function(session, enter, &place, &function)) {
        for (bool more = tbd_die_child(&function, &die); more; more = tbd_die_next(&die, &die)) {
            if (dwarf_tag(&die) == DW_TAG_formal_parameter)
                add_parameter(&place, &function, &die, enter, values, args);
        }
    }
    json_object_set_new(object, "values", values);
    json_object_set_new(object, "parameters", args);
}

void tbd_output_result(struct tbd_session *session, const struct tbd_event *enter, uint64_t retval,
                       json_t *object)
{
    struct tbd_place_of place;
    struct tbd_type type;
    struct tbd_type_view view;
    Dwarf_Die function;
    char *text = NULL;

    if (find_function(session, enter, &place, &function)) {
        type = tbd_type_of(&function);
        view = tbd_type_look(&type);
        if (view.kind == TBD_TYPE_VOID)
            text = strdup("");
        else if (view.kind != TBD_TYPE_FLOAT && view.kind != TBD_TYPE_STRUCT)
            text = value_text(&place, retval, &type);
        else
            text = strdup("?");
        json_object_set_new(object, "result", tbd_output_text(text == NULL ? "" : text));
    } else {
        json_object_set_new(object, "result", tbd_output_hex(retval));
    }
    free(text);
}
