// SPDX-License-Identifier: MIT
/* output_call.c - see output_call.h
 *
 * Most values come from the event, which has the registers of the calling convention for integers.
 * Others need registers that the caller of these functions has from a replay, or memory: parameters on
 * the stack, results that the caller of the function has space for. */
#include "query/output/output_call.h"

#include "query/output/value_json.h"
#include "query/values/dwarf_print.h"

#include "base/safe_stream.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XSAVE_X87   32u  /* in the legacy area: st0, ... */
#define XSAVE_XMM   160u /* xmm0, ... */
#define XSAVE_STATE 512u /* which components are there */
#define XSTATE_X87  1u
#define XSTATE_SSE  2u

void tbd_output_registers_take(const struct tbd_reg_state *state, struct tbd_output_registers *out)
{
    uint64_t in_use = 0;

    *out = (struct tbd_output_registers){ .rdx = state->regs.gpr[TBD_RDX] };
    if (state->regs.xsave_bytes < XSAVE_STATE + sizeof(in_use))
        return;
    memcpy(&in_use, state->xsave + XSAVE_STATE, sizeof(in_use));
    out->is_known = true;
    if ((in_use & XSTATE_SSE) != 0)
        memcpy(out->vector, state->xsave + XSAVE_XMM, sizeof(out->vector));
    if ((in_use & XSTATE_X87) != 0)
        memcpy(out->x87, state->xsave + XSAVE_X87, sizeof(out->x87));
}

/* ---- the function ---- */

struct moment_reading {
    struct tbd_session *session;
    struct tbd_position position;
    struct tbd_stack_memory memory;
};

static bool read_then(void *context, uint64_t address, void *out, size_t bytes)
{
    const struct moment_reading *reading = context;

    return tbd_session_read(reading->session, reading->position, address, out, bytes) == TBD_OK;
}

static void start_reading(struct moment_reading *reading, struct tbd_session *session,
                          struct tbd_position position)
{
    *reading =
        (struct moment_reading){ session, position, { .read = read_then, .context = reading } };
}

/* The function that `pc` is in. */
static bool find_function(struct tbd_session *session, uint64_t time, uint64_t pc,
                          struct tbd_place_of *place, Dwarf_Die *out)
{
    const struct tbd_module *module = NULL;
    uint32_t window = tbd_trace_window_of(session->trace, time);

    *place = (struct tbd_place_of){ 0 };
    module = tbd_symbols_module_at(session->symbols, window, pc);
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

/* ---- values ---- */

/* Memory is read only for a value that lies in memory itself: what it points to would need the window. */
static char *value_text(struct tbd_place_of *place, const struct tbd_data *data,
                        const struct moment_reading *reading)
{
    struct tbd_printer printer = { .place = place };
    char *text = NULL;
    size_t bytes;
    FILE *out;

    if (!data->is_known)
        return strdup("?");
    out = open_memstream(&text, &bytes);
    if (out == NULL)
        return NULL;
    place->memory = data->in_memory ? &reading->memory : NULL;
    tbd_data_print(&printer, data, out);
    fclose(out);
    place->memory = NULL;
    return text;
}

/* The value as JSON; null if it is not known. */
static json_t *value_json(struct tbd_place_of *place, const struct tbd_data *data,
                          const struct moment_reading *reading)
{
    struct tbd_printer printer = { .place = place };
    json_t *value;

    if (!data->is_known)
        return json_null();
    place->memory = data->in_memory ? &reading->memory : NULL;
    value = tbd_value_json(&printer, data);
    place->memory = NULL;
    return value;
}

static struct tbd_passing_registers registers_of(const struct tbd_output_registers *more)
{
    struct tbd_passing_registers registers = { 0 };

    if (more == NULL || !more->is_known)
        return registers;
    registers.rdx = more->rdx;
    registers.vector = more->vector;
    registers.x87 = more->x87;
    return registers;
}

static void add_parameter(struct tbd_place_of *place, const Dwarf_Die *function,
                          const Dwarf_Die *die, const struct tbd_passing_registers *registers,
                          const struct moment_reading *reading, json_t *values, json_t *args)
{
    struct tbd_type type = tbd_type_of(die);
    const char *name = tbd_die_name(die);
    char *value = NULL, *text;
    struct tbd_passing passing;
    struct tbd_data data;

    tbd_passing_parameter(function, die, &passing);
    tbd_passing_value(&passing, false, registers, &type, &data);
    if (passing.is_known && passing.is_address && passing.classes[0] == TBD_PASS_INTEGER) {
        data.is_known = false; /* memory is not read for an object */
        if (asprintf(&value, "@0x%" PRIx64, registers->args[passing.first_gpr]) < 0)
            value = NULL;
    } else {
        value = value_text(place, &data, reading);
    }
    if (args != NULL)
        json_object_set_new(args, tbd_shown(name == NULL ? "?" : name),
                            value_json(place, &data, reading));
    if (value != NULL && asprintf(&text, "%s=%s", name == NULL ? "?" : name, value) >= 0) {
        json_array_append_new(values, tbd_output_text(text));
        free(text);
    }
    free(value);
}

void tbd_output_parameters(struct tbd_session *session, const struct tbd_event *enter,
                           const struct tbd_output_registers *more, json_t *object)
{
    struct tbd_passing_registers registers = registers_of(more);
    struct moment_reading reading;
    struct tbd_place_of place;
    json_t *values = json_array(), *args = session->json ? json_object() : NULL;
    Dwarf_Die function, die;

    memcpy(registers.args, enter->args, sizeof(registers.args));
    registers.sp = enter->sp;
    start_reading(&reading, session, enter->position);
    if (find_function(session, enter->position.time, enter->pc, &place, &function)) {
        for (bool more_dies = tbd_die_child(&function, &die); more_dies;
             more_dies = tbd_die_next(&die, &die)) {
            if (dwarf_tag(&die) == DW_TAG_formal_parameter)
                add_parameter(&place, &function, &die, &registers, &reading, values, args);
        }
    }
    json_object_set_new(object, "values", values);
    if (args != NULL)
        json_object_set_new(object, "parameters", args);
}

void tbd_output_result(struct tbd_session *session, uint64_t pc, const struct tbd_event *exit,
                       const struct tbd_output_registers *more, json_t *object)
{
    struct tbd_passing_registers registers = registers_of(more);
    struct moment_reading reading;
    struct tbd_place_of place;
    struct tbd_passing passing;
    struct tbd_type type;
    struct tbd_data data;
    Dwarf_Die function;
    char *text = NULL;

    if (!find_function(session, exit->position.time, pc, &place, &function)) {
        json_object_set_new(object, "result", tbd_output_hex(exit->retval));
        return;
    }
    type = tbd_type_of(&function);
    tbd_passing_result(&function, &passing);
    registers.rax = exit->retval;
    start_reading(&reading, session, exit->position);
    if (tbd_type_look(&type).kind != TBD_TYPE_VOID) {
        tbd_passing_value(&passing, true, &registers, &type, &data);
        if ((more == NULL || !more->is_known) && tbd_passing_needs_more(&passing, true))
            data.is_known = false;
        text = value_text(&place, &data, &reading);
        if (session->json)
            json_object_set_new(object, "result_data", value_json(&place, &data, &reading));
    }
    json_object_set_new(object, "result", tbd_output_text(text == NULL ? "" : text));
    free(text);
}

/* ---- what is needed ---- */

bool tbd_output_needs_entry(struct tbd_session *session, const struct tbd_event *enter)
{
    struct tbd_place_of place;
    struct tbd_passing passing;
    Dwarf_Die function, die;

    if (!find_function(session, enter->position.time, enter->pc, &place, &function))
        return false;
    for (bool more = tbd_die_child(&function, &die); more; more = tbd_die_next(&die, &die)) {
        if (dwarf_tag(&die) != DW_TAG_formal_parameter)
            continue;
        tbd_passing_parameter(&function, &die, &passing);
        if (tbd_passing_needs_more(&passing, false))
            return true;
    }
    return false;
}

bool tbd_output_needs_return(struct tbd_session *session, const struct tbd_event *enter)
{
    struct tbd_place_of place;
    struct tbd_passing passing;
    Dwarf_Die function;

    if (!find_function(session, enter->position.time, enter->pc, &place, &function))
        return false;
    tbd_passing_result(&function, &passing);
    return tbd_passing_needs_more(&passing, true);
}

uint64_t tbd_output_retval(struct tbd_session *session, const struct tbd_event *enter,
                           uint64_t retval, const struct tbd_output_registers *registers)
{
    struct tbd_place_of place;
    struct tbd_passing passing;
    Dwarf_Die function;

    if (registers == NULL || !registers->is_known ||
        !find_function(session, enter->position.time, enter->pc, &place, &function))
        return retval;
    tbd_passing_result(&function, &passing);
    if (passing.is_known && passing.classes[0] == TBD_PASS_SSE)
        memcpy(&retval, registers->vector, sizeof(retval));
    return retval;
}
