// SPDX-License-Identifier: MIT
/* cmd_print.c - print, locals, ptype: the program's variables in the selected frame */
#include "query/commands/commands.h"
#include "query/output/output.h"
#include "query/output/value_json.h"
#include "query/session/source/source_place.h"
#include "query/values/function_variables.h"

#include "base/safe_stream.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FORMATS      "xduotc"
#define VALUES_MAX   4096u
#define TYPE_BYTES   1024u /* of the name of a type */
#define POINTERS_MAX 8u    /* of a pointer to a pointer to ... */

/* The value as text; the caller frees it. */
static char *value_text(struct tbd_source_place *place, char format, const struct tbd_data *data,
                        uint32_t *out_unknown)
{
    struct tbd_printer printer = tbd_source_printer(place, format);
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    *out_unknown = 0;
    if (out == NULL)
        return NULL;
    printer.options.pretty &= !place->session->json;
    *out_unknown = tbd_data_print(&printer, data, out).unknown;
    fclose(out);
    return text;
}

static void put_text(json_t *object, const char *key, const char *text)
{
    json_object_set_new(object, key, tbd_output_text(text == NULL ? "" : text));
}

static void put_unknown(json_t *object, uint32_t parts)
{
    json_object_del(object, "unknown_parts");
    if (parts != 0)
        json_object_set_new(object, "unknown_parts", json_integer(parts));
}

static void put_value(struct tbd_source_place *place, char format, const struct tbd_data *data,
                      json_t *object)
{
    struct tbd_printer printer = tbd_source_printer(place, format);
    uint32_t unknown;
    char *text = value_text(place, format, data, &unknown);
    char type[TYPE_BYTES];

    put_text(object, "ctype", tbd_type_text(&data->type, type, sizeof(type)));
    put_text(object, "value", text);
    json_object_set_new(object, "data", tbd_value_json(&printer, data));
    json_object_set_new(object, "known", json_boolean(data->is_known));
    put_unknown(object, data->is_known ? unknown : 0);
    if (data->is_known && data->in_memory)
        json_object_set_new(object, "addr", tbd_output_hex(data->address));
    free(text);
}

enum tbd_exit tbd_command_value_of(struct tbd_command_run *run, struct tbd_position position,
                                   size_t from, size_t to, struct tbd_source_place *place,
                                   struct tbd_data *out)
{
    struct tbd_query_error error = { .status = TBD_OK };
    enum tbd_status status =
        tbd_source_evaluate(run->session, position, run->text, from, to, place, out, &error);

    if (status == TBD_OK)
        return TBD_EXIT_FOUND;
    return error.message[0] != '\0' ? tbd_command_wrong(run, &error)
                                    : tbd_command_fail(run, status);
}

/* ---- print ---- */

/* One of gdb's options before an expression: "-pretty on", "-object"; *at moves past it. */
static bool take_option(struct tbd_print_options *options, const char *text, size_t *at)
{
    size_t length = strcspn(text + *at, " ");
    char name[32] = "";
    const char *value = text + *at + length + strspn(text + *at + length, " ");
    size_t word = strcspn(value, " ");
    bool *flag, is_off = word == 3 && strncmp(value, "off", 3) == 0;

    if (length < 2 || length >= sizeof(name) || text[*at] != '-')
        return false;
    memcpy(name, text + *at + 1, length - 1);
    flag = tbd_command_print_setting(options, name);
    if (flag == NULL)
        return false;
    *flag = !is_off;
    *at = (size_t)(value - text);
    if (is_off || (word == 2 && strncmp(value, "on", 2) == 0))
        *at += word + strspn(value + word, " ");
    return true;
}

/* Options up to the expression, or up to "--"; returns where that begins. */
static size_t take_options(const struct tbd_command_run *run)
{
    size_t at = run->arguments;

    while (take_option(&run->session->print, run->text, &at))
        ;
    if (at != run->arguments && strncmp(run->text + at, "-- ", 3) == 0)
        at += 3;
    return at;
}

struct print_request {
    size_t from, to; /* of the expression in the text */
    char format;
    uint64_t count; /* EXPR@COUNT: this many consecutive values; 0: one */
};

static bool is_format(const char *s)
{
    return s[0] == '/' && s[1] != '\0' && strchr(FORMATS, s[1]) != NULL;
}

/* "/x EXPR" or "EXPR /x". */
static void take_format(const struct tbd_command_run *run, struct print_request *out)
{
    const char *last = run->argv[run->argc - 1], *first;

    *out = (struct print_request){ .from = take_options(run), .to = strlen(run->text) };
    first = run->text + out->from;
    if (run->argc < 2)
        return;
    if (is_format(first) && first[2] == ' ') {
        out->format = first[1];
        out->from += 2;
    } else if (is_format(last) && last[2] == '\0') {
        out->format = last[1];
        out->to -= 2;
    }
}

/* "EXPR/x" without a blank: a format, unless there is a variable called x. */
static void take_joined_format(struct tbd_command_run *run, struct print_request *out)
{
    struct tbd_query_error error = { 0 };
    struct tbd_source_place place;
    struct tbd_data data;

    if (out->format != 0 || out->to < out->from + 3 || !is_format(run->text + out->to - 2))
        return;
    if (tbd_source_evaluate(run->session, tbd_session_current(run->session), run->text, out->to - 1,
                            out->to, &place, &data, &error) == TBD_OK) {
        tbd_source_place_close(&place);
        return;
    }
    out->format = run->text[out->to - 1];
    out->to -= 2;
}

/* What a print is about. */
struct printed {
    struct tbd_source_place place;
    struct tbd_data data;
};

/* EXPR@COUNT, as in gdb: cuts the count off.  If the count is not known, that is what is printed: *out, and *is_unknown says so. */
static enum tbd_exit take_count(struct tbd_command_run *run, struct print_request *request,
                                struct printed *out, bool *is_unknown)
{
    const char *text = run->text + request->from;
    const char *at = memrchr(text, '@', request->to - request->from);
    enum tbd_exit result;
    uint32_t unknown;

    *is_unknown = false;
    if (at == NULL || memchr(at, '"', (size_t)(run->text + request->to - at)) != NULL)
        return TBD_EXIT_FOUND;
    result =
        tbd_command_value_of(run, tbd_session_current(run->session), (size_t)(at + 1 - run->text),
                             request->to, &out->place, &out->data);
    if (result != TBD_EXIT_FOUND)
        return result;
    request->to = (size_t)(at - run->text);
    free(value_text(&out->place, 0, &out->data, &unknown));
    *is_unknown = !out->data.is_known || unknown != 0;
    if (*is_unknown)
        return result;
    if (!tbd_data_scalar(&out->place.places[0], &out->data, &request->count) ||
        request->count == 0 || request->count > VALUES_MAX)
        result = tbd_command_usage(run, "EXPRESSION@COUNT takes a count from 1 to 4096");
    tbd_source_place_close(&out->place);
    return result;
}

/* A name that is only in the symbol table has no type to print it by. */
static bool has_no_type(const struct tbd_data *data)
{
    struct tbd_type type = data->type;

    return data->is_known && data->in_memory && tbd_type_look(&type).kind == TBD_TYPE_VOID;
}

static enum tbd_exit print_value(struct tbd_command_run *run, struct tbd_source_place *place,
                                 const struct print_request *request, struct tbd_data *data)
{
    json_t *object;
    size_t kept;
    uint32_t unknown;
    char *text;

    if (has_no_type(data)) {
        fprintf(stderr,
                "tbdq: its type is not known: only its address 0x%" PRIx64 "\n"
                "hint: write (TYPE)NAME or &NAME\n",
                data->address);
        return TBD_EXIT_NOT_FOUND;
    }
    if (request->count != 0 && data->is_known && !data->in_memory) {
        fprintf(stderr, "tbdq: what stands before @ must lie in memory\n");
        return TBD_EXIT_NOT_FOUND;
    }
    if (request->count != 0 && data->is_known)
        data->type = tbd_type_array_of(&data->type, (uint32_t)request->count);
    if (run->session->json) {
        object = json_object();
        json_object_set_new(object, "expression",
                            json_stringn(run->text + request->from, request->to - request->from));
        put_value(place, request->format, data, object);
        tbd_output_line(object, run->out);
        return TBD_EXIT_FOUND;
    }
    text = value_text(place, request->format, data, &unknown);
    kept = tbd_user_values_print(&run->session->values, &place->places[0], data);
    if (run->numbers && kept != 0)
        fprintf(run->out, "$%zu = ", kept);
    fprintf(run->out, "%s\n", text == NULL ? "" : text);
    free(text);
    return TBD_EXIT_FOUND;
}

/* As gdb types them; in expressions registers are numbers. */
static void take_pointer_register(const struct tbd_command_run *run,
                                  const struct print_request *request, struct tbd_data *data)
{
    static const char *const names[] = { "$rip", "$pc", "$rsp", "$sp", "$rbp" };
    const char *text = run->text + request->from;
    size_t length = request->to - request->from;
    struct tbd_type nothing = tbd_type_made(0, 0);

    for (; length > 0 && text[0] == ' '; length--)
        text++;
    for (; length > 0 && text[length - 1] == ' '; length--)
        ;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && request->format == 0; i++)
        if (length == strlen(names[i]) && memcmp(text, names[i], length) == 0)
            data->type = tbd_type_pointer_to(&nothing);
}

static enum tbd_exit print_expression(struct tbd_command_run *run)
{
    struct print_request request;
    struct printed what;
    enum tbd_exit result;
    bool is_unknown;

    take_format(run, &request);
    take_joined_format(run, &request);
    result = take_count(run, &request, &what, &is_unknown);
    if (result == TBD_EXIT_FOUND && !is_unknown)
        result = tbd_command_value_of(run, tbd_session_current(run->session), request.from,
                                      request.to, &what.place, &what.data);
    if (result != TBD_EXIT_FOUND)
        return result;
    take_pointer_register(run, &request, &what.data);
    result = print_value(run, &what.place, &request, &what.data);
    tbd_source_place_close(&what.place);
    return result;
}

enum tbd_exit tbd_command_print(struct tbd_command_run *run)
{
    struct tbd_print_options before = run->session->print;
    enum tbd_exit result;

    if (run->argc == 0)
        return tbd_command_usage(run, "print takes an expression");
    if (tbd_command_is_setting(run))
        return tbd_command_set(run);
    result = print_expression(run);
    run->session->print = before;
    return result;
}

/* ---- locals ---- */

struct local_list {
    const struct tbd_command_run *run;
    struct tbd_source_place *place;
};

static void print_local(void *context, const Dwarf_Die *die, const char *name)
{
    const struct local_list *list = context;
    struct tbd_data data;
    char *text;
    uint32_t unknown;
    json_t *object;

    tbd_location_value(&list->place->places[0], die, &data);
    if (list->run->session->json) {
        object = json_object();
        put_text(object, "name", name);
        json_object_set_new(
            object, "parameter",
            json_boolean(dwarf_tag((Dwarf_Die *)(uintptr_t)die) == DW_TAG_formal_parameter));
        put_value(list->place, 0, &data, object);
        tbd_output_line(object, list->run->out);
        return;
    }
    text = value_text(list->place, 0, &data, &unknown);
    fprintf(list->run->out, "%s = %s\n", tbd_shown(name), text == NULL ? "" : text);
    free(text);
}

enum tbd_exit tbd_command_locals(struct tbd_command_run *run)
{
    struct tbd_source_place place;
    const struct tbd_place_of *at = &place.places[0];
    struct tbd_position position = tbd_session_current(run->session);
    enum tbd_exit result = TBD_EXIT_FOUND;
    enum tbd_status status;
    bool only_args = run->argc > 0 && strcmp(run->argv[0], "args") == 0;
    size_t words = only_args ? 1 : 0;
    uint64_t frame = SIZE_MAX;
    const char *missing;
    size_t count;

    if ((size_t)run->argc > words + 1)
        return tbd_command_usage(run, "locals takes at most `args` and the number of a frame");
    if ((size_t)run->argc == words + 1)
        result = tbd_command_value(run, (unsigned)words, position, &frame);
    if (result != TBD_EXIT_FOUND)
        return result;
    status = tbd_source_place_open(run->session, position, (size_t)frame, &place);
    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    if (at->scopes.count == 0) {
        missing = at->dwarf != NULL ? tbd_dwarf_missing_file(at->dwarf, at->address) : NULL;
        fprintf(stderr, "tbdq: nothing is known about variables here: %s%s\n",
                missing != NULL ? "the debug information cannot be read: " : "no debug information",
                missing != NULL ? tbd_shown(missing) : "");
        if (frame == SIZE_MAX && place.stack.count > place.stack.selected + 1)
            fprintf(stderr, "hint: `up` selects the caller's frame; `bt` shows all\n");
        result = TBD_EXIT_NOT_FOUND;
    }
    count =
        tbd_function_variables(at, only_args ? TBD_FUNCTION_PARAMETERS : TBD_FUNCTION_ALL,
                               print_local, &(struct local_list){ .run = run, .place = &place });
    if (result == TBD_EXIT_FOUND && count == 0)
        fprintf(stderr, "tbdq: the function has no %s here\n",
                only_args ? "parameters" : "variables");
    tbd_source_place_close(&place);
    return result;
}

/* ---- ptype ---- */

static void print_members(const struct tbd_command_run *run, const struct tbd_place_of *place,
                          const Dwarf_Die *of)
{
    struct tbd_member member;
    Dwarf_Die whole = tbd_type_complete(place->dwarf, of), at;
    char text[TYPE_BYTES];

    for (bool first = true; tbd_type_next_member(&whole, first, &at, &member); first = false) {
        tbd_type_text(&member.type, text, sizeof(text));
        if (member.is_static || member.is_virtual)
            fprintf(run->out, "%6s  %s ", "-", member.is_static ? "static" : "virtual");
        else
            fprintf(run->out, "%6" PRIu64 "  ", member.offset);
        fprintf(run->out, "%s  %s", tbd_shown(text),
                tbd_shown(member.name == NULL ? "" : member.name));
        if (member.bits != 0)
            fprintf(run->out, " : %" PRIu32, member.bits);
        fputc('\n', run->out);
    }
}

/* The values of an enumeration, and what they are called. */
static void print_enumerators(const struct tbd_command_run *run, const struct tbd_type_view *view)
{
    uint64_t value;
    Dwarf_Die die;

    for (bool more = tbd_die_child(&view->die, &die); more; more = tbd_die_next(&die, &die)) {
        const char *name = tbd_die_name(&die);

        if (dwarf_tag(&die) != DW_TAG_enumerator || name == NULL ||
            !tbd_die_number(&die, DW_AT_const_value, &value))
            continue;
        fprintf(run->out, view->is_signed ? "%6" PRId64 "  %s\n" : "%6" PRIu64 "  %s\n", value,
                tbd_shown(name));
    }
}

/* What a pointer, a reference or an array leads to, or a pointer to such a pointer, if that is a struct. */
static bool points_to_struct(const struct tbd_type *type, struct tbd_type *out)
{
    struct tbd_type_view view = tbd_type_look(type);
    struct tbd_type at = *type;

    for (unsigned i = 0; i < POINTERS_MAX; i++) {
        if ((view.kind != TBD_TYPE_POINTER && view.kind != TBD_TYPE_REFERENCE &&
             view.kind != TBD_TYPE_ARRAY) ||
            !tbd_type_target(&at, out))
            return false;
        at = *out;
        view = tbd_type_look(&at);
        if (view.kind == TBD_TYPE_STRUCT)
            return true;
    }
    return false;
}

static void print_type(const struct tbd_command_run *run, const struct tbd_place_of *place,
                       const struct tbd_type *type)
{
    struct tbd_type_view view = tbd_type_look(type);
    struct tbd_type target;
    char text[TYPE_BYTES];
    json_t *object;

    tbd_type_text(type, text, sizeof(text));
    if (run->session->json) {
        object = json_object();
        put_text(object, "ctype", text);
        json_object_set_new(object, "size", json_integer((json_int_t)view.bytes));
        tbd_output_line(object, run->out);
        return;
    }
    if (view.kind == TBD_TYPE_FUNCTION)
        fprintf(run->out, "%s\n", tbd_shown(text));
    else
        fprintf(run->out, "%s, %" PRIu64 " bytes\n", tbd_shown(text), view.bytes);
    if (view.kind == TBD_TYPE_STRUCT)
        print_members(run, place, &view.die);
    else if (view.kind == TBD_TYPE_ENUM)
        print_enumerators(run, &view);
    else if (points_to_struct(type, &target))
        print_type(run, place, &target);
}

/* Prints the type that the words name; false if they name none. */
static bool print_named_type(struct tbd_command_run *run, struct tbd_source_place *place)
{
    struct tbd_c_scope scope = tbd_source_scope(place);
    struct tbd_type type;

    if (tbd_c_type(&scope, run->text + run->arguments, &type) != TBD_OK)
        return false;
    print_type(run, &place->places[0], &type);
    return true;
}

enum tbd_exit tbd_command_ptype(struct tbd_command_run *run)
{
    struct tbd_position position = tbd_session_current(run->session);
    struct tbd_source_place place;
    struct tbd_data data;
    enum tbd_exit result;
    bool is_type;

    if (run->argc == 0)
        return tbd_command_usage(run, "ptype takes a type or an expression");
    if (tbd_source_place_glance(run->session, position, &place) ||
        tbd_source_place_open(run->session, position, SIZE_MAX, &place) == TBD_OK) {
        is_type = print_named_type(run, &place);
        tbd_source_place_close(&place);
        if (is_type)
            return TBD_EXIT_FOUND;
    }
    result = tbd_command_value_of(run, position, run->arguments, strlen(run->text), &place, &data);
    if (result != TBD_EXIT_FOUND)
        return result;
    print_type(run, &place.places[0], &data.type);
    tbd_source_place_close(&place);
    return result;
}
