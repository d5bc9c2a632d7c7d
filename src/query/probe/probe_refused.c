// SPDX-License-Identifier: MIT
/* probe_refused.c - see probe_refused.h */
#include "query/probe/probe_refused.h"

#include "base/safe_stream.h"

#include <stdio.h>
#include <string.h>

#define NAME_BYTES 512

struct left_out {
    size_t count[TBD_PROBE_REFUSALS]; /* of each reason */
    size_t first[TBD_PROBE_REFUSALS]; /* in `now` */
};

/* Such a refusal is about the place, not about the session. */
static bool is_of_place(uint32_t refusal)
{
    switch ((enum tbd_probe_refusal)refusal) {
    case TBD_PROBE_NOT_CODE:
    case TBD_PROBE_NO_INSTRUCTION:
    case TBD_PROBE_RAISES:
    case TBD_PROBE_UNSUPPORTED:
    case TBD_PROBE_OURS:
    case TBD_PROBE_UNWRITABLE: return true;
    default: return false;
    }
}

static void name_place(const struct tbd_script_places *places, size_t index,
                       struct tbd_query_error *error)
{
    char name[NAME_BYTES];

    tbd_process_name(places->process, places->now.all[index].address, name, sizeof(name));
    snprintf(error->hint, sizeof(error->hint), "it is about %.160s", tbd_shown(name));
}

/* All from `first` on; a place that is refused has the reason in `reserved`. */
static bool place_all(struct tbd_probe_client *client, struct tbd_script_places *places,
                      size_t first, struct left_out *out, struct tbd_query_error *error)
{
    struct tbd_probe_places *now = &places->now;
    size_t wrong = 0;

    while (!tbd_client_place(client, now->all + first, now->count - first, &wrong, error)) {
        uint32_t refusal = client->refusal;

        first += wrong;
        if (first < now->count)
            name_place(places, first, error);
        if (!is_of_place(refusal) || first >= now->count)
            return false;
        if (!out->count[refusal]++)
            out->first[refusal] = first;
        now->all[first++].reserved = refusal;
        *error = (struct tbd_query_error){ 0 };
    }
    return true;
}

/* Is something left of each clause that has places? */
static bool are_placed(const struct tbd_script_places *places, struct tbd_query_error *error)
{
    size_t first = 0;

    for (uint32_t i = 0; i < places->script->where_count; i++) {
        size_t end = places->ends[i], at = first;

        while (at < end && places->now.all[at].reserved)
            at++;
        if (at == end && end > first) {
            tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "%s",
                            tbd_client_refusal(places->now.all[first].reserved));
            name_place(places, first, error);
            return false;
        }
        first = end;
    }
    return true;
}

static void say(const struct tbd_script_places *places, const struct left_out *out)
{
    char name[NAME_BYTES];

    for (uint32_t i = 0; i < TBD_PROBE_REFUSALS; i++) {
        if (!out->count[i])
            continue;
        tbd_process_name(places->process, places->now.all[out->first[i]].address, name,
                         sizeof(name));
        fprintf(stderr, "tbd probe: %zu of %zu places are left out: %s (%s%s)\n", out->count[i],
                places->now.count, tbd_client_refusal(i), tbd_shown(name),
                out->count[i] > 1 ? " and others" : "");
    }
}

static void take_out(struct tbd_script_places *places)
{
    size_t kept = 0, fresh = places->fresh;

    for (size_t i = 0; i < places->now.count; i++) {
        if (!places->now.all[i].reserved)
            places->now.all[kept++] = places->now.all[i];
        else
            fresh -= i < places->fresh;
    }
    places->now.count = kept;
    places->fresh = fresh;
}

bool tbd_probes_place(struct tbd_probe_client *client, struct tbd_script_places *places,
                      struct tbd_query_error *error)
{
    struct left_out out = { 0 };

    if (places->now.count > TBD_PROBE_MAX_USES)
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0,
                               "%zu places are too many: a session has at most %u",
                               places->now.count, TBD_PROBE_MAX_USES);
    if (!place_all(client, places, 0, &out, error) || !are_placed(places, error))
        return false;
    say(places, &out);
    take_out(places);
    return true;
}

bool tbd_probes_place_fresh(struct tbd_probe_client *client, struct tbd_script_places *places,
                            struct tbd_query_error *error)
{
    struct left_out out = { 0 };
    bool done = place_all(client, places, places->fresh, &out, error);

    say(places, &out);
    take_out(places);
    return done;
}
