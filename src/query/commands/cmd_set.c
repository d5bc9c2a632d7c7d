// SPDX-License-Identifier: MIT
/* cmd_set.c - set: how values are printed, and values with a name, while a session lasts */
#include "query/commands/commands.h"
#include "query/session/source/source_place.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 64

bool *tbd_command_print_setting(struct tbd_print_options *options, const char *name)
{
    if (strcmp(name, "pretty") == 0)
        return &options->pretty;
    if (strcmp(name, "object") == 0)
        return &options->object;
    return strcmp(name, "static-members") == 0 ? &options->static_members : NULL;
}

/* set print NAME [on|off] */
static enum tbd_exit set_print(struct tbd_command_run *run)
{
    bool *flag = run->argc < 2 || run->argc > 3
                     ? NULL
                     : tbd_command_print_setting(&run->session->print, run->argv[1]);
    bool is_on = run->argc == 2 || strcmp(run->argv[2], "on") == 0;

    if (flag == NULL || (!is_on && strcmp(run->argv[2], "off") != 0))
        return tbd_command_usage(run,
                                 "set print takes pretty, object or static-members, and on or off");
    *flag = is_on;
    return TBD_EXIT_FOUND;
}

/* The length of "$x" at the beginning, 0 if none stands there: $1 and $$ are not set. */
static size_t name_length(const char *text)
{
    size_t length = 1;

    if (text[0] != '$' || (!isalpha((unsigned char)text[1]) && text[1] != '_'))
        return 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_')
        length++;
    return length < NAME_BYTES ? length : 0;
}

/* Where the expression begins after "$x =", 0 if it is none. */
static size_t expression_after(const char *text, size_t *name)
{
    size_t at;

    *name = name_length(text);
    at = *name + strspn(text + *name, " ");
    return *name == 0 || text[at] != '=' || text[at + 1] == '=' ? 0 : at + 1;
}

bool tbd_command_is_setting(const struct tbd_command_run *run)
{
    size_t name;

    return expression_after(run->text + run->arguments, &name) != 0;
}

enum tbd_exit tbd_command_set(struct tbd_command_run *run)
{
    size_t from = run->arguments, length, after;
    struct tbd_source_place place;
    struct tbd_data data;
    char name[NAME_BYTES];
    enum tbd_exit result;

    if (run->argc != 0 && strcmp(run->argv[0], "print") == 0)
        return set_print(run);
    if (run->argc != 0 && strncmp(run->argv[0], "var", 3) == 0)
        from += strlen(run->argv[0]) + strspn(run->text + from + strlen(run->argv[0]), " ");
    after = expression_after(run->text + from, &length);
    if (after == 0)
        return tbd_command_usage(
            run, "the past cannot be changed; set takes $NAME = EXPRESSION, or print");
    snprintf(name, sizeof(name), "%.*s", (int)length, run->text + from);
    result = tbd_command_value_of(run, tbd_session_current(run->session), from + after,
                                  strlen(run->text), &place, &data);
    if (result != TBD_EXIT_FOUND)
        return result;
    if (tbd_user_values_set(&run->session->values, &place.places[0], name, &data) != TBD_OK)
        result = tbd_command_no_memory();
    tbd_source_place_close(&place);
    return result;
}
