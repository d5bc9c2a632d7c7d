// SPDX-License-Identifier: MIT
/* trigger_request.c - see trigger_request.h */
#include "query/triggers/trigger_request.h"

#include "query/places/place_code.h"
#include "query/triggers/load_range.h"
#include "query/triggers/trigger_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct filling {
    struct tbd_probe_process *process;
    const char *text;
    struct tbd_crash_request *out;
    struct tbd_place_code code;
    enum tbd_trigger_absent absent;
    const struct tbd_crash *crash;
    struct tbd_query_error *error;
    struct tbd_query_error value_error; /* why what is to be recorded has no address there */
    bool has_values;                    /* it has one at some place */
};

static bool is_entry(const struct tbd_trigger_wish *wish)
{
    return wish->where.kind == TBD_WHERE_ENTRY && wish->where.number == 0;
}

/* A function is looked for in the program itself first, then in all modules. */
static bool find_places(struct filling *f, const struct tbd_trigger_wish *wish,
                        struct tbd_probe_places *places)
{
    struct tbd_where own = wish->where;
    struct tbd_query_error problem = { 0 };

    if (own.kind == TBD_WHERE_ENTRY && !wish->has_module &&
        strlen(f->process->program) < sizeof(own.module)) {
        strcpy(own.module, f->process->program);
        if (tbd_process_find(f->process, &own, places, &problem))
            return true;
        if (problem.status == TBD_SYSTEM) { /* it has the function, but not that instruction */
            *f->error = problem;
            return false;
        }
    }
    if (tbd_process_find(f->process, &wish->where, places, f->error))
        return true;
    if (own.kind == TBD_WHERE_ENTRY && !wish->has_module && f->error->status == TBD_NOTFOUND)
        snprintf(f->error->message, sizeof(f->error->message),
                 "no module of the process has a function called '%.100s'", wish->where.name);
    return false;
}

/* The code for what an expression made of what is recorded has at the place; TBD_TRIGGER_ALWAYS: it has nothing, because it is not in
 * memory there, or not there at all. */
static uint32_t value_code(struct filling *f, const struct tbd_trigger_wish *wish, uint64_t address,
                           const char *before)
{
    char text[TBD_CRASH_WISHES + 16];
    size_t first = strlen(before);
    uint32_t code = f->code.count;
    struct tbd_query_error *problem = &f->value_error;
    struct tbd_expr *expr;
    enum tbd_status status;

    *problem = (struct tbd_query_error){ 0 };
    snprintf(text, sizeof(text), "%s(%.*s)", before, (int)(wish->value_end - wish->value),
             f->text + wish->value);
    expr = tbd_place_expression(f->process, text, 0, strlen(text), is_entry(wish), problem);
    status = expr == NULL ? TBD_SYNTAX
                          : tbd_place_condition(f->process, expr, address, is_entry(wish), &f->code,
                                                problem);
    tbd_expr_free(expr);
    problem->at = problem->at > first ? problem->at - first - 1 + wish->value : wish->value;
    return status == TBD_OK ? code : TBD_TRIGGER_ALWAYS;
}

static bool follows_from_registers(struct filling *f, const struct tbd_trigger_wish *wish,
                                   uint64_t address)
{
    uint32_t before = f->code.count;
    bool follows = value_code(f, wish, address, "") != TBD_TRIGGER_ALWAYS;

    f->code.count = before;
    return follows;
}

static bool add_place(struct filling *f, const struct tbd_trigger_wish *wish, uint64_t address,
                      uint32_t code)
{
    struct tbd_crash_request *out = f->out;
    struct tbd_trigger_place *place;

    if (out->place_count == TBD_TRIGGER_PLACES)
        return tbd_query_wrong(f->error, TBD_USAGE, wish->at, wish->end - wish->at,
                               "there are too many places: %u at most", TBD_TRIGGER_PLACES);
    place = &out->places[out->place_count++];
    *place = (struct tbd_trigger_place){ .address = address,
                                         .trigger = out->trigger_count,
                                         .code = code,
                                         .value = TBD_TRIGGER_ALWAYS,
                                         .size = TBD_TRIGGER_ALWAYS };
    if (wish->value == wish->value_end)
        return true;
    place->size = value_code(f, wish, address, "sizeof");
    place->value = value_code(f, wish, address, "&");
    f->has_values |= place->value != TBD_TRIGGER_ALWAYS || follows_from_registers(f, wish, address);
    return true;
}

/* Places where the condition has no meaning, because a variable is not there, are left out. */
static bool add_conditional(struct filling *f, const struct tbd_trigger_wish *wish,
                            const struct tbd_probe_places *places)
{
    struct tbd_expr *condition = tbd_place_expression(f->process, f->text, wish->condition,
                                                      wish->end, is_entry(wish), f->error);
    struct tbd_query_error problem = { 0 };
    uint32_t added = 0;
    bool fits = true;

    for (size_t i = 0; condition && fits && i < places->count; i++) {
        uint32_t code = f->code.count;

        if (tbd_place_condition(f->process, condition, places->all[i].address, is_entry(wish),
                                &f->code, &problem) != TBD_OK)
            continue;
        fits = add_place(f, wish, places->all[i].address, code);
        added++;
    }
    if (condition && !added && !f->error->status)
        *f->error = problem;
    tbd_expr_free(condition);
    return condition && fits && added;
}

static bool add_loads(struct filling *f, const struct tbd_trigger_wish *wish)
{
    struct tbd_trigger_loads *loads = &f->out->loads[f->out->load_count];

    if (f->out->load_count == TBD_TRIGGER_LOADS)
        return tbd_query_wrong(f->error, TBD_USAGE, wish->at, wish->end - wish->at,
                               "there is memory of too many kinds: %u at most", TBD_TRIGGER_LOADS);
    if (!tbd_load_range(f->process, f->text, wish->range, wish->range_end, loads, f->error))
        return false;
    loads->trigger = f->out->trigger_count;
    f->out->load_count++;
    return true;
}

static bool add_places(struct filling *f, const struct tbd_trigger_wish *wish)
{
    struct tbd_probe_places places = { 0 };
    bool done;

    if (wish->range < wish->range_end)
        return add_loads(f, wish);
    done = find_places(f, wish, &places);

    f->has_values = wish->value == wish->value_end;
    if (done && wish->condition < wish->end)
        done = add_conditional(f, wish, &places);
    else
        for (size_t i = 0; done && i < places.count; i++)
            done = add_place(f, wish, places.all[i].address, TBD_TRIGGER_ALWAYS);
    if (done && !f->has_values) {
        *f->error = f->value_error;
        done = false;
    }
    free(places.all);
    return done;
}

/* An address that is no code any more would have the whole request refused. */
static bool has_gone(const struct filling *f, const struct tbd_trigger_wish *wish)
{
    return f->absent == TBD_ABSENT_FITS && wish->where.kind == TBD_WHERE_ADDRESS &&
           !tbd_process_has_code(f->process, wish->where.number);
}

/* It has no place now: TBD_TRIGGER_*, or 0: that is an error. */
static uint32_t flags_without_place(struct filling *f, const struct tbd_trigger_wish *wish)
{
    bool waits = f->absent != TBD_ABSENT_FAILS && f->out->loader &&
                 (f->error->status == TBD_NOTFOUND || has_gone(f, wish));

    if (!waits && f->absent != TBD_ABSENT_FITS)
        return 0;
    *f->error = (struct tbd_query_error){ 0 };
    return waits ? TBD_TRIGGER_WAITS : TBD_TRIGGER_FAILS;
}

/* What a name after `with` stands for; 0: nothing. */
static uint32_t kept_as(const struct tbd_crash *crash, const char *name, size_t length)
{
    if (length == 5 && memcmp(name, "rings", 5) == 0)
        return TBD_CRASH_KEEPS_RINGS;
    for (uint32_t i = 0; i < TBD_CRASH_PARTS; i++) {
        const struct tbd_crash_part *part = &crash->parts[i];

        if (part->capacity && length < sizeof(part->name) &&
            memcmp(part->name, name, length) == 0 && !part->name[length])
            return 1u << i;
    }
    return 0;
}

static bool find_kept(struct filling *f, const struct tbd_trigger_wish *wish, uint32_t *out)
{
    *out = 0;
    for (size_t at = wish->parts; at < wish->parts_end;) {
        size_t length = strcspn(f->text + at, " \t\n;");
        uint32_t bit = kept_as(f->crash, f->text + at, length);

        if (!bit) {
            strcpy(f->error->hint, "tbd crash --parts=NAME, or rings: those of the threads");
            return tbd_query_wrong(f->error, TBD_USAGE, at, length,
                                   "the program was not started with this part");
        }
        *out |= bit;
        at += length;
        at += strspn(f->text + at, " \t\n");
    }
    return true;
}

static bool add_wish(struct filling *f, const struct tbd_trigger_wish *wish)
{
    struct tbd_trigger *trigger = &f->out->triggers[f->out->trigger_count];
    uint32_t places = f->out->place_count, code = f->code.count;

    *trigger = (struct tbd_trigger){ .signals = wish->signals,
                                     .times = wish->times,
                                     .flags = wish->records ? TBD_TRIGGER_RECORDS : 0 };
    if (wish->records && f->crash->value_slots == 0) {
        strcpy(f->error->hint, "tbd crash --record=1, or a trigger that records at the start");
        return tbd_query_wrong(f->error, TBD_USAGE, wish->at, wish->end - wish->at,
                               "the program was not started with space for what is recorded");
    }
    snprintf(trigger->text, sizeof(trigger->text), "%.*s", (int)(wish->end - wish->at),
             f->text + wish->at);
    if (!find_kept(f, wish, &trigger->keeps))
        return false;
    if (!wish->signals && (has_gone(f, wish) || !add_places(f, wish))) {
        uint32_t flags = flags_without_place(f, wish);

        f->out->place_count = places;
        f->code.count = code;
        if (!flags)
            return false;
        trigger->flags |= flags;
    }
    f->out->trigger_count++;
    return true;
}

uint64_t tbd_trigger_loader(struct tbd_probe_process *process)
{
    static const char *const loaders[] = { "ld-linux*", "ld-musl*" };
    struct tbd_probe_places places = { 0 };
    uint64_t address = 0;

    for (size_t i = 0; i < sizeof(loaders) / sizeof(loaders[0]) && !address; i++) {
        struct tbd_where where = { .kind = TBD_WHERE_ENTRY };
        struct tbd_query_error ignored = { 0 };

        strcpy(where.module, loaders[i]);
        strcpy(where.name, "_dl_debug_state");
        if (tbd_process_find(process, &where, &places, &ignored) && places.count)
            address = places.all[0].address;
    }
    free(places.all);
    return address;
}

bool tbd_trigger_request(struct tbd_probe_process *process, const char *text,
                         enum tbd_trigger_absent absent, const struct tbd_crash *crash,
                         struct tbd_crash_request *out, struct tbd_query_error *error)
{
    struct filling f = { .process = process,
                         .text = text,
                         .out = out,
                         .code = { .all = out->code,
                                   .capacity = TBD_TRIGGER_CODE,
                                   .registers = TBD_PROBE_REGISTERS,
                                   .has_vectors = true },
                         .absent = absent,
                         .crash = crash,
                         .error = error };
    struct tbd_trigger_wishes *wishes = malloc(sizeof(*wishes));
    bool done = strlen(text) >= sizeof(out->wishes)
                    ? tbd_query_wrong(error, TBD_USAGE, 0, 0,
                                      "the triggers' text is too long: %u bytes at most",
                                      TBD_CRASH_WISHES - 1)
                : wishes ? tbd_trigger_read(text, wishes, error)
                         : tbd_query_wrong(error, TBD_NOMEM, 0, 0, "no memory");

    out->what |= TBD_REQUEST_TRIGGERS;
    out->trigger_count = out->place_count = out->load_count = 0;
    if (done)
        strcpy(out->wishes, text);
    for (uint32_t i = 0; done && i < wishes->count; i++)
        done = add_wish(&f, &wishes->all[i]);
    out->code_count = f.code.count;
    free(wishes);
    return done;
}
