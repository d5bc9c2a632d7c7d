// SPDX-License-Identifier: MIT
/* cmd_moments.c - first and last: the instruction that made a condition true, or ended that
 *
 * Lines are searched for, because there are fewer of them than instructions; between a line at
 * which the condition holds and one at which it does not, every instruction is asked.  Where the
 * two instructions found do not follow each other, others ran that the condition means nothing at,
 * in called functions: there it is a store to the memory that it reads. */
#include "query/search/meaning.h"
#include "query/commands/output.h"
#include "query/commands/rows.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READS_MAX 32u

struct moment {
    struct tbd_command_run *run;
    const char *where;
    bool wanted;             /* first: true; last: false */
    struct tbd_event before; /* last state at which it is not as wanted */
    struct tbd_event after;  /* first one at which it is */
    bool has_before, has_after;
    struct tbd_event cause;
};

static enum tbd_status find(const struct moment *m, struct tbd_event *out, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static enum tbd_status find(const struct moment *m, struct tbd_event *out, const char *format, ...)
{
    char *question;
    va_list list;
    enum tbd_status status;
    int length;

    va_start(list, format);
    length = vasprintf(&question, format, list);
    va_end(list);
    if (length < 0)
        return TBD_NOMEM;
    status = tbd_command_find_event(m->run, question, out);
    free(question);
    return status;
}

/* Was it found?  What is neither found nor missing ends the whole.  A condition that means
 * something at one place may mean nothing (TBD_NAME) in the rest of a trace. */
static bool is_there(enum tbd_status *status)
{
    bool found = *status == TBD_OK;

    if (*status == TBD_NOTFOUND || *status == TBD_NAME)
        *status = TBD_OK;
    return found;
}

/* The same of the first search: there a name that means nothing is wrong. */
static bool is_found(enum tbd_status *status)
{
    return *status == TBD_NAME ? false : is_there(status);
}

#define AT(event) (event).position.time, (event).position.offset

/* ---- the two states ---- */

/* At the first line at which it holds, or between two lines; and the state before at
 * which it does not. */
static enum tbd_status find_first(struct moment *m)
{
    struct tbd_event line = { 0 }, before = { 0 };
    enum tbd_status status = find(m, &line, "first forward line 1 where (%s)", m->where);
    bool has_line = is_found(&status), has_before = false;

    if (status == TBD_OK && has_line) {
        status =
            find(m, &before, "%" PRIu64 "+%u backward line 1 where not (%s)", AT(line), m->where);
        has_before = is_there(&status);
    }
    m->after = line;
    if (status == TBD_OK && has_before)
        status =
            find(m, &m->after, "%" PRIu64 "+%u forward state 1 where (%s)", AT(before), m->where);
    else if (status == TBD_OK && !has_line)
        status = find(m, &m->after, "first forward state 1 where (%s)", m->where);
    else if (status == TBD_OK && !has_before)
        status = find(m, &m->after, "first forward state 1 where time <= %" PRIu64 " and (%s)",
                      line.position.time, m->where);
    m->has_after = status == TBD_OK;
    if (status != TBD_OK || (has_line && !has_before))
        return status;
    status = find(m, &m->before,
                  "%" PRIu64 "+%u backward state 1 where time >= %" PRIu64 " and not (%s)",
                  AT(m->after), has_before ? before.position.time : 0, m->where);
    m->has_before = is_there(&status);
    return status;
}

/* The last state at which it holds, and the next at which it does not: in the same block, if
 * no line says so. */
static enum tbd_status find_last(struct moment *m)
{
    struct tbd_event line = { 0 }, after = { 0 };
    enum tbd_status status = find(m, &line, "last backward line 1 where (%s)", m->where);
    bool has_line = is_found(&status), has_after = false;

    if (status == TBD_OK && has_line) {
        status =
            find(m, &after, "%" PRIu64 "+%u forward line 1 where not (%s)", AT(line), m->where);
        has_after = is_there(&status);
    }
    if (status == TBD_OK && has_after)
        status = find(m, &m->before,
                      "%" PRIu64 "+%u backward state 1 where time >= %" PRIu64 " and (%s)",
                      AT(after), line.position.time, m->where);
    else if (status == TBD_OK)
        status = find(m, &m->before, "last backward state 1 where time >= %" PRIu64 " and (%s)",
                      has_line ? line.position.time : 0, m->where);
    m->has_before = status == TBD_OK;
    if (status != TBD_OK)
        return status;
    status = find(
        m, &m->after, "%" PRIu64 "+%u forward state 1 where time <= %" PRIu64 " and not (%s)",
        AT(m->before), has_after ? after.position.time : m->before.position.time + 1, m->where);
    m->has_after = is_there(&status);
    return status;
}

/* ---- between them ---- */

static bool follow_each_other(const struct moment *m)
{
    struct tbd_position next;

    return tbd_command_states(m->run->session, m->before.position, false, 1, &next) == TBD_OK &&
           tbd_position_compare(next, m->after.position) == 0;
}

/* "touches[...] or touches[...]"; NULL: it reads no memory. */
static char *stores_to(struct tbd_meaning *meaning)
{
    struct tbd_range64 reads[READS_MAX];
    size_t count = tbd_meaning_reads(meaning, reads, READS_MAX), bytes;
    char *text = NULL;
    FILE *out = count == 0 ? NULL : open_memstream(&text, &bytes);

    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%stouches[0x%" PRIx64 ",%" PRIu64 "]", i == 0 ? "" : " or ", reads[i].start,
                reads[i].end - reads[i].start);
    fclose(out);
    return text;
}

struct change {
    struct moment *m;
    struct tbd_meaning *meaning;
};

static bool is_change(void *context, const struct tbd_event *store)
{
    struct change *change = context;
    struct tbd_position behind = { store->position.time, store->position.offset + 1 };
    bool value;

    if (!tbd_meaning_value(change->meaning, behind, &value) || value != change->m->wanted)
        return true;
    change->m->cause = *store;
    return false;
}

/* The first store with which it becomes as wanted: in the code that ran between the two states. */
static void find_change(struct moment *m, struct tbd_meaning *meaning)
{
    struct change change = { m, meaning };
    char *stores = stores_to(meaning), *question = NULL;

    if (stores != NULL &&
        asprintf(&question, "%" PRIu64 "+%u forward store 1 where time <= %" PRIu64 " and (%s)",
                 AT(m->before), m->after.position.time, stores) >= 0)
        (void)tbd_command_each_from(m->run, question, is_change, &change);
    free(question);
    free(stores);
}

/* Did the call that the condition's variables belong to end between the states? */
static bool is_left(const struct moment *m)
{
    struct tbd_meaning *meaning;
    struct tbd_event end;
    bool left = false;

    if (tbd_meaning_open(m->run->session, m->where, &m->before, &meaning) != TBD_OK)
        return false;
    if (tbd_meaning_is_local(meaning) && tbd_meaning_frame(meaning) != 0)
        left = find(m, &end,
                    "%" PRIu64 "+%u forward func_exit 1 where time <= %" PRIu64
                    " and thread == %u and sp == 0x%" PRIx64 " - 8",
                    AT(m->before), m->after.position.time, m->before.thread,
                    tbd_meaning_frame(meaning)) == TBD_OK;
    tbd_meaning_close(meaning);
    return left;
}

/* The store of that instruction to what the condition reads, rather than the instruction; false:
 * there is none. */
static bool show_store(struct moment *m, struct tbd_meaning *meaning)
{
    char *stores = stores_to(meaning);
    struct tbd_event store;
    bool found = false;

    if (stores != NULL &&
        find(m, &store, "first forward store 1 where time == %" PRIu64 " and offset == %u and (%s)",
             AT(m->cause), stores) == TBD_OK) {
        m->cause = store;
        found = true;
    }
    free(stores);
    return found;
}

/* Before the first state at which it holds it meant nothing: the first store to its variables may
 * have made it true. */
static enum tbd_status find_first_store(struct moment *m)
{
    struct tbd_meaning *meaning;
    enum tbd_status status;

    if (tbd_command_states(m->run->session, m->after.position, true, 1, &m->cause.position) !=
        TBD_OK)
        return TBD_OK;
    status = tbd_meaning_open(m->run->session, m->where, &m->after, &meaning);
    if (status != TBD_OK)
        return status;
    if (!show_store(m, meaning))
        m->cause = m->after;
    tbd_meaning_close(meaning);
    return TBD_OK;
}

static enum tbd_status find_cause(struct moment *m)
{
    struct tbd_event *place = m->wanted ? &m->after : &m->before;
    bool follow = m->has_before && m->has_after && follow_each_other(m);
    struct tbd_meaning *meaning;
    enum tbd_status status;

    m->cause = m->has_before ? m->before : m->after;
    if (!m->has_before && m->wanted)
        return find_first_store(m);
    if (!m->has_before || !m->has_after)
        return TBD_OK;
    if (!follow && is_left(m)) { /* other variables of the same names */
        m->cause = *place;
        return m->wanted ? find_first_store(m) : TBD_OK;
    }
    status = tbd_meaning_open(m->run->session, m->where, place, &meaning);
    if (status != TBD_OK)
        return status;
    if (!follow)
        find_change(m, meaning);
    (void)show_store(m, meaning);
    tbd_meaning_close(meaning);
    return TBD_OK;
}

/* ---- the answer ---- */

static void print_moment(const struct moment *m)
{
    struct tbd_session *session = m->run->session;
    json_t *object = tbd_output_event(session, &m->cause);
    const char *key = m->wanted ? "since" : "until";
    struct tbd_position holds = m->wanted ? m->after.position : m->before.position;

    json_object_set_new(object, key, tbd_rows_position(holds));
    tbd_output_print_event(session, object, m->run->out);
    if (!session->json)
        fprintf(m->run->out, "     holds %s %" PRIu64 "+%" PRIu32 "\n",
                m->wanted ? "from" : "until", holds.time, holds.offset);
    json_decref(object);
}

/* As a question of its own: its errors point at the user's words, and its answers say
 * what is missing. */
static enum tbd_exit say_why_not(struct moment *m)
{
    char *question;
    enum tbd_exit result;

    if (asprintf(&question, "%s line 1 where %s", m->wanted ? "first forward" : "last backward",
                 m->where) < 0)
        return TBD_EXIT_SYSTEM;
    result = tbd_command_goto_text(m->run, question);
    free(question);
    return result;
}

static enum tbd_exit go_to_moment(struct tbd_command_run *run, bool wanted)
{
    struct moment m = { .run = run, .where = run->text + run->arguments, .wanted = wanted };
    enum tbd_status status;

    if (run->argc == 0)
        return tbd_command_usage(run, "expected a condition");
    status = wanted ? find_first(&m) : find_last(&m);
    if (status == TBD_OK)
        status = find_cause(&m);
    if (status == TBD_SYNTAX || status == TBD_TYPE || status == TBD_NAME || status == TBD_NOTFOUND)
        return say_why_not(&m);
    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    tbd_session_move(run->session, m.cause.position, 0);
    print_moment(&m);
    return TBD_EXIT_FOUND;
}

enum tbd_exit tbd_command_first(struct tbd_command_run *run)
{
    return go_to_moment(run, true);
}

enum tbd_exit tbd_command_last(struct tbd_command_run *run)
{
    return go_to_moment(run, false);
}
