// SPDX-License-Identifier: MIT
/* tiles.c - loads and stores of tiles (AMX): a row each `stride` bytes
 *
 * Where a row faults, the processor has done those before it, and says in the configuration of tiles with which row the
 * instruction goes on.  A load does the same in a replay.  Of a store these rows are a piece of their own, with a message,
 * before the instruction runs: it stores them again, and faults.
 *
 * Tiles in memory that other processes may write are not followed: the program is let go.  Context: APP. */
#include "base/string.h"
#include "hooks/instructions/processor.h"
#include "hooks/instructions/special.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/memory/shared.h"

static void refuse_shared(struct tbd_special_run *s, const struct tbd_sys_range *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].bytes && tbd_shared_holds(rows[i].address, rows[i].address + rows[i].bytes))
            tbd_special_give_up(s, "it has tiles (AMX) in memory that others may write");
}

/* In a replay: what play has logged for the piece that comes now. */
static void begin_piece(struct tbd_special_run *s)
{
    const struct tbd_msg_special *logged = NULL;

    if (tbd_next_others)
        logged = tbd_next_others(s->effects, &s->others);
    if (logged && logged->flags & TBD_SPECIAL_F_MORE && logged->write_count == logged->others) {
        tbd_special_send(s, TBD_SPECIAL_F_REPLAYED | TBD_SPECIAL_F_MORE);
        s->others = 0;
        tbd_effects_clear(s->effects);
    }
}

/* ---- loads ---- */

void tbd_tile_load(struct tbd_special_run *s)
{
    struct tbd_sys_range rows[TBD_SLOT_TILE_ROWS];
    uint8_t first;
    size_t count = tbd_slot_tile_rows(s->thread, s->slot, rows, &first);

    refuse_shared(s, rows, count);
    if (tbd_special_leaves(s, rows, count, false))
        return;
    for (size_t i = 0; i < count; i++)
        tbd_pages_mark_read(&tbd_memory.pages, rows[i].address, rows[i].address + rows[i].bytes);
    begin_piece(s);
    tbd_slot_run(s->thread, s->slot);
    for (size_t i = 0; i < count; i++)
        tbd_special_tell_read(s, &rows[i]);
    tbd_special_finish(s, TBD_SPECIAL_F_REPLAYED);
}

/* ---- stores ---- */

/* The number of leading rows that can be stored without a fault. */
static size_t count_writable(const struct tbd_sys_range *rows, size_t count)
{
    size_t good = 0;
    uint8_t end;

    while (good < count && tbd_shared_is_writable(&rows[good]) &&
           tbd_copy_from_program(&end, rows[good].address, 1) &&
           tbd_copy_from_program(&end, rows[good].address + rows[good].bytes - 1, 1))
        good++;
    return good;
}

static void store_rows(struct tbd_special_run *s, const struct tbd_sys_range *rows, size_t count,
                       uint8_t first)
{
    uint8_t tile[TBD_VECTOR_TILE_BYTES];

    tbd_vector_read_tile(&tbd_processor.vector, tbd_slot_tile(s->slot), tile);
    tbd_effects_watch(s->effects, rows, count);
    for (size_t i = 0; i < count; i++)
        tbd_store_to_program(rows[i].address, tile + (first + i) * TBD_SLOT_TILE_ROW_BYTES,
                             rows[i].bytes);
    tbd_effects_written(s->effects, rows, count);
}

void tbd_tile_store(struct tbd_special_run *s, uint32_t flags)
{
    struct tbd_sys_range rows[TBD_SLOT_TILE_ROWS];
    uint8_t first;
    size_t count = tbd_slot_tile_rows(s->thread, s->slot, rows, &first), good;

    refuse_shared(s, rows, count);
    if (tbd_special_leaves(s, rows, count, true))
        return;
    begin_piece(s);
    good = count_writable(rows, count);
    if (good && good < count) {
        store_rows(s, rows, good, first);
        tbd_special_send(s, flags | TBD_SPECIAL_F_MORE);
        tbd_effects_clear(s->effects);
        begin_piece(s);
    }
    tbd_effects_watch(s->effects, rows, count);
    tbd_slot_run(s->thread, s->slot);
    tbd_effects_written(s->effects, rows, count);
    tbd_special_finish(s, flags);
}
