// SPDX-License-Identifier: MIT
/* dap_evaluate.c - expressions, and in the console every command of tbdq */
#include "query/dap/dap_requests.h"

#include "query/output/output.h"
#include "query/prompt/command_line.h"
#include "query/prompt/complete.h"
#include "query/serve/captured.h"
#include "query/session/event.h"
#include "query/text/user_interrupt.h"

#include <stdlib.h>
#include <string.h>

static void evaluate_expression(struct tbd_dap *dap, const json_t *arguments,
                                const struct tbd_dap_frame *frame, const char *text)
{
    bool is_hexadecimal =
        json_is_true(json_object_get(json_object_get(arguments, "format"), "hex"));
    struct tbd_query_error error = { .status = TBD_OK };
    struct tbd_source_place place;
    struct tbd_c_scope scope;
    struct tbd_data data;
    enum tbd_status status;
    json_t *value = NULL;

    if (!tbd_dap_open_place(dap, frame, &place))
        return;
    scope = tbd_source_scope(&place);
    status = tbd_c_evaluate(&scope, text, 0, strlen(text), &data, &error);
    if (status == TBD_OK)
        value = tbd_dap_value(dap, &place, frame, &data, text, is_hexadecimal);
    tbd_dap_close_place(dap, &place);
    if (value == NULL) {
        tbd_dap_refuse(dap, "%s",
                       error.message[0] != '\0' ? error.message : tbd_status_text(status));
        return;
    }
    json_object_set(value, "result", json_object_get(value, "value"));
    json_object_del(value, "value");
    json_object_del(value, "evaluateName");
    tbd_dap_reply(dap, value);
}

/* The command may move; the client is told after the answer. */
static void run_command(struct tbd_dap *dap, const struct tbd_dap_frame *frame, const char *line)
{
    struct tbd_session *session = &dap->session;
    struct tbd_position before = tbd_dap_at(dap);
    struct tbd_captured captured;
    char *text = NULL;

    tbd_dap_select(dap, frame->thread);
    if (session->thread == 0)
        tbd_source_select(session, tbd_dap_at(dap), frame->number);
    tbd_captured_run(session, line, &captured);
    if (asprintf(&text, "%s%s", captured.out == NULL ? "" : captured.out,
                 captured.err == NULL ? "" : captured.err) < 0)
        text = NULL;
    if (tbd_is_interrupted())
        tbd_dap_refuse_status(dap, TBD_INTERRUPTED);
    else if (captured.result >= TBD_EXIT_USAGE)
        tbd_dap_refuse(dap, "%s", text == NULL ? "there is no memory" : text);
    else
        tbd_dap_reply(dap,
                      json_pack("{s:o, s:i}", "result", tbd_output_text(text == NULL ? "" : text),
                                "variablesReference", 0));
    free(text);
    tbd_captured_free(&captured);
    if (tbd_position_compare(before, tbd_dap_at(dap)) != 0) {
        tbd_dap_moved(dap);
        tbd_dap_stopped(dap, "goto", NULL, NULL);
    }
}

void tbd_dap_evaluate(struct tbd_dap *dap, const json_t *arguments)
{
    const char *text = tbd_dap_text(arguments, "expression");
    bool is_typed = strcmp(tbd_dap_text(arguments, "context"), "repl") == 0;
    struct tbd_dap_frame frame;

    text += strspn(text, " \t\n");
    if (!tbd_dap_frame_of(dap, tbd_dap_number(arguments, "frameId", 0), &frame))
        return;
    if (*text == '\0')
        tbd_dap_refuse(dap, "there is no expression");
    else if (is_typed && (tbd_line_is_known(text) || strncmp(text, "help", 4) == 0))
        run_command(dap, &frame, text);
    else
        evaluate_expression(dap, arguments, &frame, text);
}

void tbd_dap_completions(struct tbd_dap *dap, const json_t *arguments)
{
    const char *text = tbd_dap_text(arguments, "text");
    json_int_t column = tbd_dap_number(arguments, "column", 1) - !dap->client.columns_from_0;
    size_t length = strlen(text);
    struct tbd_completions found;
    json_t *targets = json_array();

    if (column >= 0 && (uint64_t)column < length)
        length = (size_t)column;
    tbd_complete(&dap->session, text, length, &found);
    for (size_t i = 0; i < found.count; i++)
        json_array_append_new(
            targets, json_pack("{s:o, s:I, s:I}", "label", tbd_output_text(found.words[i]), "start",
                               (json_int_t)found.from + !dap->client.columns_from_0, "length",
                               (json_int_t)(length - found.from)));
    tbd_completions_free(&found);
    tbd_dap_reply(dap, json_pack("{s:o}", "targets", targets));
}
