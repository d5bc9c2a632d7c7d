// SPDX-License-Identifier: MIT
/* undo.c - contents of pages before a window used them for the first time
 *
 * A page's contents come with the window's end, or with the end of its mapping (its capture).  A
 * walk backwards over the events puts the old bytes of stores back into the pages whose capture and
 * mapping see them.
 *
 * The counts of words say which of these pages were stored to at all (most were only read), how
 * often, and when last: events after that are skipped, and the walk ends at the first such store.
 * In between only the stores of blocks are checked; hardly any is to one of these pages, which one
 * bit for each page tells.
 *
 * Invariants
 * UNDO-1  WINDOW-1 holds for the window (format/window/window.c): records and messages fill the
 *     operands exactly. (not checked: whoever makes a window goes through it; the fuzzers do it
 *     again)
 * UNDO-2  Exactly the counted stores are undone, so the walk ends when it has met as many stores to
 *     these pages.
 * UNDO-3  TBD_ROW_SLACK bytes past the operands may be read. (not checked: a reader under asan
 *     would tell) */
#include "organizer/undo.h"

#include "base/assert.h"
#include "base/array.h"
#include "base/binary_search.h"
#include "format/window/window_make.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES 4096u
#define PAGE_BITS  32768u /* by low bits of the page number */

/* A page whose contents at the beginning are wanted. */
struct undo {
    uint64_t address;
    const uint8_t *captured;
    uint8_t *bytes; /* a copy; NULL: nothing was stored to the page */
    uint64_t capture_time;
    uint32_t capture_order;
    bool at_end; /* captured after all events */
    uint64_t birth_time;
    uint32_t birth_order;
};

/* A store of a block, as struct tbd_op says. */
struct undo_store {
    uint64_t base_mask; /* 0: the address is constant */
    int64_t add;
    uint16_t base;
    uint16_t data;
    uint16_t bytes;
    uint16_t insn;
};

/* What the walk needs to know of a block. */
struct undo_block {
    uint32_t first_store, store_count;
    uint32_t operand_bytes;
    uint32_t events;
};

struct undo_set {
    struct undo *undos; /* by page, then in order of captures */
    size_t count;
    /* page that was stored to -> first index + 1; undos of a page are neighbours */
    uint32_t *slots;
    size_t mask;
    uint64_t page_bits[PAGE_BITS / 64]; /* pages that are in `slots` */
    uint64_t left; /* touches of words of these pages by stores that are not met yet */
    /* event of the last store to a word of them that was stored to more than once */
    uint32_t last_again;
    /* after last_again, events of stores to words that were stored to once, ascending */
    uint32_t *once;
    size_t once_count, once_capacity;
    struct undo_block *blocks; /* by id */
    struct undo_store *stores;
    size_t store_count, store_capacity;
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

/* ---- pages that were stored to ---- */

static size_t undo_slot(const struct undo_set *set, uint64_t address)
{
    size_t slot = (size_t)((address * 0x9e3779b97f4a7c15ull) >> 30) & set->mask;

    while (set->slots[slot] && set->undos[set->slots[slot] - 1].address != address)
        slot = (slot + 1) & set->mask;
    return slot;
}

static bool is_in_bits(const struct undo_set *set, uint64_t address)
{
    uint64_t page = address / PAGE_BYTES % PAGE_BITS;

    return set->page_bits[page / 64] >> page % 64 & 1;
}

static void put_in_bits(struct undo_set *set, uint64_t address)
{
    uint64_t page = address / PAGE_BYTES % PAGE_BITS;

    set->page_bits[page / 64] |= UINT64_C(1) << page % 64;
}

/* Events at block time `time` after `order` messages: does the capture see them, and does the mapping? */
static bool is_between(const struct undo *undo, uint64_t time, uint32_t order)
{
    if (!undo->at_end &&
        (time > undo->capture_time || (time == undo->capture_time && order >= undo->capture_order)))
        return false;
    return time > undo->birth_time || (time == undo->birth_time && order >= undo->birth_order);
}

static void undo_in_page(struct undo_set *set, uint64_t address, uint64_t bytes,
                         const uint8_t *old_bytes, uint64_t time, uint32_t order)
{
    uint64_t page = address & ~(uint64_t)(PAGE_BYTES - 1);
    uint32_t first = set->slots[undo_slot(set, page)];

    if (!first)
        return;
    TBD_INVARIANT("UNDO-2", (address + bytes - 1) / 8 - address / 8 < set->left);
    set->left -= (address + bytes - 1) / 8 - address / 8 + 1;
    for (size_t i = first; old_bytes && i <= set->count && set->undos[i - 1].address == page; i++)
        if (is_between(&set->undos[i - 1], time, order))
            memcpy(set->undos[i - 1].bytes + (address - page), old_bytes, bytes);
}

/* `old_bytes` NULL: they are not known. */
static void undo_store(struct undo_set *set, uint64_t address, uint64_t bytes,
                       const uint8_t *old_bytes, uint64_t time, uint32_t order)
{
    while (bytes) {
        uint64_t part = PAGE_BYTES - address % PAGE_BYTES;

        if (part > bytes)
            part = bytes;
        undo_in_page(set, address, part, old_bytes, time, order);
        address += part;
        if (old_bytes)
            old_bytes += part;
        bytes -= part;
    }
}

/* ---- the walk backwards ---- */

/* The writes of a message in reverse; the message itself can be read only forwards. */
static void undo_message(struct undo_set *set, const struct tbd_log_entry *entry, uint32_t order)
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
        undo_store(set, writes[count].address, writes[count].bytes, writes[count].old_bytes,
                   entry->time, order);
    free(writes);
}

/* How far the walk has come: the events before `index` are left. */
struct undo_walk {
    const struct tbd_window *window;
    const struct tbd_page_notes *notes;
    const uint8_t *record;
    size_t entry;
    uint64_t index;
    uint64_t time;
    uint32_t order;
};

/* The last event that may store to the pages; events from `index` on have been passed. */
static uint64_t next_wanted(struct undo_set *set, uint64_t index)
{
    while (set->once_count && set->once[set->once_count - 1] >= index)
        set->once_count--;
    return set->once_count ? set->once[set->once_count - 1] : set->last_again;
}

static inline __attribute__((always_inline)) uint64_t address_of(const struct undo_store *store,
                                                                 const uint8_t *record)
{
    uint64_t base;

    memcpy(&base, record + store->base, sizeof(base));
    return (base & store->base_mask) + (uint64_t)store->add;
}

/* Undoes the stores of the block that the walk has come to. */
static __attribute__((noinline)) void
undo_stores(struct undo_set *set, const struct undo_walk *walk, const struct undo_block *block)
{
    const struct undo_store *first = set->stores + block->first_store;

    for (const struct undo_store *store = first + block->store_count; store-- > first;)
        if (!tbd_is_cut(walk->notes->cuts, walk->notes->cut_count, walk->index, store->insn))
            undo_store(set, address_of(store, walk->record), store->bytes,
                       walk->record + store->data, walk->time, walk->order);
}

/* May one of the block's stores be to one of the pages? */
static inline __attribute__((always_inline)) bool
may_hit(const struct undo_set *set, const struct undo_block *block, const uint8_t *record)
{
    const struct undo_store *store = set->stores + block->first_store,
                            *end = store + block->store_count;
    bool found = false;

    for (; store < end; store++) {
        uint64_t address = address_of(store, record);

        found |= is_in_bits(set, address) | (address % PAGE_BYTES + store->bytes > PAGE_BYTES);
    }
    return found;
}

/* Undoes blocks back to the message before. */
static void undo_run(struct undo_set *set, struct undo_walk *walk)
{
    const uint32_t *entries = walk->window->entries;
    const uint8_t *record = walk->record;
    const struct undo_block *blocks = set->blocks;
    uint64_t index = walk->index, wanted = next_wanted(set, index);
    size_t entry = walk->entry;

    while (entry && !(entries[entry - 1] & TBD_ENTRY_MESSAGE) && set->left) {
        const struct undo_block *block = &blocks[entries[--entry]];

        record -= block->operand_bytes;
        index -= block->events;
        if (index > wanted)
            continue;
        if (may_hit(set, block, record)) {
            struct undo_walk here = { walk->window, walk->notes, record,
                                      entry,        index,       walk->time - (walk->entry - entry),
                                      walk->order };

            undo_stores(set, &here, block);
        }
        if (wanted > set->last_again)
            wanted = next_wanted(set, index);
    }
    walk->time -= walk->entry - entry;
    walk->entry = entry;
    walk->record = record;
    walk->index = index;
}

static void undo_all(const struct tbd_window *window, const struct tbd_page_notes *notes,
                     struct undo_set *set)
{
    struct undo_walk walk = { window,
                              notes,
                              window->operands + window->operand_bytes,
                              window->entry_count,
                              notes->events,
                              window->blocks,
                              (uint32_t)window->log_count };

    while (walk.entry && set->left) {
        undo_run(set, &walk);
        if (!walk.entry || !set->left)
            break;
        if (!tbd_message_is_logged(window->entries[walk.entry - 1] & ~TBD_ENTRY_MESSAGE))
            break; /* of a replay, which sends no first contents */
        walk.entry--;
        walk.index--;
        walk.record = (const void *)window->log[--walk.order].message;
        if (walk.index <= next_wanted(set, walk.index + 1))
            undo_message(set, &window->log[walk.order], walk.order);
    }
}

/* ---- preparation ---- */

static bool may_be_wanted(const struct undo_set *set, const struct tbd_op *op)
{
    uint64_t last = (uint64_t)op->add + op->size - 1;

    return op->kind == TBD_OP_STORE &&
           (op->base != TBD_BASE_NONE || is_in_bits(set, (uint64_t)op->add) ||
            is_in_bits(set, last));
}

static bool add_block(struct undo_set *set, const struct tbd_block *block, struct undo_block *out)
{
    *out = (struct undo_block){ .first_store = (uint32_t)set->store_count,
                                .operand_bytes = block->def.operand_bytes,
                                .events = block->def.op_count + 1u };
    for (uint16_t i = 0; i < block->def.op_count; i++) {
        const struct tbd_op *op = &block->ops[i];
        bool has_base = op->base != TBD_BASE_NONE;

        if (!may_be_wanted(set, op))
            continue;
        if (!tbd_array_grow(&set->stores, set->store_count, &set->store_capacity,
                            sizeof(*set->stores)))
            return false;
        set->stores[set->store_count++] = (struct undo_store){
            .base_mask = has_base ? UINT64_MAX : 0,
            .add = op->add,
            .base = (uint16_t)(has_base ? op->base : 0),
            .data = (uint16_t)op->data,
            .bytes = (uint16_t)op->size,
            .insn = op->insn,
        };
        out->store_count++;
    }
    return true;
}

static bool add_blocks(struct undo_set *set, const struct tbd_window *window)
{
    size_t count = window->block_summary_count;
    const struct tbd_block_summary *summaries = window->block_summaries;
    bool good = true;

    set->blocks = calloc(count ? summaries[count - 1].id + 1u : 1u, sizeof(*set->blocks));
    for (size_t i = 0; set->blocks && good && i < count; i++)
        good = add_block(set, tbd_window_block(window, summaries[i].id),
                         &set->blocks[summaries[i].id]);
    return set->blocks && good;
}

/* Notes the word: the walk must find its stores. */
static bool want_word(struct undo_set *set, const struct tbd_word_summary *word)
{
    set->left += word->count;
    if (word->count > 1) {
        if (set->last_again < word->last)
            set->last_again = word->last;
        return true;
    }
    if (!tbd_array_grow(&set->once, set->once_count, &set->once_capacity, sizeof(*set->once)))
        return false;
    set->once[set->once_count++] = word->last;
    return true;
}

/* Notes the words stored to in this page.  False without memory. */
static bool want_words(const struct tbd_window *window, struct undo_set *set, uint64_t address,
                       bool *out_are_any)
{
    const struct tbd_word_summary *words = window->words;
    size_t first = TBD_COUNT_BEFORE(i, window->word_count, words[i].word < address), at = first;
    bool good = true;

    for (; good && at < window->word_count && words[at].word - address < PAGE_BYTES; at++)
        good = want_word(set, &words[at]);
    *out_are_any = at != first;
    return good;
}

static int compare_events(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

    return a < b ? -1 : a > b;
}

static void sort_once(struct undo_set *set)
{
    size_t kept = 0;

    for (size_t i = 0; i < set->once_count; i++)
        if (set->once[i] > set->last_again)
            set->once[kept++] = set->once[i];
    set->once_count = kept;
    if (kept)
        qsort(set->once, kept, sizeof(*set->once), compare_events);
}

static bool copy_page(struct tbd_window *window, struct undo *undo)
{
    undo->bytes = malloc(PAGE_BYTES);
    if (!undo->bytes || !tbd_window_adopt(window, undo->bytes))
        return false;
    memcpy(undo->bytes, undo->captured, PAGE_BYTES);
    return true;
}

/* Copies the pages that were stored to, and enters them into `slots`. */
static bool add_pages(struct undo_set *set, struct tbd_window *window)
{
    size_t slots = 64;
    bool is_stored = false;

    while (slots < set->count * 2)
        slots *= 2;
    set->slots = calloc(slots, sizeof(*set->slots));
    set->mask = slots - 1;
    for (size_t i = 0; set->slots && i < set->count; i++) {
        struct undo *undo = &set->undos[i];
        bool is_new = !i || undo[-1].address != undo->address;

        if ((is_new && !want_words(window, set, undo->address, &is_stored)) ||
            (is_stored && !copy_page(window, undo)))
            return false;
        if (is_stored && is_new)
            set->slots[undo_slot(set, undo->address)] = (uint32_t)i + 1;
        if (is_stored)
            put_in_bits(set, undo->address);
    }
    sort_once(set);
    return set->slots;
}

/* Before an execve, or a fork that shares memory, pages are sent that the window may have written (hooks/threads/window_end.h); a
 * killed program may have done nothing after it. */
static bool may_be_written(const struct tbd_window *window, const struct tbd_page_note *note)
{
    return (note->flags & TBD_PAGE_DIRTY) || !note->at_end || !window->complete;
}

/* Returns whether any of the pages may have been written to. */
static bool find_pages(const struct tbd_window *window, const struct tbd_page_notes *notes,
                       struct undo_set *set)
{
    bool may_be = false;

    for (size_t i = 0; i < notes->count; i++) {
        const struct tbd_page_note *note = &notes->pages[i];
        struct undo *undo = &set->undos[set->count];

        if (!(note->flags & TBD_PAGE_FIRST))
            continue;
        may_be |= may_be_written(window, note);
        *undo = (struct undo){ .address = note->address,
                               .captured = note->bytes,
                               .capture_time = note->time,
                               .capture_order = note->order,
                               .at_end = note->at_end };
        find_birth(notes, undo);
        set->count++;
    }
    if (set->count)
        qsort(set->undos, set->count, sizeof(*set->undos), compare_undo);
    return may_be;
}

static bool undo_written(struct tbd_window *window, const struct tbd_page_notes *notes,
                         struct undo_set *set)
{
    bool good = add_pages(set, window) && (!set->left || add_blocks(set, window));

    if (good)
        undo_all(window, notes, set);
    free(set->slots);
    free(set->once);
    free(set->blocks);
    free(set->stores);
    return good;
}

bool tbd_undo_first_contents(struct tbd_window *window, const struct tbd_page_notes *notes)
{
    struct undo_set set = { 0 };
    struct tbd_page_contents *first;
    bool good;
    size_t count = 0;

    for (size_t i = 0; i < notes->count; i++)
        count += (notes->pages[i].flags & TBD_PAGE_FIRST) != 0;
    if (!count)
        return true;
    set.undos = malloc(count * sizeof(*set.undos));
    first = tbd_window_memory(window, count * sizeof(*first));
    good = set.undos && first &&
           (!find_pages(window, notes, &set) || undo_written(window, notes, &set));
    for (size_t i = 0; good && i < count; i++) {
        const struct undo *undo = &set.undos[i];

        first[i] =
            (struct tbd_page_contents){ .address = undo->address,
                                        .time = undo->birth_time,
                                        .order = undo->birth_order,
                                        .bytes = undo->bytes ? undo->bytes : undo->captured };
    }
    window->first = first;
    window->first_count = good ? count : 0;
    free(set.undos);
    return good;
}
