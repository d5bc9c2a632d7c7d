// SPDX-License-Identifier: MIT
/* undo.c - what pages held before a window used them for the first time
 *
 * A page's contents come with the window's end, or with the end of its mapping (its capture).  All
 * events are gone through backwards, and the old bytes of stores put back into the pages whose
 * capture and mapping see them.
 *
 * Invariants
 * U1  W1 holds for the window (format/window.c): records and messages fill the operands exactly. */
#include "organizer/undo.h"

#include "format/window.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES 4096u

/* A page whose contents at the beginning are wanted, on the way backwards. */
struct undo {
    uint64_t address;
    uint8_t *bytes;
    struct tbd_page_contents *result;
    uint64_t capture_time;
    uint32_t capture_order;
    bool at_end; /* captured behind all events */
    uint64_t birth_time;
    uint32_t birth_order;
};

struct undo_set {
    struct undo *undos;
    size_t count;
    uint32_t *slots; /* page -> first index + 1; undos of a page are neighbours */
    size_t mask;
};

static int compare_undo(const void *left, const void *right)
{
    const struct undo *a = left;
    const struct undo *b = right;

    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    if (a->capture_time != b->capture_time)
        return a->capture_time < b->capture_time ? -1 : 1;
    return a->capture_order < b->capture_order ? -1 : a->capture_order > b->capture_order;
}

/* When did the page's mapping begin?  At the last UNMAP over it before the capture; else before the
 * window. */
static void find_birth(const struct tbd_page_notes *notes, struct undo *undo)
{
    for (size_t i = 0; i < notes->side_count; i++) {
        const struct tbd_side_message *side = &notes->side[i];
        struct tbd_range range;

        if (side->kind != TBD_MSG_UNMAP)
            continue;
        memcpy(&range, side->payload, sizeof(range));
        if (undo->address < range.start || undo->address >= range.end)
            continue;
        if (!undo->at_end &&
            (side->time > undo->capture_time ||
             (side->time == undo->capture_time && side->order > undo->capture_order)))
            break;
        undo->birth_time = side->time;
        undo->birth_order = side->order;
    }
}

static size_t undo_slot(const struct undo_set *set, uint64_t address)
{
    size_t slot = (size_t)((address * 0x9e3779b97f4a7c15ull) >> 30) & set->mask;

    while (set->slots[slot] && set->undos[set->slots[slot] - 1].address != address)
        slot = (slot + 1) & set->mask;
    return slot;
}

/* Events at block time `time` after `order` messages: does the capture see them, and does the
 * mapping? */
static bool is_between(const struct undo *undo, uint64_t time, uint32_t order)
{
    if (!undo->at_end && (time > undo->capture_time ||
                          (time == undo->capture_time && order >= undo->capture_order)))
        return false;
    return time > undo->birth_time || (time == undo->birth_time && order >= undo->birth_order);
}

static void undo_in_page(const struct undo_set *set, uint64_t address, uint64_t bytes,
                         const uint8_t *old_bytes, uint64_t time, uint32_t order)
{
    uint64_t page = address & ~(uint64_t)(PAGE_BYTES - 1);
    uint32_t first = set->slots[undo_slot(set, page)];

    for (size_t i = first; i && i <= set->count && set->undos[i - 1].address == page; i++)
        if (is_between(&set->undos[i - 1], time, order))
            memcpy(set->undos[i - 1].bytes + (address - page), old_bytes, bytes);
}

static void undo_store(const struct undo_set *set, uint64_t address, uint64_t bytes,
                       const uint8_t *old_bytes, uint64_t time, uint32_t order)
{
    while (bytes) {
        uint64_t part = PAGE_BYTES - address % PAGE_BYTES;

        if (part > bytes)
            part = bytes;
        undo_in_page(set, address, part, old_bytes, time, order);
        address += part;
        old_bytes += part;
        bytes -= part;
    }
}

/* The writes of a message in reverse; the message itself can be read only forwards. */
static void undo_message(const struct undo_set *set, const struct tbd_log_entry *entry,
                         uint32_t order)
{
    const uint8_t *message = (const void *)entry->message;
    struct tbd_write_view write;
    struct tbd_write_cursor cursor;
    struct tbd_message head;
    struct tbd_write_view *writes;
    uint32_t count = 0;

    memcpy(&head, message, sizeof(head));
    tbd_writes_first(head.kind, message + sizeof(head), head.bytes, &cursor);
    writes = malloc(((size_t)cursor.left + 1) * sizeof(*writes));
    while (writes && tbd_writes_next(&cursor, &write))
        writes[count++] = write;
    while (count--)
        if (writes[count].old_bytes)
            undo_store(set, writes[count].address, writes[count].bytes, writes[count].old_bytes,
                       entry->time, order);
    free(writes);
}

/* Of a block that a fault stopped, only the instructions before `limit` ran. */
static void undo_block(const struct undo_set *set, const struct tbd_block *block,
                       const uint8_t *record, uint64_t limit, uint64_t time, uint32_t order)
{
    for (uint16_t i = block->def.op_count; i-- > 0;) {
        const struct tbd_op *op = &block->ops[i];
        uint64_t address = 0;

        if (op->kind != TBD_OP_STORE || op->insn >= limit)
            continue;
        if (op->base != TBD_BASE_NONE)
            memcpy(&address, record + op->base, sizeof(address));
        undo_store(set, address + (uint64_t)op->add, op->size, record + op->data, time, order);
    }
}

static uint64_t interrupted_at(const struct tbd_message *message)
{
    struct tbd_message head;
    uint64_t limit = UINT64_MAX;

    memcpy(&head, (const void *)message, sizeof(head));
    if (head.kind == TBD_MSG_INTERRUPTED && head.bytes >= sizeof(limit))
        memcpy(&limit, (const uint8_t *)(const void *)message + sizeof(head), sizeof(limit));
    return limit;
}

/* All events, backwards. */
static void undo_all(const struct tbd_window *window, const struct undo_set *set, uint64_t limit)
{
    const uint8_t *at = window->operands + window->operand_bytes;
    uint32_t order = (uint32_t)window->log_count;
    uint64_t time = window->blocks;

    for (size_t i = window->entry_count; i-- > 0;) {
        if (window->entries[i] & TBD_ENTRY_MESSAGE) {
            order--;
            at = (const void *)window->log[order].message;
            undo_message(set, &window->log[order], order);
            limit = interrupted_at(window->log[order].message);
        } else {
            const struct tbd_block *block = tbd_window_block(window, window->entries[i]);

            at -= block->def.operand_bytes;
            time--;
            undo_block(set, block, at, limit, time, order);
            limit = UINT64_MAX;
        }
    }
}

static bool prepare(struct tbd_window *window, const struct tbd_page_notes *notes,
                    struct undo_set *set, struct tbd_page_contents *first)
{
    size_t slots = 64;

    for (size_t i = 0; i < notes->count; i++) {
        const struct tbd_page_note *note = &notes->pages[i];
        struct undo *undo = &set->undos[set->count];

        if (!(note->flags & TBD_PAGE_FIRST))
            continue;
        *undo = (struct undo){ .address = note->address, .capture_time = note->time,
                               .capture_order = note->order, .at_end = note->at_end };
        undo->bytes = tbd_window_memory(window, PAGE_BYTES);
        if (!undo->bytes)
            return false;
        memcpy(undo->bytes, note->bytes, PAGE_BYTES);
        find_birth(notes, undo);
        set->count++;
    }
    qsort(set->undos, set->count, sizeof(*set->undos), compare_undo);
    while (slots < set->count * 2)
        slots *= 2;
    set->slots = calloc(slots, sizeof(*set->slots));
    set->mask = slots - 1;
    for (size_t i = 0; set->slots && i < set->count; i++) {
        struct undo *undo = &set->undos[i];
        size_t slot = undo_slot(set, undo->address);

        if (!set->slots[slot])
            set->slots[slot] = (uint32_t)i + 1;
        first[i] = (struct tbd_page_contents){ undo->address, undo->birth_time, undo->birth_order,
                                               undo->bytes };
    }
    return set->slots;
}

bool tbd_undo_first_contents(struct tbd_window *window, const struct tbd_page_notes *notes)
{
    struct undo_set set = { 0 };
    struct tbd_page_contents *first;
    bool dirty = false;
    bool good;
    size_t count = 0;

    for (size_t i = 0; i < notes->count; i++) {
        count += (notes->pages[i].flags & TBD_PAGE_FIRST) != 0;
        /* Before an execve, or a fork that shares memory, pages are sent that the window may have
         * written (hooks/window.h); a killed program may have done nothing after it. */
        dirty |= (notes->pages[i].flags & TBD_PAGE_FIRST) &&
                 ((notes->pages[i].flags & TBD_PAGE_DIRTY) || !notes->pages[i].at_end || !window->complete);
    }
    if (!count)
        return true;
    set.undos = calloc(count, sizeof(*set.undos));
    first = tbd_window_memory(window, count * sizeof(*first));
    good = set.undos && first && prepare(window, notes, &set, first);
    if (good && dirty)
        undo_all(window, &set, notes->end_limit);
    window->first = first;
    window->first_count = good ? count : 0;
    free(set.undos);
    free(set.slots);
    return good;
}
