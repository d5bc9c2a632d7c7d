// SPDX-License-Identifier: MIT
/* cmd_assert.c - C expressions as truths and as text: assert, and what scripts need */
#include "query/commands/commands.h"
#include "query/session/source/source_place.h"

#include "base/safe_stream.h"

#include <stdio.h>
#include <string.h>

static enum tbd_exit take_value(struct tbd_source_place *place, const struct tbd_data *data,
                                bool *truth, char **text)
{
    struct tbd_printer printer = tbd_source_printer(place, 0);
    uint64_t value = 0;
    long double real = 0;
    size_t bytes;
    FILE *out;

    if (!data->is_known) {
        fprintf(stderr, "tbdq: it has no value here: %s\n", tbd_shown(data->why));
        return TBD_EXIT_NOT_FOUND;
    }
    if (tbd_data_float(&place->places[0], data, &real))
        *truth = real != 0;
    else
        *truth = tbd_data_scalar(&place->places[0], data, &value) && value != 0;
    if (text == NULL)
        return TBD_EXIT_FOUND;
    out = open_memstream(text, &bytes);
    if (out == NULL)
        return tbd_command_no_memory();
    tbd_data_print(&printer, data, out);
    fclose(out);
    return TBD_EXIT_FOUND;
}

enum tbd_exit tbd_command_evaluate(struct tbd_session *session, const char *expression, bool *truth,
                                   char **text)
{
    struct tbd_command_run run = { .session = session, .text = expression };
    struct tbd_source_place place;
    struct tbd_data data;
    enum tbd_exit result;

    *truth = false;
    result = tbd_command_value_of(&run, tbd_session_current(session), 0, strlen(expression), &place,
                                  &data);
    if (result != TBD_EXIT_FOUND)
        return result;
    result = take_value(&place, &data, truth, text);
    tbd_source_place_close(&place);
    return result;
}

enum tbd_exit tbd_command_assert(struct tbd_command_run *run)
{
    bool truth;
    enum tbd_exit result;

    if (run->argc == 0)
        return tbd_command_usage(run, "assert takes an expression");
    result = tbd_command_evaluate(run->session, run->text + run->arguments, &truth, NULL);
    if (result != TBD_EXIT_FOUND || truth)
        return result;
    fprintf(stderr, "tbdq: assertion failed: %s\n", run->text + run->arguments);
    return TBD_EXIT_NOT_FOUND;
}
