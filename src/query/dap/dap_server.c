// SPDX-License-Identifier: MIT
/* dap_server.c - see dap_server.h
 *
 * One table has the requests that are understood; any other is refused, as the protocol says.
 *
 * Keeps DAP-1 (carry_out). */
#include "query/dap/dap_server.h"

#include "query/dap/dap_requests.h"
#include "query/output/output.h"
#include "query/serve/listen.h"
#include "query/text/progress.h"

#include "base/assert.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- messages ---- */

static json_t *response(struct tbd_dap *dap, bool success)
{
    dap->has_replied = true;
    return json_pack("{s:s, s:I, s:b, s:s}", "type", "response", "request_seq", dap->request,
                     "success", success, "command", dap->command);
}

void tbd_dap_reply(struct tbd_dap *dap, json_t *body)
{
    json_t *message = response(dap, true);

    if (body != NULL)
        json_object_set_new(message, "body", body);
    tbd_dap_link_send(&dap->link, message);
}

static void refuse_with(struct tbd_dap *dap, const char *kind, const char *text)
{
    json_t *message = response(dap, false);
    json_t *error = json_pack("{s:i, s:o, s:b}", "id", 1, "format", tbd_output_text(text),
                              "showUser", strcmp(kind, "cancelled") != 0);

    json_object_set_new(message, "message", tbd_output_text(kind));
    json_object_set_new(message, "body", json_pack("{s:o}", "error", error));
    tbd_dap_link_send(&dap->link, message);
}

void tbd_dap_refuse(struct tbd_dap *dap, const char *format, ...)
{
    char text[1024];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    refuse_with(dap, text, text);
}

void tbd_dap_refuse_status(struct tbd_dap *dap, enum tbd_status status)
{
    const char *detail = dap->session.why.detail;

    if (status == TBD_INTERRUPTED)
        refuse_with(dap, "cancelled", "the request was cancelled");
    else
        tbd_dap_refuse(dap, "%s%s%s", tbd_status_text(status), *detail != '\0' ? ": " : "", detail);
}

void tbd_dap_event(struct tbd_dap *dap, const char *event, json_t *body)
{
    json_t *message = json_pack("{s:s, s:s}", "type", "event", "event", event);

    if (body != NULL)
        json_object_set_new(message, "body", body);
    tbd_dap_link_send(&dap->link, message);
}

void tbd_dap_print(struct tbd_dap *dap, const char *category, const char *text)
{
    tbd_dap_event(dap, "output",
                  json_pack("{s:s, s:o}", "category", category, "output", tbd_output_text(text)));
}

const char *tbd_dap_text(const json_t *arguments, const char *name)
{
    const char *text = json_string_value(json_object_get(arguments, name));

    return text == NULL ? "" : text;
}

json_int_t tbd_dap_number(const json_t *arguments, const char *name, json_int_t otherwise)
{
    const json_t *value = json_object_get(arguments, name);
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : otherwise;

    if (number > TBD_DAP_NUMBER_MOST)
        return TBD_DAP_NUMBER_MOST;
    return number < -TBD_DAP_NUMBER_MOST ? -TBD_DAP_NUMBER_MOST : number;
}

bool tbd_dap_address(const char *text, uint64_t *out)
{
    char *end;

    if (*text < '0' || *text > '9')
        return false;
    *out = strtoull(text, &end, 0);
    return *end == '\0';
}

/* ---- progress ---- */

static void show_progress(void *context, const char *what, uint64_t done, uint64_t total)
{
    struct tbd_dap *dap = context;
    char id[24];
    json_t *body;

    if (!dap->client.takes_progress || (what == NULL && !dap->progress.is_shown))
        return;
    if (what != NULL && !dap->progress.is_shown) {
        dap->progress.is_shown = true;
        snprintf(id, sizeof(id), "progress%u", ++dap->progress.number);
        tbd_dap_event(dap, "progressStart",
                      json_pack("{s:s, s:s, s:I, s:b, s:i}", "progressId", id, "title", what,
                                "requestId", dap->request, "cancellable", true, "percentage", 0));
        return;
    }
    snprintf(id, sizeof(id), "progress%u", dap->progress.number);
    body = json_pack("{s:s}", "progressId", id);
    if (what != NULL && total != 0) {
        json_object_set_new(body, "percentage", json_integer((json_int_t)(done * 100 / total)));
        json_object_set_new(body, "message",
                            json_sprintf("%llu of %llu windows", (unsigned long long)done,
                                         (unsigned long long)total));
    }
    tbd_dap_event(dap, what != NULL ? "progressUpdate" : "progressEnd", body);
    dap->progress.is_shown = what != NULL;
}

/* ---- beginning and end ---- */

static json_t *signal_filters(void)
{
    return json_pack("[{s:s, s:s, s:s, s:b, s:b}, {s:s, s:s, s:s, s:b, s:b, s:s}]", "filter",
                     "fatal", "label", "Signal that ends the program", "description",
                     "Stops where a signal ended the program", "default", 1, "supportsCondition", 0,
                     "filter", "signals", "label", "Signals", "description",
                     "Stops where any signal was delivered", "default", 0, "supportsCondition", 1,
                     "conditionDescription", "for example signal == 10 or thread == 2");
}

static void initialize(struct tbd_dap *dap, const json_t *arguments)
{
    static const char *const can[] = { "supportsConfigurationDoneRequest",
                                       "supportsFunctionBreakpoints",
                                       "supportsConditionalBreakpoints",
                                       "supportsHitConditionalBreakpoints",
                                       "supportsEvaluateForHovers",
                                       "supportsStepBack",
                                       "supportsGotoTargetsRequest",
                                       "supportsCompletionsRequest",
                                       "supportsModulesRequest",
                                       "supportsExceptionFilterOptions",
                                       "supportsValueFormattingOptions",
                                       "supportsExceptionInfoRequest",
                                       "supportTerminateDebuggee",
                                       "supportsDelayedStackTraceLoading",
                                       "supportsLoadedSourcesRequest",
                                       "supportsLogPoints",
                                       "supportsTerminateRequest",
                                       "supportsDataBreakpoints",
                                       "supportsDataBreakpointBytes",
                                       "supportsReadMemoryRequest",
                                       "supportsDisassembleRequest",
                                       "supportsCancelRequest",
                                       "supportsBreakpointLocationsRequest",
                                       "supportsSteppingGranularity",
                                       "supportsInstructionBreakpoints",
                                       "supportsRestartRequest" };
    json_t *body = json_object();

    dap->client.lines_from_0 = json_is_false(json_object_get(arguments, "linesStartAt1"));
    dap->client.columns_from_0 = json_is_false(json_object_get(arguments, "columnsStartAt1"));
    dap->client.takes_progress =
        json_is_true(json_object_get(arguments, "supportsProgressReporting"));
    dap->client.takes_invalidated =
        json_is_true(json_object_get(arguments, "supportsInvalidatedEvent"));
    for (size_t i = 0; i < sizeof(can) / sizeof(can[0]); i++)
        json_object_set_new(body, can[i], json_true());
    json_object_set_new(body, "completionTriggerCharacters", json_pack("[s, s]", " ", "."));
    json_object_set_new(body, "exceptionBreakpointFilters", signal_filters());
    tbd_dap_reply(dap, body);
}

static void disconnect(struct tbd_dap *dap, const json_t *arguments)
{
    (void)arguments;
    tbd_dap_reply(dap, NULL);
    dap->is_over = true;
}

/* The client disconnects after that. */
static void terminate(struct tbd_dap *dap, const json_t *arguments)
{
    (void)arguments;
    tbd_dap_reply(dap, NULL);
    tbd_dap_event(dap, "terminated", NULL);
}

/* What it names has been stopped by the thread that reads, or is done. */
static void cancel(struct tbd_dap *dap, const json_t *arguments)
{
    (void)arguments;
    tbd_dap_reply(dap, NULL);
}

static void refuse_change(struct tbd_dap *dap, const json_t *arguments)
{
    (void)arguments;
    tbd_dap_refuse(dap, "a recording cannot be changed");
}

// clang-format off
static const struct {
    const char *command;
    bool needs_trace;
    void (*answer)(struct tbd_dap *dap, const json_t *arguments);
} requests[] = {
    { "initialize", false, initialize },
    { "launch", false, tbd_dap_launch },
    { "attach", false, tbd_dap_launch },
    { "configurationDone", true, tbd_dap_configuration_done },
    { "disconnect", false, disconnect },
    { "terminate", false, terminate },
    { "cancel", false, cancel },
    { "restart", true, tbd_dap_restart },
    { "setBreakpoints", true, tbd_dap_set_breakpoints },
    { "setFunctionBreakpoints", true, tbd_dap_set_function_breakpoints },
    { "setInstructionBreakpoints", true, tbd_dap_set_instruction_breakpoints },
    { "setDataBreakpoints", true, tbd_dap_set_data_breakpoints },
    { "dataBreakpointInfo", true, tbd_dap_data_breakpoint_info },
    { "setExceptionBreakpoints", true, tbd_dap_set_exception_breakpoints },
    { "continue", true, tbd_dap_continue },
    { "reverseContinue", true, tbd_dap_reverse_continue },
    { "next", true, tbd_dap_next },
    { "stepIn", true, tbd_dap_step_in },
    { "stepOut", true, tbd_dap_step_out },
    { "stepBack", true, tbd_dap_step_back },
    { "goto", true, tbd_dap_goto },
    { "pause", true, tbd_dap_pause },
    { "threads", true, tbd_dap_threads },
    { "stackTrace", true, tbd_dap_stack_trace },
    { "scopes", true, tbd_dap_scopes },
    { "variables", true, tbd_dap_variables },
    { "evaluate", true, tbd_dap_evaluate },
    { "completions", true, tbd_dap_completions },
    { "exceptionInfo", true, tbd_dap_exception_info },
    { "modules", true, tbd_dap_modules },
    { "source", true, tbd_dap_source_text },
    { "loadedSources", true, tbd_dap_loaded_sources },
    { "breakpointLocations", true, tbd_dap_breakpoint_locations },
    { "gotoTargets", true, tbd_dap_goto_targets },
    { "readMemory", true, tbd_dap_read_memory },
    { "disassemble", true, tbd_dap_disassemble },
    { "setVariable", false, refuse_change },
    { "setExpression", false, refuse_change },
    { "writeMemory", false, refuse_change },
    { "tbdStepBackIn", true, tbd_dap_step_back_in },
    { "tbdStepBackOut", true, tbd_dap_step_back_out },
    { "tbdAsk", true, tbd_dap_ask },
    { "tbdPosition", true, tbd_dap_position },
    { "tbdLastWrite", true, tbd_dap_last_write },
};
// clang-format on

static void answer(struct tbd_dap *dap, const json_t *arguments)
{
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        if (strcmp(dap->command, requests[i].command) != 0)
            continue;
        if (requests[i].needs_trace && !dap->is_open)
            tbd_dap_refuse(dap, "no trace is open: `launch` opens one");
        else
            requests[i].answer(dap, arguments);
        return;
    }
    tbd_dap_refuse(dap, "tbdq does not know the request '%s'", dap->command);
}

static void carry_out(struct tbd_dap *dap, const struct tbd_dap_waiting *waiting)
{
    dap->has_replied = false;
    dap->request = json_integer_value(json_object_get(waiting->request, "seq"));
    snprintf(dap->command, sizeof(dap->command), "%s", tbd_dap_text(waiting->request, "command"));
    memset(&dap->session.why, 0, sizeof(dap->session.why));
    if (waiting->request == NULL)
        tbd_dap_refuse(dap, "%s", waiting->why);
    else if (waiting->is_cancelled)
        tbd_dap_refuse_status(dap, TBD_INTERRUPTED);
    else
        answer(dap, json_object_get(waiting->request, "arguments"));
    if (!dap->has_replied)
        tbd_dap_reply(dap, NULL);
    if (dap->is_open)
        tbd_dap_select(dap, 0);
    TBD_INVARIANT("DAP-1", dap->has_replied);
}

static void free_all(struct tbd_dap *dap)
{
    tbd_dap_forget_points(dap);
    tbd_dap_forget_values(dap);
    for (size_t i = 0; i < dap->source_count; i++)
        free(dap->sources[i]);
    free(dap->sources);
    free(dap->points);
    free(dap->frames);
    free(dap->handles);
    free(dap->targets);
    if (dap->is_open)
        tbd_session_close(&dap->session);
}

enum tbd_exit tbd_dap_serve(const char *trace, unsigned workers, int in, int out)
{
    struct tbd_dap *dap = calloc(1, sizeof(*dap));
    struct tbd_dap_waiting waiting;

    if (dap == NULL)
        return tbd_command_no_memory();
    if (!tbd_dap_link_open(&dap->link, in, out)) {
        fprintf(stderr, "tbdq: the system gives no thread or no pipe for a client\n");
        free(dap);
        return TBD_EXIT_SYSTEM;
    }
    dap->trace = trace;
    dap->workers = workers;
    tbd_progress_listen(show_progress, dap);
    while (!dap->is_over && tbd_dap_link_receive(&dap->link, &waiting)) {
        carry_out(dap, &waiting);
        json_decref(waiting.request);
    }
    tbd_progress_listen(NULL, NULL);
    tbd_dap_link_close(&dap->link);
    free_all(dap);
    free(dap);
    return TBD_EXIT_FOUND;
}

struct dap_clients {
    const char *trace;
    unsigned workers;
};

static enum tbd_exit serve_one(void *context, int in, int out)
{
    const struct dap_clients *how = context;

    return tbd_dap_serve(how->trace, how->workers, in, out);
}

enum tbd_exit tbd_dap_command(const char *trace, unsigned workers, size_t count, char *const *words)
{
    struct dap_clients how = { trace, workers };
    struct tbd_listening listening = { .where = count == 2 ? words[1] : "stdio",
                                       .command = "dap",
                                       .invitation = "debug adapter at ",
                                       .serve = serve_one,
                                       .context = &how };

    if (count <= 2)
        return tbd_listen(&listening);
    fprintf(stderr, "tbdq: expected at most stdio, :PORT or the path of a socket\n"
                    "hint: `tbdq help dap`\n");
    return TBD_EXIT_USAGE;
}
