// SPDX-License-Identifier: MIT
/* cmd_moments.c - first and last: the instruction that made a condition true, or false
 *
 * Source lines are searched first, because there are fewer of them than instructions.  Then the
 * condition is evaluated at every instruction between a line at which it holds and one at which it
 * does not.  If the two instructions found do not follow each other, others ran between them at
 * which the condition has no meaning, in called functions: the answer is then the store to the
 * memory that the condition reads. */
#include "query/search/meaning.h"
#include "query/output/output.h"
#include "query/commands/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define READS_MAX 32u

struct moment {
    struct tbd_command_run *run;
    const char *where;       /* what the user wrote */
    bool wanted;             /* first: true; last: false */
    struct tbd_event before; /* the last state at which the condition is not as wanted */
    struct tbd_event after;  /* the first state at which it is */
    bool has_before, has_after;
    struct tbd_event cause;
};

/* Parses the user's condition for events of a type; errors point into the run's text. */
static enum tbd_status parse(const struct moment *m, enum tbd_event_type type,
                             struct tbd_expr **out, struct tbd_query_error *error)
{
    return tbd_expr_parse(m->run->text, m->run->arguments, type, out, error);
}

static enum tbd_status find_as(const struct moment *m, struct tbd_question *question, bool holds,
                               struct tbd_event *out)
{
    struct tbd_query_error error;
    struct tbd_expr *where;
    enum tbd_status status = parse(m, question->type, &where, &error);

    if (status != TBD_OK) {
        tbd_question_free(question);
        return status;
    }
    tbd_question_where(question, holds ? where : tbd_expr_not(where));
    return tbd_command_find_event(m->run, question, out);
}

/* Finds the event that the question asks for and at which the condition holds; frees the question. */
static enum tbd_status find_true(const struct moment *m, struct tbd_question *question,
                                 struct tbd_event *out)
{
    return find_as(m, question, true, out);
}

/* The same for an event at which the condition does not hold. */
static enum tbd_status find_false(const struct moment *m, struct tbd_question *question,
                                  struct tbd_event *out)
{
    return find_as(m, question, false, out);
}

/* Was it found?  Any other status than "found" and "not found" stays an error.  TBD_NAME is "not
 * found": a condition that has a meaning at one place may have none in the rest of a trace. */
static bool is_there(enum tbd_status *status)
{
    bool found = *status == TBD_OK;

    if (*status == TBD_NOTFOUND || *status == TBD_NAME)
        *status = TBD_OK;
    return found;
}

/* The same for the first search, where a name without a meaning is an error. */
static bool is_found(enum tbd_status *status)
{
    return *status == TBD_NAME ? false : is_there(status);
}

/* ---- the two states ---- */

/* Finds the first state at which the condition holds (at a line, or between two lines), and the state
 * before it at which it does not. */
static enum tbd_status find_first(struct moment *m)
{
    struct tbd_event line = { 0 }, before = { 0 };
    struct tbd_question question = tbd_question_first(TBD_EVENT_LINE);
    enum tbd_status status = find_true(m, &question, &line);
    bool has_line = is_found(&status), has_before = false;

    if (status == TBD_OK && has_line) {
        question = tbd_question_before(line.position, TBD_EVENT_LINE);
        status = find_false(m, &question, &before);
        has_before = is_there(&status);
    }
    m->after = line;
    if (status == TBD_OK) {
        question = has_before ? tbd_question_after(before.position, TBD_EVENT_STATE)
                              : tbd_question_first(TBD_EVENT_STATE);
        if (has_line && !has_before)
            tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_LE, line.position.time);
        status = find_true(m, &question, &m->after);
    }
    m->has_after = status == TBD_OK;
    if (status != TBD_OK || (has_line && !has_before))
        return status;
    question = tbd_question_before(m->after.position, TBD_EVENT_STATE);
    if (has_before)
        tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_GE, before.position.time);
    status = find_false(m, &question, &m->before);
    m->has_before = is_there(&status);
    return status;
}

/* Finds the last state at which the condition holds, and the next at which it does not: in the same
 * block, if it does not hold at any line. */
static enum tbd_status find_last(struct moment *m)
{
    struct tbd_event line = { 0 }, after = { 0 };
    struct tbd_question question = tbd_question_last(TBD_EVENT_LINE);
    enum tbd_status status = find_true(m, &question, &line);
    bool has_line = is_found(&status), has_after = false;

    if (status == TBD_OK && has_line) {
        question = tbd_question_after(line.position, TBD_EVENT_LINE);
        status = find_false(m, &question, &after);
        has_after = is_there(&status);
    }
    if (status != TBD_OK)
        return status;
    question = has_after ? tbd_question_before(after.position, TBD_EVENT_STATE)
                         : tbd_question_last(TBD_EVENT_STATE);
    if (has_line)
        tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_GE, line.position.time);
    status = find_true(m, &question, &m->before);
    m->has_before = status == TBD_OK;
    if (status != TBD_OK)
        return status;
    question = tbd_question_after(m->before.position, TBD_EVENT_STATE);
    tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_LE,
                             has_after ? after.position.time : m->before.position.time + 1);
    status = find_false(m, &question, &m->after);
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

/* Restricts the question to stores to the memory that the condition reads; false if it reads none. */
static bool where_stored(struct tbd_meaning *meaning, struct tbd_question *question)
{
    struct tbd_range64 reads[READS_MAX];
    size_t count = tbd_meaning_reads(meaning, reads, READS_MAX);
    struct tbd_expr *any = NULL;

    for (size_t i = 0; i < count; i++) {
        struct tbd_expr *one = tbd_expr_touches(reads[i].start, reads[i].end - reads[i].start);

        any = i == 0 ? one : tbd_expr_join(TBD_EXPR_OR, any, one);
    }
    if (count != 0)
        tbd_question_where(question, any);
    return count != 0;
}

struct change {
    struct moment *m;
    struct tbd_meaning *meaning;
};

static bool is_change(void *context, const struct tbd_event *store)
{
    struct change *change = context;
    struct tbd_position after = { store->position.time, store->position.offset + 1 };
    bool value;

    if (!tbd_meaning_value(change->meaning, after, &value) || value != change->m->wanted)
        return true;
    change->m->cause = *store;
    return false;
}

/* Finds the store that made the condition as wanted, in the code that ran between the two states. */
static void find_change(struct moment *m, struct tbd_meaning *meaning)
{
    struct change change = { m, meaning };
    struct tbd_question question = tbd_question_after(m->before.position, TBD_EVENT_STORE);

    tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_LE, m->after.position.time);
    if (where_stored(meaning, &question))
        (void)tbd_command_each(m->run, &question, is_change, &change);
    else
        tbd_question_free(&question);
}

/* Did the function whose variables the condition names return between the two states? */
static bool is_left(const struct moment *m)
{
    struct tbd_question question = tbd_question_after(m->before.position, TBD_EVENT_FUNC_EXIT);
    struct tbd_meaning *meaning;
    struct tbd_event end;
    bool left = false;

    if (tbd_meaning_open(m->run->session, m->where, &m->before, &meaning) != TBD_OK)
        return false;
    if (tbd_meaning_is_local(meaning) && tbd_meaning_frame(meaning) != 0) {
        tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_LE, m->after.position.time);
        tbd_question_where_field(&question, TBD_FIELD_THREAD, TBD_EXPR_EQ, m->before.thread);
        tbd_question_where_field(&question, TBD_FIELD_SP, TBD_EXPR_EQ,
                                 tbd_meaning_frame(meaning) - 8);
        left = tbd_command_find_event(m->run, &question, &end) == TBD_OK;
    }
    tbd_meaning_close(meaning);
    return left;
}

/* Replaces the instruction by its store to the memory that the condition reads; false if it has no
 * such store. */
static bool show_store(struct moment *m, struct tbd_meaning *meaning)
{
    struct tbd_question question = tbd_question_first(TBD_EVENT_STORE);
    struct tbd_position at = m->cause.position;
    struct tbd_event store;
    bool found = false;

    tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_EQ, at.time);
    tbd_question_where_field(&question, TBD_FIELD_OFFSET, TBD_EXPR_EQ, at.offset);
    if (!where_stored(meaning, &question))
        tbd_question_free(&question);
    else
        found = tbd_command_find_event(m->run, &question, &store) == TBD_OK;
    if (found)
        m->cause = store;
    return found;
}

/* Before the first state at which the condition holds it had no meaning.  The first store to its
 * variables may have made it true. */
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
    if (!follow && is_left(m)) { /* from then on the names are those of other variables */
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

/* Asks a question of its own, whose errors point at the user's words, and whose answers say what is
 * missing. */
static enum tbd_exit say_why_not(struct moment *m)
{
    struct tbd_question question =
        m->wanted ? tbd_question_first(TBD_EVENT_LINE) : tbd_question_last(TBD_EVENT_LINE);
    struct tbd_query_error error;
    struct tbd_expr *where;

    if (parse(m, question.type, &where, &error) != TBD_OK)
        return tbd_command_wrong(m->run, &error);
    tbd_question_where(&question, where);
    return tbd_command_ask(m->run, &question);
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
