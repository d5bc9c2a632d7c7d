// SPDX-License-Identifier: MIT
/* cmd_printf.c - printf: values at the current position, as a format writes them
 *
 *   printf "x=%d %s\n", x, name          as gdb takes it
 *   printf 'x=%d %s\n' x name            a word each, as a shell passes them */
#include "query/commands/commands.h"
#include "query/log/log_format.h"
#include "query/output/output.h"
#include "query/session/source/source_place.h"
#include "query/text/shortage.h"
#include "query/values/cxx_print.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 65535u /* of a string; a longer one is cut */

/* One value of the command's text. */
struct printf_value {
    size_t from, to;
};

struct printing {
    struct tbd_command_run *run;
    struct tbd_position position;
    struct tbd_log_format format;
    struct printf_value values[TBD_KEPT_MAX];
    uint32_t count;
    uint8_t *record; /* owned: the values, then their texts */
    size_t used, capacity;
};

/* ---- the line ---- */

static enum tbd_exit wrong_format(struct printing *p, size_t at, const char *why)
{
    struct tbd_query_error error = { .status = TBD_USAGE, .at = at, .length = 1 };

    snprintf(error.message, sizeof(error.message), "%s", why);
    return tbd_command_wrong(p->run, &error);
}

/* run->text[from, to) is the format. */
static enum tbd_exit read_printf_format(struct printing *p, size_t from, size_t to)
{
    char *text = strndup(p->run->text + from, to - from);
    const char *why;
    size_t at = 0;
    bool is_good;

    if (text == NULL)
        return tbd_command_no_memory();
    is_good = tbd_log_format_read(text, &p->format, &why, &at);
    free(text);
    return is_good ? TBD_EXIT_FOUND : wrong_format(p, from + at, why);
}

/* The end of the value that begins at `at`: a comma that is in no brackets and no quotes. */
static size_t value_end(const char *text, size_t at)
{
    int depth = 0;

    for (; text[at] != '\0' && (text[at] != ',' || depth > 0); at++) {
        char quote = text[at];

        depth += strchr("([{", quote) != NULL;
        depth -= strchr(")]}", quote) != NULL;
        if (quote != '"' && quote != '\'')
            continue;
        for (at++; text[at] != '\0' && text[at] != quote; at++)
            at += text[at] == '\\' && text[at + 1] != '\0';
        if (text[at] == '\0')
            break;
    }
    return at;
}

static bool add_value_at(struct printing *p, size_t from, size_t to)
{
    if (p->count == TBD_KEPT_MAX)
        return false;
    p->values[p->count++] = (struct printf_value){ from, to };
    return true;
}

static const char too_many[] = "printf takes at most 16 values";

/* "FORMAT", VALUE, ... */
static enum tbd_exit read_as_gdb(struct printing *p)
{
    const char *text = p->run->text;
    size_t from = p->run->arguments + 1, at = from;
    enum tbd_exit result;

    for (; text[at] != '\0' && text[at] != '"'; at++)
        at += text[at] == '\\' && text[at + 1] != '\0';
    if (text[at] == '\0')
        return wrong_format(p, p->run->arguments, "the format has no closing quote");
    result = read_printf_format(p, from, at);
    if (result != TBD_EXIT_FOUND)
        return result;
    at++;
    for (at += strspn(text + at, " \t"); text[at] != '\0';) {
        size_t end;

        if (text[at] != ',')
            return wrong_format(p, at, "a comma is expected before each value");
        end = value_end(text, at + 1);
        if (!add_value_at(p, at + 1, end))
            return tbd_command_usage(p->run, too_many);
        at = end;
    }
    return TBD_EXIT_FOUND;
}

/* FORMAT VALUE ..., each a word. */
static enum tbd_exit read_words(struct printing *p)
{
    const struct tbd_command_run *run = p->run;
    size_t at = run->arguments, length = strlen(run->argv[0]);
    enum tbd_exit result = read_printf_format(p, at, at + length);

    for (unsigned i = 1; i < run->argc && result == TBD_EXIT_FOUND; i++) {
        at += length + strspn(run->text + at + length, " \t");
        length = strlen(run->argv[i]);
        if (!add_value_at(p, at, at + length))
            result = tbd_command_usage(run, too_many);
    }
    return result;
}

static enum tbd_exit read_line(struct printing *p)
{
    enum tbd_exit result;

    if (p->run->argc == 0)
        return tbd_command_usage(p->run, "printf takes a format, and values for it");
    result = p->run->text[p->run->arguments] == '"' ? read_as_gdb(p) : read_words(p);
    if (result != TBD_EXIT_FOUND || p->count == p->format.count)
        return result;
    return tbd_command_usage(p->run, p->format.count < p->count
                                         ? "the format has fewer conversions than there are values"
                                         : "the format has more conversions than there are values");
}

/* ---- values ---- */

/* Where the characters of a value that %s takes are, and at most how many; false: it is no text. */
static bool find_text(const struct tbd_place_of *place, const struct tbd_data *data,
                      uint64_t *out_address, uint64_t *out_most)
{
    struct tbd_type_view view = tbd_type_look(&data->type);
    struct tbd_data inner;

    *out_most = TEXT_MAX;
    if (view.kind == TBD_TYPE_STRUCT) /* std::string; a string_view's text does not end with a 0 */
        return tbd_cxx_ask(place, data, "size", &inner) &&
               tbd_data_scalar(place, &inner, out_most) &&
               tbd_cxx_ask(place, data, "data", &inner) &&
               tbd_data_scalar(place, &inner, out_address);
    if (view.kind != TBD_TYPE_ARRAY)
        return tbd_data_scalar(place, data, out_address);
    *out_address = data->address;
    *out_most = view.count == 0 || view.count > TEXT_MAX ? TEXT_MAX : view.count;
    return data->in_memory;
}

/* The record may move. */
static bool reserve(struct printing *p, size_t more)
{
    uint8_t *bigger;

    if (p->used + more <= p->capacity)
        return true;
    bigger = realloc(p->record, 2 * (p->used + more));
    if (bigger == NULL)
        return false;
    p->record = bigger;
    p->capacity = 2 * (p->used + more);
    return true;
}

/* Up to a 0, or the end of what is known; false: nothing is. */
static enum tbd_exit read_text(struct printing *p, uint64_t address, uint64_t most,
                               struct tbd_kept_value *out)
{
    size_t begin = p->used;
    bool is_known = true;
    uint8_t byte = 1;

    for (uint64_t i = 0; i < most && i < TEXT_MAX && byte != 0 && is_known; i++) {
        is_known = tbd_session_read(p->run->session, p->position, address + i, &byte, 1) == TBD_OK;
        if (!is_known || byte == 0)
            continue;
        if (!reserve(p, 1))
            return tbd_command_no_memory();
        p->record[p->used++] = byte;
    }
    *out = (struct tbd_kept_value){ .text = (uint32_t)begin,
                                    .bytes = (uint16_t)(p->used - begin),
                                    .state = !is_known && p->used == begin ? TBD_KEPT_NONE
                                                                           : TBD_KEPT_TEXT };
    return TBD_EXIT_FOUND;
}

static enum tbd_exit take_value(struct printing *p, struct tbd_source_place *place,
                                const struct tbd_data *data, bool as_text,
                                struct tbd_kept_value *out)
{
    uint64_t address, most;
    long double real;
    double narrow;

    *out = (struct tbd_kept_value){ .state = data->is_known ? TBD_KEPT_NONE : TBD_KEPT_OPTIMIZED };
    if (!data->is_known)
        return TBD_EXIT_FOUND;
    if (as_text)
        return find_text(&place->places[0], data, &address, &most)
                   ? read_text(p, address, most, out)
                   : TBD_EXIT_FOUND;
    if (tbd_data_float(&place->places[0], data, &real)) {
        narrow = (double)real;
        memcpy(&out->v, &narrow, sizeof(narrow));
        out->state = TBD_KEPT_REAL;
    } else if (tbd_data_scalar(&place->places[0], data, &out->v)) {
        out->state = TBD_KEPT_NUMBER;
    }
    return TBD_EXIT_FOUND;
}

/* An array or a struct is no number, and few structs are texts. */
static bool fits(const struct tbd_place_of *place, const struct tbd_data *data, bool as_text)
{
    struct tbd_type_view view = tbd_type_look(&data->type);
    uint64_t address, most;

    if (!data->is_known || (view.kind != TBD_TYPE_ARRAY && view.kind != TBD_TYPE_STRUCT))
        return true;
    return as_text && find_text(place, data, &address, &most);
}

static enum tbd_exit evaluate_value(struct printing *p, uint32_t index)
{
    const struct printf_value *value = &p->values[index];
    bool as_text = p->format.pieces[index].conversion == 's';
    struct tbd_source_place place;
    struct tbd_kept_value kept;
    struct tbd_data data;
    enum tbd_exit result =
        tbd_command_value_of(p->run, p->position, value->from, value->to, &place, &data);

    if (result != TBD_EXIT_FOUND)
        return result;
    if (fits(&place.places[0], &data, as_text))
        result = take_value(p, &place, &data, as_text, &kept);
    else
        result = wrong_format(p, value->from + strspn(p->run->text + value->from, " \t"),
                              as_text ? "this is no text" : "this is no number");
    tbd_source_place_close(&place);
    if (result == TBD_EXIT_FOUND)
        memcpy(p->record + index * sizeof(kept), &kept, sizeof(kept));
    return result;
}

static void print_line(const struct printing *p)
{
    const struct tbd_kept_value *record = (const void *)p->record;
    char *text = NULL;
    json_t *object;
    size_t bytes;
    FILE *out;

    if (!p->run->session->json) {
        tbd_log_format_write(&p->format, record, p->run->out);
        fputs(p->format.ends_line ? "\n" : "", p->run->out);
        return;
    }
    out = open_memstream(&text, &bytes);
    if (out == NULL) {
        tbd_shortage_note();
        return;
    }
    tbd_log_format_write(&p->format, record, out);
    fputs(p->format.ends_line ? "\n" : "", out);
    fclose(out);
    object = json_object();
    json_object_set_new(object, "text", tbd_output_text(text));
    tbd_output_line(object, p->run->out);
    free(text);
}

enum tbd_exit tbd_command_printf(struct tbd_command_run *run)
{
    struct printing p = { .run = run, .position = tbd_session_current(run->session) };
    enum tbd_exit result = read_line(&p);

    p.used = p.count * sizeof(struct tbd_kept_value);
    if (result == TBD_EXIT_FOUND && !reserve(&p, 1))
        result = tbd_command_no_memory();
    for (uint32_t i = 0; i < p.count && result == TBD_EXIT_FOUND; i++)
        result = evaluate_value(&p, i);
    if (result == TBD_EXIT_FOUND)
        print_line(&p);
    tbd_log_format_free(&p.format);
    free(p.record);
    return result;
}
