// SPDX-License-Identifier: MIT
/* own_sites.c - see own.h: where the program's code has instructions that must be recorded
 *
 * System calls stop by user dispatch.  The others are looked for by their bytes, and each find is decided by the
 * instructions around it: decoding from many places before it falls into step with the real ones after a few
 * instructions, whether it begins in the middle of one or not.  If nearly all of these agree, the find is an instruction,
 * or part of another one; else it is not decided, and the program's code is translated.
 *
 * Decoding that begins in the midst of instructions may stay there, in a list of jumps for example, where every few bytes are the same. Where
 * places do not agree, only ways count on which all instructions are such that programs have.
 *
 * Places agree about data, too: libraries have tables among their code (libcrypto 150 KB), and a trap in one changes what the
 * program computes.  Of random bytes every sixth instruction or so is one that no program has.  So a find with such
 * instructions both before and after it is data.  With them on one side it is code beside data; if it is of a kind that data
 * have more often, and they are close, it is not decided.
 *
 * One that is part of another instruction, into whose midst the jump before it leads, is no place for a trap: the code is translated, too.
 *
 * A replay is translated, and so meets each such instruction: one that was overlooked here is found there
 * (as a divergence), and never passes unnoticed. */
#include "hooks/own/own.h"

#include "base/fmt.h"
#include "base/linux.h"
#include "base/log.h"
#include "base/string.h"
#include "hooks/instructions/decoded.h"
#include "hooks/instructions/processor.h"
#include "hooks/memory/code_traps.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/memory/written_pages.h"
#include "hooks/own/own_finds.h"
#include "hooks/own/own_known.h"
#include "patcher/decode.h"

#define BEFORE 192u /* bytes before a find where decoding begins */
#define FROM   128u /* the last such place */
#define VOTES  (BEFORE - FROM)
#define NEARLY 58u /* votes that decide */
#define NEAR   64u /* where the first few begin: mostly all of them say that it is none */
#define FEW    8u
#define AFTER  192u /* bytes after a find that are decoded, too */
#define CHUNK  4096u

#define SHORT_JUMP 2u              /* bytes */
#define MOST_FOUND TBD_KNOWN_SITES /* traps that are written at once */
#define MUCH_DATA                                                                                  \
    200u /* finds in data: all that a file has may be mapped with its code, and some of it looks like code */

bool tbd_own_must_stop(const struct tbd_insn *insn)
{
    return insn->kind == TBD_INSN_SPECIAL &&
           (tbd_specials_have(TBD_SPECIALS_NATIVE_STOPS, insn->special) ||
            tbd_decode_stores_x87(insn->bytes, insn->length) ||
            tbd_decode_reads_processor(insn->bytes, insn->length));
}

/* May an instruction with these opcode bytes be one of them? */
static bool is_find(const uint8_t *at)
{
    uint8_t modrm = at[0] == 0x0f ? at[2] : at[1], reg = modrm >> 3 & 7, mod = modrm >> 6;

    if (at[0] == 0xc7)
        return at[1] == 0xf8;
    if (at[0] != 0x0f)
        return mod != 3 && reg == 6; /* fnstenv, fnsave */
    switch (at[1]) {
    case 0x03:
    case 0x31:
    case 0xa2: return true;
    case 0x01: return at[2] == 0xf9 || at[2] == 0xd0 || at[2] == 0xfd;
    case 0xc7: return mod == 3 ? reg >= 6 : reg == 4 || reg == 5;
    case 0xae: return mod != 3 && (reg == 0 || reg == 4 || reg == 6);
    default: return false;
    }
}

/* ---- deciding ---- */

enum surroundings { CODE, MAYBE_DATA, DATA };

struct decision {
    const uint8_t *code; /* a copy */
    size_t bytes;
    uint64_t start; /* its address */
    uint64_t find;
    uint64_t site;           /* out: the instruction's address, */
    unsigned sure, unlikely; /* and how many say so, or that it is part of another one */
    uint64_t holder;         /* out: that one's, */
    bool is_hidden;          /* into whose midst a jump leads */
    enum surroundings is_in; /* out: of a find that is sure */
};

enum find_verdict { NOT_YET, SURE, UNLIKELY };

/* The instruction at `at` holds the find. */
static enum find_verdict judge(struct decision *d, uint64_t at)
{
    const uint8_t *bytes = d->code + (at - d->start);
    struct tbd_insn insn;

    if (!tbd_decode(&insn, at, bytes, d->bytes - (at - d->start)) || !tbd_own_must_stop(&insn)) {
        d->holder = at;
        return UNLIKELY;
    }
    d->site = at;
    return SURE;
}

/* Decodes from `at` up to the instruction that holds the find: is it one that must stop?  Most votes soon meet the way of
 * an earlier one, which knows. */
static enum find_verdict follow(struct decision *d, uint64_t at, uint8_t *seen)
{
    uint64_t low = d->start > d->find - BEFORE ? d->start : d->find - BEFORE;
    enum find_verdict outcome = NOT_YET;
    uint64_t way[BEFORE + 1];
    size_t steps = 0;

    while (outcome == NOT_YET) {
        uint32_t length;

        outcome = (enum find_verdict)seen[at - low];
        if (outcome != NOT_YET)
            break;
        way[steps++] = at;
        length = tbd_decode_length(d->code + (at - d->start), d->bytes - (at - d->start));
        if (length && at + length > d->find)
            outcome = judge(d, at);
        at += length ? length : 1;
        if (outcome == NOT_YET && at > d->find)
            outcome = UNLIKELY;
    }
    while (steps)
        seen[way[--steps] - low] = (uint8_t)outcome;
    return outcome;
}

static void vote(struct decision *d, uint64_t at, uint8_t *seen)
{
    enum find_verdict outcome = follow(d, at, seen);

    d->sure += outcome == SURE;
    d->unlikely += outcome == UNLIKELY;
}

static void take_votes(struct decision *d)
{
    uint8_t seen[BEFORE + 1] = { 0 };

    for (unsigned back = NEAR; back > NEAR - FEW && d->find - d->start >= BEFORE; back--)
        vote(d, d->find - back, seen);
    if (d->unlikely == FEW) {
        d->unlikely = VOTES;
        return;
    }
    d->sure = d->unlikely = 0;
    for (unsigned back = BEFORE; back > FROM; back--)
        if (d->find - d->start >= BEFORE)
            vote(d, d->find - back, seen);
        else
            vote(d, d->start, seen); /* a mapping of code begins with code */
}

/* ---- instructions in the midst of others ---- */

static bool is_short_jump(uint8_t opcode)
{
    return opcode == 0xeb || opcode == 0x74 || opcode == 0x75; /* jmp, je, jne */
}

/* Is the find an instruction for who begins at `at`, which is no more than another instruction before it? */
static bool begins_hidden(struct decision *d, uint64_t at)
{
    uint8_t seen[BEFORE + 1] = { 0 };

    return at > d->holder && at <= d->find && follow(d, at, seen) == SURE;
}

/* Does decoding come to an instruction at `place`? */
static bool is_instruction(const struct decision *d, uint64_t place)
{
    uint64_t low = d->find - d->start < BEFORE ? d->start : d->find - BEFORE;

    for (uint64_t from = low; from < low + VOTES; from++) {
        uint64_t at = from;

        while (at < place) {
            uint32_t length =
                tbd_decode_length(d->code + (at - d->start), d->bytes - (at - d->start));

            at += length ? length : 1;
        }
        if (at == place)
            return true;
    }
    return false;
}

/* The find is part of another instruction: does a jump just before that one lead between its bytes?  So the code of programs that
 * hide instructions begins.  To look at all jumps would find many in data. */
static bool is_jumped_to(struct decision *d)
{
    const uint8_t *jump = d->code + (d->holder - d->start) - SHORT_JUMP;

    return d->holder >= d->start + SHORT_JUMP && is_short_jump(jump[0]) &&
           begins_hidden(d, d->holder + (uint64_t)(int64_t)(int8_t)jump[1]) &&
           is_instruction(d, d->holder - SHORT_JUMP);
}

/* ---- data ---- */

#define CLEAN 0xffffu /* a count: none of them is near */

/* Does nothing run after it?  ret, jmp. */
static bool ends_code(uint8_t opcode)
{
    return opcode == 0xc3 || opcode == 0xc2 || opcode == 0xe9 || opcode == 0xeb;
}

/* Where the next instruction is.  *out_odd: no program has this one.  Zeros follow the last function of
 * a file, and with some compilers every function. */
static uint64_t after_insn(const struct decision *d, uint64_t at, bool *out_odd)
{
    const uint8_t *bytes = d->code + (at - d->start);
    uint64_t end = d->start + d->bytes - TBD_INSN_MAX_BYTES;
    uint32_t length;

    *out_odd = tbd_decode_is_odd(bytes, TBD_INSN_MAX_BYTES, &length);
    at += length;
    if (!*out_odd && ends_code(bytes[0]))
        while (at < end && !d->code[at - d->start])
            at++;
    return at;
}

/* How many instructions that programs have come before the site, after the last that no program has?  Decoding falls into
 * step first. */
static unsigned clean_before(const struct decision *d)
{
    bool is_near = d->find - d->start <= BEFORE;
    uint64_t at = is_near ? d->start : d->find - BEFORE, first = is_near ? at : d->find - FROM;
    unsigned count = CLEAN;

    while (at < d->site) {
        bool is_odd, is_far = at < first;

        at = after_insn(d, at, &is_odd);
        if (is_odd && !is_far)
            count = 0;
        else if (count != CLEAN)
            count++;
    }
    return count;
}

/* How many from the site on? */
static unsigned clean_after(const struct decision *d)
{
    uint64_t at = d->site, end = d->start + d->bytes - TBD_INSN_MAX_BYTES;

    for (unsigned count = 0; at < d->site + AFTER && at <= end; count++) {
        bool is_odd;

        at = after_insn(d, at, &is_odd);
        if (is_odd)
            return count;
    }
    return CLEAN;
}

/* Do programs have every instruction on the way from `at` to the find, but for the first few? */
static bool is_clean_way(const struct decision *d, uint64_t at)
{
    while (at < d->find) {
        bool is_odd, is_far = at < d->find - FROM;

        at = after_insn(d, at, &is_odd);
        if (is_odd && !is_far)
            return false;
    }
    return true;
}

/* The votes did not agree.  Only what is no place for a trap is decided so. */
static void take_clean_votes(struct decision *d)
{
    uint8_t seen[BEFORE + 1] = { 0 };
    unsigned unlikely = 0;

    for (unsigned back = BEFORE; back > FROM && d->find - d->start >= BEFORE; back--)
        if (is_clean_way(d, d->find - back)) {
            if (follow(d, d->find - back, seen) == SURE)
                return;
            unlikely++;
        }
    if (unlikely >= FEW)
        d->unlikely = VOTES;
}

/* fnstenv, fnsave, lsl: what code hardly has, and data often. */
static bool is_rare(const struct decision *d)
{
    const uint8_t *find = d->code + (d->find - d->start);

    return find[0] == 0xd9 || find[0] == 0xdd || (find[0] == 0x0f && find[1] == 0x03);
}

static enum surroundings look_around(const struct decision *d)
{
    unsigned after = clean_after(d), before, fewer;

    if (after == CLEAN && !is_rare(d))
        return CODE; /* most finds */
    before = clean_before(d);
    fewer = before < after ? before : after;
    if (before != CLEAN && after != CLEAN)
        return DATA;
    return fewer < FEW && is_rare(d) ? MAYBE_DATA : CODE;
}

static void decide(struct decision *d)
{
    take_votes(d);
    if (d->sure < NEARLY && d->unlikely < NEARLY)
        take_clean_votes(d);
    d->is_in = d->sure >= NEARLY ? look_around(d) : CODE;
    d->is_hidden = d->unlikely >= NEARLY && is_jumped_to(d);
}

/* ---- the vsyscall page ---- */

#define VSYSCALLS_AT    0xff600000u /* the lower half of its address */
#define VSYSCALLS_LAST  0xff600800u
#define VSYSCALLS_APART 0x400u
#define MOV_MOST        8 /* bytes of mov before its constant */

/* Does the constant of a mov that ends at `at` (48 c7 44 24 08 | 00 04 60 ff) say where gettimeofday, time or getcpu is? */
static bool is_vsyscall(const uint8_t *at)
{
    uint32_t constant;

    at -= sizeof(constant);
    memcpy(&constant, at, sizeof(constant));
    if (constant < VSYSCALLS_AT || constant > VSYSCALLS_LAST || constant % VSYSCALLS_APART)
        return false;
    for (int back = 3; back <= MOV_MOST; back++)
        if (at[-back] >> 4 == 4 && at[1 - back] == 0xc7) /* with a REX prefix */
            return true;
    return false;
}

/* ---- a range of code ---- */

/* Instructions of one mapping, by address, that get a trap: for each change of its protection the kernel goes through its pages. */
static uint64_t found[MOST_FOUND];
static size_t found_count;
static size_t data_count;    /* finds in data */
static size_t written_count; /* of those of this mapping */

static void write_found(void)
{
    written_count += found_count;
    if (!tbd_code_traps_set_all(found, found_count))
        tbd_own_translate_soon("its code cannot be changed");
    found_count = 0;
}

static void add_found(uint64_t site)
{
    if (found_count == MOST_FOUND)
        write_found();
    found[found_count++] = site;
}

static void undecided(uint64_t find, const char *what)
{
    static char why[96];

    tbd_fmt(why, sizeof(why), "its code at 0x%lx %s", find, what);
    tbd_own_translate_soon(why);
}

static void decide_find(struct decision *d)
{
    decide(d);
    TBD_LOG(TBD_LOG_DEBUG, "own", "%p: %u for, %u against, data %d", (void *)d->find, d->sure,
            d->unlikely, (int)d->is_in);
    if (d->sure >= NEARLY && d->is_in == DATA) {
        data_count++;
    } else if (d->sure >= NEARLY && d->is_in == MAYBE_DATA) {
        undecided(d->find, "may be data");
    } else if (d->sure >= NEARLY) {
        add_found(d->site);
    } else if (d->unlikely < NEARLY) {
        undecided(d->find, "cannot be told from data");
    } else if (d->is_hidden) {
        undecided(d->find, "is two instructions, of which one is hidden in the other");
    }
}

/* The mark at `i` in the copy. */
static void look_at_mark(uint64_t start, const uint8_t *copy, size_t i, size_t bytes)
{
    if (copy[i] == 0x60) {
        if (i >= MOV_MOST + 3 && i + 1 < bytes && is_vsyscall(copy + i + 2))
            tbd_own_translate_soon(
                "it calls the kernel's vsyscall page, which native play cannot follow");
    } else if (i + 2 < bytes && is_find(copy + i)) {
        struct decision d = { .code = copy, .bytes = bytes, .start = start, .find = start + i };

        decide_find(&d);
    }
}

/* Finds in the chunk at `at`; the copy has `before` bytes more in front, and some after. */
static void look_at_copy(uint64_t at, const uint8_t *copy, size_t before, size_t after)
{
    static uint64_t marks[CHUNK / 64];

    tbd_own_mark_finds(copy + before, (uint16_t *)marks, CHUNK / 16);
    for (size_t word = 0; word < CHUNK / 64; word++)
        for (uint64_t left = marks[word]; left; left &= left - 1)
            look_at_mark(at - before, copy, before + word * 64 + (size_t)__builtin_ctzll(left),
                         before + CHUNK + after);
}

/* All of it in one call with the decoder's registers. */
static void look_at_region(void *region)
{
    static uint8_t copy[BEFORE + CHUNK + AFTER + TBD_INSN_MAX_BYTES];
    const struct tbd_msg_region *map = region;

    for (uint64_t at = map->start; at < map->end; at += CHUNK) {
        size_t before = at - map->start < BEFORE ? at - map->start : BEFORE;
        size_t most = AFTER + TBD_INSN_MAX_BYTES;
        size_t after = map->end - at - CHUNK < most ? map->end - at - CHUNK : most;

        if (tbd_copy_prefix_from_program(copy, at - before, before + CHUNK + after) <
            before + CHUNK)
            return; /* after the file's end */
        tbd_code_traps_hide(copy, at - before, before + CHUNK + after);
        look_at_copy(at, copy, before, after);
    }
}

/* ---- what is known of it already ---- */

/* Is there such an instruction at each of these places?  Else nobody believes the rest. */
static void look_at_known(void *context)
{
    bool *are_right = context;

    for (size_t i = 0; i < found_count; i++) {
        uint8_t code[TBD_INSN_MAX_BYTES];
        size_t bytes = tbd_copy_prefix_from_program(code, found[i], sizeof(code));
        struct tbd_insn insn;

        *are_right &= tbd_decode(&insn, found[i], code, bytes) && tbd_own_must_stop(&insn);
    }
}

static bool take_known(const struct tbd_known_key *key, const struct tbd_mapped_region *region)
{
    size_t count = tbd_own_known_get(key, region, found);
    bool are_right = count <= MOST_FOUND;

    found_count = are_right ? count : 0;
    tbd_processor_decode(look_at_known, &are_right);
    found_count = are_right ? count : 0;
    return are_right;
}

static void set_traps(const struct tbd_mapped_region *region)
{
    struct tbd_msg_region map = region->map;
    bool was_due = tbd_own_translate_is_due();
    struct tbd_known_key key;
    bool is_kept = tbd_own_known_describe(&key, region);

    if (!is_kept || !take_known(&key, region)) {
        data_count = written_count = 0;
        tbd_processor_decode(look_at_region, &map);
        if (data_count > MUCH_DATA)
            tbd_own_translate_soon("it maps data with its code, which cannot be told from it");
        if (is_kept && !was_due && !tbd_own_translate_is_due() && !written_count)
            tbd_own_known_put(&key, region, found, found_count);
    }
    write_found();
}

void tbd_own_leave_changing_file(void)
{
    tbd_own_translate_soon("it maps a file that changes, which native play cannot follow");
}

void tbd_own_look(uint64_t start, uint64_t end, bool is_new)
{
    const struct tbd_regions *regions = &tbd_memory.regions;

    for (size_t i = tbd_regions_lower(regions, start);
         i < regions->count && regions->table[i].map.start < end; i++) {
        const struct tbd_msg_region *map = &regions->table[i].map;

        if (map->map_flags & MAP_SHARED && map->prot & PROT_WRITE)
            tbd_own_translate_soon("it shares memory with others, which native play cannot follow");
        if (!(map->map_flags & MAP_SHARED) && map->flags & TBD_REGION_SHARED)
            tbd_own_leave_changing_file();
        if (!(map->prot & PROT_EXEC) || map->flags & TBD_REGION_VDSO)
            continue;
        if (map->prot & PROT_WRITE || !map->inode)
            tbd_own_translate_soon("it makes code, which native play cannot follow");
        else
            set_traps(&regions->table[i]);
    }
    tbd_written_follow(start, end, is_new);
}

/* ---- at a trap ---- */

enum tbd_special tbd_own_site(uint64_t pc, uint32_t *out_bytes)
{
    uint8_t bytes[TBD_INSN_MAX_BYTES];
    const struct tbd_insn *insn = tbd_decoded(pc, bytes, sizeof(bytes));

    if (!insn || !tbd_own_must_stop(insn)) {
        *out_bytes = 0;
        return TBD_SPECIAL_OTHER;
    }
    *out_bytes = insn->length;
    return (enum tbd_special)insn->special;
}
