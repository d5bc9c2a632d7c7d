// SPDX-License-Identifier: MIT
/* triggers.c - see triggers.h
 *
 * A request is hostile: everybody who may write to the rings' memory can post one.  It is copied, and the copy
 * checked. */
#include "hooks/probes/triggers.h"

#include "base/assert.h"
#include "base/fmt.h"
#include "base/layout.h"
#include "base/linux_abi.h"
#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/probes/probe_code.h"
#include "hooks/stream/crash_parts.h"
#include "hooks/stream/crash_ring.h"
#include "hooks/stream/value_slots.h"
#include "hooks/threads/free_threads.h"
#include "patcher/asked_loads.h"
#include "patcher/asked_places.h"
#include "patcher/native_step.h"
#include "patcher/patcher.h"

static struct tbd_crash_request now, wanted;

/* ---- a request ---- */

static bool is_code(uint64_t address)
{
    const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, address);

    return region && region->map.prot & PROT_EXEC;
}

static bool has_right_code(const struct tbd_crash_request *request)
{
    if (request->code_count > TBD_TRIGGER_CODE)
        return false;
    for (uint32_t i = 0; i < request->code_count; i++)
        if (!tbd_probe_only_computes(request->code[i].op))
            return false;
    return !request->code_count ||
           tbd_probe_check_code(request->code, request->code_count, NULL, 0) == request->code_count;
}

static bool is_code_index(const struct tbd_crash_request *request, uint32_t code)
{
    return code == TBD_TRIGGER_ALWAYS || code < request->code_count;
}

static bool has_right_places(struct tbd_crash_request *request)
{
    if (request->place_count > TBD_TRIGGER_PLACES || (request->loader && !is_code(request->loader)))
        return false;
    for (uint32_t i = 0; i < request->place_count; i++) {
        const struct tbd_trigger_place *place = &request->places[i];

        request->refused = i + 1;
        if (!is_code(place->address) || place->trigger >= request->trigger_count ||
            !is_code_index(request, place->code) || !is_code_index(request, place->value) ||
            !is_code_index(request, place->size))
            return false;
    }
    request->refused = 0;
    return true;
}

static bool has_right_loads(const struct tbd_crash_request *request)
{
    if (request->load_count > TBD_TRIGGER_LOADS)
        return false;
    for (uint32_t i = 0; i < request->load_count; i++) {
        const struct tbd_trigger_loads *loads = &request->loads[i];

        if (loads->trigger >= request->trigger_count || loads->from < TBD_PAGE_SIZE ||
            loads->from >= loads->to || loads->to - loads->from > TBD_TRIGGER_LOADS_BYTES)
            return false;
    }
    return true;
}

static bool is_right(struct tbd_crash_request *request)
{
    if (request->trigger_count > TBD_TRIGGER_MAX || request->range_count > TBD_PART_RANGES ||
        !has_right_code(request) || !has_right_places(request) || !has_right_loads(request))
        return false;
    for (uint32_t i = 0; i < request->trigger_count; i++) {
        request->triggers[i].text[TBD_TRIGGER_TEXT_BYTES - 1] = '\0';
        if (request->triggers[i].times > TBD_TRIGGER_TIMES)
            return false;
    }
    request->left_out[TBD_CRASH_PART_NAME - 1] = '\0';
    request->wishes[TBD_CRASH_WISHES - 1] = '\0';
    return true;
}

/* ---- what follows from it ---- */

static void forget_code(struct tbd_thread *thread, const uint64_t *places, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tbd_patcher_flush_range(thread, places[i], places[i] + 1);
}

static void put_places(struct tbd_thread *thread)
{
    uint64_t places[TBD_MAX_ASKED_PLACES];
    size_t before = tbd_asked_places_list(places);

    _Static_assert(TBD_TRIGGER_PLACES < TBD_MAX_ASKED_PLACES, "all fit, and the loader's");
    forget_code(thread, places, before);
    for (uint32_t i = 0; i < now.place_count; i++)
        places[i] = now.places[i].address;
    places[now.place_count] = now.loader;
    tbd_asked_places_set(places, now.place_count + (now.loader != 0));
    forget_code(thread, places, now.place_count + (now.loader != 0));
}

static bool has_same_loads(void)
{
    return wanted.load_count == now.load_count &&
           memcmp(wanted.loads, now.loads, now.load_count * sizeof(*now.loads)) == 0;
}

/* All code is made again, so only if they are others. */
static void put_loads(struct tbd_thread *thread)
{
    struct tbd_asked_range ranges[TBD_TRIGGER_LOADS];

    _Static_assert(TBD_TRIGGER_LOADS <= TBD_ASKED_LOADS &&
                       TBD_TRIGGER_LOADS_BYTES <= TBD_ASKED_LOADS_BYTES,
                   "the translator takes all");
    if (has_same_loads())
        return;
    now.load_count = wanted.load_count;
    memcpy(now.loads, wanted.loads, sizeof(now.loads));
    for (uint32_t i = 0; i < now.load_count; i++)
        ranges[i] = (struct tbd_asked_range){ now.loads[i].from, now.loads[i].to };
    tbd_patcher_ask_loads(thread, ranges, now.load_count);
}

static bool leaves_out_more(void)
{
    return wanted.left_out[0] && strcmp(wanted.left_out, now.left_out) != 0;
}

/* Once, however often a module comes back.  The asker of the first request has said it itself. */
static void say_left_out(void)
{
    if (!leaves_out_more())
        return;
    if (wanted.what & TBD_REQUEST_AGAIN)
        tbd_say(
            "the parts have too many functions, or pieces of code: %u at most; not all of %s is "
            "kept",
            TBD_PART_RANGES, wanted.left_out);
    memcpy(now.left_out, wanted.left_out, sizeof(now.left_out));
}

static void take_parts(void)
{
    say_left_out();
    now.range_count = wanted.range_count;
    now.waiting_parts = wanted.waiting_parts;
    memcpy(now.ranges, wanted.ranges, sizeof(now.ranges));
    tbd_crash_parts_set_ranges(now.ranges, now.range_count);
}

static void note_found(void)
{
    for (uint32_t i = 0; i < wanted.trigger_count; i++)
        if (!(wanted.triggers[i].flags & (TBD_TRIGGER_WAITS | TBD_TRIGGER_FAILS)))
            wanted.triggers[i].flags |= TBD_TRIGGER_FOUND;
}

/* A trigger that is the same as before has the dumps left that it had, and has been where it was. */
static void keep_times(void)
{
    for (uint32_t i = 0; i < wanted.trigger_count && i < now.trigger_count; i++)
        if (strcmp(wanted.triggers[i].text, now.triggers[i].text) == 0) {
            wanted.triggers[i].times = now.triggers[i].times;
            wanted.triggers[i].flags |=
                now.triggers[i].flags & (TBD_TRIGGER_FOUND | TBD_TRIGGER_FAILS);
        }
}

/* Others came in between, and found their places themselves. */
static bool is_late(void)
{
    return wanted.what & TBD_REQUEST_AGAIN && strcmp(wanted.wishes, now.wishes) != 0;
}

static void complete_flags(void)
{
    note_found();
    if (wanted.what & TBD_REQUEST_AGAIN)
        keep_times();
}

static void take_triggers(struct tbd_thread *thread)
{
    if (is_late())
        return;
    complete_flags();
    now.trigger_count = wanted.trigger_count;
    now.place_count = wanted.place_count;
    now.code_count = wanted.code_count;
    memcpy(now.triggers, wanted.triggers, sizeof(now.triggers));
    memcpy(now.places, wanted.places, sizeof(now.places));
    memcpy(now.code, wanted.code, sizeof(now.code));
    memcpy(now.wishes, wanted.wishes, sizeof(now.wishes));
    put_places(thread);
    put_loads(thread);
}

static bool has_same_triggers(void)
{
    if (!(wanted.what & TBD_REQUEST_TRIGGERS) || is_late())
        return true;
    if (wanted.trigger_count != now.trigger_count || wanted.place_count != now.place_count ||
        wanted.code_count != now.code_count || !has_same_loads())
        return false;
    complete_flags();
    return memcmp(wanted.triggers, now.triggers, now.trigger_count * sizeof(*now.triggers)) == 0 &&
           memcmp(wanted.places, now.places, now.place_count * sizeof(*now.places)) == 0 &&
           memcmp(wanted.code, now.code, now.code_count * sizeof(*now.code)) == 0;
}

static bool has_same_parts(void)
{
    return !(wanted.what & TBD_REQUEST_PARTS) ||
           (wanted.waiting_parts == now.waiting_parts && wanted.range_count == now.range_count &&
            !leaves_out_more() &&
            memcmp(wanted.ranges, now.ranges, now.range_count * sizeof(*now.ranges)) == 0);
}

/* Modules came and went, and had nothing of what is waited for. */
static bool is_same(void)
{
    const uint32_t about_places = TBD_REQUEST_AGAIN | TBD_REQUEST_TRIGGERS | TBD_REQUEST_PARTS;

    return wanted.what & TBD_REQUEST_AGAIN && !(wanted.what & ~about_places) &&
           wanted.loader == now.loader && has_same_triggers() && has_same_parts();
}

static uint64_t *entry_of(uint32_t index)
{
    struct tbd_saved_context *saved = tbd_saved_context_at(index);

    return saved->gs_base ? &tbd_free_block_of(saved)->entry_next : NULL;
}

/* All threads' registers are due. */
static void begin_recording(void)
{
    for (uint32_t i = 0; i < tbd_threads.saved_contexts; i++) {
        struct tbd_saved_context *saved = tbd_saved_context_at(i);

        if (saved->gs_base)
            tbd_crash_values_due(tbd_free_block_of(saved));
    }
}

static bool turn_dial(struct tbd_thread *thread)
{
    if (!tbd_crash_values_set(wanted.record))
        return false;
    tbd_patcher_record(thread, tbd_record_dials[wanted.record].entries);
    return true;
}

static bool carry_out(struct tbd_thread *thread)
{
    if (!is_right(&wanted) || (wanted.what & TBD_REQUEST_RECORD && !turn_dial(thread)))
        return false;
    if (wanted.what & TBD_REQUEST_RING &&
        !tbd_crash_resize(wanted.ring_bytes, tbd_threads.saved_contexts, entry_of))
        return false;
    if (wanted.what & (TBD_REQUEST_RING | TBD_REQUEST_RECORD))
        begin_recording();
    if (wanted.loader && wanted.loader != now.loader) {
        now.loader = wanted.loader;
        put_places(thread);
    }
    if (wanted.what & TBD_REQUEST_PARTS)
        take_parts();
    if (wanted.what & TBD_REQUEST_TRIGGERS)
        take_triggers(thread);
    return true;
}

static void answer(struct tbd_crash_request *request, enum tbd_request_state state)
{
    request->refused = wanted.refused;
    request->ring_bytes = tbd_crash_ring_bytes();
    __atomic_store_n(&request->state, state, __ATOMIC_RELEASE);
    tbd_sys_futex_wake(&request->state);
}

static void say_why(char *why, size_t bytes)
{
    if (wanted.refused)
        tbd_fmt(why, bytes, "there is no code at 0x%lx", wanted.places[wanted.refused - 1].address);
    else
        tbd_fmt(why, bytes, "the request is not as this version makes it");
}

/* Copies what is posted.  NULL: nothing is. */
static struct tbd_crash_request *read_posted(void)
{
    struct tbd_crash_request *request = tbd_crash_at(TBD_TRIGGER_AT);

    if (!request || __atomic_load_n(&request->state, __ATOMIC_ACQUIRE) != TBD_REQUEST_POSTED)
        return NULL;
    memcpy(&wanted, request, sizeof(wanted));
    wanted.refused = 0;
    return request;
}

bool tbd_triggers_are_due(void)
{
    struct tbd_crash_request *request = read_posted();

    if (!request)
        return false;
    if (!is_right(&wanted) || !is_same())
        return true;
    answer(request, TBD_REQUEST_DONE);
    return false;
}

bool tbd_triggers_take(struct tbd_thread *thread, char *why, size_t bytes)
{
    struct tbd_crash_request *request = read_posted();
    bool done;

    if (!request)
        return true;
    done = carry_out(thread);
    if (!done && why)
        say_why(why, bytes);
    answer(request, done ? TBD_REQUEST_DONE : TBD_REQUEST_REFUSED);
    return done;
}

const struct tbd_crash_request *tbd_triggers_now(void)
{
    return &now;
}

/* ---- is it time for a dump? ---- */

static bool read_program(void *out, uint64_t address, size_t bytes)
{
    return tbd_load_from_program(out, address, bytes);
}

/* False: it cannot be computed. */
static bool compute(uint32_t code, const struct tbd_regs *regs, uint64_t *out)
{
    uint64_t context[TBD_NATIVE_WORDS] = { 0 };
    struct tbd_probe_hit hit = { .context = context, .pc = regs->rip, .read = read_program };

    for (unsigned r = 0; r < TBD_REG_COUNT; r++)
        context[tbd_native_place(r)] = regs->gpr[r];
    context[TBD_NATIVE_RFLAGS] = regs->rflags;
    return tbd_probe_value(now.code, now.code_count, code, &hit, out);
}

static bool is_met(const struct tbd_trigger_place *place, const struct tbd_regs *regs)
{
    uint64_t value = 0;

    return place->code == TBD_TRIGGER_ALWAYS || (compute(place->code, regs, &value) && value);
}

static bool is_recording(uint32_t trigger)
{
    return now.triggers[trigger].flags & TBD_TRIGGER_RECORDS;
}

static bool has_dumps_left(uint32_t trigger)
{
    TBD_INVARIANT("TRIGGERS-1", trigger < now.trigger_count);
    return __atomic_load_n(&now.triggers[trigger].times, __ATOMIC_RELAXED);
}

int32_t tbd_triggers_at(const struct tbd_regs *regs)
{
    for (uint32_t i = 0; i < now.place_count; i++) {
        const struct tbd_trigger_place *place = &now.places[i];

        if (place->address == regs->rip && has_dumps_left(place->trigger) &&
            !is_recording(place->trigger) && is_met(place, regs))
            return (int32_t)place->trigger;
    }
    return TBD_TRIGGER_NONE;
}

void tbd_triggers_record(struct tbd_thread *thread, uint32_t index)
{
    bool is_first = true;

    for (uint32_t i = 0; i < now.place_count; i++) {
        const struct tbd_trigger_place *place = &now.places[i];
        uint64_t address = 0, bytes = 0;

        if (place->address != thread->regs.rip || !is_recording(place->trigger) ||
            !is_met(place, &thread->regs))
            continue;
        if (is_first)
            tbd_crash_note_probe(thread, index);
        is_first = false;
        if (place->value != TBD_TRIGGER_ALWAYS && place->size != TBD_TRIGGER_ALWAYS &&
            compute(place->value, &thread->regs, &address) &&
            compute(place->size, &thread->regs, &bytes))
            tbd_crash_note_bytes(thread, index, address, bytes);
    }
}

void tbd_triggers_record_load(struct tbd_thread *thread, uint32_t index, uint64_t address,
                              uint64_t bytes)
{
    for (uint32_t i = 0; i < now.load_count; i++) {
        if (address >= now.loads[i].to || address + bytes <= now.loads[i].from)
            continue;
        tbd_crash_note_probe(thread, index);
        tbd_crash_note_bytes(thread, index, address, bytes);
        return;
    }
}

int32_t tbd_triggers_for_signal(uint32_t signo)
{
    for (uint32_t i = 0; i < now.trigger_count; i++)
        if (now.triggers[i].signals >> (signo - 1) & 1 && has_dumps_left(i))
            return (int32_t)i;
    return TBD_TRIGGER_NONE;
}

bool tbd_triggers_use(uint32_t trigger, char *why, size_t bytes, uint32_t *keeps)
{
    if (trigger >= now.trigger_count || !now.triggers[trigger].times)
        return false;
    now.triggers[trigger].times--;
    *keeps = now.triggers[trigger].keeps;
    tbd_fmt(why, bytes, "trigger: %s; the program went on", now.triggers[trigger].text);
    return true;
}
