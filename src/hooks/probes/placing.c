// SPDX-License-Identifier: MIT
/* placing.c - see placing.h
 *
 * PLACING-1  A trap is written after its probe can be found, and its use before that.
 * PLACING-2  A trap is taken away only where its instruction still lies: the library may have gone, and
 *     other code have come. (not checked: clear_one() compares) */
#include "hooks/probes/placing.h"

#include "base/arena.h"
#include "base/assert.h"
#include "base/layout.h"
#include "base/linux.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/instructions/decoder.h"
#include "hooks/memory/maps.h"
#include "hooks/probes/probe_session.h"
#include "hooks/probes/probe_table.h"
#include "patcher/native_patch.h"

#define STUBS_BYTES  (256ull << 20)
#define PROBES_BYTES (128ull << 20)
#define MAX_RANGES   8192u
#define TLS_BYTES    (2 * TBD_PAGE_SIZE)

struct code_range {
    uint64_t start, end;
};

static struct tbd_arena stubs, probes;
static struct code_range ranges[MAX_RANGES];
static uint32_t range_count;
static struct tbd_probe *guards[TBD_PROBE_PER_PACKET];
static uint32_t guard_count;
static struct tbd_probe **placed; /* TBD_PROBE_MAX_USES */
static uint32_t placed_count;
static int memory = -1;

/* ---- once ---- */

/* The decoder looks at fs:0x28.  The keeper's fs is its own. */
static bool load_decoder(void)
{
    struct tbd_decoder_api api;
    struct tbd_arena tls;

    if (!tbd_arena_init(&tls, TLS_BYTES) || tbd_decoder_load(&api))
        return false;
    tbd_sys3(__NR_arch_prctl, ARCH_SET_FS, tbd_sys_pointer(tls.start) + TBD_PAGE_SIZE, 0);
    tbd_decode_set_api(&api);
    tbd_decode_init();
    return true;
}

enum tbd_probe_refusal tbd_placing_begin(void)
{
    static bool is_ready;

    if (is_ready)
        return TBD_PROBE_OK;
    if (!load_decoder() || !tbd_arena_init(&stubs, STUBS_BYTES) ||
        !tbd_arena_init(&probes, PROBES_BYTES) ||
        tbd_sys_failed(tbd_sys_mprotect(tbd_sys_pointer(stubs.start), STUBS_BYTES, TBD_PROT_RWX)))
        return TBD_PROBE_NO_MEMORY;
    placed = (struct tbd_probe **)tbd_arena_alloc(
        &probes, TBD_PROBE_MAX_USES * sizeof(struct tbd_probe *), _Alignof(struct tbd_probe *));
    memory = (int)tbd_native_open();
    if (memory < 0)
        return TBD_PROBE_UNWRITABLE;
    is_ready = true;
    return TBD_PROBE_OK;
}

static bool note_range(void *context, const struct tbd_msg_region *map, const char *path)
{
    (void)context;
    (void)path;
    if ((map->prot & PROT_EXEC) && range_count < MAX_RANGES)
        ranges[range_count++] = (struct code_range){ map->start, map->end };
    return true;
}

enum tbd_probe_refusal tbd_placing_look(void)
{
    range_count = 0;
    return tbd_maps_read(note_range, NULL) ? TBD_PROBE_OK : TBD_PROBE_NOT_CODE;
}

static bool is_code(uint64_t address)
{
    uint32_t low = 0, high = range_count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (ranges[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < range_count && ranges[low].start <= address;
}

/* ---- placing ---- */

/* The code as it was, without our traps. */
static size_t read_code(uint64_t address, uint8_t *out)
{
    size_t got = tbd_native_read(memory, address, out, TBD_PROBE_INSN_BYTES);

    for (size_t i = 0; i < got; i++) {
        const struct tbd_probe *probe = tbd_probe_find(address + i);

        if (probe && probe->is_placed && out[i] == TBD_NATIVE_TRAP)
            out[i] = probe->step.first;
    }
    return got;
}

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

static enum tbd_probe_refusal refusal_of(enum tbd_step_refusal refusal)
{
    switch (refusal) {
    case TBD_STEP_OK: return TBD_PROBE_OK;
    case TBD_STEP_RAISES: return TBD_PROBE_RAISES;
    case TBD_STEP_NO_MEMORY: return TBD_PROBE_NO_MEMORY;
    case TBD_STEP_UNSUPPORTED:
    default: return TBD_PROBE_UNSUPPORTED;
    }
}

static enum tbd_probe_refusal make_probe(uint64_t address, const uint8_t *code, size_t got,
                                         struct tbd_probe **out)
{
    struct tbd_probe *probe =
        (struct tbd_probe *)tbd_arena_alloc(&probes, sizeof(*probe), _Alignof(struct tbd_probe));
    uint8_t *stub = (uint8_t *)tbd_arena_alloc(&stubs, TBD_STEP_STUB_BYTES, 64);
    struct tbd_emit emit = { .at = stub };
    struct tbd_insn insn;
    enum tbd_step_refusal refusal;

    if (!probe || !stub)
        return TBD_PROBE_NO_MEMORY;
    emit.end = stub + TBD_STEP_STUB_BYTES;
    if (!tbd_decode(&insn, address, code, got))
        return TBD_PROBE_NO_INSTRUCTION;
    refusal = tbd_step_make(&probe->step, &insn, &emit);
    if (refusal != TBD_STEP_OK)
        return refusal_of(refusal);
    tbd_arena_rewind(&stubs, emit.at);
    memcpy(probe->bytes, code, probe->step.length);
    *out = probe;
    return tbd_probe_add(probe) ? TBD_PROBE_OK : TBD_PROBE_NO_MEMORY;
}

/* One of an earlier session serves again if the code is the same. */
static enum tbd_probe_refusal find_or_make(uint64_t address, struct tbd_probe **out)
{
    uint8_t code[TBD_PROBE_INSN_BYTES];
    struct tbd_probe *probe = tbd_probe_find(address);
    size_t got = read_code(address, code);

    if (!got)
        return TBD_PROBE_NOT_CODE;
    if (probe && got >= probe->step.length && memcmp(code, probe->bytes, probe->step.length) == 0) {
        *out = probe;
        return TBD_PROBE_OK;
    }
    return make_probe(address, code, got, out);
}

static void add_use(struct tbd_probe *probe, uint32_t code)
{
    struct tbd_probe_session *session = &tbd_probe_session;
    struct tbd_probe_use *use = &session->uses[session->use_count++];

    *use = (struct tbd_probe_use){ .code = code, .next = probe->uses };
    __atomic_store_n(&probe->uses, session->use_count, __ATOMIC_RELEASE);
}

enum tbd_probe_refusal tbd_placing_put(const struct tbd_probe_place *place)
{
    struct tbd_probe *probe = NULL;
    enum tbd_probe_refusal refusal;

    if (place->address >= TBD_ENGINE_BASE && place->address < TBD_ENGINE_END)
        return TBD_PROBE_OURS;
    if (place->address >= TBD_USER_END || !is_code(place->address))
        return TBD_PROBE_NOT_CODE;
    if (is_inside_another(place->address))
        return TBD_PROBE_NO_INSTRUCTION;
    if (tbd_probe_session.use_count >= TBD_PROBE_MAX_USES)
        return TBD_PROBE_NO_MEMORY;
    refusal = find_or_make(place->address, &probe);
    if (refusal != TBD_PROBE_OK || !probe)
        return refusal;
    add_use(probe, place->code);
    if (probe->is_placed)
        return TBD_PROBE_OK;
    TBD_INVARIANT("PLACING-1", probe->uses && tbd_probe_find(place->address) == probe);
    if (!tbd_native_write(memory, place->address, TBD_NATIVE_TRAP)) {
        probe->uses = 0;
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

    if (address >= TBD_USER_END || !is_code(address) || is_inside_another(address))
        return TBD_PROBE_NOT_CODE;
    refusal = find_or_make(address, &probe);
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
    __atomic_store_n(&probe->uses, 0, __ATOMIC_RELEASE);
}

static bool is_guard(const struct tbd_probe *probe)
{
    for (uint32_t i = 0; i < guard_count; i++)
        if (guards[i] == probe)
            return true;
    return false;
}

void tbd_placing_take(uint64_t address)
{
    struct tbd_probe *probe = tbd_probe_find(address);

    if (probe && is_guard(probe)) {
        __atomic_store_n(&probe->uses, 0, __ATOMIC_RELEASE);
        return;
    }
    if (!probe || !probe->is_placed)
        return;
    clear_one(probe);
    placed[probe->placed_at] = placed[--placed_count];
    placed[probe->placed_at]->placed_at = probe->placed_at;
}

void tbd_placing_clear(void)
{
    for (uint32_t i = 0; i < placed_count; i++)
        clear_one(placed[i]);
    placed_count = guard_count = 0;
}
