// SPDX-License-Identifier: MIT
/* cmd_stack.c - bt, and one frame as bt shows it: the calls that have not returned, and what was passed to them */
#include "query/commands/commands.h"
#include "query/commands/functions.h"
#include "query/commands/rows.h"
#include "query/debuginfo/dwarf_inlined.h"
#include "query/output/output.h"
#include "query/session/source/source_place.h"
#include "query/values/function_variables.h"

#include "base/safe_stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PARAMETER_MAX 200u /* bytes of its value in a line of bt */

/* ---- parameters and variables of a frame ---- */

/* One of a frame's variables, for `bt`. */
typedef void variable_fn(void *context, const char *name, const char *text);

struct variable_walk {
    struct tbd_source_place *place; /* places[0] is the frame */
    bool only_scalars;              /* as gdb's `print frame-arguments scalars`: "..." for others */
    variable_fn *each;
    void *context;
};

static bool is_scalar(const struct tbd_type *type)
{
    struct tbd_type_view view = tbd_type_look(type);
    struct tbd_type target;

    if (view.kind == TBD_TYPE_REFERENCE)
        return tbd_type_target(type, &target) &&
               tbd_type_look(&target).kind != TBD_TYPE_REFERENCE && is_scalar(&target);
    return view.kind == TBD_TYPE_INTEGER || view.kind == TBD_TYPE_FLOAT ||
           view.kind == TBD_TYPE_ENUM || view.kind == TBD_TYPE_POINTER;
}

static void print_value(const struct variable_walk *walk, const struct tbd_data *data, FILE *out)
{
    struct tbd_printer printer = tbd_source_printer(walk->place, 0);

    printer.options.pretty = false;
    if (walk->only_scalars && !is_scalar(&data->type))
        fputs("...", out);
    else if (!data->is_known)
        fputs("<optimized out>", out);
    else
        (void)tbd_data_print(&printer, data, out);
}

static void take_variable(void *context, const Dwarf_Die *die, const char *name)
{
    const struct variable_walk *walk = context;
    struct tbd_data data;
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL)
        return;
    tbd_location_value(&walk->place->places[0], die, &data);
    print_value(walk, &data, out);
    if (fclose(out) == 0)
        walk->each(walk->context, name, text);
    free(text);
}

/* False: nothing is known about the function's variables. */
static bool each_parameter(struct tbd_source_place *place, variable_fn *each, void *context)
{
    struct variable_walk walk = { place, true, each, context };

    (void)tbd_function_variables(&place->places[0], TBD_FUNCTION_PARAMETERS, take_variable, &walk);
    return place->places[0].scopes.count != 0;
}

static void each_local(struct tbd_source_place *place, variable_fn *each, void *context)
{
    struct variable_walk walk = { place, false, each, context };

    (void)tbd_function_variables(&place->places[0], TBD_FUNCTION_LOCALS, take_variable, &walk);
}

/* ---- a frame as text ---- */

struct text_list {
    FILE *out;
    size_t count;
};

static void print_parameter(void *context, const char *name, const char *text)
{
    struct text_list *list = context;
    const char *shown = tbd_shown(text);

    fprintf(list->out, "%s%s=%.*s%s", list->count == 0 ? "" : ", ", tbd_shown(name),
            (int)PARAMETER_MAX, shown, strlen(shown) > PARAMETER_MAX ? "..." : "");
    list->count++;
}

static void print_local(void *context, const char *name, const char *text)
{
    struct text_list *list = context;

    fprintf(list->out, "        %s = %s\n", tbd_shown(name), tbd_shown(text));
}

/* " (n=5, next=0x0)"; "" if nothing is known about the function's parameters; the caller frees it. */
static char *parameters_text(struct tbd_source_place *place)
{
    char *text = NULL;
    size_t bytes;
    struct text_list list = { .out = open_memstream(&text, &bytes) };
    bool is_known;

    if (list.out == NULL)
        return NULL;
    fputs(" (", list.out);
    is_known = each_parameter(place, print_parameter, &list);
    fputc(')', list.out);
    if (fclose(list.out) == 0 && !is_known)
        text[0] = '\0';
    return text;
}

/* The name of an inlined function with its scopes, as other functions have theirs; places[0] is its frame. */
static const char *inlined_name(const struct tbd_source_place *place,
                                const struct tbd_source_frame *source, char *out, size_t bytes)
{
    const struct tbd_place_of *at = &place->places[0];

    if (at->end == 0 || !tbd_dwarf_declared_name(&at->scopes.dies[at->end - 1], out, bytes))
        snprintf(out, bytes, "%s", source->name);
    return out;
}

static void print_frame_text(const struct tbd_command_run *run, struct tbd_source_place *place,
                             size_t number, bool is_full)
{
    const struct tbd_source_frame *source = &place->stack.calls[number];
    const struct tbd_frame *frame = &place->stack.frames[source->stack];
    struct text_list locals = { .out = run->out };
    char *parameters = parameters_text(place);
    char name[256];
    char line[256];

    if (source->name != NULL)
        (void)inlined_name(place, source, name, sizeof(name));
    else
        tbd_symbols_format_frame(run->session->symbols, place->stack.window, frame->call_pc,
                                 frame->pc, name, sizeof(name));
    fprintf(run->out, "#%-3zu 0x%012" PRIx64 "  %s%s%s%s%s%s\n", number, frame->pc, tbd_shown(name),
            source->name != NULL ? " (inlined)" : "", parameters == NULL ? "" : parameters,
            tbd_frame_is_guess(frame) ? " ?" : "", frame->is_signal_frame ? " (signal)" : "",
            tbd_output_source_text(&source->source, line, sizeof(line)));
    free(parameters);
    if (is_full)
        each_local(place, print_local, &locals);
}

/* ---- a frame as an object ---- */

static void add_variable(void *context, const char *name, const char *text)
{
    json_t *object = json_object();

    json_object_set_new(object, "name", tbd_output_text(name));
    json_object_set_new(object, "value", tbd_output_text(text));
    json_array_append_new(context, object);
}

static json_t *frame_object(const struct tbd_command_run *run, struct tbd_source_place *place,
                            size_t number, bool is_full)
{
    const struct tbd_source_frame *source = &place->stack.calls[number];
    const struct tbd_frame *frame = &place->stack.frames[source->stack];
    json_t *object = json_object(), *parameters = json_array();
    char name[256];

    json_object_set_new(object, "frame", json_integer((json_int_t)number));
    if (run->session->thread != 0)
        json_object_set_new(object, "thread", json_integer((json_int_t)run->session->thread));
    json_object_set_new(object, "pc", tbd_output_hex(frame->pc));
    tbd_output_symbol_of_frame(run->session, place->stack.window, frame->call_pc, frame->pc,
                               object);
    if (source->name != NULL) {
        json_object_set_new(object, "function",
                            tbd_output_text(inlined_name(place, source, name, sizeof(name))));
        json_object_del(object, "function_offset");
    }
    if (each_parameter(place, add_variable, parameters))
        json_object_set(object, "arguments", parameters);
    json_decref(parameters);
    tbd_output_source(&source->source, object);
    json_object_set_new(object, "inlined", json_boolean(source->is_inlined));
    json_object_set_new(object, "sp", tbd_output_hex(frame->sp));
    json_object_set_new(object, "cfa", tbd_output_hex(frame->cfa));
    json_object_set_new(object, "guess", json_boolean(tbd_frame_is_guess(frame)));
    if (is_full) {
        json_object_set_new(object, "locals", json_array());
        each_local(place, add_variable, json_object_get(object, "locals"));
    }
    return object;
}

static void print_frame(const struct tbd_command_run *run, struct tbd_source_place *place,
                        size_t number, bool is_full)
{
    tbd_source_place_select(place, number);
    if (run->session->json)
        tbd_output_line(frame_object(run, place, number, is_full), run->out);
    else
        print_frame_text(run, place, number, is_full);
}

void tbd_command_print_frame(const struct tbd_command_run *run, struct tbd_source_place *place,
                             size_t number)
{
    print_frame(run, place, number, false);
}

/* ---- bt ---- */

/* Which frames of a stack, and whether with their variables. */
struct frame_range {
    size_t first, end;
    bool is_full;
};

static enum tbd_exit print_rows(const struct tbd_command_run *run, struct tbd_source_place *place,
                                struct frame_range shown)
{
    static const char *const columns[] = {
        "frame", "pc", "module", "function", "file", "line", NULL
    };
    struct tbd_rows rows;

    tbd_rows_start(&rows, run, columns);
    for (size_t i = shown.first; i < shown.end; i++) {
        tbd_source_place_select(place, i);
        tbd_rows_add(&rows, frame_object(run, place, i, shown.is_full));
    }
    return tbd_rows_end(&rows);
}

static void tell_rest(const struct tbd_command_run *run, size_t count, const char *where)
{
    if (count != 0 && !run->session->json)
        fprintf(run->out, "(%zu more frame%s %s)\n", count, count == 1 ? "" : "s", where);
}

static void print_frames(const struct tbd_command_run *run, struct tbd_source_place *place,
                         struct frame_range shown)
{
    const struct tbd_source_stack *stack = &place->stack;

    tell_rest(run, shown.first, "before these");
    for (size_t i = shown.first; i < shown.end && ferror(run->out) == 0; i++)
        print_frame(run, place, i, shown.is_full);
    tell_rest(run, stack->count - shown.end, "follow");
    if (stack->is_cut)
        fprintf(stderr, "tbdq: note: the stack has more frames: the innermost %zu are looked at\n",
                stack->count);
}

/* The words after `bt`. */
struct bt_words {
    int64_t wanted; /* as gdb counts: the innermost frames; with a minus the outermost; 0: all */
    bool is_full;
};

static struct frame_range chosen_frames(size_t count, const struct bt_words *words)
{
    size_t most = (size_t)(words->wanted < 0 ? -words->wanted : words->wanted);

    if (words->wanted == 0 || most >= count)
        return (struct frame_range){ 0, count, words->is_full };
    return words->wanted > 0 ? (struct frame_range){ 0, most, words->is_full }
                             : (struct frame_range){ count - most, count, words->is_full };
}

static enum tbd_exit print_stack(struct tbd_command_run *run, struct tbd_position position,
                                 const struct bt_words *words)
{
    struct tbd_source_place place;
    enum tbd_status status = tbd_source_place_open(run->session, position, 0, &place);
    enum tbd_exit result = TBD_EXIT_FOUND;
    struct frame_range shown;

    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    shown = chosen_frames(place.stack.count, words);
    if (run->session->csv)
        result = print_rows(run, &place, shown);
    else
        print_frames(run, &place, shown);
    tbd_source_place_close(&place);
    return result;
}

enum tbd_exit tbd_command_print_stack(struct tbd_command_run *run, struct tbd_position position)
{
    return print_stack(run, position, &(struct bt_words){ 0 });
}

/* "20" or "-20"; false: it is no number of frames. */
static bool take_frame_count(const char *text, int64_t *out)
{
    const char *digits = text + (*text == '-');
    size_t length = strspn(digits, "0123456789");

    if (length == 0 || length > 9 || digits[length] != '\0')
        return false;
    *out = strtoll(text, NULL, 10);
    return *out != 0;
}

/* "full", a number of frames, or both. */
static bool take_words(const struct tbd_command_run *run, struct bt_words *out)
{
    unsigned at = 0;

    out->is_full =
        run->argc > 0 && (strcmp(run->argv[0], "full") == 0 || strcmp(run->argv[0], "-full") == 0);
    at += out->is_full;
    if (at < run->argc && take_frame_count(run->argv[at], &out->wanted))
        at++;
    return at == run->argc;
}

enum tbd_exit tbd_command_bt(struct tbd_command_run *run)
{
    struct tbd_position position = tbd_session_current(run->session);
    struct bt_words words = { 0 };

    if (run->argc == 1 && strcmp(run->argv[0], "threads") == 0)
        return tbd_command_bt_threads(run, position);
    if (!take_words(run, &words) && !tbd_command_take_thread(run))
        return tbd_command_usage(run,
                                 "bt takes `full`, a number of frames, a thread, or `threads`");
    return print_stack(run, position, &words);
}
