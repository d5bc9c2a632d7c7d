// SPDX-License-Identifier: MIT
/* dap_run.c - where a run stops: a search for the nearest of all points; nothing is stepped through */
#include "query/dap/dap_requests.h"

#include "query/text/progress.h"
#include "query/text/user_interrupt.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define LOGS_MAX 10000u /* messages that one run prints */

struct point_run {
    struct tbd_dap *dap;
    struct tbd_nearest nearest;
    struct tbd_progress progress;
    const struct tbd_dap_point *point;
};

static void tell(void *context, uint32_t done, uint32_t windows, uint64_t found)
{
    struct point_run *run = context;

    tbd_progress_show(&run->progress, "Searching", done, windows, found);
}

/* ---- counted hits ---- */

struct hit_tally {
    struct point_run *run;
    uint64_t count;
};

static bool count_one(void *context, const struct tbd_event *event)
{
    struct hit_tally *tally = context;

    (void)event;
    tally->count++;
    return true;
}

/* How many events of the point come before the run's start, and for backward not at it. */
static enum tbd_status count_before(struct point_run *run, const struct tbd_dap_point *point,
                                    uint64_t *out)
{
    struct tbd_session *session = run->nearest.session;
    struct tbd_query_error error = { 0 };
    struct hit_tally tally = { .run = run };
    struct tbd_question question;
    struct tbd_search search = { .session = session,
                                 .question = &question,
                                 .error = &error,
                                 .progress = tell,
                                 .progress_context = run,
                                 .each = count_one,
                                 .each_context = &tally };
    struct tbd_event last;
    uint64_t found;
    enum tbd_status status = tbd_question_parse_all(point->question, 0, &question, &error);

    if (status == TBD_OK) {
        question.from = TBD_FROM_POSITION;
        question.position = run->nearest.from;
        question.backward = true;
        question.count = TBD_QUESTION_ALL;
        status = tbd_search_run(&search, &last, &found);
    }
    tbd_question_free(&question);
    *out = tally.count;
    return status == TBD_NOTFOUND ? TBD_OK : status;
}

/* The how many-th event from the start on is the next one to stop at; 0: there is none. */
static uint64_t next_hit(const struct tbd_dap_point *point, uint64_t before, uint64_t at,
                         bool backward)
{
    uint64_t n = point->hit_count, first = before + at + 1; /* forward: the next one's number */

    if (backward) {
        if (point->hit == TBD_DAP_MULTIPLE)
            return before / n * n;
        return before < n ? 0 : point->hit == TBD_DAP_FROM ? before : n;
    }
    if (point->hit == TBD_DAP_MULTIPLE)
        return (first + n - 1) / n * n;
    return first <= n ? n : point->hit == TBD_DAP_FROM ? first : 0;
}

/* Is there an event of the point exactly at the run's start? */
static enum tbd_status count_at(struct point_run *run, const struct tbd_dap_point *point,
                                uint64_t *out)
{
    struct tbd_nearest nearest = { .session = run->nearest.session, .from = run->nearest.from };
    struct tbd_nearest_wish wish = { .question = point->question, .with_own = true };
    bool is_there;
    enum tbd_status status = tbd_nearest_look(&nearest, &wish, &is_there);

    *out = is_there && tbd_position_compare(nearest.event.position, nearest.from) == 0;
    return status;
}

/* The point's event that the run stops at, how many further: 0: it stops at none. */
static enum tbd_status count_steps(struct point_run *run, const struct tbd_dap_point *point,
                                   uint64_t *out)
{
    bool backward = run->nearest.backward;
    uint64_t before, at = 0, wanted;
    enum tbd_status status;

    *out = 1;
    if (point->hit == TBD_DAP_EVERY)
        return TBD_OK;
    status = count_before(run, point, &before);
    if (status == TBD_OK && !backward && !point->is_access)
        status = count_at(run, point, &at);
    wanted = next_hit(point, before, at, backward);
    if (wanted == 0)
        *out = 0;
    else
        *out = backward ? before - wanted + 1 : wanted - before - at;
    return status;
}

/* ---- messages ---- */

struct log_row {
    struct tbd_position at;
    uint32_t thread;
    const struct tbd_dap_point *point;
};

struct log_rows {
    struct point_run *run;
    const struct tbd_dap_point *point;
    const struct tbd_position *end; /* exclusive, in the run's direction; NULL: none */
    struct log_row *rows;
    size_t count, capacity;
    bool is_cut;
};

static bool add_row(void *context, const struct tbd_event *event)
{
    struct log_rows *rows = context;
    bool backward = rows->run->nearest.backward;
    int order = rows->end == NULL ? 0 : tbd_position_compare(event->position, *rows->end);

    if (rows->end != NULL && (backward ? order < 0 : order > 0))
        return false;
    if (rows->count == LOGS_MAX ||
        !tbd_array_grow(&rows->rows, rows->count, &rows->capacity, sizeof(*rows->rows))) {
        rows->is_cut = true;
        return false;
    }
    rows->rows[rows->count++] = (struct log_row){ event->position, event->thread, rows->point };
    return true;
}

static enum tbd_status find_rows(struct point_run *run, struct log_rows *rows)
{
    struct tbd_session *session = run->nearest.session;
    struct tbd_query_error error = { 0 };
    struct tbd_question question;
    struct tbd_search search = { .session = session,
                                 .question = &question,
                                 .error = &error,
                                 .progress = tell,
                                 .progress_context = run,
                                 .each = add_row,
                                 .each_context = rows };
    struct tbd_event last;
    uint64_t found;
    enum tbd_status status = tbd_question_parse_all(rows->point->question, 0, &question, &error);

    if (status == TBD_OK) {
        question.from = TBD_FROM_POSITION;
        question.position = run->nearest.from;
        question.backward = run->nearest.backward;
        question.count = TBD_QUESTION_ALL;
        if (rows->end != NULL) {
            session->span.has_until = !question.backward;
            session->span.until = rows->end->time + 1;
            session->span.has_since = question.backward;
            session->span.since = rows->end->time;
        }
        status = tbd_search_run(&search, &last, &found);
        memset(&session->span, 0, sizeof(session->span));
    }
    tbd_question_free(&question);
    return status == TBD_NOTFOUND ? TBD_OK : status;
}

static int compare_rows(const void *a, const void *b)
{
    const struct log_row *x = a, *y = b;
    int order = tbd_position_compare(x->at, y->at);

    return order != 0 ? order : x->point->id - y->point->id;
}

/* The value of text[0, length) where the session stands; braces and all if it has none. */
static void print_value(struct tbd_dap *dap, const char *text, size_t length, FILE *out)
{
    struct tbd_query_error error = { .status = TBD_OK };
    struct tbd_source_place place;
    struct tbd_data data;
    struct tbd_printer printer;

    if (tbd_source_evaluate(&dap->session, tbd_dap_at(dap), text, 0, length, &place, &data,
                            &error) != TBD_OK) {
        fprintf(out, "<%s>", error.message[0] != '\0' ? error.message : "not known");
        return;
    }
    printer = tbd_source_printer(&place, 0);
    printer.options.pretty = false;
    tbd_data_print(&printer, &data, out);
    tbd_source_place_close(&place);
}

/* "x is {x}", with values where the session stands. */
static void print_message(struct tbd_dap *dap, const char *text)
{
    char *line = NULL;
    size_t bytes;
    FILE *out = open_memstream(&line, &bytes);

    if (out == NULL)
        return;
    while (*text != '\0') {
        size_t plain = strcspn(text, "{"), length;

        fwrite(text, 1, plain, out);
        text += plain;
        if (*text == '\0')
            break;
        length = strcspn(text, "}");
        if (text[length] == '\0') {
            fputs(text, out);
            break;
        }
        print_value(dap, text + 1, length - 1, out);
        text += length + 1;
    }
    fputc('\n', out);
    fclose(out);
    tbd_dap_print(dap, "console", line == NULL ? "" : line);
    free(line);
}

static void print_row(struct tbd_dap *dap, const struct log_row *row)
{
    tbd_dap_stand(dap, row->at, 0);
    tbd_dap_select(dap, row->thread);
    print_message(dap, row->point->log);
}

/* The messages of all log points between the run's start and `end`, in the order in which they come. */
static enum tbd_status print_logs(struct point_run *run, const struct tbd_position *end)
{
    struct tbd_dap *dap = run->dap;
    struct log_rows rows = { .run = run, .end = end };
    struct tbd_position here = tbd_dap_at(dap);
    enum tbd_status status = TBD_OK;

    for (size_t i = 0; status == TBD_OK && i < dap->point_count; i++) {
        rows.point = &dap->points[i];
        if (rows.point->log != NULL)
            status = find_rows(run, &rows);
    }
    if (rows.count != 0)
        qsort(rows.rows, rows.count, sizeof(*rows.rows), compare_rows);
    for (size_t i = 0; status == TBD_OK && i < rows.count && !tbd_is_interrupted(); i++)
        print_row(dap, &rows.rows[run->nearest.backward ? rows.count - 1 - i : i]);
    tbd_dap_stand(dap, here, 0);
    tbd_dap_select(dap, 0);
    if (rows.is_cut)
        tbd_dap_print(dap, "important", "tbdq: there are more messages of log points\n");
    free(rows.rows);
    return status;
}

/* ---- the run ---- */

static enum tbd_status look_for_points(struct point_run *run)
{
    struct tbd_dap *dap = run->dap;
    enum tbd_status status = TBD_OK;

    for (size_t i = 0; status == TBD_OK && i < dap->point_count; i++) {
        const struct tbd_dap_point *point = &dap->points[i];
        struct tbd_nearest_wish wish = { .question = point->question,
                                         .with_own = point->is_access };
        bool is_nearest = false;

        if (point->log != NULL)
            continue;
        status = count_steps(run, point, &wish.count);
        if (status == TBD_OK && wish.count != 0)
            status = tbd_nearest_look(&run->nearest, &wish, &is_nearest);
        if (is_nearest)
            run->point = point;
    }
    return status;
}

struct tbd_position tbd_dap_after(struct tbd_session *session, struct tbd_position at)
{
    struct tbd_place place;

    if (tbd_session_place(session, at, &place) == TBD_OK && at.offset + 1 < place.insns)
        return (struct tbd_position){ .time = at.time, .offset = at.offset + 1 };
    if (at.time + 1 < session->info->blocks)
        return (struct tbd_position){ .time = at.time + 1 };
    return at;
}

enum tbd_status tbd_dap_run(struct tbd_dap *dap, bool backward, const struct tbd_position *limit,
                            struct tbd_dap_stop *out)
{
    struct point_run run = { .dap = dap,
                             .nearest = { .session = &dap->session,
                                          .from = tbd_dap_at(dap),
                                          .backward = backward,
                                          .limit = limit,
                                          .progress = tell } };
    enum tbd_status status;

    run.nearest.progress_context = &run;
    *out = (struct tbd_dap_stop){ .point = NULL };
    tbd_progress_start(&run.progress, true);
    status = look_for_points(&run);
    if (status == TBD_OK)
        status = print_logs(&run, run.point != NULL ? &run.nearest.event.position : limit);
    tbd_progress_clear(&run.progress);
    if (status != TBD_OK || run.point == NULL)
        return status;
    out->point = run.point;
    out->event = run.nearest.event;
    out->at = run.nearest.event.position;
    if (run.point->is_access && !backward)
        out->at = tbd_dap_after(&dap->session, out->at);
    return TBD_OK;
}
