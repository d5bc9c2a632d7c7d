// SPDX-License-Identifier: MIT
/* dump_count.c - see dump_count.h
 *
 * count TYPE [by func|line|module|thread]: TYPE is block_entry, state (instructions), line, func_enter, func_exit or syscall.  A
 * call by module is counted for the module that calls and the one that is called: "app -> libc.so.6". */
#include "query/dumps/dump_count.h"

#include "query/dumps/dump_run.h"
#include "query/output/output.h"

#include "base/escape.h"
#include "base/string.h"

#include <stdlib.h>
#include <string.h>

enum count_type { BLOCK_ENTRY, STATE, LINE, FUNC_ENTER, FUNC_EXIT, SYSCALL, TYPES };
enum count_group { ALL, BY_FUNC, BY_LINE, BY_MODULE, BY_THREAD };

struct dump_counting {
    struct tbd_dump_run dump;
    enum count_type type;
    enum count_group group;
    json_t *counts; /* owned */
};

/* ---- keys ---- */

static const char *module_of(const struct tbd_rings_place *place)
{
    return place->module != NULL ? place->module : "(no file)";
}

static void write_key(struct dump_counting *c, const struct tbd_dump_place *at,
                      const struct tbd_dump_place *from, char *out, size_t bytes)
{
    struct tbd_rings_place place = *tbd_dump_names(&c->dump, at);
    const char *function = place.function != NULL ? place.function : "?";

    switch (c->group) {
    case ALL: snprintf(out, bytes, "all"); break;
    case BY_FUNC: snprintf(out, bytes, "%s!%s", module_of(&place), function); break;
    case BY_THREAD: snprintf(out, bytes, "%u", at->thread->tid); break;
    case BY_LINE:
        if (place.line.line == 0)
            snprintf(out, bytes, "%s!%s", module_of(&place), function);
        else
            snprintf(out, bytes, "%s:%u", tbd_base_name(place.line.file), place.line.line);
        break;
    case BY_MODULE:
        if (from != NULL)
            snprintf(out, bytes, "%s -> %s", module_of(tbd_dump_names(&c->dump, from)),
                     module_of(&place));
        else
            snprintf(out, bytes, "%s", module_of(&place));
        break;
    }
}

static void add(struct dump_counting *c, const struct tbd_dump_place *at,
                const struct tbd_dump_place *from)
{
    json_t *count;
    char raw[1100], key[4500];

    write_key(c, at, from, raw, sizeof(raw));
    tbd_escape(TBD_ESCAPE_UTF8, raw, strlen(raw), key, sizeof(key));
    count = json_object_get(c->counts, key);
    if (count != NULL)
        json_integer_set(count, json_integer_value(count) + 1);
    else
        json_object_set_new(c->counts, key, json_integer(1));
}

/* ---- events ---- */

static bool ends_with_syscall(const struct dump_counting *c, const struct tbd_rings_step *step)
{
    const struct tbd_rings_block *block = &c->dump.ring->blocks[step->block];
    const uint8_t *code = tbd_rings_code(c->dump.ring, step->block, block->insn_count - 1);

    return step->insns == block->insn_count && code != NULL && code[0] == 0x0f && code[1] == 0x05;
}

/* Functions that were entered, by jumps and for signals, too. */
static enum tbd_status add_entered(struct dump_counting *c, struct tbd_rings_thread *thread)
{
    struct tbd_rings_call *calls;
    size_t count;
    enum tbd_status status = tbd_rings_calls(c->dump.ring, thread, &calls, &count);

    for (size_t i = 0; status == TBD_OK && i < count; i++) {
        const struct tbd_rings_step *step = &thread->walked.steps[calls[i].from];
        struct tbd_dump_place at = { thread, calls[i].entered, 0 };
        struct tbd_dump_place from = { thread, calls[i].from,
                                       step->insns != 0 ? step->insns - 1u : 0 };

        if (calls[i].entered != UINT64_MAX)
            add(c, &at, &from);
    }
    free(calls);
    return status;
}

static void add_insns(struct dump_counting *c, struct tbd_dump_place at, uint32_t insns)
{
    for (at.insn = 0; at.insn < insns; at.insn++)
        if (c->type == STATE || tbd_dump_names(&c->dump, &at)->begins_line)
            add(c, &at, NULL);
}

static void add_step(struct dump_counting *c, struct tbd_rings_thread *thread, uint64_t step)
{
    const struct tbd_rings_step *one = &thread->walked.steps[step];
    const struct tbd_rings_block *block = &c->dump.ring->blocks[one->block];
    struct tbd_dump_place first = { thread, step, 0 };
    struct tbd_dump_place last = { thread, step, one->insns != 0 ? one->insns - 1u : 0 };
    bool is_complete = (one->flags & (TBD_RINGS_CUT | TBD_RINGS_UNCERTAIN)) == 0;

    switch (c->type) {
    case BLOCK_ENTRY: add(c, &first, NULL); break;
    case STATE:
    case LINE: add_insns(c, first, one->insns); break;
    case FUNC_EXIT:
        if (is_complete && block->end == TBD_RINGS_RETURNS)
            add(c, &last, NULL);
        break;
    case SYSCALL:
        if (ends_with_syscall(c, one))
            add(c, &last, NULL);
        break;
    case FUNC_ENTER: /* add_entered() */
    case TYPES: break;
    }
}

static enum tbd_exit count_all(struct dump_counting *c)
{
    for (uint32_t i = 0; i < c->dump.ring->dump.head->thread_count; i++) {
        struct tbd_rings_thread *thread = &c->dump.ring->threads[i];

        if (c->dump.tid != 0 && thread->tid != c->dump.tid)
            continue;
        if (tbd_rings_steps(c->dump.ring, thread) == NULL)
            return tbd_command_no_memory();
        tbd_dump_tell_part(&c->dump, thread);
        if (c->type == FUNC_ENTER && add_entered(c, thread) != TBD_OK)
            return tbd_command_no_memory();
        for (uint64_t step = 0; c->type != FUNC_ENTER && step < thread->count; step++)
            add_step(c, thread, step);
    }
    return TBD_EXIT_FOUND;
}

/* ---- arguments ---- */

static bool read_arguments(struct dump_counting *c)
{
    static const char *const types[] = { "block_entry", "state",     "line",
                                         "func_enter",  "func_exit", "syscall" };
    static const char *const groups[] = { "all", "func", "line", "module", "thread" };
    const struct tbd_command_run *run = c->dump.run;
    size_t group = 0;

    if (run->argc != 1 && (run->argc != 3 || strcmp(run->argv[1], "by") != 0))
        return false;
    for (c->type = 0; c->type < TYPES && strcmp(run->argv[0], types[c->type]) != 0;)
        c->type++;
    if (run->argc == 3)
        for (group = 1; group < 5 && strcmp(run->argv[2], groups[group]) != 0;)
            group++;
    c->group = (enum count_group)group;
    return c->type < TYPES && group < 5;
}

enum tbd_exit tbd_dump_run_count(struct tbd_command_run *run)
{
    struct dump_counting c = { .counts = json_object() };
    enum tbd_exit result = tbd_dump_open(run, &c.dump);

    if (result == TBD_EXIT_FOUND && !read_arguments(&c))
        result =
            tbd_dump_refuse(run, "count takes block_entry, state, line, func_enter, func_exit or "
                                 "syscall there, by func, line, module or thread");
    else if (result == TBD_EXIT_FOUND)
        result = count_all(&c) == TBD_EXIT_FOUND ? tbd_rows_counts(run, c.counts) : TBD_EXIT_SYSTEM;
    json_decref(c.counts);
    tbd_dump_close(&c.dump);
    return result;
}
