// SPDX-License-Identifier: MIT
/* last_stores.c - when each word of a window was stored to last, if its summaries do not say so
 *
 * Level 1 keeps only which words were stored to.  Once the events are back, one pass over them,
 * made on first use, finds the rest.  Stores that a fault prevented count, too: the answer is an
 * upper bound. */
#include "format/files/codec.h"
#include "format/window/window_state.h"

#include <stdlib.h>
#include <string.h>

struct lasts {
    const struct tbd_window *window;
    uint32_t *last;  /* of each word, the event's index + 1 */
    uint32_t *slots; /* hash table: which word + 1 */
    size_t mask;
};

static size_t slot_of(const struct lasts *l, uint64_t word)
{
    size_t slot = (size_t)(word * 0x9e3779b97f4a7c15ull >> 20) & l->mask;

    while (l->slots[slot] && l->window->words[l->slots[slot] - 1].word != word)
        slot = (slot + 1) & l->mask;
    return slot;
}

static void note(const struct lasts *l, uint64_t address, uint64_t bytes, uint32_t index)
{
    uint64_t end = address + bytes;

    for (uint64_t word = address & ~7ull; bytes && word < end; word += 8) {
        uint32_t which = l->slots[slot_of(l, word)];

        if (which)
            l->last[which - 1] = index + 1;
    }
}

static void note_block(const struct lasts *l, const struct tbd_block *block, const uint8_t *record,
                       uint32_t index)
{
    for (uint32_t i = 0; i < block->def.op_count; i++) {
        const struct tbd_op *op = &block->ops[i];
        uint64_t base = 0;

        if (op->kind != TBD_OP_STORE)
            continue;
        if (op->base != TBD_BASE_NONE)
            memcpy(&base, record + op->base, sizeof(base));
        note(l, base + (uint64_t)op->add, op->size, index + 1 + i);
    }
}

static size_t note_message(const struct lasts *l, const uint8_t *at, uint32_t index)
{
    struct tbd_write_cursor cursor;
    struct tbd_write_view write;
    struct tbd_message head;

    memcpy(&head, at, sizeof(head));
    tbd_writes_first(head.kind, at + sizeof(head), head.bytes, &cursor);
    while (tbd_writes_next(&cursor, &write))
        if (write.address < UINT64_MAX - write.bytes)
            note(l, write.address, write.bytes, index);
    return sizeof(head) + head.bytes;
}

static void note_all(const struct lasts *l)
{
    const struct tbd_window *window = l->window;
    const uint8_t *at = window->operands;
    uint32_t index = 0;

    for (size_t i = 0; i < window->entry_count; i++) {
        const struct tbd_block *block;

        if (window->entries[i] & TBD_ENTRY_MESSAGE) {
            at += note_message(l, at, index++);
            continue;
        }
        block = tbd_window_block(window, window->entries[i]);
        note_block(l, block, at, index);
        at += block->def.operand_bytes;
        index += 1u + block->def.op_count;
    }
}

static uint32_t *find_lasts(const struct tbd_window *window)
{
    struct lasts l = { .window = window, .mask = 63 };

    while (l.mask < window->word_count * 2)
        l.mask = l.mask * 2 + 1;
    l.last = calloc(window->word_count + 1, sizeof(*l.last));
    l.slots = calloc(l.mask + 1, sizeof(*l.slots));
    if (l.last && l.slots) {
        for (size_t i = 0; i < window->word_count; i++)
            l.slots[slot_of(&l, window->words[i].word)] = (uint32_t)i + 1;
        note_all(&l);
    } else {
        free(l.last);
        l.last = NULL;
    }
    free(l.slots);
    return l.last;
}

/* Several threads may look at one window. */
const uint32_t *tbd_window_last_stores(const struct tbd_window *window)
{
    uint32_t **kept = &window->state->last_stores, *nobodys = NULL;
    uint32_t *found = __atomic_load_n(kept, __ATOMIC_ACQUIRE);

    if (found)
        return found;
    found = find_lasts(window);
    if (!found || __atomic_compare_exchange_n(kept, &nobodys, found, false, __ATOMIC_ACQ_REL,
                                              __ATOMIC_ACQUIRE))
        return found;
    free(found);
    return nobodys;
}
