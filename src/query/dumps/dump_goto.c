// SPDX-License-Identifier: MIT
/* dump_goto.c - goto -N|-N+K|first|last|FUNCTION|FILE:LINE [where EXPRESSION] in a dump (dump_goto.h)
 *
 * Functions and lines are looked for from a thread's end back: in its newest entries, whose steps are known, and then in the condensed
 * ones, block by block. */
#include "query/dumps/dump_goto.h"

#include "query/dumps/dump_function.h"
#include "query/dumps/dump_line.h"
#include "query/dumps/dump_run.h"
#include "query/dumps/dump_where.h"
#include "query/output/output.h"

#include "base/safe_stream.h"

#include <stdlib.h>
#include <string.h>

/* "where EXPRESSION" after the first argument; the caller frees it.  NULL: there is none. */
static char *take_where(struct tbd_command_run *run)
{
    char *text = NULL;
    size_t bytes;
    FILE *out;

    if (run->argc < 3 || strcmp(run->argv[1], "where") != 0 ||
        (out = open_memstream(&text, &bytes)) == NULL)
        return NULL;
    for (unsigned i = 2; i < run->argc; i++)
        fprintf(out, "%s%s", i == 2 ? "" : " ", run->argv[i]);
    fclose(out);
    run->argc = 1;
    return text;
}

/* What `goto` looks for: a function's first instruction, or a line. */
struct dump_sought {
    struct tbd_dump_function function;
    bool is_line;
    struct tbd_dump_line line;
    struct tbd_dump_where *where; /* what has to hold, too; NULL: nothing */
    bool *blocks;                 /* owned: those that have such an instruction */
};

static bool is_sought(struct tbd_dump_run *dump, const struct dump_sought *sought, uint32_t block,
                      uint32_t insn)
{
    const struct tbd_rings_place *names = tbd_rings_place(dump->ring, block, insn);

    if (names == NULL)
        return false;
    return sought->is_line ? tbd_dump_is_line(names, &sought->line)
                           : names->address == names->function_start &&
                                 tbd_dump_is_function(names, &sought->function);
}

static bool seek(struct tbd_dump_run *dump, struct dump_sought *out)
{
    uint32_t count = dump->ring->dump.head->block_count;

    out->is_line = tbd_dump_line_read(out->function.name, true, &out->line);
    out->blocks = calloc(count + 1u, sizeof(*out->blocks));
    for (uint32_t i = 0; out->blocks != NULL && i < count; i++) {
        const struct tbd_rings_block *block = tbd_rings_block(dump->ring, i);

        for (uint32_t k = 0; block != NULL && k < block->insn_count && !out->blocks[i]; k++)
            out->blocks[i] = is_sought(dump, out, i, k);
    }
    return out->blocks != NULL;
}

/* A function's own loop may lead back to its first instruction, and does not enter it. */
static bool is_entered(struct tbd_dump_run *dump, const struct tbd_rings_thread *thread,
                       uint64_t step)
{
    const struct tbd_rings_step *at = &thread->walked.steps[step], *before = at - 1;

    return step == 0 || (at->flags & TBD_RINGS_HANDLER) != 0 ||
           (before->flags & TBD_RINGS_CUT) != 0 || !tbd_rings_leads_on(dump->ring, before->block) ||
           !tbd_rings_is_inside(dump->ring, before->block, at->block);
}

/* The last such instruction of a step, if it ran. */
static bool is_in_step(struct tbd_dump_run *dump, const struct dump_sought *sought,
                       struct tbd_rings_thread *thread, uint64_t step, struct tbd_dump_place *out)
{
    const struct tbd_rings_step *at = &thread->walked.steps[step];

    for (uint32_t k = at->insns; sought->blocks[at->block] && k-- > 0;) {
        *out = (struct tbd_dump_place){ thread, step, k };
        if (is_sought(dump, sought, at->block, k) &&
            (k != 0 || sought->is_line || is_entered(dump, thread, step)) &&
            (sought->where == NULL || tbd_dump_where_holds(dump, sought->where, out)))
            return true;
        if (sought->where != NULL && sought->where->status != TBD_OK)
            return false;
    }
    return false;
}

static bool is_in_newest(struct tbd_dump_run *dump, const struct dump_sought *sought,
                         struct tbd_rings_thread *thread, struct tbd_dump_place *out)
{
    if (!tbd_dump_reach(dump, thread, 1))
        return false;
    for (uint64_t i = thread->count; i-- > 0;) {
        if (is_in_step(dump, sought, thread, i, out))
            return true;
        if (sought->where != NULL && sought->where->status != TBD_OK)
            return false;
    }
    return false;
}

static bool is_in_older(struct tbd_dump_run *dump, const struct dump_sought *sought,
                        struct tbd_rings_thread *thread, struct tbd_dump_place *out)
{
    uint64_t back = 0;

    enum tbd_status status;

    while ((status = tbd_rings_find_older(dump->ring, thread, sought->blocks, &back)) == TBD_OK) {
        if (!tbd_dump_reach(dump, thread, back))
            return false;
        if (is_in_step(dump, sought, thread, tbd_rings_step_at(thread, back), out))
            return true;
    }
    tbd_dump_note_failure(dump, status);
    return false;
}

/* Where a function, or a line, was reached last, and what has to hold did: that is known of the newest entries alone. */
static bool find_last(struct tbd_dump_run *dump, struct dump_sought *sought,
                      struct tbd_dump_place *out)
{
    struct tbd_rings_thread *thread = tbd_dump_thread(dump);
    bool is_found = thread != NULL && seek(dump, sought) &&
                    (is_in_newest(dump, sought, thread, out) ||
                     (sought->where == NULL && is_in_older(dump, sought, thread, out)));

    free(sought->blocks);
    return is_found;
}

static bool find_end(struct tbd_dump_run *dump, const char *name, struct tbd_dump_place *out)
{
    struct tbd_rings_thread *thread = tbd_dump_thread(dump);
    bool is_first = strcmp(name, "first") == 0;
    uint64_t step;

    if (thread == NULL ||
        !tbd_dump_reach(dump, thread, is_first ? thread->older + thread->newest.count : 1))
        return false;
    step = is_first ? 0 : thread->count - 1;
    *out = (struct tbd_dump_place){ thread, step, 0 };
    if (step != 0 && thread->walked.steps[step].insns != 0)
        out->insn = thread->walked.steps[step].insns - 1u;
    return true;
}

/* NULL: to the dump's end. */
static void move(struct tbd_session *session, const struct tbd_dump_place *place)
{
    struct tbd_session_before before = { 0 };

    if (place != NULL)
        before = (struct tbd_session_before){ .back = tbd_rings_back(place->thread, place->step),
                                              .insn = place->insn,
                                              .thread = place->thread->tid };
    tbd_session_move_before(session, before);
}

/* Also where a condition holds. */
static enum tbd_exit goto_last(struct tbd_dump_run *dump, const char *name, char *text,
                               struct tbd_dump_place *out)
{
    struct tbd_dump_where where = { .condition.text = text };
    struct dump_sought sought = { .where = text != NULL ? &where : NULL };
    bool is_found = tbd_dump_function_find(dump->run, name, &sought.function);
    bool lies = is_found && find_last(dump, &sought, out);
    enum tbd_exit result = lies ? TBD_EXIT_FOUND : TBD_EXIT_NOT_FOUND;

    tbd_dump_function_free(&sought.function);
    if (!is_found)
        return tbd_command_no_memory();
    if (where.status != TBD_OK)
        result = tbd_command_fail(dump->run, where.status);
    else if (text != NULL && !tbd_past_condition_tell(&where.condition))
        result = TBD_EXIT_USAGE;
    else if (!lies && text != NULL)
        fprintf(stderr, "tbdq: goto: in the ring it is never known to be true at %s that %s\n",
                tbd_shown(name), text);
    else if (!lies)
        result = tbd_dump_not_in_ring(dump, name);
    tbd_past_give_back(where.past);
    return result;
}

/* The place that the first argument names. */
static enum tbd_exit goto_word(struct tbd_dump_run *dump, char *where, struct tbd_dump_place *out)
{
    const char *word = dump->run->argv[0];
    bool lies = false;

    if (strcmp(word, "first") == 0 || strcmp(word, "last") == 0)
        lies = find_end(dump, word, out);
    else if (!tbd_dump_position(dump, word, out, &lies))
        return goto_last(dump, word, where, out);
    return lies ? TBD_EXIT_FOUND : tbd_dump_not_in_ring(dump, word);
}

enum tbd_exit tbd_dump_run_goto(struct tbd_command_run *run)
{
    struct tbd_dump_place place;
    struct tbd_dump_run dump;
    char *where = NULL;
    enum tbd_exit result = tbd_dump_open(run, &dump);

    if (result == TBD_EXIT_FOUND) {
        where = take_where(run);
        result =
            run->argc == 1
                ? goto_word(&dump, where, &place)
                : tbd_dump_refuse(run, "goto takes -N, -N+K, first, last, or FUNCTION or "
                                       "FILE:LINE (where it was last) [where EXPRESSION] there");
    }
    if (result == TBD_EXIT_FOUND) {
        result = tbd_dump_print_place(&dump, &place);
        move(run->session, strcmp(run->argv[0], "last") == 0 ? NULL : &place);
    }
    free(where);
    tbd_dump_close(&dump);
    return result;
}
