// SPDX-License-Identifier: MIT
/* path_values.c - see path_values.h: what is wanted, and the rows */
#include "query/commands/path_values_private.h"

#include "query/past/past_kept.h"

#include <stdlib.h>
#include <string.h>

/* ---- what is wanted ---- */

/* "0x1000-0x1fff" */
static bool read_range(const char *text, struct tbd_wanted_value *out)
{
    char *end;

    if (text[0] != '0' || text[1] != 'x')
        return false;
    out->from = strtoull(text, &end, 16);
    if (*end != '-')
        return false;
    out->to = strtoull(end + 1, &end, 16);
    return *end == '\0' && out->to >= out->from && out->to != 0;
}

static bool take_only(struct tbd_path_values *values, const char *only)
{
    char *rest = values->words = strdup(only);

    for (char *word; rest != NULL && (word = strsep(&rest, ",")) != NULL;) {
        struct tbd_wanted_value *wanted = &values->wanted[values->wanted_count];

        if (*word == '\0' || strlen(word) >= TBD_PATH_NAME_BYTES ||
            values->wanted_count == TBD_PATH_WANTED_MAX)
            return false;
        wanted->name = word;
        if (!read_range(word, wanted))
            wanted->to = 0;
        values->wanted_count++;
    }
    return values->wanted_count != 0;
}

bool tbd_path_values_want_register(const struct tbd_path_values *values, const char *name)
{
    for (size_t i = 0; i < values->wanted_count; i++)
        if (strcmp(values->wanted[i].name + (*values->wanted[i].name == '$'), name) == 0)
            return true;
    return values->wanted_count == 0;
}

bool tbd_path_values_want_address(const struct tbd_path_values *values, uint64_t address,
                                  bool is_known, unsigned bytes)
{
    for (size_t i = 0; i < values->wanted_count; i++)
        if (values->wanted[i].to != 0 && is_known && address <= values->wanted[i].to &&
            address + bytes > values->wanted[i].from)
            return true;
    return values->wanted_count == 0;
}

/* ---- rows ---- */

bool tbd_path_values_match(struct tbd_path_values *values, const struct tbd_path_span *span)
{
    enum tbd_certainty certainty;

    if (values->what.where != NULL && values->past == NULL) {
        values->condition.asked++;
        values->condition.undecided++;
        return false;
    }
    return values->what.where == NULL ||
           (tbd_past_go(values->past, span->step, span->insn) &&
            tbd_past_decide(values->past, &values->condition, &certainty) == TBD_PAST_TRUE);
}

void tbd_path_values_put(struct tbd_path_values *values, const struct tbd_path_span *span,
                         json_t *row)
{
    json_t *list;

    if (!values->what.values)
        return;
    list = json_array();
    if (values->past != NULL && span->is_insn && !values->what.variables)
        tbd_path_values_put_insn(values, span, list);
    if (values->past != NULL &&
        (!span->is_insn || values->what.variables || values->wanted_count != 0))
        tbd_path_values_put_variables(values, span, list);
    json_object_set_new(row, "values", list);
}

/* ---- the dump ---- */

enum tbd_exit tbd_path_values_new(struct tbd_command_run *run, struct tbd_rings *ring,
                                  const struct tbd_path_wanted *wanted,
                                  struct tbd_path_values **out)
{
    struct tbd_path_values *values = *out = calloc(1, sizeof(*values));

    if (values == NULL)
        return tbd_command_no_memory();
    values->run = run;
    values->ring = ring;
    values->what = *wanted;
    values->condition.text = wanted->where;
    values->condition.exact_only = wanted->exact;
    if (wanted->only != NULL && !take_only(values, wanted->only))
        return tbd_command_usage(run, "--only takes names, registers and address ranges "
                                      "(0x1000-0x1fff), with commas between them");
    return TBD_EXIT_FOUND;
}

void tbd_path_values_free(struct tbd_path_values *values)
{
    if (values == NULL)
        return;
    tbd_past_give_back(values->past);
    if (values->is_open)
        tbd_session_close(&values->other);
    free(values->words);
    free(values);
}

/* Questions that follow in the same session find the simulation there. */
static void open_session(struct tbd_path_values *values)
{
    struct tbd_session *session = values->run->session;

    if (session->trace != NULL && strcmp(session->info->path, values->ring->path) == 0) {
        values->session = session;
        return;
    }
    values->session = &values->other;
    values->is_open = true;
    values->other.takes_rings = true;
    values->opened = tbd_session_open(values->session, values->ring->path);
}

/* The session has the dump's threads for itself: in the same order. */
static enum tbd_status take_past(struct tbd_path_values *values,
                                 const struct tbd_rings_thread *thread, uint64_t first,
                                 uint64_t last)
{
    struct tbd_rings *rings;
    enum tbd_status status = tbd_past_rings(values->session, &rings);
    size_t number = (size_t)(thread - values->ring->threads);

    if (status == TBD_OK && thread->after != 0)
        status = tbd_past_too_far(values->session);
    if (status != TBD_OK)
        return status;
    if (number >= rings->dump.head->thread_count ||
        tbd_rings_steps(rings, &rings->threads[number]) == NULL)
        return TBD_NOMEM;
    return tbd_past_take(values->session, &rings->threads[number], first, TBD_PAST_BEFORE, last,
                         &values->past);
}

enum tbd_status tbd_path_values_begin(struct tbd_path_values *values,
                                      struct tbd_rings_thread *thread, uint64_t first,
                                      uint64_t last)
{
    enum tbd_status status;

    tbd_past_give_back(values->past);
    values->past = NULL;
    if (values->session == NULL)
        open_session(values);
    status = values->opened;
    if (status == TBD_OK)
        status = take_past(values, thread, first, last);
    if (status != TBD_OK && values->failed == TBD_OK) {
        values->failed = status;
        values->why = values->session->why;
    }
    *(status == TBD_OK ? &values->with : &values->without) += 1;
    return status;
}

/* Threads that had ended are in the rings alone. */
static bool is_some(const struct tbd_path_values *values)
{
    return values->failed == TBD_NOREPLAY && values->with != 0;
}

enum tbd_exit tbd_path_values_tell(const struct tbd_path_values *values)
{
    if (is_some(values))
        fprintf(
            stderr,
            "tbdq: note: of %zu threads the dump has no registers: what they held is not known\n",
            values->without);
    if (values->failed == TBD_OK || is_some(values))
        return values->what.where == NULL || tbd_past_condition_tell(&values->condition)
                   ? TBD_EXIT_FOUND
                   : TBD_EXIT_USAGE;
    values->run->session->why = values->why;
    return tbd_command_fail(values->run, values->failed);
}
