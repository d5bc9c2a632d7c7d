// SPDX-License-Identifier: MIT
/* dap_points.c - breakpoints of all kinds, which are questions: the kind of event and a condition
 *
 * Hits are counted from the recording's start, whichever way one goes: the fifth call is always the same one. */
#include "query/dap/dap_requests.h"

#include "query/commands/break_place.h"
#include "query/output/output.h"
#include "query/session/breakpoints.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void free_point(struct tbd_dap_point *point)
{
    free(point->question);
    free(point->source);
    free(point->log);
}

void tbd_dap_forget_points(struct tbd_dap *dap)
{
    for (size_t i = 0; i < dap->point_count; i++)
        free_point(&dap->points[i]);
    dap->point_count = 0;
}

/* A request replaces all points of its kind, and of its source. */
static void remove_points(struct tbd_dap *dap, enum tbd_dap_point_kind kind, const char *source)
{
    size_t kept = 0;

    for (size_t i = 0; i < dap->point_count; i++) {
        struct tbd_dap_point *point = &dap->points[i];

        if (point->kind == kind && (source == NULL || strcmp(point->source, source) == 0))
            free_point(point);
        else
            dap->points[kept++] = *point;
    }
    dap->point_count = kept;
}

/* "5", "==5", ">=5", ">5", "%5"; "": every one.  False: something else. */
static bool read_hit(const char *text, struct tbd_dap_point *out)
{
    static const struct {
        const char *sign;
        enum tbd_dap_hit hit;
        unsigned more;
    } signs[] = { { "==", TBD_DAP_EXACTLY, 0 }, { "=", TBD_DAP_EXACTLY, 0 },
                  { ">=", TBD_DAP_FROM, 0 },    { ">", TBD_DAP_FROM, 1 },
                  { "%", TBD_DAP_MULTIPLE, 0 }, { "", TBD_DAP_EXACTLY, 0 } };
    char *end;
    size_t i = 0;

    text += strspn(text, " ");
    if (*text == '\0')
        return true;
    while (strncmp(text, signs[i].sign, strlen(signs[i].sign)) != 0)
        i++;
    text += strlen(signs[i].sign);
    text += strspn(text, " ");
    if (*text < '0' || *text > '9')
        return false;
    out->hit = signs[i].hit;
    out->hit_count = strtoull(text, &end, 10) + signs[i].more;
    return *end == '\0' && out->hit_count != 0 && out->hit_count < UINT32_MAX;
}

/* Does the question mean something?  After the end of the recording it has no answer, but its names are looked
 * up.  False: `why` has the reason. */
static bool is_question(struct tbd_dap *dap, const char *question, char *why, size_t bytes)
{
    struct tbd_nearest nearest = { .session = &dap->session,
                                   .from = tbd_session_last(&dap->session) };
    struct tbd_nearest_wish wish = { .question = question };
    bool is_there;
    enum tbd_status status = tbd_nearest_look(&nearest, &wish, &is_there);

    if (status != TBD_OK)
        snprintf(why, bytes, "%s",
                 nearest.error.message[0] != '\0' ? nearest.error.message
                                                  : tbd_status_text(status));
    return status == TBD_OK;
}

/* Does the condition mean something where the place is reached first?  Names of variables are looked up only there. */
static bool is_condition(struct tbd_dap *dap, const char *place, const char *whole, char *why,
                         size_t bytes)
{
    struct tbd_nearest nearest = { .session = &dap->session,
                                   .from = tbd_session_first(&dap->session) };
    struct tbd_nearest_wish wish = { .question = place, .with_own = true };
    struct tbd_position after;
    bool is_there;
    enum tbd_status status = tbd_nearest_look(&nearest, &wish, &is_there);

    if (status != TBD_OK || !is_there)
        return true; /* it is never reached, or that cannot be found out now */
    after = tbd_dap_after(&dap->session, nearest.event.position);
    nearest = (struct tbd_nearest){ .session = &dap->session,
                                    .from = nearest.event.position,
                                    .limit = &after };
    wish.question = whole;
    status = tbd_nearest_look(&nearest, &wish, &is_there);
    if (status != TBD_NAME && status != TBD_SYNTAX && nearest.error.message[0] == '\0')
        return true;
    snprintf(why, bytes, "%s",
             nearest.error.message[0] != '\0' ? nearest.error.message : tbd_status_text(status));
    return false;
}

static char *copy_unless_empty(const char *text)
{
    return *text == '\0' ? NULL : strdup(text);
}

/* Adds the point that the client's `wish` makes of `question`; the answer's Breakpoint. */
static json_t *add_point(struct tbd_dap *dap, const json_t *wish, struct tbd_dap_point point,
                         const char *question)
{
    const char *condition = tbd_dap_text(wish, "condition");
    char why[256] = "";
    json_t *answer;

    point.id = ++dap->last_point;
    if (*condition == '\0')
        point.question = strdup(question);
    else if (asprintf(&point.question, "%s %s (%s)", question,
                      strstr(question, " where ") != NULL ? "and" : "where", condition) < 0)
        point.question = NULL;
    point.log = copy_unless_empty(tbd_dap_text(wish, "logMessage"));
    if (!read_hit(tbd_dap_text(wish, "hitCondition"), &point))
        snprintf(why, sizeof(why), "a hit condition is a count, perhaps after ==, >=, > or %%");
    else if (point.question == NULL || dap->point_count >= TBD_DAP_POINTS_MAX ||
             !tbd_array_grow(&dap->points, dap->point_count, &dap->point_capacity,
                             sizeof(*dap->points)))
        snprintf(why, sizeof(why), "there are too many breakpoints");
    else if (is_question(dap, point.question, why, sizeof(why)) &&
             (*condition == '\0' || is_condition(dap, question, point.question, why, sizeof(why))))
        dap->points[dap->point_count++] = point;
    answer = json_pack("{s:i, s:b}", "id", point.id, "verified", *why == '\0');
    if (*why != '\0') {
        json_object_set_new(answer, "message", tbd_output_text(why));
        free_point(&point);
    }
    return answer;
}

static json_t *unverified(struct tbd_dap *dap, const char *why)
{
    return json_pack("{s:i, s:b, s:o}", "id", ++dap->last_point, "verified", false, "message",
                     tbd_output_text(why));
}

static void reply(struct tbd_dap *dap, json_t *breakpoints)
{
    tbd_dap_reply(dap, json_pack("{s:o}", "breakpoints", breakpoints));
}

/* ---- places ---- */

static json_t *set_line(struct tbd_dap *dap, const json_t *wish, const char *path)
{
    json_int_t line = tbd_dap_number(wish, "line", 0) + dap->client.lines_from_0;
    struct tbd_dap_point point = { .kind = TBD_DAP_SOURCE };
    char question[512];
    uint32_t found;
    json_t *answer;

    if (line <= 0 || line > UINT32_MAX ||
        !tbd_dap_line_question(dap, path, (uint32_t)line, &found, question))
        return unverified(dap, "no code of this line is known here");
    point.source = strdup(path);
    if (point.source == NULL)
        return unverified(dap, tbd_status_text(TBD_NOMEM));
    answer = add_point(dap, wish, point, question);
    json_object_set_new(answer, "line", json_integer((json_int_t)found - dap->client.lines_from_0));
    json_object_set_new(answer, "source", tbd_dap_source(dap, path));
    return answer;
}

void tbd_dap_set_breakpoints(struct tbd_dap *dap, const json_t *arguments)
{
    const char *path = tbd_dap_text(json_object_get(arguments, "source"), "path");
    const json_t *wish;
    json_t *answers = json_array();
    size_t i;

    remove_points(dap, TBD_DAP_SOURCE, path);
    json_array_foreach(json_object_get(arguments, "breakpoints"), i, wish)
        json_array_append_new(answers, set_line(dap, wish, path));
    reply(dap, answers);
}

void tbd_dap_set_function_breakpoints(struct tbd_dap *dap, const json_t *arguments)
{
    const json_t *wish;
    json_t *answers = json_array();
    size_t i;

    remove_points(dap, TBD_DAP_FUNCTION, NULL);
    json_array_foreach(json_object_get(arguments, "breakpoints"), i, wish)
    {
        const char *name = tbd_dap_text(wish, "name"), *why = NULL;
        char *question =
            *name == '\0' ? NULL : tbd_break_place(&dap->session, name, strlen(name), &why);

        json_array_append_new(
            answers, question == NULL
                         ? unverified(dap, why == NULL ? "expected the name of a function" : why)
                         : add_point(dap, wish, (struct tbd_dap_point){ .kind = TBD_DAP_FUNCTION },
                                     question));
        free(question);
    }
    reply(dap, answers);
}

void tbd_dap_set_instruction_breakpoints(struct tbd_dap *dap, const json_t *arguments)
{
    const json_t *wish;
    json_t *answers = json_array(), *answer;
    size_t i;

    remove_points(dap, TBD_DAP_INSTRUCTION, NULL);
    json_array_foreach(json_object_get(arguments, "breakpoints"), i, wish)
    {
        char question[64];
        uint64_t address;

        if (!tbd_dap_address(tbd_dap_text(wish, "instructionReference"), &address)) {
            json_array_append_new(answers, unverified(dap, "the reference is no address"));
            continue;
        }
        address += (uint64_t)tbd_dap_number(wish, "offset", 0);
        snprintf(question, sizeof(question), "state where pc==%#" PRIx64, address);
        answer =
            add_point(dap, wish, (struct tbd_dap_point){ .kind = TBD_DAP_INSTRUCTION }, question);
        json_object_set_new(answer, "instructionReference", tbd_output_hex(address));
        json_array_append_new(answers, answer);
    }
    reply(dap, answers);
}

/* ---- data ---- */

/* A data id is "ADDRESS,BYTES". */
void tbd_dap_data_breakpoint_info(struct tbd_dap *dap, const json_t *arguments)
{
    uint64_t address, bytes;
    char id[64], text[512], why[TBD_DAP_WHY_BYTES];

    if (!tbd_dap_bytes_of(dap, arguments, &address, &bytes, why)) {
        if (!dap->has_replied)
            tbd_dap_reply(dap,
                          json_pack("{s:n, s:o}", "dataId", "description", tbd_output_text(why)));
        return;
    }
    snprintf(id, sizeof(id), "0x%" PRIx64 ",%" PRIu64, address, bytes);
    snprintf(text, sizeof(text), "%.400s (%" PRIu64 " bytes at 0x%" PRIx64 ")",
             tbd_dap_text(arguments, "name"), bytes, address);
    tbd_dap_reply(dap, json_pack("{s:s, s:o, s:[s, s, s], s:b}", "dataId", id, "description",
                                 tbd_output_text(text), "accessTypes", "write", "read", "readWrite",
                                 "canPersist", false));
}

/* "ADDRESS,BYTES" as two numbers. */
static bool read_data_id(const char *id, uint64_t *out_address, uint64_t *out_bytes)
{
    char text[64];
    char *comma;

    snprintf(text, sizeof(text), "%s", id);
    comma = strchr(text, ',');
    if (comma == NULL)
        return false;
    *comma = '\0';
    return tbd_dap_address(text, out_address) && tbd_dap_address(comma + 1, out_bytes) &&
           *out_bytes != 0 && *out_address + *out_bytes > *out_address;
}

static json_t *set_data(struct tbd_dap *dap, const json_t *wish)
{
    const char *access = tbd_dap_text(wish, "accessType");
    struct tbd_dap_point point = { .kind = TBD_DAP_DATA, .is_access = true };
    bool reads = strncmp(access, "read", 4) == 0, writes = strcmp(access, "read") != 0;
    char question[TBD_WATCH_BYTES];
    uint64_t address, bytes;
    json_t *answer, *second;

    if (!read_data_id(tbd_dap_text(wish, "dataId"), &address, &bytes))
        return unverified(dap, "the data id is not one of dataBreakpointInfo");
    tbd_watch_question(!writes ? TBD_WATCH_LOAD
                       : reads ? TBD_WATCH_STORE
                               : TBD_WATCH_CHANGE,
                       address, bytes, question);
    answer = add_point(dap, wish, point, question);
    if (reads && writes) { /* two questions, one breakpoint */
        tbd_watch_question(TBD_WATCH_LOAD, address, bytes, question);
        second = add_point(dap, wish, point, question);
        json_decref(second);
        dap->last_point--;
        if (dap->point_count != 0 && json_is_true(json_object_get(answer, "verified")))
            dap->points[dap->point_count - 1].id = dap->last_point;
    }
    return answer;
}

void tbd_dap_set_data_breakpoints(struct tbd_dap *dap, const json_t *arguments)
{
    const json_t *wish;
    json_t *answers = json_array();
    size_t i;

    remove_points(dap, TBD_DAP_DATA, NULL);
    json_array_foreach(json_object_get(arguments, "breakpoints"), i, wish)
        json_array_append_new(answers, set_data(dap, wish));
    reply(dap, answers);
}

/* ---- signals ---- */

static json_t *set_signal(struct tbd_dap *dap, const json_t *wish, const char *filter)
{
    struct tbd_dap_point point = { .kind = TBD_DAP_SIGNAL };
    const struct tbd_trace_info *info = dap->session.info;
    char question[128];

    if (strcmp(filter, "signals") == 0)
        return add_point(dap, wish, point, "signal");
    if (strcmp(filter, "fatal") != 0)
        return unverified(dap, "there is no such filter");
    /* The signal that ended the program is the last event of all. */
    snprintf(question, sizeof(question), "signal where time==%" PRIu64,
             info->blocks == 0 ? 0 : info->blocks - 1);
    return add_point(dap, wish, point, question);
}

void tbd_dap_set_exception_breakpoints(struct tbd_dap *dap, const json_t *arguments)
{
    const json_t *wish;
    json_t *answers = json_array();
    size_t i;

    remove_points(dap, TBD_DAP_SIGNAL, NULL);
    json_array_foreach(json_object_get(arguments, "filters"), i, wish) json_array_append_new(
        answers, set_signal(dap, NULL, json_is_string(wish) ? json_string_value(wish) : ""));
    json_array_foreach(json_object_get(arguments, "filterOptions"), i, wish)
        json_array_append_new(answers, set_signal(dap, wish, tbd_dap_text(wish, "filterId")));
    reply(dap, answers);
}
