// SPDX-License-Identifier: MIT
/* dap_variables.c - values of the program, one level at a time
 *
 * A reference stands for a scope or for a value whose parts can be asked for, page by page.  It is valid until
 * the next motion. */
#include "query/dap/dap_requests.h"

#include "base/vector_layout.h"
#include "query/debuginfo/register_names.h"
#include "query/output/output.h"

#include "base/array.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PARTS_AT_ONCE 2000u
#define VALUE_BYTES   2048u

void tbd_dap_forget_values(struct tbd_dap *dap)
{
    for (size_t i = 0; i < dap->handle_count; i++) {
        free(dap->handles[i].data);
        free(dap->handles[i].expression);
    }
    dap->handle_count = 0;
}

/* ---- values ---- */

/* The value in one line, at most VALUE_BYTES of it. */
static json_t *value_text(struct tbd_source_place *place, const struct tbd_data *data,
                          bool is_hexadecimal)
{
    struct tbd_printer printer = tbd_source_printer(place, is_hexadecimal ? 'x' : 0);
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    json_t *value;

    if (out == NULL)
        return json_string("");
    printer.options.pretty = false;
    tbd_data_print(&printer, data, out);
    fclose(out);
    if (text != NULL && bytes > VALUE_BYTES)
        strcpy(text + VALUE_BYTES - 4, "...");
    value = tbd_output_text(text == NULL ? "" : text);
    free(text);
    return value;
}

/* A reference for the value's parts; 0 without memory. */
static json_int_t keep(struct tbd_dap *dap, const struct tbd_dap_frame *frame,
                       const struct tbd_data *data, const char *expression)
{
    struct tbd_dap_handle made = { .kind = TBD_DAP_VALUE, .frame = *frame };

    made.data = malloc(sizeof(*made.data));
    made.expression = expression == NULL ? NULL : strdup(expression);
    if (made.data == NULL || !tbd_array_grow(&dap->handles, dap->handle_count,
                                             &dap->handle_capacity, sizeof(*dap->handles))) {
        free(made.data);
        free(made.expression);
        return 0;
    }
    *made.data = *data;
    dap->handles[dap->handle_count++] = made;
    return (json_int_t)dap->handle_count;
}

json_t *tbd_dap_value(struct tbd_dap *dap, struct tbd_source_place *place,
                      const struct tbd_dap_frame *frame, const struct tbd_data *data,
                      const char *expression, bool is_hexadecimal)
{
    struct tbd_printer printer = tbd_source_printer(place, 0);
    struct tbd_parts_count parts = { 0 };
    struct tbd_type_view view = tbd_type_look(&data->type);
    uint64_t address = data->address;
    char type[1024];
    json_t *object = json_pack(
        "{s:o, s:o, s:i}", "value", value_text(place, data, is_hexadecimal), "type",
        tbd_output_text(tbd_type_text(&data->type, type, sizeof(type))), "variablesReference", 0);

    if (data->is_known)
        parts = tbd_parts_count(&printer, data);
    if (parts.named != 0 || parts.indexed != 0)
        json_object_set_new(object, "variablesReference",
                            json_integer(keep(dap, frame, data, expression)));
    if (parts.named != 0)
        json_object_set_new(object, "namedVariables", json_integer((json_int_t)parts.named));
    if (parts.indexed != 0)
        json_object_set_new(object, "indexedVariables", json_integer((json_int_t)parts.indexed));
    if (expression != NULL)
        json_object_set_new(object, "evaluateName", tbd_output_text(expression));
    if (data->is_known && (data->in_memory || (view.kind == TBD_TYPE_POINTER &&
                                               tbd_data_scalar(&place->places[0], data, &address))))
        json_object_set_new(object, "memoryReference", tbd_output_hex(address));
    json_object_set_new(object, "presentationHint", json_pack("{s:[s]}", "attributes", "readOnly"));
    return object;
}

/* ---- the parts of a value ---- */

struct variable_list {
    struct tbd_dap *dap;
    struct tbd_source_place *place;
    const struct tbd_dap_handle *handle;
    json_t *variables;
    uint64_t first, count, seen; /* of variables in a scope */
    bool is_hexadecimal;
};

static void add(struct variable_list *listing, const char *name, const struct tbd_data *data,
                const char *expression)
{
    json_t *object = tbd_dap_value(listing->dap, listing->place, &listing->handle->frame, data,
                                   expression, listing->is_hexadecimal);

    json_object_set_new(object, "name", tbd_output_text(name));
    json_array_append_new(listing->variables, object);
}

/* The expression that denotes a part; NULL: none does.  The caller frees it. */
static char *part_expression(const char *whole, const struct tbd_value_part *part)
{
    bool is_simple = whole != NULL && strpbrk(whole, "*&+-/ <") == NULL;
    char *out = NULL;

    if (whole == NULL || !part->has_access)
        return NULL;
    if (strcmp(part->access, "*") == 0)
        return asprintf(&out, "*(%s)", whole) < 0 ? NULL : out;
    if (*part->access == '\0')
        return strdup(whole);
    if (is_simple || strncmp(whole, "(*", 2) == 0 || strstr(whole, "->") != NULL)
        return asprintf(&out, "%s%s", whole, part->access) < 0 ? NULL : out;
    return asprintf(&out, "(%s)%s", whole, part->access) < 0 ? NULL : out;
}

static bool add_part(void *context, const struct tbd_value_part *part)
{
    struct variable_list *listing = context;
    char *expression = part_expression(listing->handle->expression, part);

    add(listing, part->name, &part->data, expression);
    free(expression);
    return json_array_size(listing->variables) < PARTS_AT_ONCE;
}

/* ---- scopes ---- */

static bool is_wanted(const struct variable_list *listing, int tag)
{
    if (listing->handle->kind == TBD_DAP_ARGUMENTS)
        return tag == DW_TAG_formal_parameter;
    return tag == DW_TAG_variable;
}

static void add_variables(struct variable_list *listing, const Dwarf_Die *scope)
{
    const struct tbd_place_of *place = &listing->place->places[0];
    struct tbd_data data;
    Dwarf_Die die;

    for (bool more = tbd_die_child(scope, &die); more; more = tbd_die_next(&die, &die)) {
        const char *name = tbd_die_name(&die);

        if (!is_wanted(listing, dwarf_tag(&die)) || name == NULL ||
            tbd_die_flag(&die, DW_AT_declaration) || listing->seen++ < listing->first)
            continue;
        if (json_array_size(listing->variables) >= listing->count)
            return;
        if (listing->handle->kind == TBD_DAP_GLOBALS)
            tbd_c_take(place, &die, &data);
        else
            tbd_location_value(place, &die, &data);
        add(listing, name, &data, name);
    }
}

static void list_scope(struct variable_list *listing)
{
    const struct tbd_place_of *place = &listing->place->places[0];

    if (place->scopes.count == 0)
        return;
    if (listing->handle->kind == TBD_DAP_GLOBALS) {
        add_variables(listing, &place->scopes.unit);
        return;
    }
    for (size_t i = place->first; i < place->end && i < place->scopes.count; i++)
        add_variables(listing, &place->scopes.dies[i]);
}

static void add_register(struct variable_list *listing, const char *name, const char *value,
                         const char *expression)
{
    json_t *object =
        json_pack("{s:s, s:s, s:i, s:{s:[s]}}", "name", name, "value", value, "variablesReference",
                  0, "presentationHint", "attributes", "readOnly");

    if (expression != NULL)
        json_object_set_new(object, "evaluateName", json_string(expression));
    json_array_append_new(listing->variables, object);
}

static void list_registers(struct variable_list *listing)
{
    const struct tbd_frame *frame = listing->place->places[0].frame;
    bool is_innermost = frame == &listing->place->stack.frames[0];
    char value[32], expression[32];

    for (uint32_t i = 0; i <= TBD_REGISTER_GS_BASE; i++) {
        const char *name = tbd_register_text(i);
        uint64_t number = tbd_register_value(&listing->place->state->regs, i);
        bool is_known = is_innermost || i >= TBD_REGISTER_FS_BASE || i == TBD_REGISTER_RIP;

        if (!is_innermost && i < TBD_REG_COUNT) {
            number = frame->gpr[i];
            is_known = (frame->known >> i & 1) != 0;
        }
        if (!is_innermost && i == TBD_REGISTER_RIP)
            number = frame->pc;
        snprintf(value, sizeof(value), "0x%" PRIx64, number);
        snprintf(expression, sizeof(expression), "$%s", name);
        add_register(listing, name, is_known ? value : "<not saved>",
                     is_innermost ? expression : NULL);
    }
}

/* xmm0-15 lie in the legacy area (SDM vol. 1, 13.4.1), lowest byte first. */
static void list_vectors(struct variable_list *listing)
{
    const struct tbd_reg_state *state = listing->place->state;
    char name[8], value[40];

    if (listing->place->places[0].frame != &listing->place->stack.frames[0] ||
        state->regs.xsave_bytes < 512)
        return;
    for (unsigned i = 0; i < 16; i++) {
        size_t used = (size_t)snprintf(value, sizeof(value), "0x");

        for (int k = 15; k >= 0; k--)
            used += (size_t)snprintf(value + used, sizeof(value) - used, "%02x",
                                     state->xsave[TBD_VECTOR_XMM + 16 * i + (unsigned)k]);
        snprintf(name, sizeof(name), "xmm%u", i);
        add_register(listing, name, value, NULL);
    }
}

static void list(struct variable_list *listing)
{
    struct tbd_printer printer = tbd_source_printer(listing->place, 0);

    switch (listing->handle->kind) {
    case TBD_DAP_ARGUMENTS:
    case TBD_DAP_LOCALS:
    case TBD_DAP_GLOBALS: list_scope(listing); break;
    case TBD_DAP_REGISTERS: list_registers(listing); break;
    case TBD_DAP_VECTORS: list_vectors(listing); break;
    case TBD_DAP_VALUE:
        tbd_parts_each(&printer, listing->handle->data, listing->first, listing->count, add_part,
                       listing);
        break;
    }
}

/* The reference's meaning, copied, as new references may move the table; false after a refusal. */
static bool take_handle(struct tbd_dap *dap, json_int_t reference, struct tbd_dap_handle *out)
{
    if (reference < 1 || (uint64_t)reference > dap->handle_count) {
        tbd_dap_refuse(dap, "there are no variables %lld: the program stands somewhere else now",
                       (long long)reference);
        return false;
    }
    *out = dap->handles[reference - 1];
    return true;
}

void tbd_dap_variables(struct tbd_dap *dap, const json_t *arguments)
{
    json_int_t first = tbd_dap_number(arguments, "start", 0);
    json_int_t count = tbd_dap_number(arguments, "count", 0);
    struct tbd_source_place place;
    struct tbd_dap_handle handle;
    struct variable_list listing = {
        .dap = dap,
        .place = &place,
        .handle = &handle,
        .first = first < 0 ? 0 : (uint64_t)first,
        .count = count <= 0 || count > PARTS_AT_ONCE ? PARTS_AT_ONCE : (uint64_t)count,
        .is_hexadecimal = json_is_true(json_object_get(json_object_get(arguments, "format"), "hex"))
    };

    if (!take_handle(dap, tbd_dap_number(arguments, "variablesReference", 0), &handle) ||
        !tbd_dap_open_place(dap, &handle.frame, &place))
        return;
    listing.variables = json_array();
    list(&listing);
    tbd_dap_close_place(dap, &place);
    tbd_dap_reply(dap, json_pack("{s:o}", "variables", listing.variables));
}

/* ---- the bytes of a variable ---- */

struct sought {
    const char *name;
    struct tbd_data data;
    bool is_found;
};

static bool find_part(void *context, const struct tbd_value_part *part)
{
    struct sought *wanted = context;

    wanted->is_found = strcmp(part->name, wanted->name) == 0;
    if (wanted->is_found)
        wanted->data = part->data;
    return !wanted->is_found;
}

static bool evaluate(struct tbd_source_place *place, const char *text, struct tbd_data *out,
                     struct tbd_query_error *error)
{
    struct tbd_c_scope scope = tbd_source_scope(place);

    return tbd_c_evaluate(&scope, text, 0, strlen(text), out, error) == TBD_OK;
}

/* The value that `name` means, in a container (0: none) or as an expression; false: it means none. */
static bool find_value(struct tbd_source_place *place, const struct tbd_dap_handle *handle,
                       struct sought *wanted, struct tbd_query_error *error)
{
    struct tbd_printer printer = tbd_source_printer(place, 0);

    if (handle->kind != TBD_DAP_VALUE)
        return evaluate(place, wanted->name, &wanted->data, error);
    tbd_parts_each(&printer, handle->data, 0, UINT64_MAX, find_part, wanted);
    return wanted->is_found;
}

bool tbd_dap_bytes_of(struct tbd_dap *dap, const json_t *arguments, uint64_t *out_address,
                      uint64_t *out_bytes, char why[TBD_DAP_WHY_BYTES])
{
    json_int_t reference = tbd_dap_number(arguments, "variablesReference", 0);
    json_int_t bytes = tbd_dap_number(arguments, "bytes", 0);
    struct tbd_dap_handle handle = { .kind = TBD_DAP_LOCALS };
    struct sought wanted = { .name = tbd_dap_text(arguments, "name") };
    struct tbd_query_error error = { .status = TBD_OK };
    struct tbd_source_place place;
    bool is_found;

    if (json_is_true(json_object_get(arguments, "asAddress"))) {
        *out_bytes = bytes > 0 ? (uint64_t)bytes : 8;
        if (tbd_dap_address(wanted.name, out_address))
            return true;
        snprintf(why, TBD_DAP_WHY_BYTES, "'%.200s' is no address", wanted.name);
        return false;
    }
    if (reference != 0
            ? !take_handle(dap, reference, &handle)
            : !tbd_dap_frame_of(dap, tbd_dap_number(arguments, "frameId", 0), &handle.frame))
        return false;
    if (!tbd_dap_open_place(dap, &handle.frame, &place))
        return false;
    is_found = find_value(&place, &handle, &wanted, &error);
    tbd_dap_close_place(dap, &place);
    *out_address = wanted.data.address;
    *out_bytes = bytes > 0               ? (uint64_t)bytes
                 : wanted.data.bits != 0 ? (wanted.data.bit_offset + wanted.data.bits + 7) / 8
                                         : tbd_type_look(&wanted.data.type).bytes;
    if (!is_found)
        snprintf(why, TBD_DAP_WHY_BYTES, "%s",
                 error.message[0] != '\0' ? error.message : "no such variable");
    else if (!wanted.data.is_known || !wanted.data.in_memory || *out_bytes == 0)
        snprintf(why, TBD_DAP_WHY_BYTES,
                 "it has no place in memory here: a register cannot be watched");
    return is_found && wanted.data.is_known && wanted.data.in_memory && *out_bytes != 0;
}
