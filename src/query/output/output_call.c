// SPDX-License-Identifier: MIT
/* output_call.c - see output_call.h
 *
 * Most values come from the event, which has the registers of the calling convention for integers.
 * Others need registers that the caller of these functions has from a replay, or memory: parameters on
 * the stack, results that the caller of the function has space for. */
#include "query/output/output_call.h"

#include "base/vector_layout.h"
#include "query/output/put_text.h"
#include "query/output/value_json.h"
#include "query/values/dwarf_print.h"

#include "base/safe_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XSAVE_X87   32u  /* in the legacy area: st0, ... */
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
        memcpy(out->vector, state->xsave + TBD_VECTOR_XMM, sizeof(out->vector));
    if ((in_use & XSTATE_X87) != 0)
        memcpy(out->x87, state->xsave + XSAVE_X87, sizeof(out->x87));
}

/* ---- values ---- */

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

/* Memory is read only for a value that lies in memory itself: what it points to would need the window. */
static void put_data(struct tbd_place_of *place, const struct tbd_data *data,
                     const struct moment_reading *reading, struct tbd_buffer *out)
{
    struct tbd_printer printer = { .place = place };
    char *text = NULL;
    size_t bytes;
    FILE *stream;

    if (!data->is_known) {
        tbd_buffer_byte(out, '?');
        return;
    }
    stream = open_memstream(&text, &bytes);
    if (stream == NULL) {
        out->failed = true;
        return;
    }
    place->memory = data->in_memory ? &reading->memory : NULL;
    tbd_data_print(&printer, data, stream);
    fclose(stream);
    place->memory = NULL;
    if (text != NULL)
        tbd_buffer_put(out, text, bytes);
    free(text);
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

static void put_plain(const struct tbd_call_value *value, uint64_t word, struct tbd_buffer *out)
{
    bool is_signed = value->plain == TBD_PLAIN_SIGNED;

    word = tbd_data_extend(word, value->bits, is_signed);
    if (value->plain == TBD_PLAIN_POINTER)
        tbd_buffer_hex(out, word);
    else if (is_signed)
        tbd_buffer_signed(out, (int64_t)word);
    else
        tbd_buffer_unsigned(out, word);
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

/* ---- parameters ---- */

struct entered_call {
    struct tbd_call_shape *shape; /* borrowed; NULL: not known */
    struct tbd_passing_registers registers;
    struct moment_reading reading;
};

static void start_entry(struct entered_call *entry, struct tbd_call_shapes *shapes,
                        const struct tbd_call_entry *enter, const struct tbd_output_registers *more)
{
    entry->shape = tbd_call_shapes_at(shapes, enter->position.time, enter->pc);
    entry->registers = registers_of(more);
    memcpy(entry->registers.args, enter->args, sizeof(entry->registers.args));
    entry->registers.sp = enter->sp;
    start_reading(&entry->reading, tbd_call_shapes_session(shapes), enter->position);
}

/* Memory is not read for an object whose address is passed. */
static bool is_address(const struct tbd_call_parameter *parameter)
{
    const struct tbd_passing *passing = &parameter->value.passing;

    return passing->is_known && passing->is_address && passing->classes[0] == TBD_PASS_INTEGER;
}

/* Its value as text; and as JSON, if `args` is not NULL. */
static void put_parameter(const struct entered_call *entry,
                          const struct tbd_call_parameter *parameter, struct tbd_buffer *out,
                          json_t *args)
{
    const struct tbd_call_value *value = &parameter->value;
    struct tbd_place_of *place = &entry->shape->place;
    struct tbd_data data;

    if (value->plain != TBD_PLAIN_NONE && args == NULL) {
        put_plain(value, entry->registers.args[value->passing.first_gpr], out);
        return;
    }
    tbd_passing_value(&value->passing, false, &entry->registers, &value->type, &data);
    if (is_address(parameter)) {
        data.is_known = false;
        tbd_buffer_byte(out, '@');
        tbd_buffer_hex(out, entry->registers.args[value->passing.first_gpr]);
    } else {
        put_data(place, &data, &entry->reading, out);
    }
    if (args != NULL)
        json_object_set_new(args, tbd_shown(parameter->name),
                            value_json(place, &data, &entry->reading));
}

static void add_parameter(const struct entered_call *entry,
                          const struct tbd_call_parameter *parameter, json_t *values, json_t *args)
{
    struct tbd_buffer text = { 0 };

    tbd_buffer_put(&text, parameter->name, strlen(parameter->name));
    tbd_buffer_byte(&text, '=');
    put_parameter(entry, parameter, &text, args);
    tbd_buffer_byte(&text, '\0');
    if (!text.failed)
        json_array_append_new(values, tbd_output_text((const char *)text.bytes));
    tbd_buffer_free(&text);
}

void tbd_output_parameters(struct tbd_call_shapes *shapes, const struct tbd_call_entry *enter,
                           const struct tbd_output_registers *more, json_t *object)
{
    bool is_json = tbd_call_shapes_session(shapes)->json;
    json_t *values = json_array(), *args = is_json ? json_object() : NULL;
    struct entered_call entry;

    start_entry(&entry, shapes, enter, more);
    for (size_t i = 0; entry.shape != NULL && i < entry.shape->count; i++)
        add_parameter(&entry, &entry.shape->parameters[i], values, args);
    json_object_set_new(object, "values", values);
    if (args != NULL)
        json_object_set_new(object, "parameters", args);
}

void tbd_output_put_parameters(struct tbd_call_shapes *shapes, const struct tbd_call_entry *enter,
                               const struct tbd_output_registers *more, struct tbd_buffer *out)
{
    struct entered_call entry;

    start_entry(&entry, shapes, enter, more);
    for (size_t i = 0; entry.shape != NULL && i < entry.shape->count; i++) {
        const struct tbd_call_parameter *parameter = &entry.shape->parameters[i];
        size_t begin;

        tbd_buffer_put(out, ", ", i == 0 ? 0 : 2);
        tbd_buffer_put(out, parameter->label, strlen(parameter->label));
        begin = out->used;
        put_parameter(&entry, parameter, out, NULL);
        if (parameter->value.plain == TBD_PLAIN_NONE)
            tbd_buffer_escape(out, begin);
    }
}

/* ---- results ---- */

static void take_result(const struct tbd_call_shape *shape, const struct tbd_event *exit,
                        const struct tbd_output_registers *more, struct tbd_data *out)
{
    struct tbd_passing_registers registers = registers_of(more);
    const struct tbd_call_value *value = &shape->result;

    registers.rax = exit->retval;
    tbd_passing_value(&value->passing, true, &registers, &value->type, out);
    if ((more == NULL || !more->is_known) && tbd_passing_needs_more(&value->passing, true))
        out->is_known = false;
}

void tbd_output_put_result(struct tbd_call_shapes *shapes, uint64_t pc,
                           const struct tbd_event *exit, const struct tbd_output_registers *more,
                           struct tbd_buffer *out)
{
    struct tbd_call_shape *shape = tbd_call_shapes_at(shapes, exit->position.time, pc);
    struct moment_reading reading;
    struct tbd_data data;
    size_t begin = out->used;

    if (shape == NULL || !shape->has_function) {
        tbd_buffer_hex(out, exit->retval);
    } else if (shape->has_result && shape->result.plain != TBD_PLAIN_NONE) {
        put_plain(&shape->result, exit->retval, out);
    } else if (shape->has_result) {
        start_reading(&reading, tbd_call_shapes_session(shapes), exit->position);
        take_result(shape, exit, more, &data);
        put_data(&shape->place, &data, &reading, out);
        tbd_buffer_escape(out, begin);
    }
}

void tbd_output_result(struct tbd_call_shapes *shapes, uint64_t pc, const struct tbd_event *exit,
                       const struct tbd_output_registers *more, json_t *object)
{
    struct tbd_session *session = tbd_call_shapes_session(shapes);
    struct tbd_call_shape *shape = tbd_call_shapes_at(shapes, exit->position.time, pc);
    struct tbd_buffer text = { 0 };
    struct moment_reading reading;
    struct tbd_data data;

    if (shape == NULL || !shape->has_function) {
        json_object_set_new(object, "result", tbd_output_hex(exit->retval));
        return;
    }
    start_reading(&reading, session, exit->position);
    if (shape->has_result) {
        take_result(shape, exit, more, &data);
        put_data(&shape->place, &data, &reading, &text);
        if (session->json)
            json_object_set_new(object, "result_data", value_json(&shape->place, &data, &reading));
    }
    tbd_buffer_byte(&text, '\0');
    json_object_set_new(object, "result",
                        tbd_output_text(text.failed ? "" : (const char *)text.bytes));
    tbd_buffer_free(&text);
}

/* ---- what is needed ---- */

bool tbd_output_needs_entry(struct tbd_call_shapes *shapes, const struct tbd_call_entry *enter)
{
    const struct tbd_call_shape *shape =
        tbd_call_shapes_at(shapes, enter->position.time, enter->pc);

    for (size_t i = 0; shape != NULL && i < shape->count; i++) {
        if (tbd_passing_needs_more(&shape->parameters[i].value.passing, false))
            return true;
    }
    return false;
}

bool tbd_output_needs_return(struct tbd_call_shapes *shapes, const struct tbd_call_entry *enter)
{
    const struct tbd_call_shape *shape =
        tbd_call_shapes_at(shapes, enter->position.time, enter->pc);

    return shape != NULL && shape->has_function &&
           tbd_passing_needs_more(&shape->result.passing, true);
}

uint64_t tbd_output_retval(struct tbd_call_shapes *shapes, const struct tbd_call_entry *enter,
                           uint64_t retval, const struct tbd_output_registers *registers)
{
    const struct tbd_call_shape *shape;

    if (registers == NULL || !registers->is_known)
        return retval;
    shape = tbd_call_shapes_at(shapes, enter->position.time, enter->pc);
    if (shape != NULL && shape->has_function && shape->result.passing.is_known &&
        shape->result.passing.classes[0] == TBD_PASS_SSE)
        memcpy(&retval, registers->vector, sizeof(retval));
    return retval;
}
