// SPDX-License-Identifier: MIT
/* dap_more.c - requests of our own, for what the protocol has no word for: questions in tbdq's language with rows as
 * answers, the position, the last store to a variable */
#include "query/dap/dap_requests.h"

#include "query/output/output.h"
#include "query/serve/captured.h"
#include "query/session/breakpoints.h"
#include "query/text/user_interrupt.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Lines of JSON as an array; others are left out. */
static json_t *rows_of(char *text)
{
    json_t *rows = json_array();
    char *rest = NULL;

    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        json_t *row = json_loads(line, 0, NULL);

        if (row != NULL)
            json_array_append_new(rows, row);
    }
    return rows;
}

/* {"line": "calls f"}: the rows that `tbdq --json` prints.  It moves nothing. */
void tbd_dap_ask(struct tbd_dap *dap, const json_t *arguments)
{
    struct tbd_session *session = &dap->session;
    struct tbd_position before = tbd_dap_at(dap);
    struct tbd_captured captured;
    char why[512];

    session->json = true;
    tbd_captured_run(session, tbd_dap_text(arguments, "line"), &captured);
    session->json = false;
    tbd_dap_stand(dap, before, 0);
    if (tbd_is_interrupted())
        tbd_dap_refuse_status(dap, TBD_INTERRUPTED);
    else if (captured.result >= TBD_EXIT_USAGE || captured.out == NULL)
        tbd_dap_refuse(dap, "%s", tbd_captured_why(&captured, why, sizeof(why)));
    else
        tbd_dap_reply(dap, json_pack("{s:o, s:i}", "rows", rows_of(captured.out), "status",
                                     (int)captured.result));
    tbd_captured_free(&captured);
}

void tbd_dap_position(struct tbd_dap *dap, const json_t *arguments)
{
    const struct tbd_session *session = &dap->session;

    (void)arguments;
    tbd_dap_reply(dap,
                  json_pack("{s:I, s:I, s:I, s:I, s:o}", "time", (json_int_t)tbd_dap_at(dap).time,
                            "offset", (json_int_t)tbd_dap_at(dap).offset, "blocks",
                            (json_int_t)session->info->blocks, "thread", (json_int_t)dap->thread,
                            "trace", tbd_output_text(session->info->path)));
}

/* Goes back to the last store to the variable, as dataBreakpointInfo names it. */
void tbd_dap_last_write(struct tbd_dap *dap, const json_t *arguments)
{
    struct tbd_session *session = &dap->session;
    struct tbd_nearest nearest = { .session = session, .from = tbd_dap_at(dap), .backward = true };
    char question[TBD_WATCH_BYTES], why[TBD_DAP_WHY_BYTES];
    struct tbd_nearest_wish wish = { .question = question };
    uint64_t address, bytes;
    bool is_there = false;
    enum tbd_status status;

    if (!tbd_dap_bytes_of(dap, arguments, &address, &bytes, why)) {
        if (!dap->has_replied)
            tbd_dap_refuse(dap, "%s", why);
        return;
    }
    tbd_watch_question(TBD_WATCH_STORE, address, bytes, question);
    status = tbd_nearest_look(&nearest, &wish, &is_there);
    if (status != TBD_OK) {
        tbd_dap_refuse_status(dap, status);
        return;
    }
    if (!is_there) {
        tbd_dap_refuse(dap, "nothing was stored there before: it is as the program began");
        return;
    }
    tbd_dap_stand(dap, nearest.event.position, nearest.event.thread);
    tbd_dap_moved(dap);
    tbd_dap_reply(dap, json_pack("{s:I, s:I}", "time", (json_int_t)tbd_dap_at(dap).time, "offset",
                                 (json_int_t)tbd_dap_at(dap).offset));
    tbd_dap_stopped(dap, "data breakpoint", "Last store", NULL);
}
