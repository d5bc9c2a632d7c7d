// SPDX-License-Identifier: MIT
/* shared_pieces.c - pieces of repeated string stores in memory that other processes may write
 * (hooks/memory/shared.h)
 *
 * The source is read once, differences from the log are logged as stores of others, and what was
 * read is stored and logged.  In a replay process there is no such memory.  Context: APP. */
#include "hooks/instructions/special.h"

#include "base/string.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/memory/shared.h"

static bool do_overlap(const struct tbd_string_piece *piece)
{
    return piece->from.bytes && piece->from.address < piece->to.address + piece->to.bytes &&
           piece->to.address < piece->from.address + piece->from.bytes;
}

bool tbd_shared_has_piece(const struct tbd_string_piece *piece)
{
    return tbd_shared_holds(piece->to.address, piece->to.address + piece->to.bytes) ||
           (piece->from.bytes &&
            tbd_shared_holds(piece->from.address, piece->from.address + piece->from.bytes));
}

static void fill(uint8_t *out, uint64_t value, uint64_t bytes, uint32_t size)
{
    for (uint64_t at = 0; at < bytes; at += size)
        memcpy(out + at, &value, size);
}

bool tbd_shared_copy_piece(struct tbd_special_run *s, const struct tbd_string_piece *piece)
{
    static uint8_t data[TBD_SHARED_PIECE_BYTES];
    static uint8_t old[TBD_SHARED_PIECE_BYTES];
    uint64_t bytes = piece->to.bytes;

    if (bytes > sizeof(data) || (do_overlap(piece) && bytes != piece->size))
        return false;
    if (!piece->from.bytes)
        fill(data, s->thread->regs.gpr[TBD_RAX], bytes, piece->size);
    else if (!tbd_shared_load(s->effects, data, piece->from.address, bytes, &s->others))
        return false;
    else if (tbd_shared_holds(piece->from.address, piece->from.address + bytes))
        tbd_shared_logged(piece->from.address, data, bytes);
    if (tbd_shared_read(old, piece->to.address, bytes) != bytes ||
        !tbd_store_to_program(piece->to.address, data, bytes))
        return false;
    tbd_effects_add_known(s->effects, piece->to.address, old, data, bytes);
    return true;
}
