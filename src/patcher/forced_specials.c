// SPDX-License-Identifier: MIT
/* forced_specials.c - see forced_specials.h.  Open addressing, at most half full; single entries
 * are never removed. */
#include "patcher/forced_specials.h"

#define SLOTS (2u * TBD_MAX_FORCED_SPECIALS)

static struct tbd_forced_special table[SLOTS];
static size_t count;

static uint32_t place_of(uint64_t pc)
{
    uint32_t place = (uint32_t)((pc * 0x9e3779b97f4a7c15ull) >> 40) % SLOTS;

    while (table[place].pc && table[place].pc != pc)
        place = (place + 1) % SLOTS;
    return place;
}

bool tbd_forced_specials_has(uint64_t pc)
{
    return count && table[place_of(pc)].pc == pc;
}

struct tbd_forced_special *tbd_forced_specials_find(uint64_t pc)
{
    struct tbd_forced_special *forced = &table[place_of(pc)];

    return count && forced->pc ? forced : NULL;
}

bool tbd_forced_specials_add(uint64_t pc)
{
    struct tbd_forced_special *forced = &table[place_of(pc)];

    if (forced->pc || !pc)
        return true;
    if (count == TBD_MAX_FORCED_SPECIALS)
        return false;
    *forced = (struct tbd_forced_special){ .pc = pc };
    count++;
    return true;
}

size_t tbd_forced_specials_count(void)
{
    return count;
}

size_t tbd_forced_specials_list(uint64_t *out)
{
    size_t found = 0;

    for (uint32_t n = 0; n < SLOTS && found < count; n++)
        if (table[n].pc)
            out[found++] = table[n].pc;
    return found;
}

void tbd_forced_specials_clear(void)
{
    for (uint32_t n = 0; n < SLOTS && count; n++)
        table[n] = (struct tbd_forced_special){ 0 };
    count = 0;
}
