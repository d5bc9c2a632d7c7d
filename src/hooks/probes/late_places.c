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

static uint64_t seen; /* changes of mappings at the last look */
static bool is_deaf;  /* nobody answers: nothing is looked for any more */
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

/* Somebody else's request may come first, and is answered, too.  False: the collector does not answer. */
static bool await(struct tbd_thread *thread, struct tbd_crash_look *look, uint32_t wanted)
{
    for (int waited = 0; waited < LOOK_MS; waited += STEP_MS) {
        uint32_t done = __atomic_load_n(&look->done, __ATOMIC_ACQUIRE);

        (void)tbd_triggers_take(thread, NULL, 0); /* the asker reads the answer */
        if (done == wanted)
            return true;
        if (tbd_ring_consumer_died(&tbd_recording.ring))
            return false;
        tbd_sys_futex_wake(&tbd_recording.ring.head->published); /* where the collector sleeps */
        tbd_sys_futex_wait(&look->done, done, STEP_MS);
    }
    return false;
}

void tbd_late_places_look(struct tbd_thread *thread)
{
    struct tbd_crash *crash = tbd_crash_at(0);
    uint32_t wanted;

    if (!crash)
        return;
    seen = tbd_memory.regions.changes;
    copy_wishes(&crash->look);
    wanted = __atomic_add_fetch(&crash->look.wanted, 1, __ATOMIC_RELEASE);
    if (await(thread, &crash->look, wanted))
        return;
    is_deaf = true;
    tbd_say(
        "the collector does not answer: triggers and parts that wait for a module wait in vain");
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
