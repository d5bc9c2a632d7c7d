// SPDX-License-Identifier: MIT
/* probe_places.c - see probe_places.h */
#include "query/probe/probe_places.h"

#include "base/safe_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct tbd_script_where *clause(const struct tbd_script_places *places, uint32_t index)
{
    return &places->script->where[index];
}

static bool is_in_program(const struct tbd_script_places *places, uint32_t index)
{
    return clause(places, index)->place.kind > TBD_WHERE_INTERVAL;
}

/* ---- code ---- */

/* Code for the places from `first` on, of which those before `copies` are the function's own entries.  Those where a
 * variable has no value are left out, and said, if there are others. */
static bool compile_places(struct tbd_script_places *places, uint32_t index, size_t first,
                           size_t copies, struct tbd_query_error *error)
{
    const struct tbd_where *where = &clause(places, index)->place;
    size_t all = places->now.count - first, kept = first;
    struct tbd_query_error problem = { 0 };

    for (size_t i = first; i < places->now.count; i++) {
        struct tbd_probe_place place = places->now.all[i];
        struct tbd_script_place at = { places->process, place.address,
                                       where->kind == TBD_WHERE_ENTRY && !where->number &&
                                           i < copies };
        struct tbd_query_error wrong = { 0 };

        if (tbd_script_compile(places->script, index, &at, &place.code, &wrong))
            places->now.all[kept++] = place;
        else
            problem = wrong;
    }
    places->now.count = kept;
    if (kept == first)
        *error = problem;
    else if (kept < first + all)
        fprintf(stderr, "tbd probe: %zu of %zu places of %.*s are left out: %s\n",
                first + all - kept, all, (int)where->length, places->script->text + where->at,
                tbd_shown(problem.message));
    return kept > first;
}

/* ---- inlined copies ---- */

static bool may_be_inlined(const struct tbd_where *where)
{
    return (where->kind == TBD_WHERE_ENTRY || where->kind == TBD_WHERE_RETURNS) && !where->number &&
           strpbrk(where->name, "*?[") == NULL;
}

/* Copies are no calls: they have no arguments in registers, and do not return.  `first`: of the clause's places. */
static bool add_copies(struct tbd_script_places *places, const struct tbd_script_where *where,
                       bool again, size_t first, struct tbd_query_error *error)
{
    size_t own = places->now.count, copies;
    const char *why =
        where->place.kind == TBD_WHERE_RETURNS ? "they do not return by an instruction of theirs"
        : where->asks_arguments ? "arg0 to arg9 are known at a call only; take the names"
                                : NULL;

    if (!tbd_process_find_inlined(places->process, &where->place, again, &places->now))
        return tbd_query_wrong(error, TBD_NOMEM, 0, 0, "no memory");
    copies = places->now.count - own;
    if (!copies)
        return own > first;
    *error = (struct tbd_query_error){ 0 };
    if (!why)
        return true;
    places->now.count = own;
    if (own == first)
        return tbd_query_wrong(error, TBD_USAGE, where->place.at, where->place.length,
                               "%s is inlined everywhere: %s", where->place.name, why);
    fprintf(stderr, "tbd probe: %zu inlined copies of %s are left out: %s\n", copies,
            tbd_shown(where->place.name), why);
    return true;
}

/* Adds the places of one clause; `again`: only those in what has come. */
static bool find_clause(struct tbd_script_places *places, uint32_t index, bool again,
                        struct tbd_query_error *error)
{
    const struct tbd_script_where *where = clause(places, index);
    size_t first = places->now.count, copies;
    bool found;

    places->now.code = where->code;
    found = again ? tbd_process_find_new(places->process, &where->place, &places->now, error)
                  : tbd_process_find(places->process, &where->place, &places->now, error);
    copies = places->now.count;
    if (!found && error->status != TBD_NOTFOUND)
        return false;
    if (may_be_inlined(&where->place))
        found = add_copies(places, where, again, first, error);
    return found && (!where->asks_program || compile_places(places, index, first, copies, error));
}

/* ---- the loader ---- */

static bool add_await(struct tbd_probe_script *script, uint32_t *out)
{
    static const struct tbd_probe_insn await[] = { { .op = TBD_PROBE_AWAIT },
                                                   { .op = TBD_PROBE_END } };

    if (TBD_PROBE_MAX_CODE - script->code_count < 2)
        return false;
    *out = script->code_count;
    memcpy(&script->code[script->code_count], await, sizeof(await));
    script->code_count += 2;
    return true;
}

/* A static program has none. */
static void watch_loader(struct tbd_script_places *places)
{
    static const char *const loaders[] = { "ld-linux*", "ld-musl*" };
    size_t before = places->now.count;
    uint32_t code;

    if (!add_await(places->script, &code))
        return;
    for (size_t i = 0; i < sizeof(loaders) / sizeof(loaders[0]); i++) {
        struct tbd_where where = { .kind = TBD_WHERE_ENTRY };
        struct tbd_query_error ignored = { 0 };

        strcpy(where.module, loaders[i]);
        strcpy(where.name, "_dl_debug_state");
        places->now.code = code;
        tbd_process_find(places->process, &where, &places->now, &ignored);
    }
    places->loaders = places->now.count - before;
}

/* ---- looking ---- */

static bool awaits_memory(const struct tbd_script_places *places, uint32_t index)
{
    const struct tbd_where *where = &clause(places, index)->place;

    return where->kind == TBD_WHERE_ADDRESS &&
           !tbd_process_has_code(places->process, where->number);
}

/* A clause that is nowhere waits, if it may. */
static bool find_first(struct tbd_script_places *places, uint32_t index,
                       struct tbd_query_error *error)
{
    places->waits[index] = places->may_wait && awaits_memory(places, index);
    if (places->waits[index] || find_clause(places, index, false, error))
        return true;
    if (error->status == TBD_NOTFOUND && !places->may_wait && !error->hint[0])
        strcpy(error->hint, "--pending waits until it is loaded");
    if (error->status != TBD_NOTFOUND || !places->may_wait)
        return false;
    *error = (struct tbd_query_error){ 0 };
    places->waits[index] = true;
    return true;
}

bool tbd_script_places_find(struct tbd_script_places *places, struct tbd_query_error *error)
{
    for (uint32_t i = 0; i < places->script->where_count; i++) {
        if (is_in_program(places, i) && !find_first(places, i, error))
            return false;
        places->ends[i] = places->now.count;
    }
    if (places->may_wait || places->script->walks_stacks)
        watch_loader(places);
    places->fresh = places->now.count;
    return true;
}

static bool is_in_gone(const struct tbd_probe_process *before, uint64_t address)
{
    for (size_t i = 0; i < before->module_count; i++)
        if (before->modules[i].is_other && address >= before->modules[i].start &&
            address < before->modules[i].end)
            return true;
    return false;
}

/* Places of libraries that have gone. */
static bool drop_gone(struct tbd_script_places *places, const struct tbd_probe_process *before)
{
    size_t kept = 0;

    places->gone.count = 0;
    for (size_t i = 0; i < places->now.count; i++) {
        if (!is_in_gone(before, places->now.all[i].address))
            places->now.all[kept++] = places->now.all[i];
        else if (!tbd_process_add_place(&places->gone, places->now.all[i].address))
            return false;
    }
    places->now.count = kept;
    return true;
}

static void find_in_new(struct tbd_script_places *places)
{
    for (uint32_t i = 0; i < places->script->where_count; i++) {
        struct tbd_query_error ignored = { 0 };
        bool is_address = clause(places, i)->place.kind == TBD_WHERE_ADDRESS;

        if (!is_in_program(places, i) ||
            (is_address && (!places->waits[i] || awaits_memory(places, i))))
            continue;
        if (find_clause(places, i, !is_address, &ignored))
            places->waits[i] = false;
    }
}

bool tbd_script_places_again(struct tbd_script_places *places, struct tbd_query_error *error)
{
    struct tbd_probe_process before;
    bool done;

    if (!tbd_process_read_again(places->process, &before, error))
        return false;
    done = drop_gone(places, &before);
    tbd_process_free(&before);
    if (!done)
        return tbd_query_wrong(error, TBD_NOMEM, 0, 0, "no memory");
    places->fresh = places->now.count;
    if (places->may_wait)
        find_in_new(places);
    return true;
}

size_t tbd_script_places_waiting(const struct tbd_script_places *places)
{
    size_t count = 0;

    for (uint32_t i = 0; i < places->script->where_count; i++)
        count += places->waits[i];
    return count;
}

bool tbd_script_places_polls(const struct tbd_script_places *places)
{
    if (!places->may_wait)
        return false;
    for (uint32_t i = 0; i < places->script->where_count; i++)
        if (places->waits[i] && clause(places, i)->place.kind == TBD_WHERE_ADDRESS)
            return true;
    return !places->loaders;
}

void tbd_script_places_free(struct tbd_script_places *places)
{
    free(places->now.all);
    free(places->gone.all);
}
