// SPDX-License-Identifier: MIT
/* dap_launch.c - opening a trace for a client, and where it stands at first */
#include "query/dap/dap_requests.h"

#include "query/dap/dap_record.h"
#include "query/output/output.h"
#include "query/serve/captured.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* False: `why` says why not. */
static bool open_trace(struct tbd_dap *dap, const char *name, char *why, size_t bytes)
{
    char path[PATH_MAX];
    struct tbd_command_run run = { .session = &dap->session, .text = "" };
    struct tbd_capture capture;
    struct tbd_captured captured;
    enum tbd_status status;

    dap->session = (struct tbd_session){ .workers = dap->workers,
                                         .is_private = true,
                                         .print = { .object = true, .static_members = true },
                                         .syntax = TBD_SYNTAX_INTEL };
    status = tbd_session_open(&dap->session,
                              name == NULL ? NULL : tbd_session_find(name, path, sizeof(path)));
    dap->is_open = status == TBD_OK;
    if (dap->is_open)
        return true;
    snprintf(why, bytes, "%s", tbd_status_text(status));
    if (tbd_capture_begin(&capture)) {
        run.out = capture.out;
        captured.result = tbd_command_fail(&run, status);
        tbd_capture_end(&capture, &captured);
        (void)tbd_captured_why(&captured, why, bytes);
        tbd_captured_free(&captured);
    }
    tbd_session_close(&dap->session);
    return false;
}

/* "first", "last", "TIME+K", or a question: "func_enter where func==main" goes there from the start. */
static bool go_to_start(struct tbd_dap *dap, const json_t *arguments)
{
    struct tbd_session *session = &dap->session;
    const char *at = tbd_dap_text(arguments, "at");
    struct tbd_captured captured;
    char *line = NULL;
    char why[512];
    bool good;

    tbd_dap_stand(dap, tbd_session_last(session), 0);
    if (session->info->is_dump)
        at = "";
    else if (*at == '\0' && json_is_true(json_object_get(arguments, "stopOnEntry")))
        at = "first";
    good = *at == '\0';
    if (!good && asprintf(&line, "goto %s", at) >= 0) {
        tbd_captured_run(session, line, &captured);
        good = captured.result == TBD_EXIT_FOUND;
        if (!good)
            tbd_dap_refuse(dap, "at: %s", tbd_captured_why(&captured, why, sizeof(why)));
        tbd_captured_free(&captured);
        free(line);
    }
    if (good)
        tbd_dap_moved(dap);
    return good;
}

void tbd_dap_launch(struct tbd_dap *dap, const json_t *arguments)
{
    const char *trace = tbd_dap_text(arguments, "trace");
    bool has_program = *tbd_dap_text(arguments, "program") != '\0';
    char *recorded = NULL;
    char why[1024];

    if (dap->is_open) {
        tbd_dap_refuse(dap, "a trace is open: it is one for each connection");
        return;
    }
    if (*trace == '\0' && has_program) {
        recorded = tbd_dap_record(dap, arguments);
        if (recorded == NULL)
            return;
    }
    if (*trace == '\0')
        trace = recorded != NULL ? recorded : dap->trace;
    if (!open_trace(dap, trace, why, sizeof(why))) {
        tbd_dap_refuse(dap, "%s", why);
    } else if (!go_to_start(dap, arguments)) {
        tbd_session_close(&dap->session);
        dap->is_open = false;
    } else {
        tbd_dap_reply(dap, NULL);
        tbd_dap_event(dap, "process",
                      json_pack("{s:o, s:I, s:b, s:s}", "name",
                                tbd_output_text(dap->session.info->program), "systemProcessId",
                                (json_int_t)dap->session.info->pid, "isLocalProcess", false,
                                "startMethod", dap->command));
        if (dap->session.info->is_dump)
            tbd_dap_event(dap, "capabilities",
                          json_pack("{s:{s:b}}", "capabilities", "supportsStepBack", false));
        tbd_dap_event(dap, "initialized", NULL);
    }
    free(recorded);
}

void tbd_dap_configuration_done(struct tbd_dap *dap, const json_t *arguments)
{
    struct tbd_session *session = &dap->session;
    bool at_end = tbd_position_compare(tbd_dap_at(dap), tbd_session_last(session)) == 0;

    (void)arguments;
    tbd_dap_reply(dap, NULL);
    if (dap->is_configured)
        return;
    dap->is_configured = true;
    if (at_end && session->info->end_siginfo != NULL)
        tbd_dap_stopped(dap, "exception", "A signal ended the program", NULL);
    else
        tbd_dap_stopped(dap, "entry", at_end ? "The recording ends here" : NULL, NULL);
}
