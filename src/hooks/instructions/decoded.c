// SPDX-License-Identifier: MIT
/* decoded.c - see decoded.h
 *
 * The table has one place for each hash of an address.  An instruction is found by address and bytes, so nothing need be
 * forgotten when code changes. */
#include "hooks/instructions/decoded.h"

#include "base/string.h"
#include "hooks/instructions/processor.h"
#include "hooks/memory/code_traps.h"
#include "hooks/memory/safe_copy.h"

enum { PLACE_BITS = 10 };

struct decoded_insn {
    struct tbd_insn insn; /* length 0: empty */
    uint8_t bytes[TBD_INSN_MAX_BYTES];
};

static struct decoded_insn table[1u << PLACE_BITS];

static struct decoded_insn *place_of(uint64_t pc)
{
    return &table[pc * 0x9e3779b97f4a7c15ull >> (64 - PLACE_BITS)];
}

/* Bytes that begin with those of an instruction are this instruction, whatever follows. */
static bool holds(const struct decoded_insn *d, uint64_t pc, const uint8_t *bytes, size_t limit)
{
    uint8_t length = d->insn.length;

    return length && length <= limit && d->insn.pc == pc && memcmp(d->bytes, bytes, length) == 0;
}

struct insn_decoding {
    struct tbd_insn *out;
    uint64_t pc;
    const uint8_t *bytes;
    size_t limit;
    bool ok;
};

static void decode(void *arg)
{
    struct insn_decoding *d = arg;

    d->ok = tbd_decode(d->out, d->pc, d->bytes, d->limit);
}

bool tbd_decoded(struct tbd_insn *out, uint64_t pc, uint8_t bytes[TBD_INSN_MAX_BYTES], size_t limit)
{
    size_t have = tbd_copy_prefix_from_program(bytes, pc, limit);
    struct insn_decoding decoding = { .out = out, .pc = pc, .bytes = bytes, .limit = have };
    struct decoded_insn *d = place_of(pc);

    tbd_code_traps_hide(bytes, pc, have);
    if (holds(d, pc, bytes, have)) {
        *out = d->insn;
        out->bytes = bytes;
        return true;
    }
    tbd_processor_decode(decode, &decoding);
    if (decoding.ok) {
        d->insn = *out;
        memcpy(d->bytes, bytes, out->length);
    }
    return decoding.ok;
}
