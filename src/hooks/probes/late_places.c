// SPDX-License-Identifier: MIT
/* late_places.c - see late_places.h */
#include "hooks/probes/late_places.h"

#include "base/fmt.h"
#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/memory/program_memory.h"
#include "hooks/probes/triggers.h"
#include "hooks/stream/crash_parts.h"
#include "hooks/stream/crash_ring.h"
#include "hooks/stream/recording.h"

enum {
    LOOK_MS = 20000,
    STEP_MS = 5,
    SAID_BYTES = 512,
};

static uint64_t seen; /* changes of mappings at the last look that is over */
static bool is_deaf;  /* nobody answers: nothing is looked for any more */
/* The look that is not over: its number, the changes when it was asked for, how long one has waited. */
static uint32_t asked, waited_ms;
static uint64_t asked_at;
static bool has_said;

/* ---- is there something to look for? ---- */

static bool has_code(uint64_t address)
{
    return tbd_regions_has_code(&tbd_memory.regions, address, address + 1);
}

static bool has_waiting(const struct tbd_crash_request *now)
{
    for (uint32_t i = 0; i < now->trigger_count; i++)
        if (now->triggers[i].flags & TBD_TRIGGER_WAITS)
            return true;
    return now->waiting_parts;
}

/* Code that comes to the same addresses later is another's. */
static bool has_lost(const struct tbd_crash_request *now)
{
    for (uint32_t i = 0; i < now->place_count; i++)
        if (!has_code(now->places[i].address))
            return true;
    for (uint32_t i = 0; i < now->range_count; i++)
        if (!has_code(now->ranges[i].start))
            return true;
    return false;
}

bool tbd_late_places_are_due(uint64_t pc)
{
    const struct tbd_crash_request *now = tbd_triggers_now();

    return now->loader && pc == now->loader && !is_deaf &&
           __atomic_load_n(&tbd_memory.regions.changes, __ATOMIC_RELAXED) != seen &&
           (has_waiting(now) || has_lost(now));
}

/* ---- a look ---- */

static void copy_wishes(struct tbd_crash_look *look)
{
    memcpy(look->wishes, tbd_triggers_now()->wishes, sizeof(look->wishes));
    look->wishes[sizeof(look->wishes) - 1] = '\0';
}

static uint32_t done_now(const struct tbd_crash *crash)
{
    return __atomic_load_n(&crash->look.done, __ATOMIC_ACQUIRE);
}

void tbd_late_places_ask(void)
{
    struct tbd_crash *crash = tbd_crash_at(0);

    waited_ms = 0;
    asked_at = tbd_memory.regions.changes;
    if (!crash)
        return;
    copy_wishes(&crash->look);
    asked = __atomic_add_fetch(&crash->look.wanted, 1, __ATOMIC_RELEASE);
}

bool tbd_late_places_are_over(void)
{
    const struct tbd_crash *crash = tbd_crash_at(0);
    bool has_looked = !crash || done_now(crash) == asked;

    if (!has_looked && waited_ms < LOOK_MS && !tbd_ring_consumer_died(&tbd_recording.ring))
        return false;
    seen = asked_at;
    is_deaf = !has_looked;
    if (is_deaf)
        tbd_say(
            "the collector does not answer: triggers and parts that wait for a module wait in vain");
    return true;
}

/* Who posts a request wakes us as well. */
void tbd_late_places_wait(void)
{
    struct tbd_crash *crash = tbd_crash_at(0);
    uint32_t done = crash ? done_now(crash) : 0;

    if (!crash || done == asked)
        return;
    tbd_sys_futex_wake(&tbd_recording.ring.head->published); /* where the collector sleeps */
    if (tbd_sys_futex_wait(&crash->look.done, done, STEP_MS) != 0)
        waited_ms += STEP_MS;
}

/* ---- the end ---- */

/* Those that have this flag, and none of those after it. */
static const char *join(char *out, size_t bytes, uint32_t flag)
{
    const struct tbd_crash_request *now = tbd_triggers_now();
    size_t used = 0;

    out[0] = '\0';
    for (uint32_t i = 0; i < now->trigger_count && used < bytes - 1; i++)
        if (now->triggers[i].flags & flag && now->triggers[i].flags < 2 * flag)
            used +=
                tbd_fmt(out + used, bytes - used, "%s%s", used ? "; " : "", now->triggers[i].text);
    return out;
}

void tbd_late_places_say_missing(void)
{
    char text[SAID_BYTES];

    if (has_said || !tbd_crash_is_on())
        return;
    has_said = true;
    if (join(text, sizeof(text), TBD_TRIGGER_WAITS)[0])
        tbd_say("no module came that has the place of a trigger: %s", text);
    if (join(text, sizeof(text), TBD_TRIGGER_FAILS)[0])
        tbd_say("a trigger has no place in the module that came, or its condition no value: %s",
                text);
    if (tbd_crash_parts_missing(text, sizeof(text)))
        tbd_say("no module came that has a part: %s", text);
}

void tbd_late_places_inherit(void)
{
    const struct tbd_crash_request *now = tbd_triggers_now();

    has_said = true; /* the parent says it */
    tbd_crash_parts_set_ranges(now->ranges, now->range_count);
}
