// SPDX-License-Identifier: MIT
/* trigger_request.c - see trigger_request.h */
#include "query/triggers/trigger_request.h"

#include "query/places/place_code.h"
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
    struct tbd_query_error *error;
};

/* A function is looked for in the program itself first, then in all modules. */
static bool find_places(struct filling *f, const struct tbd_trigger_wish *wish,
                        struct tbd_probe_places *places)
{
    struct tbd_where own = wish->where;
    struct tbd_query_error ignored = { 0 };

    if (own.kind == TBD_WHERE_ENTRY && !wish->has_module &&
        strlen(f->process->program) < sizeof(own.module)) {
        strcpy(own.module, f->process->program);
        if (tbd_process_find(f->process, &own, places, &ignored))
            return true;
    }
    if (tbd_process_find(f->process, &wish->where, places, f->error))
        return true;
    if (own.kind == TBD_WHERE_ENTRY && !wish->has_module)
        snprintf(f->error->message, sizeof(f->error->message),
                 "no module of the process has a function called '%.100s'", wish->where.name);
    return false;
}

static bool add_place(struct filling *f, const struct tbd_trigger_wish *wish, uint64_t address,
                      uint32_t code)
{
    struct tbd_crash_request *out = f->out;

    if (out->place_count == TBD_TRIGGER_PLACES)
        return tbd_query_wrong(f->error, TBD_USAGE, wish->at, wish->end - wish->at,
                               "there are too many places: %u at most", TBD_TRIGGER_PLACES);
    out->places[out->place_count++] = (struct tbd_trigger_place){ .address = address,
                                                                  .trigger = out->trigger_count,
                                                                  .code = code };
    return true;
}

/* Places where the condition has no meaning, because a variable is not there, are left out. */
static bool add_conditional(struct filling *f, const struct tbd_trigger_wish *wish,
                            const struct tbd_probe_places *places)
{
    bool is_entry = wish->where.kind == TBD_WHERE_ENTRY;
    struct tbd_expr *condition =
        tbd_place_expression(f->process, f->text, wish->condition, wish->end, is_entry, f->error);
    struct tbd_query_error problem = { 0 };
    uint32_t added = 0;
    bool fits = true;

    for (size_t i = 0; condition && fits && i < places->count; i++) {
        uint32_t code = f->code.count;

        if (tbd_place_condition(f->process, condition, places->all[i].address, is_entry, &f->code,
                                &problem) != TBD_OK)
            continue;
        fits = add_place(f, wish, places->all[i].address, code);
        added++;
    }
    if (condition && !added && !f->error->status)
        *f->error = problem;
    tbd_expr_free(condition);
    return condition && fits && added;
}

static bool add_places(struct filling *f, const struct tbd_trigger_wish *wish)
{
    struct tbd_probe_places places = { 0 };
    bool done = find_places(f, wish, &places);

    if (done && wish->condition < wish->end)
        done = add_conditional(f, wish, &places);
    else
        for (size_t i = 0; done && i < places.count; i++)
            done = add_place(f, wish, places.all[i].address, TBD_TRIGGER_ALWAYS);
    free(places.all);
    return done;
}

static bool add_wish(struct filling *f, const struct tbd_trigger_wish *wish)
{
    struct tbd_trigger *trigger = &f->out->triggers[f->out->trigger_count];

    *trigger = (struct tbd_trigger){ .signals = wish->signals, .times = wish->times };
    snprintf(trigger->text, sizeof(trigger->text), "%.*s", (int)(wish->end - wish->at),
             f->text + wish->at);
    if (!wish->signals && !add_places(f, wish))
        return false;
    f->out->trigger_count++;
    return true;
}

bool tbd_trigger_request(struct tbd_probe_process *process, const char *text,
                         struct tbd_crash_request *out, struct tbd_query_error *error)
{
    struct filling f = { .process = process,
                         .text = text,
                         .out = out,
                         .code = { .all = out->code,
                                   .capacity = TBD_TRIGGER_CODE,
                                   .registers = TBD_PROBE_REGISTERS,
                                   .has_vectors = true },
                         .error = error };
    struct tbd_trigger_wishes *wishes = malloc(sizeof(*wishes));
    bool done = wishes ? tbd_trigger_read(text, wishes, error)
                       : tbd_query_wrong(error, TBD_NOMEM, 0, 0, "no memory");

    out->what |= TBD_REQUEST_TRIGGERS;
    out->trigger_count = out->place_count = 0;
    for (uint32_t i = 0; done && i < wishes->count; i++)
        done = add_wish(&f, &wishes->all[i]);
    out->code_count = f.code.count;
    free(wishes);
    return done;
}
