// SPDX-License-Identifier: MIT
/* source_place.c - see source_place.h */
#include "query/session/source/source_place.h"

#include "query/session/source/window_modules.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool read_memory(void *context, uint64_t address, void *out, size_t bytes)
{
    const struct tbd_source_place *place = context;

    return tbd_session_read(place->session, place->stack.position, address, out, bytes) == TBD_OK;
}

static void take_module(struct tbd_place_of *place, const struct tbd_module *module,
                        uint64_t address, size_t function)
{
    place->is_main_program = tbd_module_is_program(module);
    tbd_place_enter(place, tbd_dwarf_of(module->file), module->bias, address, function);
}

static void fill(struct tbd_source_place *of, size_t number, size_t frame, size_t function)
{
    struct tbd_place_of *place = &of->places[number];
    const struct tbd_frame *at = &of->stack.frames[frame];
    const struct tbd_module *module =
        tbd_symbols_module_at(of->session->symbols, of->stack.window, at->call_pc);

    *place = (struct tbd_place_of){ .frame = at,
                                    .regs = &of->state->regs,
                                    .fs_base = of->state->regs.fs_base,
                                    .memory = &of->memory };
    if (frame == 0 && of->state->regs.xsave_bytes >= 512)
        place->xsave = of->state->xsave;
    if (module != NULL)
        take_module(place, module, at->call_pc, function);
}

static void fill_all(struct tbd_source_place *of, size_t call)
{
    size_t frame = of->stack.calls[call].stack;
    size_t count = of->stack.frame_count - frame, filled = 1;

    if (count > TBD_SOURCE_CALLERS)
        count = TBD_SOURCE_CALLERS;
    if (of->place_count > 1 && frame == of->first_frame + 1) {
        filled = of->place_count - 1;
        memmove(&of->places[0], &of->places[1], filled * sizeof(of->places[0]));
    } else if (of->place_count != 0 && frame == of->first_frame) {
        filled = of->place_count;
    }
    fill(of, 0, frame, of->stack.calls[call].function);
    for (size_t i = filled; i < count; i++)
        fill(of, i, frame + i, SIZE_MAX);
    for (size_t i = 1; i < count; i++)
        of->places[i - 1].caller = &of->places[i];
    of->first_frame = frame;
    of->place_count = count;
}

void tbd_source_place_select(struct tbd_source_place *place, size_t call)
{
    place->stack.selected = call;
    fill_all(place, call);
}

enum tbd_status tbd_source_place_open(struct tbd_session *session, struct tbd_position position,
                                      size_t frame, struct tbd_source_place *out)
{
    enum tbd_status status = tbd_source_stack(session, position, &out->stack);

    out->session = session;
    out->state = NULL;
    out->first_frame = out->place_count = 0;
    out->memory = (struct tbd_stack_memory){ .read = read_memory, .context = out };
    if (status != TBD_OK)
        return status;
    if (frame != SIZE_MAX)
        out->stack.selected = frame < out->stack.count ? frame : out->stack.count - 1;
    out->state = calloc(1, sizeof(*out->state));
    status = out->state == NULL ? TBD_NOMEM : tbd_session_regs(session, position, out->state);
    if (status == TBD_OK)
        fill_all(out, out->stack.selected);
    else
        tbd_source_place_close(out);
    return status;
}

bool tbd_source_place_glance(struct tbd_session *session, struct tbd_position position,
                             struct tbd_source_place *out)
{
    const struct tbd_module *module;
    uint64_t pc;
    uint32_t window;
    bool is_row = session->past != NULL && session->past->is_row;

    if ((session->thread != 0 && !is_row) || tbd_source_selected(session, position) != 0 ||
        tbd_session_pc(session, position, &window, &pc) != TBD_OK)
        return false;
    out->session = session;
    out->state = NULL;
    out->stack = (struct tbd_source_stack){ .position = position, .window = window };
    out->memory = (struct tbd_stack_memory){ .read = read_memory, .context = out };
    out->places[0] = (struct tbd_place_of){ .memory = &out->memory };
    module = tbd_symbols_module_at(session->symbols, window, pc);
    if (module != NULL)
        take_module(&out->places[0], module, pc, 0);
    return true;
}

/* What stands before the word? For smart pointers of the C++ library, the members of a value depend
 * on it. */
static bool is_member(const char *text, size_t at)
{
    while (at > 0 && text[at - 1] == ' ')
        at--;
    return at > 0 &&
           (text[at - 1] == '.' || (at > 1 && text[at - 1] == '>' && text[at - 2] == '-'));
}

enum tbd_status tbd_source_evaluate(struct tbd_session *session, struct tbd_position position,
                                    const char *text, size_t from, size_t to,
                                    struct tbd_source_place *out, struct tbd_data *out_data,
                                    struct tbd_query_error *error)
{
    struct tbd_c_scope scope;
    enum tbd_status status;

    if (tbd_source_place_glance(session, position, out)) {
        scope = tbd_source_scope(out);
        status = tbd_c_evaluate(&scope, text, from, to, out_data, error);
        if (status == TBD_OK && out_data->is_known)
            return TBD_OK;
        tbd_source_place_close(out);
        if (status == TBD_SYNTAX || (status == TBD_NAME && !is_member(text, error->at)))
            return status; /* for any registers */
    }
    error->message[0] = '\0';
    status = tbd_source_place_open(session, position, SIZE_MAX, out);
    if (status != TBD_OK)
        return status;
    scope = tbd_source_scope(out);
    status = tbd_c_evaluate(&scope, text, from, to, out_data, error);
    if (status != TBD_OK)
        tbd_source_place_close(out);
    return status;
}

void tbd_source_place_close(struct tbd_source_place *place)
{
    tbd_source_stack_free(&place->stack);
    free(place->state);
    place->state = NULL;
}

/* ---- names of other modules ---- */

static bool find_variable(void *context, const char *name, bool of_program, struct tbd_data *out)
{
    struct tbd_source_place *place = context;
    struct tbd_window_modules window = { place->session->symbols, place->stack.window };
    struct tbd_name_modules modules = tbd_window_modules_of(&window, &place->places[0]);

    return tbd_modules_variable(&modules, name, of_program, out);
}

static bool find_type(void *context, const char *name, struct tbd_type *out)
{
    struct tbd_source_place *place = context;
    struct tbd_window_modules window = { place->session->symbols, place->stack.window };
    struct tbd_name_modules modules = tbd_window_modules_of(&window, &place->places[0]);

    return tbd_modules_type(&modules, name, out);
}

static bool find_kept(void *context, const char *name, struct tbd_data *out)
{
    const struct tbd_source_place *place = context;

    return tbd_user_values_find(&place->session->values, name, out);
}

struct tbd_c_scope tbd_source_scope(struct tbd_source_place *place)
{
    return (struct tbd_c_scope){ .place = &place->places[0],
                                 .variable = find_variable,
                                 .type = find_type,
                                 .kept = find_kept,
                                 .context = place };
}

static bool function_name(void *context, uint64_t address, char *out, size_t bytes)
{
    struct tbd_source_place *place = context;
    struct tbd_symbol symbol;

    if (!tbd_symbols_at(place->session->symbols, place->stack.window, address, &symbol) ||
        symbol.name == NULL || symbol.start != address)
        return false;
    snprintf(out, bytes, "%s", symbol.name);
    return true;
}

static bool symbol_name(void *context, uint64_t address, char *out, size_t bytes)
{
    struct tbd_source_place *place = context;
    struct tbd_symbol symbol;

    if (!tbd_symbols_at(place->session->symbols, place->stack.window, address, &symbol) ||
        symbol.name == NULL)
        return false;
    if (address == symbol.start)
        snprintf(out, bytes, "%s", symbol.name);
    else
        snprintf(out, bytes, "%s+%" PRIu64, symbol.name, address - symbol.start);
    return true;
}

struct tbd_printer tbd_source_printer(struct tbd_source_place *place, char format)
{
    return (struct tbd_printer){ .place = &place->places[0],
                                 .options = place->session->print,
                                 .format = format,
                                 .function = function_name,
                                 .symbol = symbol_name,
                                 .type = find_type,
                                 .context = place };
}
