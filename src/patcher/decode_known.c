// SPDX-License-Identifier: MIT
/* decode_known.c - an instruction whose bytes have been decoded before
 *
 * A program has few different instructions: three of four have been seen before, and the library takes most of the time of
 * translating.  Bytes that begin with those of an instruction are this instruction, whatever follows them.  What is relative
 * to rip (the target of a jump or call, or an operand's displacement) is not compared: the target is computed anew.
 *
 * The table has one place for the first one to four bytes of an instruction, as many of them as are compared.
 *
 * DECODE_KNOWN-1  The result is that of tbd_decode(). (not checked: test_patcher_emit compares both)
 *
 * One thread at a time, in the cache's code (patcher/cache_private.h). */
#include "patcher/decode.h"

#include "base/sys.h"

enum {
    PLACE_BITS = 12,
    MAX_KEY = 4, /* bytes */
};

struct known {
    uint64_t mask[2]; /* of the first 16 bytes: what is compared */
    uint64_t bytes[2];
    struct tbd_insn insn;
    uint8_t relative_at;
    uint8_t relative_bytes; /* 0: nothing is relative to rip */
};

/* Apart from the rest, so that what is not known is seen without a look at it; 0 = empty. */
static uint64_t keys[1u << PLACE_BITS];
static struct known table[1u << PLACE_BITS];

/* The first `bytes` bytes, at most four, of a word, and how many they are. */
static uint64_t key_of(uint64_t word, unsigned bytes)
{
    return (word << (64 - 8 * bytes)) | bytes;
}

static unsigned place_of(uint64_t key)
{
    return (unsigned)(key * 0x9e3779b97f4a7c15ull >> (64 - PLACE_BITS));
}

static bool is_same(const struct known *known, const uint64_t *words)
{
    return (words[0] & known->mask[0]) == known->bytes[0] &&
           (words[1] & known->mask[1]) == known->bytes[1];
}

static const struct known *find(const uint64_t *words)
{
    for (unsigned bytes = MAX_KEY; bytes; bytes--) {
        uint64_t key = key_of(words[0], bytes);
        unsigned place = place_of(key);

        if (keys[place] == key && is_same(&table[place], words))
            return &table[place];
    }
    return NULL;
}

/* ---- what is relative to rip ---- */

static uint64_t relative_of(const struct known *known, const uint8_t *bytes)
{
    int32_t far;

    if (known->relative_bytes == 1)
        return (uint64_t)(int64_t)(int8_t)bytes[known->relative_at];
    __builtin_memcpy(&far, bytes + known->relative_at, sizeof(far));
    return (uint64_t)(int64_t)far;
}

/* The access of a fixed address is the one that is relative. */
static void set_target(struct tbd_insn *insn, uint64_t target)
{
    insn->target = target;
    for (unsigned n = 0; n < insn->access_count && insn->rip_relative; n++)
        if (insn->access[n].ea.base == TBD_NO_REG && insn->access[n].ea.index == TBD_NO_REG)
            insn->access[n].ea.disp = (int64_t)target;
}

static bool is_direct(const struct tbd_insn *insn)
{
    return insn->kind == TBD_INSN_JUMP || insn->kind == TBD_INSN_BRANCH ||
           insn->kind == TBD_INSN_BRANCH_RCX || insn->kind == TBD_INSN_CALL;
}

/* How many of the last bytes of a jump or call are its displacement?  0: it may have prefixes. */
static uint8_t displacement_bytes(const struct tbd_insn *insn)
{
    switch (insn->length) {
    case 2: return 1;
    case 5: return insn->bytes[0] == 0xe8 || insn->bytes[0] == 0xe9 ? 4 : 0;
    case 6: return insn->bytes[0] == 0x0f ? 4 : 0;
    default: return 0;
    }
}

/* False: what depends on rip is not known well enough. */
static bool find_relative(struct known *known)
{
    const struct tbd_insn *insn = &known->insn;

    if (insn->kind == TBD_INSN_SPECIAL || insn->kind == TBD_INSN_BAD || insn->gs ||
        insn->cuts_target)
        return false;
    if (insn->rip_relative) {
        known->relative_at = insn->disp_at;
        known->relative_bytes = 4;
    } else if (is_direct(insn)) {
        known->relative_bytes = displacement_bytes(insn);
        known->relative_at = (uint8_t)(insn->length - known->relative_bytes);
        return known->relative_bytes;
    }
    return true;
}

/* ---- both ways ---- */

static void cover(uint64_t *mask, unsigned from, unsigned to, uint8_t with)
{
    __builtin_memset((uint8_t *)mask + from, with, to - from);
}

static void remember(const struct tbd_insn *insn, const uint64_t *words)
{
    struct known new = { .insn = *insn };
    unsigned bytes = insn->length;
    uint64_t key;

    if (!find_relative(&new))
        return;
    cover(new.mask, 0, insn->length, 0xff);
    cover(new.mask, new.relative_at, new.relative_at + new.relative_bytes, 0);
    new.bytes[0] = words[0] & new.mask[0];
    new.bytes[1] = words[1] & new.mask[1];
    if (new.relative_bytes)
        bytes = new.relative_at;
    key = key_of(words[0], bytes < MAX_KEY ? bytes : MAX_KEY);
    table[place_of(key)] = new;
    keys[place_of(key)] = key;
}

void tbd_decode_known_populate(void)
{
    tbd_sys_populate((uint64_t)(uintptr_t)table, (uint64_t)(uintptr_t)(table + (1u << PLACE_BITS)));
}

bool tbd_decode_known(struct tbd_insn *out, uint64_t pc, const uint8_t *bytes, size_t limit)
{
    const struct known *known;
    uint64_t words[2];

    if (limit < sizeof(words))
        return tbd_decode(out, pc, bytes, limit);
    __builtin_memcpy(words, bytes, sizeof(words));
    known = find(words);
    if (!known) {
        if (!tbd_decode(out, pc, bytes, limit))
            return false;
        remember(out, words);
        return true;
    }
    *out = known->insn;
    out->pc = pc;
    out->bytes = bytes;
    if (known->relative_bytes)
        set_target(out, pc + out->length + relative_of(known, bytes));
    return true;
}
