// SPDX-License-Identifier: MIT
/* register_notes.c - see register_notes.h
 *
 * REGISTER_NOTES-1  notes->cursor stands on a block's entry, or at the window's end. */
#include "query/session/register_notes.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/* ---- sites ---- */

bool tbd_note_sites_add(struct tbd_note_sites *sites, uint64_t pc, uint64_t registers)
{
    struct tbd_note_site *site;

    sites->table.element = sizeof(*site);
    site = tbd_address_table_add(&sites->table, pc, 0);
    if (site != NULL)
        site->registers |= registers;
    return site != NULL;
}

void tbd_note_sites_free(struct tbd_note_sites *sites)
{
    tbd_address_table_free(&sites->table);
}

static int compare_sites(const void *a, const void *b)
{
    const struct tbd_note_site *x = a, *y = b;

    return x->pc < y->pc ? -1 : x->pc > y->pc;
}

void tbd_note_sites_sort(struct tbd_note_sites *sites)
{
    struct tbd_note_site *all = sites->table.entries;
    size_t count = 0;

    if (all == NULL)
        return;
    for (size_t i = 0; i <= sites->table.mask; i++) {
        if (all[i].pc != 0)
            all[count++] = all[i];
    }
    qsort(all, count, sizeof(*all), compare_sites);
}

/* ---- notes ---- */

void tbd_notes_take(struct tbd_notes *notes, struct tbd_window *window)
{
    tbd_notes_free(notes);
    notes->window = window;
    tbd_cursor_first(window, &notes->cursor);
}

void tbd_notes_free(struct tbd_notes *notes)
{
    tbd_window_free(notes->window);
    notes->window = NULL;
}

/* Moves the cursor to the entry of the block with this time; false if there is no such block. */
static bool go_to(struct tbd_notes *notes, uint64_t time)
{
    struct tbd_cursor *cursor = &notes->cursor;
    struct tbd_pass pass = { .until = time - 1 };

    if (cursor->kind == TBD_AT_END || cursor->time > time)
        return tbd_cursor_seek(notes->window, time, cursor);
    while (cursor->kind != TBD_AT_END && (cursor->kind != TBD_AT_BLOCK || cursor->time < time)) {
        if (cursor->kind == TBD_AT_BLOCK)
            tbd_cursor_pass(cursor, &pass);
        if (cursor->kind != TBD_AT_BLOCK || cursor->time < time)
            tbd_cursor_skip_block(cursor);
    }
    TBD_INVARIANT("REGISTER_NOTES-1", cursor->kind == TBD_AT_BLOCK || cursor->kind == TBD_AT_END);
    return cursor->kind == TBD_AT_BLOCK && cursor->time == time;
}

void tbd_noted_unpack(struct tbd_noted *noted, const struct tbd_op *op, const uint8_t *at)
{
    uint64_t registers = (uint64_t)op->add;

    for (; (registers & TBD_NOTE_GENERAL) != 0; registers &= registers - 1, at += 8)
        memcpy(&noted->regs.gpr[__builtin_ctzll(registers)], at, 8);
    for (; (registers & TBD_NOTE_VECTOR) != 0; registers &= registers - 1, at += 16)
        memcpy(&noted->vector[(__builtin_ctzll(registers) - 16) * 16], at, 16);
    if ((registers & TBD_NOTE_TOP) != 0)
        memcpy(&noted->top, at, 8);
}

/* The event of a call in which its thread waited is at another thread's instruction. */
static bool is_at_its_own(const struct tbd_notes *notes, const struct tbd_event *event)
{
    return (event->flags & TBD_EVENT_RESUMED) == 0 &&
           (event->position.offset != 0 || notes->cursor.block->def.start == event->pc);
}

const struct tbd_noted *tbd_notes_at(struct tbd_notes *notes, const struct tbd_event *event)
{
    const struct tbd_block *block;

    if (notes->window == NULL || !go_to(notes, event->position.time) ||
        !is_at_its_own(notes, event))
        return NULL;
    block = notes->cursor.block;
    for (uint16_t i = 0; i < block->def.op_count; i++) {
        if (block->ops[i].kind != TBD_OP_NOTE || block->ops[i].insn != event->position.offset)
            continue;
        tbd_noted_unpack(&notes->noted, &block->ops[i], notes->cursor.record + block->ops[i].data);
        return &notes->noted;
    }
    return NULL;
}
