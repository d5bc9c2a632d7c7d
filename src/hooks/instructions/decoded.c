// SPDX-License-Identifier: MIT
/* decoded.c - see decoded.h
 *
 * The table has a few places for each hash of an address, which are reused in turn.  An instruction is found by address and bytes, so nothing need be
 * forgotten when code changes. */
#include "hooks/instructions/decoded.h"

#include "base/string.h"
#include "hooks/instructions/processor.h"
#include "hooks/memory/code_traps.h"
#include "hooks/memory/safe_copy.h"

enum { HASH_BITS = 9, WAYS = 4 };

struct decoded_insn {
    struct tbd_insn insn; /* length 0: empty */
    uint8_t bytes[TBD_INSN_MAX_BYTES];
};

static struct decoded_insn table[1u << HASH_BITS][WAYS];
static uint32_t next_way;

/* Bytes that begin with those of an instruction are this instruction, whatever follows. */
static bool holds(const struct decoded_insn *d, uint64_t pc, const uint8_t *bytes, size_t limit)
{
    uint8_t length = d->insn.length;

    return length && length <= limit && d->insn.pc == pc && memcmp(d->bytes, bytes, length) == 0;
}

/* The place that has the instruction, or is to have it. */
static struct decoded_insn *place_of(uint64_t pc, const uint8_t *bytes, size_t limit)
{
    struct decoded_insn *places = table[pc * 0x9e3779b97f4a7c15ull >> (64 - HASH_BITS)];

    for (uint32_t way = 0; way < WAYS; way++)
        if (holds(&places[way], pc, bytes, limit))
            return &places[way];
    return &places[next_way++ % WAYS];
}

struct insn_decoding {
    struct decoded_insn *out;
    uint64_t pc;
    size_t limit;
    bool ok;
};

static void decode(void *arg)
{
    struct insn_decoding *d = arg;

    d->ok = tbd_decode(&d->out->insn, d->pc, d->out->bytes, d->limit);
}

const struct tbd_insn *tbd_decoded(uint64_t pc, uint8_t bytes[TBD_INSN_MAX_BYTES], size_t limit)
{
    size_t have = tbd_copy_prefix_from_program(bytes, pc, limit);
    struct insn_decoding decoding = { .pc = pc, .limit = have };
    struct decoded_insn *d;

    tbd_code_traps_hide(bytes, pc, have);
    d = place_of(pc, bytes, have);
    decoding.out = d;
    if (holds(d, pc, bytes, have))
        return &d->insn;
    memcpy(d->bytes, bytes, have);
    tbd_processor_decode(decode, &decoding);
    if (!decoding.ok)
        d->insn.length = 0;
    return decoding.ok ? &d->insn : NULL;
}
