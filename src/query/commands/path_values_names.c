// SPDX-License-Identifier: MIT
/* path_values_names.c - variables of a row's source line, or that are wanted (path_values_private.h)
 *
 * They are evaluated as `print` does, once with all that is known and once with what is exact; what is the same both times is exact. */
#include "query/commands/path_values_private.h"

#include "query/debuginfo/register_names.h"
#include "query/session/source/source_place.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 24 };

/* Can the text be evaluated there?  Then *out is its value, for the caller to free, *parts says what of it is known, and *address
 * where it lies in memory, if it does. */
static bool evaluate(struct tbd_path_values *values, const char *name, bool exact_only, char **out,
                     struct tbd_print_parts *parts, uint64_t *address)
{
    struct tbd_query_error error = { .status = TBD_OK };
    struct tbd_source_place place;
    struct tbd_printer printer;
    struct tbd_data data;
    size_t bytes;
    FILE *file;
    enum tbd_status status;

    *out = NULL;
    tbd_past_enter_row(values->past, exact_only);
    status = tbd_source_evaluate(values->session, (struct tbd_position){ 0 }, name, 0, strlen(name),
                                 &place, &data, &error);
    if (status == TBD_OK) {
        struct tbd_type_view view = tbd_type_look(&data.type);

        file = view.kind == TBD_TYPE_FUNCTION || view.kind == TBD_TYPE_VOID
                   ? NULL
                   : open_memstream(out, &bytes);
        if (file != NULL) {
            printer = tbd_source_printer(&place, 0);
            printer.brief = true;
            *parts = tbd_data_print(&printer, &data, file);
            fclose(file);
            *address = data.in_memory ? data.address : 0;
        }
        tbd_source_place_close(&place);
    }
    tbd_past_leave(values->past);
    return *out != NULL;
}

static void take_variable(struct tbd_path_values *values, const char *name, int which,
                          struct tbd_shown_value *out)
{
    struct tbd_print_parts parts, exact_parts;
    bool is_known;
    uint64_t address;
    char *exact;

    if (!evaluate(values, name, values->what.exact, &out->text[which], &parts,
                  &out->address[which]))
        return;
    is_known = parts.unknown == 0;
    out->is_partial[which] = !is_known && parts.known != 0;
    if (values->what.exact) {
        out->certainty[which] = is_known ? TBD_EXACT : TBD_UNKNOWN;
        return;
    }
    out->certainty[which] = is_known ? TBD_INFERRED : TBD_UNKNOWN;
    if (out->why == 0 && parts.known != 0)
        out->why = values->past->used_why;
    if (is_known && evaluate(values, name, true, &exact, &exact_parts, &address)) {
        if (exact_parts.unknown == 0 && strcmp(exact, out->text[which]) == 0)
            out->certainty[which] = TBD_EXACT;
        free(exact);
    }
}

/* The names of a row: at its beginning, then at its end. */
struct names {
    char text[NAMES_MAX][TBD_PATH_NAME_BYTES];
    struct tbd_shown_value values[NAMES_MAX];
    size_t count;
};

static void add_name(struct names *names, const char *name, size_t bytes)
{
    if (names->count == NAMES_MAX || bytes == 0 || bytes >= TBD_PATH_NAME_BYTES)
        return;
    for (size_t i = 0; i < names->count; i++)
        if (strlen(names->text[i]) == bytes && memcmp(names->text[i], name, bytes) == 0)
            return;
    memcpy(names->text[names->count], name, bytes);
    names->text[names->count++][bytes] = '\0';
}

/* What could be variables in a line of C, up to a comment: what stands in quotes, numbers, members and calls are none. */
static void find_names(struct names *names, const char *text)
{
    while (*text != '\0' && !(text[0] == '/' && (text[1] == '/' || text[1] == '*'))) {
        size_t bytes = 0;

        if (*text == '"' || *text == '\'') {
            char quote = *text++;

            while (*text != '\0' && *text != quote)
                text += text[0] == '\\' && text[1] != '\0' ? 2 : 1;
            text += *text != '\0';
            continue;
        }
        while (isalnum((unsigned char)text[bytes]) || text[bytes] == '_')
            bytes++;
        if (bytes != 0 && !isdigit((unsigned char)*text) && text[bytes] != '(')
            add_name(names, text, bytes);
        text += bytes;
        if (text[0] == '.' || (text[0] == '-' && text[1] == '>')) { /* a member follows */
            text += text[0] == '.' ? 1 : 2;
            while (isalnum((unsigned char)*text) || *text == '_')
                text++;
        } else if (bytes == 0) {
            text++;
        }
    }
}

/* A name may mean another variable after the row, of an inner block, or of the outer one again: that one has another place. */
static void drop_another(const char *name, struct tbd_shown_value *value)
{
    bool is_name =
        name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")] ==
        '\0';

    if (!is_name || value->address[0] == 0 || value->address[1] == 0 ||
        value->address[0] == value->address[1])
        return;
    free(value->text[1]);
    value->text[1] = NULL;
}

/* Registers of an instruction are not evaluated: they are shown where it uses them. */
static bool is_evaluated(const struct tbd_wanted_value *wanted, bool is_insn)
{
    struct tbd_register_name found;
    const char *name = wanted->name + (*wanted->name == '$');

    return wanted->to == 0 && !(is_insn && tbd_register_find(name, strlen(name), &found));
}

void tbd_path_values_put_variables(struct tbd_path_values *values, const struct tbd_path_span *span,
                                   json_t *list)
{
    struct names *names = calloc(1, sizeof(*names));

    if (names == NULL)
        return;
    for (size_t i = 0; i < values->wanted_count; i++)
        if (is_evaluated(&values->wanted[i], span->is_insn))
            add_name(names, values->wanted[i].name, strlen(values->wanted[i].name));
    if (values->wanted_count == 0 && span->text != NULL)
        find_names(names, span->text);
    for (int which = 0; which < 2; which++) {
        uint64_t step = which == 0 ? span->step : span->end_step;
        uint32_t insn = which == 0 ? span->insn : span->end_insn;

        for (size_t i = 0;
             step != UINT64_MAX && tbd_past_go(values->past, step, insn) && i < names->count; i++)
            take_variable(values, names->text[i], which, &names->values[i]);
    }
    for (size_t i = 0; i < names->count; i++) {
        drop_another(names->text[i], &names->values[i]);
        if (names->values[i].text[0] != NULL)
            tbd_path_values_put_one(values, list, names->text[i], &names->values[i]);
        tbd_shown_value_free(&names->values[i]);
    }
    free(names);
}
