// SPDX-License-Identifier: MIT
/* own_jumps.c - see own_jumps.h
 *
 * A stub:  the program's instruction; mov $address after the call, %rcx; mov $&thread->regs, %r11; jmp *engine
 *
 * Where the instruction has only two bytes (xor %eax, %eax before read), a short jump leads to a hop: padding before an aligned
 * address, to which nothing falls through, becomes the jump to the stub. */
#include "hooks/own/own_jumps.h"

#include "base/layout.h"
#include "base/linux_abi.h"
#include "base/log.h"
#include "base/string.h"
#include "hooks/instructions/processor.h"
#include "hooks/memory/code_areas.h"
#include "hooks/memory/code_traps.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "patcher/decode.h"

#define SITES         1024u
#define OFTEN         4u /* dispatched calls, after which a jump is worth its making */
#define SYSCALL_BYTES 2u
#define JUMP_BYTES    5u
#define MOST_BYTES    6u  /* of the instruction that is replaced */
#define BEFORE        64u /* bytes before the call where decoding begins */
#define VOTES         32u
#define NEARLY        30u
#define STUB_BYTES    64u
#define AREA_BYTES    65536u
#define AREAS         16u
#define HOPS          64u
#define AFTER         96u /* bytes after the call where padding is looked for */
#define ALIGNMENT     16u

extern const char tbd_own_jump_entry[];

struct site {
    uint64_t pc;   /* of the system call */
    uint64_t stub; /* 0: none yet */
    uint64_t hop;  /* 0: none */
    uint32_t dispatched;
    uint8_t length; /* of the instruction before; 0: it is none that can be replaced */
    uint8_t bytes[MOST_BYTES];
};

static struct site
    sites[SITES]; /* by address: one that comes later to a taken place stays dispatched */

static struct {
    uint64_t start;
    uint32_t stubs;
} areas[AREAS];
static size_t area_count;

static uint64_t hops[HOPS]; /* addresses */
static size_t hop_count;

/* ---- the instruction before the call ---- */

struct before {
    uint64_t pc;
    uint8_t code[BEFORE];
    unsigned votes[MOST_BYTES + 1]; /* by its length */
};

/* mov 8(%rsp), %r9, as in the C library's syscall(), and the like. */
static bool loads_from_stack(const uint8_t *code)
{
    const uint8_t *mov = code + BEFORE - 5;
    bool is_to_rsp = mov[0] == 0x48 && (mov[2] & 0x38) == 0x20;

    return (mov[0] & 0xfb) == 0x48 && mov[1] == 0x8b && (mov[2] & 0xc7) == 0x44 && mov[3] == 0x24 &&
           !is_to_rsp;
}

/* mov of a constant, or from the stack, to a register; xor of a register with itself. */
static uint8_t length_of(const uint8_t *code)
{
    uint8_t modrm = code[BEFORE - 1];

    if (loads_from_stack(code))
        return 5;
    if (code[BEFORE - 6] == 0x41 && (code[BEFORE - 5] & 0xf8) == 0xb8)
        return 6;
    if ((code[BEFORE - 5] & 0xf8) == 0xb8)
        return 5;
    return code[BEFORE - 2] == 0x31 && modrm >> 6 == 3 && (modrm >> 3 & 7) == (modrm & 7) ? 2 : 0;
}

static void vote(void *context)
{
    struct before *before = context;

    for (size_t from = 0; from < VOTES; from++) {
        struct tbd_insn insn = { .length = 0 };

        for (size_t at = from; at < BEFORE; at += insn.length)
            if (!tbd_decode(&insn, before->pc - BEFORE + at, before->code + at, BEFORE - at))
                insn.length = 1;
            else if (at + insn.length == BEFORE && insn.length <= MOST_BYTES)
                before->votes[insn.length]++;
    }
}

/* The engine itself has written the vDSO's calls. */
static bool is_sure(struct before *before, uint8_t length)
{
    const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, before->pc);

    if (region && region->map.flags & TBD_REGION_VDSO)
        return true;
    tbd_processor_decode(vote, before);
    return before->votes[length] >= NEARLY;
}

/* Only in code of files, which others do not see changed, and of the vDSO, whose functions make system calls
 * (hooks/boot/vdso.c). */
static bool can_be_changed(uint64_t start, uint64_t end)
{
    const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, start);
    const struct tbd_msg_region *map = region ? &region->map : NULL;

    return map && map->end >= end && (map->inode || map->flags & TBD_REGION_VDSO) &&
           map->prot & PROT_EXEC && !(map->prot & PROT_WRITE) && !(map->map_flags & MAP_SHARED);
}

static void look_before(struct site *site)
{
    struct before before = { .pc = site->pc };
    uint64_t start = site->pc - BEFORE;
    uint8_t length;

    if (!can_be_changed(start, site->pc + SYSCALL_BYTES) ||
        !tbd_copy_from_program(before.code, start, BEFORE))
        return;
    tbd_code_traps_hide(before.code, start, BEFORE);
    length = length_of(before.code);
    if (!length || !is_sure(&before, length))
        return;
    site->length = length;
    memcpy(site->bytes, before.code + BEFORE - length, length);
}

/* ---- hops ---- */

struct padding_search {
    uint64_t pc; /* of its first byte */
    uint8_t code[AFTER];
    uint64_t hop;
};

/* nop, xchg %ax, %ax, nopw, with prefixes or none. */
static bool is_nop(const struct tbd_insn *insn)
{
    size_t at = 0;

    while (at + 1 < insn->length && (insn->bytes[at] == 0x66 || insn->bytes[at] == 0x2e))
        at++;
    return insn->bytes[at] == 0x90 ||
           (at + 1 < insn->length && insn->bytes[at] == 0x0f && insn->bytes[at + 1] == 0x1f);
}

static void find_padding(void *context)
{
    struct padding_search *after = context;
    struct tbd_insn insn = { .length = 0 };
    bool goes_away = false; /* the instruction before */
    uint64_t padding = 0;   /* its first instruction, the last ones were nops */

    for (size_t at = 0; at < AFTER && !after->hop; at += insn.length) {
        uint64_t pc = after->pc + at;

        if (!tbd_decode(&insn, pc, after->code + at, AFTER - at))
            return;
        if (goes_away && insn.length >= JUMP_BYTES && !tbd_code_traps_any(pc, pc + insn.length))
            padding = pc;
        padding = is_nop(&insn) ? padding : 0;
        if (padding && (pc + insn.length) % ALIGNMENT == 0)
            after->hop = padding;
        goes_away = insn.kind == TBD_INSN_RETURN || insn.kind == TBD_INSN_JUMP;
    }
}

static bool find_hop(struct site *site)
{
    struct padding_search after = { .pc = site->pc + SYSCALL_BYTES };

    if (hop_count == HOPS || !can_be_changed(after.pc, after.pc + AFTER) ||
        !tbd_copy_from_program(after.code, after.pc, AFTER))
        return false;
    tbd_code_traps_hide(after.code, after.pc, AFTER);
    tbd_processor_decode(find_padding, &after);
    site->hop = after.hop;
    return site->hop;
}

static bool is_hop_sigsafe(uint64_t rip)
{
    for (size_t i = 0; i < hop_count; i++)
        if (hops[i] == rip)
            return true;
    return false;
}

/* ---- stubs ---- */

static bool reaches(uint64_t from, uint64_t to)
{
    int64_t distance = (int64_t)(to - from);

    return distance == (int32_t)distance;
}

static bool is_reached(uint64_t pc, size_t area)
{
    return reaches(pc, areas[area].start) && reaches(pc, areas[area].start + AREA_BYTES);
}

static uint64_t new_stub(uint64_t pc)
{
    for (size_t i = 0; i < area_count; i++)
        if (areas[i].stubs < AREA_BYTES / STUB_BYTES && is_reached(pc, i))
            return areas[i].start + areas[i].stubs++ * STUB_BYTES;
    return 0;
}

static void reach(const struct tbd_msg_region *map)
{
    uint64_t start;

    for (size_t i = 0; i < area_count; i++)
        if (is_reached(map->start, i) && is_reached(map->end, i))
            return;
    start = area_count < AREAS ? tbd_code_areas_reserve(map->start, map->end, AREA_BYTES) : 0;
    if (!start)
        return;
    areas[area_count].start = start;
    areas[area_count++].stubs = 0;
}

/* Later the kernel might choose a place that the program has just unmapped, and believes to be empty. */
void tbd_own_jumps_begin(void)
{
    const struct tbd_regions *regions = &tbd_memory.regions;

    for (size_t i = 0; i < regions->count; i++)
        if (regions->table[i].map.prot & PROT_EXEC && regions->table[i].map.inode)
            reach(&regions->table[i].map);
}

static uint8_t *put(uint8_t *at, const void *bytes, size_t count)
{
    memcpy(at, bytes, count);
    return at + count;
}

static uint8_t *put_mov(uint8_t *at, uint8_t rex, uint8_t opcode, uint64_t value)
{
    uint8_t mov[2] = { rex, opcode };

    return put(put(at, mov, sizeof(mov)), &value, sizeof(value));
}

static void write_stub(const struct site *site)
{
    static const uint8_t jump[6] = { 0xff, 0x25, 0, 0, 0, 0 }; /* jmp *(%rip) */
    uint64_t entry = (uint64_t)(uintptr_t)tbd_own_jump_entry;
    uint8_t *at = put((uint8_t *)site->stub, site->bytes, site->length);

    at = put_mov(at, 0x48, 0xb9, site->pc + SYSCALL_BYTES);                     /* rcx */
    at = put_mov(at, 0x49, 0xbb, (uint64_t)(uintptr_t)&tbd_thread_now()->regs); /* r11 */
    at = put(at, jump, sizeof(jump));
    put(at, &entry, sizeof(entry));
}

static bool write_jump(uint64_t from, uint64_t to, size_t bytes)
{
    int32_t distance = (int32_t)(to - (from + JUMP_BYTES));
    uint8_t jump[MOST_BYTES] = { 0xe9, 0, 0, 0, 0, 0x90 };

    memcpy(jump + 1, &distance, sizeof(distance));
    return tbd_code_traps_patch(from, jump, bytes);
}

static bool write_hop(const struct site *site)
{
    uint64_t from = site->pc - site->length;
    uint8_t jump[] = { 0xeb, (uint8_t)(site->hop - site->pc) };

    if (!write_jump(site->hop, site->stub, JUMP_BYTES))
        return false;
    hops[hop_count++] = site->hop;
    return tbd_code_traps_patch(from, jump, sizeof(jump));
}

static bool patch(const struct site *site)
{
    return site->hop ? write_hop(site)
                     : write_jump(site->pc - site->length, site->stub, site->length);
}

static void make_jump(struct site *site)
{
    look_before(site);
    if (!site->length || (site->length < JUMP_BYTES && !find_hop(site)))
        return;
    site->stub = site->stub ? site->stub : new_stub(site->pc);
    if (!site->stub)
        return;
    write_stub(site);
    if (patch(site))
        TBD_LOG(TBD_LOG_DEBUG, "jumps", "before %p to %p", (void *)site->pc, (void *)site->stub);
}

/* ---- */

void tbd_own_jumps_dispatched(uint64_t pc)
{
    struct site *site = &sites[(pc ^ pc >> 12) % SITES];

    if (!site->pc)
        site->pc = pc;
    if (site->pc == pc && ++site->dispatched == OFTEN)
        make_jump(site);
}

bool tbd_own_jumps_own_sigsafe(uint64_t rip)
{
    for (size_t i = 0; i < area_count; i++)
        if (rip - areas[i].start < AREA_BYTES)
            return true;
    return is_hop_sigsafe(rip);
}

uint64_t tbd_own_jumps_undo_sigsafe(uint64_t rip)
{
    for (size_t i = 0; i < SITES; i++) {
        uint64_t from = sites[i].pc - sites[i].length;

        if (!sites[i].stub || (rip - sites[i].stub >= STUB_BYTES && rip != sites[i].hop))
            continue;
        tbd_code_traps_unpatch(from, sites[i].length);
        if (sites[i].hop)
            tbd_code_traps_unpatch(sites[i].hop, JUMP_BYTES);
        return from;
    }
    return rip;
}

void tbd_own_jumps_renew(void)
{
    for (size_t i = 0; i < SITES; i++)
        if (sites[i].stub)
            write_stub(&sites[i]);
}

void tbd_own_jumps_end(void)
{
    memset(sites, 0, sizeof(sites));
    area_count = 0; /* whoever releases the code's areas has these, too */
    hop_count = 0;
}
