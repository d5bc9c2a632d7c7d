// SPDX-License-Identifier: MIT
/* placing.c - see placing.h
 *
 * PLACING-1  A trap is written after its probe can be found, and its use before that.
 * PLACING-2  A trap is taken away only where its instruction still lies: the library may have gone, and
 *     other code have come. (not checked: clear_one() compares) */
#include "hooks/probes/placing.h"

#include "base/assert.h"
#include "base/layout.h"
#include "base/linux.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/instructions/decoder.h"
#include "hooks/memory/maps.h"
#include "hooks/probes/code_files.h"
#include "hooks/probes/handlers.h"
#include "hooks/probes/jumps.h"
#include "hooks/probes/near_memory.h"
#include "hooks/probes/probe_make.h"
#include "hooks/probes/probe_session.h"
#include "hooks/probes/probe_uses.h"
#include "hooks/probes/stack_walk.h"
#include "patcher/native_patch.h"

#define MAX_RANGES 8192u
#define MAX_PLACED (TBD_PROBE_MAX_USES + TBD_PROBE_PER_PACKET) /* with the guards */

struct code_range {
    uint64_t start, end;
    bool is_fixed; /* of a file, and not to be written to: the program does not change it */
};

static struct code_range ranges[MAX_RANGES];
static uint32_t range_count;
static struct tbd_probe *guards[TBD_PROBE_PER_PACKET];
static uint32_t guard_count;
static struct tbd_probe **placed; /* MAX_PLACED */
static uint32_t placed_count;
static struct tbd_probe **batch; /* as many: that change at once */
static int memory = -1;

/* ---- once ---- */

void tbd_placing_new_keeper(void)
{
    memory = -1;
}

static bool load_decoder(void)
{
    struct tbd_decoder_api api;

    if (tbd_decoder_load(&api, true))
        return false;
    tbd_decode_set_api(&api);
    tbd_decode_init();
    return true;
}

/* What stays when a keeper goes. */
static bool prepare(void)
{
    static bool is_ready;

    if (is_ready)
        return true;
    if (!load_decoder() || !tbd_probe_make_begin() || !tbd_code_files_begin() || !tbd_walk_begin())
        return false;
    placed = tbd_probe_memory(MAX_PLACED * sizeof(struct tbd_probe *));
    batch = tbd_probe_memory(MAX_PLACED * sizeof(struct tbd_probe *));
    is_ready = placed && batch;
    return is_ready;
}

enum tbd_probe_refusal tbd_placing_begin(void)
{
    if (memory >= 0)
        return TBD_PROBE_OK;
    if (!prepare())
        return TBD_PROBE_NO_MEMORY;
    memory = (int)tbd_native_open();
    return memory < 0 ? TBD_PROBE_UNWRITABLE : TBD_PROBE_OK;
}

static bool note_range(void *context, const struct tbd_msg_region *map, const char *path)
{
    (void)context;
    tbd_code_files_note(map, path, memory);
    tbd_near_note_mapped(map->start, map->end);
    if ((map->prot & PROT_EXEC) && range_count < MAX_RANGES)
        ranges[range_count++] =
            (struct code_range){ map->start, map->end, map->inode && !(map->prot & PROT_WRITE) };
    return true;
}

enum tbd_probe_refusal tbd_placing_look(void)
{
    range_count = 0;
    tbd_near_forget_mapped();
    tbd_code_files_look();
    if (!tbd_maps_read(note_range, NULL))
        return TBD_PROBE_NOT_CODE;
    tbd_code_files_publish();
    return TBD_PROBE_OK;
}

static const struct code_range *range_of(uint64_t address)
{
    uint32_t low = 0, high = range_count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (ranges[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < range_count && ranges[low].start <= address ? &ranges[low] : NULL;
}

/* ---- placing ---- */

/* Another probe's instruction goes on at this address. */
static bool is_inside_another(uint64_t address)
{
    for (unsigned i = 1; i < TBD_PROBE_INSN_BYTES; i++) {
        const struct tbd_probe *probe = tbd_probe_find(address - i);

        if (probe && probe->is_placed && probe->step.next > address)
            return true;
    }
    return false;
}

/* Its own instruction goes on over another probe. */
static bool is_over_another(const struct tbd_probe *probe)
{
    for (uint64_t address = probe->step.pc + 1; address < probe->step.next; address++) {
        const struct tbd_probe *other = tbd_probe_find(address);

        if (other && other->is_placed)
            return true;
    }
    return false;
}

/* A jump over the address becomes a trap. */
static void release(uint64_t address)
{
    struct tbd_probe *over = tbd_jump_over(address), *at = tbd_probe_find(address);

    if (over)
        tbd_jumps_take(&over, 1, memory);
    if (at && at->is_jump) /* its code does what its uses were */
        tbd_jumps_take(&at, 1, memory);
}

/* A place has changed: where a jump would reach it, one may fit now. */
static void look_again(uint64_t address)
{
    for (unsigned i = 0; i < TBD_JUMP_BYTES; i++) {
        struct tbd_probe *probe = tbd_probe_find(address - i);

        if (probe)
            probe->looked_at = 0;
    }
}

enum tbd_probe_refusal tbd_placing_put(const struct tbd_probe_place *place)
{
    const struct code_range *range = range_of(place->address);
    struct tbd_probe *probe = NULL;
    enum tbd_probe_refusal refusal;

    if (place->address >= TBD_ENGINE_BASE && place->address < TBD_ENGINE_END)
        return TBD_PROBE_OURS;
    if (place->address >= TBD_USER_END || !range)
        return TBD_PROBE_NOT_CODE;
    release(place->address);
    if (is_inside_another(place->address))
        return TBD_PROBE_NO_INSTRUCTION;
    refusal = tbd_probe_make(memory, place->address, &probe);
    if (refusal != TBD_PROBE_OK || !probe)
        return refusal;
    if (!probe->is_placed && is_over_another(probe))
        return TBD_PROBE_NO_INSTRUCTION;
    probe->may_change = !range->is_fixed;
    look_again(place->address);
    if (!tbd_uses_add(probe, place->code))
        return TBD_PROBE_NO_MEMORY;
    if (probe->is_placed)
        return TBD_PROBE_OK;
    TBD_INVARIANT("PLACING-1", probe->uses && tbd_probe_find(place->address) == probe);
    if (!tbd_native_write(memory, place->address, TBD_NATIVE_TRAP)) {
        tbd_uses_take(probe);
        return TBD_PROBE_UNWRITABLE;
    }
    probe->is_placed = true;
    probe->placed_at = placed_count;
    placed[placed_count++] = probe;
    return TBD_PROBE_OK;
}

/* ---- guards ---- */

enum tbd_probe_refusal tbd_placing_prepare_guard(uint64_t address)
{
    struct tbd_probe *probe = NULL;
    enum tbd_probe_refusal refusal;

    release(address);
    if (address >= TBD_USER_END || !range_of(address) || is_inside_another(address))
        return TBD_PROBE_NOT_CODE;
    refusal = tbd_probe_make(memory, address, &probe);
    if (refusal != TBD_PROBE_OK || !probe)
        return refusal;
    if (probe->step.kind != TBD_STEP_SYSCALL || guard_count == TBD_PROBE_PER_PACKET)
        return TBD_PROBE_UNSUPPORTED;
    guards[guard_count++] = probe;
    return TBD_PROBE_OK;
}

void tbd_placing_guards(void)
{
    for (uint32_t i = 0; i < guard_count; i++) {
        struct tbd_probe *probe = guards[i];

        if (probe->is_placed || !tbd_native_write(memory, probe->step.pc, TBD_NATIVE_TRAP))
            continue;
        probe->is_placed = true;
        probe->placed_at = placed_count;
        placed[placed_count++] = probe;
    }
}

/* ---- taking away ---- */

static void clear_one(struct tbd_probe *probe)
{
    uint8_t now[TBD_PROBE_INSN_BYTES];
    size_t length = probe->step.length;

    if (tbd_native_read(memory, probe->step.pc, now, length) == length &&
        now[0] == TBD_NATIVE_TRAP && memcmp(now + 1, probe->bytes + 1, length - 1) == 0)
        tbd_native_write(memory, probe->step.pc, probe->step.first);
    probe->is_placed = false;
    tbd_uses_take(probe);
}

static bool is_guard(const struct tbd_probe *probe)
{
    for (uint32_t i = 0; i < guard_count; i++)
        if (guards[i] == probe)
            return true;
    return false;
}

/* Somebody has asked for it: it is not only below a jump. */
static bool is_in_list(const struct tbd_probe *probe)
{
    return probe->is_placed && probe->placed_at < placed_count && placed[probe->placed_at] == probe;
}

/* Those of the addresses that have a jump, all at once. */
void tbd_placing_prepare_take(const struct tbd_probe_place *places, uint32_t count)
{
    uint32_t jumps = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct tbd_probe *probe = tbd_probe_find(places[i].address);

        if (probe && probe->is_jump)
            batch[jumps++] = probe;
    }
    tbd_jumps_take(batch, jumps, memory);
}

void tbd_placing_take(uint64_t address)
{
    struct tbd_probe *probe = tbd_probe_find(address);

    if (probe && is_guard(probe)) {
        tbd_uses_take(probe);
        return;
    }
    if (!probe || !is_in_list(probe))
        return;
    clear_one(probe);
    look_again(address);
    placed[probe->placed_at] = placed[--placed_count];
    placed[probe->placed_at]->placed_at = probe->placed_at;
}

/* ---- jumps ---- */

static bool may_jump(const struct tbd_probe *probe)
{
    const struct code_range *range = range_of(probe->step.pc);

    return probe->uses && !probe->is_jump && probe->looked_at != tbd_probe_session.number &&
           !is_guard(probe) && range && range->is_fixed &&
           probe->step.pc + TBD_JUMP_BYTES <= range->end;
}

/* The one in the loader is the consumer's own, if nobody asks for it, too. */
static bool is_asked_for(const struct tbd_probe *probe)
{
    const struct tbd_probe_session *session = &tbd_probe_session;

    for (uint32_t use = probe->uses; use; use = session->uses[use - 1].next)
        if (session->code[session->uses[use - 1].code].op != TBD_PROBE_AWAIT)
            return true;
    return false;
}

uint32_t tbd_placing_jump(void)
{
    uint32_t count = 0, jumps = 0;

    if ((tbd_probe_session.flags & TBD_PROBE_TRAPS) || !tbd_jumps_possible())
        return 0;
    for (uint32_t i = 0; i < placed_count; i++) {
        struct tbd_probe *probe = placed[i];

        if (may_jump(probe) && tbd_jump_make(probe, memory))
            batch[count++] = probe;
        probe->looked_at = tbd_probe_session.number;
    }
    tbd_jumps_put(batch, count, memory);
    for (uint32_t i = 0; i < placed_count; i++)
        jumps += placed[i]->is_jump && is_asked_for(placed[i]);
    return jumps;
}

static void clear_jumps(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < placed_count; i++)
        if (placed[i]->is_jump)
            batch[count++] = placed[i];
    tbd_jumps_take(batch, count, memory);
}

/* A guard goes when no other trap is there that a thread could meet without it; so the first one goes last. */
void tbd_placing_clear(void)
{
    clear_jumps();
    tbd_handlers_end();
    for (uint32_t i = 0; i < placed_count; i++)
        if (!is_guard(placed[i]))
            clear_one(placed[i]);
    for (uint32_t i = guard_count; i > 0; i--)
        if (guards[i - 1]->is_placed)
            clear_one(guards[i - 1]);
    placed_count = guard_count = 0;
}
