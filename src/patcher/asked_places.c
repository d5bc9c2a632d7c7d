// SPDX-License-Identifier: MIT
/* asked_places.c - see asked_places.h */
#include "patcher/asked_places.h"

#include "base/binary_search.h"
#include "base/string.h"

static uint64_t table[TBD_MAX_ASKED_PLACES];
static size_t count;
static const struct tbd_asked_state *state;

static size_t index_of(uint64_t pc)
{
    return TBD_COUNT_BEFORE(i, count, table[i] < pc);
}

const struct tbd_asked_state *tbd_asked_places_state(void)
{
    return state;
}

void tbd_asked_places_set_state(const struct tbd_asked_state *given)
{
    state = given;
}

bool tbd_asked_places_has(uint64_t pc)
{
    size_t at;

    if (!count)
        return false;
    at = index_of(pc);
    return at < count && table[at] == pc;
}

void tbd_asked_places_set(const uint64_t *places, size_t wanted)
{
    count = 0;
    for (size_t i = 0; i < wanted && count < TBD_MAX_ASKED_PLACES; i++) {
        size_t at = index_of(places[i]);

        if (at < count && table[at] == places[i])
            continue;
        memmove(table + at + 1, table + at, (count - at) * sizeof(*table));
        table[at] = places[i];
        count++;
    }
}

size_t tbd_asked_places_list(uint64_t *out)
{
    memcpy(out, table, count * sizeof(*table));
    return count;
}
