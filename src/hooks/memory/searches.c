// SPDX-License-Identifier: MIT
/* searches.c - see searches.h */
#include "hooks/memory/searches.h"

enum { SEARCHES = 64, MOST_LEFT_OUT = 1 << 12 };

struct past_search {
    uint64_t place;
    uint64_t bytes;
    uint32_t wait; /* how many are left out after the last one; 0: it has found space */
    uint32_t left; /* of them */
};

/* By a hash; one that takes another's place is a search too many at most. */
static struct past_search searches[SEARCHES];

static uint64_t place_of(uint64_t pc)
{
    return pc >> 27;
}

static struct past_search *past_of(uint64_t pc, uint64_t bytes)
{
    return &searches[(place_of(pc) * 7 + bytes / 65536 % 61) % SEARCHES];
}

static bool is_of(const struct past_search *search, uint64_t pc, uint64_t bytes)
{
    return search->place == place_of(pc) && search->bytes == bytes;
}

bool tbd_searches_may_begin(uint64_t pc, uint64_t bytes)
{
    struct past_search *search = past_of(pc, bytes);

    if (!is_of(search, pc, bytes) || !search->left)
        return true;
    search->left--;
    return false;
}

void tbd_searches_note(uint64_t pc, uint64_t bytes, bool has_found)
{
    struct past_search *search = past_of(pc, bytes);
    uint32_t wait = is_of(search, pc, bytes) ? search->wait * 2 : 0;

    if (has_found)
        wait = 0;
    else if (!wait)
        wait = 1;
    else if (wait > MOST_LEFT_OUT)
        wait = MOST_LEFT_OUT;
    *search = (struct past_search){ place_of(pc), bytes, wait, wait };
}
