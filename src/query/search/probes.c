// SPDX-License-Identifier: MIT
/* probes.c - memory values from one forward walk
 *
 * A probe is cut into parts, one per 8-byte aligned word.  A hash table leads from a word to the
 * parts that wait for bytes of it; a store removes the parts that it answers completely.
 *
 * PROBES-1  After a store, no part waits for a byte that the store covers, unless the byte's mapping
 *     has been removed since the probe: then the store is one to another mapping, and the contents at the
 *     removal answer.
 * PROBES-2  Stores of one instruction are queued and applied by tbd_probes_step(): probes "before"
 *     added meanwhile still see them, probes "after" are armed after them. (not checked:
 *     test_query_scan compares answers)
 * PROBES-3  Probes for the same bytes between which none of them was stored share one answer. (not checked:
 *     test_query_scan compares answers) */
#include "query/search/probes.h"

#include "base/assert.h"
#include "base/array.h"
#include "base/binary_search.h"
#include "base/layout.h"
#include "format/pages/pages.h"

#include <stdlib.h>
#include <string.h>

#define NONE      UINT32_MAX
#define QUEUE_MAX 64u
#define ALIKE_MAX 4u /* parts of a word that are looked at for a probe alike */

struct probe {
    struct tbd_position at;
    uint64_t address;
    uint64_t until[2]; /* of its first page and the next one: later stores are to other mappings */
    uint8_t bytes[8];
    uint8_t size;
    uint8_t open;    /* bit i: byte i has no answer yet */
    uint8_t unknown; /* bit i: byte i never gets one */
};

struct part {
    uint32_t probe;
    uint32_t next;
};

struct probe_slot {
    uint64_t word; /* address / 8 + 1; 0 = free */
    uint32_t head; /* part */
};

struct queued {
    uint64_t time;
    uint64_t address;
    uint64_t size;
    const uint8_t *old;
};

struct tbd_probes {
    struct tbd_trace *trace;
    const struct tbd_window *window;
    uint64_t
        *gone; /* addresses of pages that went away in the window, ascending; gone_count of them */
    uint32_t *numbers; /* owned: by number of an answer, its probe */
    uint32_t number_count;
    struct probe *probes;
    uint32_t probe_count;
    uint32_t *delayed; /* probes to arm at the next step */
    uint32_t delayed_count;
    struct part *parts;
    uint32_t part_count, part_free;
    struct probe_slot *slots;
    uint32_t slot_count, slot_mask;
    uint32_t waiting;   /* parts in the table */
    uint64_t low, high; /* all parts wait for words in [low, high); valid if waiting != 0 */
    struct queued queue[QUEUE_MAX];
    uint32_t queued;
    uint64_t page_address; /* address of `page`, 1 = none */
    bool page_known;
    uint8_t page[TBD_PAGE_SIZE];
};

/* False: no memory. */
static bool sort_gone(struct tbd_probes *p)
{
    size_t count = p->window->gone_count;

    if (count == 0)
        return true;
    p->gone = malloc(count * sizeof(*p->gone));
    if (p->gone == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        p->gone[i] = p->window->gone[i].address;
    qsort(p->gone, count, sizeof(*p->gone), tbd_compare_words);
    return true;
}

enum tbd_status tbd_probes_new(struct tbd_trace *trace, const struct tbd_window *window,
                               struct tbd_probes **out)
{
    struct tbd_probes *p = calloc(1, sizeof(*p));

    *out = p;
    if (p == NULL)
        return TBD_NOMEM;
    p->trace = trace;
    p->window = window;
    p->part_free = NONE;
    p->page_address = 1;
    if (sort_gone(p))
        return TBD_OK;
    tbd_probes_free(p);
    *out = NULL;
    return TBD_NOMEM;
}

void tbd_probes_free(struct tbd_probes *probes)
{
    if (probes == NULL)
        return;
    free(probes->gone);
    free(probes->numbers);
    free(probes->probes);
    free(probes->parts);
    free(probes->slots);
    free(probes->delayed);
    free(probes);
}

static uint32_t slot_start(const struct tbd_probes *p, uint64_t word)
{
    return (uint32_t)((word * 0x9e3779b97f4a7c15ull) >> 32) & p->slot_mask;
}

static struct probe_slot *slot_find(const struct tbd_probes *p, uint64_t word)
{
    uint32_t i;

    if (p->slots == NULL)
        return NULL;
    for (i = slot_start(p, word); p->slots[i].word != 0; i = (i + 1) & p->slot_mask) {
        if (p->slots[i].word == word + 1)
            return &p->slots[i];
    }
    return NULL;
}

static bool slots_double(struct tbd_probes *p)
{
    struct probe_slot *old = p->slots;
    uint32_t old_size = old == NULL ? 0 : p->slot_mask + 1;
    uint32_t size = old_size == 0 ? 256 : old_size * 2;

    p->slots = calloc(size, sizeof(*p->slots));
    if (p->slots == NULL) {
        p->slots = old;
        return false;
    }
    p->slot_mask = size - 1;
    for (uint32_t i = 0; i < old_size; i++) {
        uint32_t at;

        if (old[i].word == 0)
            continue;
        at = slot_start(p, old[i].word - 1);
        while (p->slots[at].word != 0)
            at = (at + 1) & p->slot_mask;
        p->slots[at] = old[i];
    }
    free(old);
    return true;
}

static struct probe_slot *slot_make(struct tbd_probes *p, uint64_t word)
{
    struct probe_slot *slot = slot_find(p, word);
    uint32_t i;

    if (slot != NULL)
        return slot;
    if ((p->slots == NULL || p->slot_count * 2 > p->slot_mask) && !slots_double(p))
        return NULL;
    for (i = slot_start(p, word); p->slots[i].word != 0;)
        i = (i + 1) & p->slot_mask;
    p->slots[i] = (struct probe_slot){ .word = word + 1, .head = NONE };
    p->slot_count++;
    return &p->slots[i];
}

static uint32_t part_new(struct tbd_probes *p)
{
    uint32_t part = p->part_free;

    if (part != NONE) {
        p->part_free = p->parts[part].next;
        return part;
    }
    if (!tbd_array_double(&p->parts, p->part_count, sizeof(*p->parts)))
        return NONE;
    return p->part_count++;
}

static void arm(struct tbd_probes *p, uint32_t number)
{
    const struct probe *probe = &p->probes[number];
    uint64_t first = probe->address / 8;
    uint64_t last = (probe->address + probe->size - 1) / 8;

    for (uint64_t word = first; word <= last && last - first < 2; word++) {
        struct probe_slot *slot = slot_make(p, word);
        uint32_t part = slot == NULL ? NONE : part_new(p);

        if (part == NONE) {
            p->probes[number].unknown =
                0xff; /* out of memory: no answer is better than a wrong one */
            return;
        }
        p->parts[part] = (struct part){ .probe = number, .next = slot->head };
        slot->head = part;
        if (p->waiting++ == 0 || word < p->low)
            p->low = word;
        if (p->waiting == 1 || word >= p->high)
            p->high = word + 1;
    }
}

static bool is_gone(const struct tbd_probes *p, uint64_t address)
{
    size_t count = p->window->gone_count;
    size_t at = TBD_COUNT_BEFORE(i, count, p->gone[i] < address);

    return at < count && p->gone[at] == address;
}

/* Only pages that went away in the window can have been mapped again. */
static void find_until(const struct tbd_probes *p, struct probe *probe)
{
    uint64_t page = probe->address & ~(TBD_PAGE_SIZE - 1);

    for (unsigned i = 0; i < 2; i++) {
        probe->until[i] = UINT64_MAX;
        if (is_gone(p, page + i * TBD_PAGE_SIZE) &&
            page + i * TBD_PAGE_SIZE < probe->address + probe->size)
            probe->until[i] =
                tbd_window_mapping_until(p->trace, p->window, probe->at, page + i * TBD_PAGE_SIZE);
    }
}

static uint8_t all_open(uint32_t size)
{
    return (uint8_t)((1u << size) - 1);
}

/* The probe that waits for the same bytes, all of them, in the same mapping; NONE: there is none. */
static uint32_t probe_alike(const struct tbd_probes *p, uint64_t address, uint32_t size)
{
    const struct probe_slot *slot = slot_find(p, address / 8);
    uint32_t part = slot == NULL ? NONE : slot->head;

    for (unsigned i = 0; i < ALIKE_MAX && part != NONE; i++, part = p->parts[part].next) {
        const struct probe *probe = &p->probes[p->parts[part].probe];

        if (probe->address == address && probe->size == size && probe->open == all_open(size) &&
            probe->unknown == 0 && probe->until[0] == UINT64_MAX && probe->until[1] == UINT64_MAX &&
            p->window->gone_count == 0)
            return p->parts[part].probe;
    }
    return NONE;
}

/* NONE: no memory. */
static uint32_t new_probe(struct tbd_probes *p, struct tbd_position at, uint64_t address,
                          uint32_t size, bool after)
{
    uint32_t probe = p->probe_count;

    if (!tbd_array_double(&p->probes, probe, sizeof(*p->probes)))
        return NONE;
    p->probes[probe] = (struct probe){ .address = address,
                                       .size = (uint8_t)size,
                                       .open = all_open(size),
                                       .at = { at.time, at.offset + after } };
    find_until(p, &p->probes[probe]);
    p->probe_count++;
    if (!after)
        arm(p, probe);
    else if (tbd_array_double(&p->delayed, p->delayed_count, sizeof(*p->delayed)))
        p->delayed[p->delayed_count++] = probe;
    else
        return NONE;
    return probe;
}

uint32_t tbd_probes_add(struct tbd_probes *probes, struct tbd_position at, uint64_t address,
                        uint32_t size, bool after)
{
    uint32_t number = probes->number_count;
    uint32_t probe = after ? NONE : probe_alike(probes, address, size);

    if (!tbd_array_double(&probes->numbers, number, sizeof(*probes->numbers)))
        return NONE;
    if (probe == NONE)
        probe = new_probe(probes, at, address, size, after);
    if (probe == NONE)
        return NONE;
    probes->numbers[number] = probe;
    return probes->number_count++;
}

/* The bytes of `probe` that [address, address+size) covers, one bit each. */
static uint8_t covered(const struct probe *probe, uint64_t address, uint64_t size)
{
    uint8_t bits = 0;

    for (unsigned i = 0; i < probe->size; i++) {
        if (probe->address + i - address < size)
            bits |= (uint8_t)(1u << i);
    }
    return bits;
}

/* The bytes of `probe` that the store covers in the mapping that the probe asks about. */
static uint8_t covered_by(const struct probe *probe, const struct queued *store)
{
    uint8_t bits = covered(probe, store->address, store->size);
    uint64_t first = TBD_PAGE_SIZE - (probe->address & (TBD_PAGE_SIZE - 1)); /* bytes in its page */
    uint8_t in_first = (uint8_t)(first >= 8 ? 0xffu : (1u << first) - 1);

    if (store->time >= probe->until[0])
        bits = (uint8_t)(bits & ~in_first);
    if (store->time >= probe->until[1])
        bits = (uint8_t)(bits & in_first);
    return bits;
}

static void answer(struct probe *probe, const struct queued *store)
{
    uint8_t bits = probe->open & covered_by(probe, store);
    const uint8_t *old = store->old;

    for (unsigned i = 0; bits >> i != 0; i++) {
        if ((bits >> i & 1) != 0 && old != NULL)
            probe->bytes[i] = old[probe->address + i - store->address];
    }
    probe->open &= (uint8_t)~bits;
    if (old == NULL)
        probe->unknown |= bits;
}

/* Does `probe` still wait for bytes of `word`? */
static bool waits(const struct probe *probe, uint64_t word)
{
    return (probe->open & covered(probe, word * 8, 8)) != 0;
}

/* Answers the parts that wait for one byte of the word, which the store covers. */
static bool nobody_waits(const struct tbd_probes *p, const struct probe_slot *slot,
                         const struct queued *store)
{
    for (uint32_t part = slot->head; part != NONE; part = p->parts[part].next) {
        const struct probe *probe = &p->probes[p->parts[part].probe];

        if ((probe->open & covered_by(probe, store)) != 0)
            return false;
    }
    return true;
}

static void store_word(struct tbd_probes *p, struct probe_slot *slot, const struct queued *store)
{
    uint32_t *link = &slot->head;

    while (*link != NONE) {
        uint32_t part = *link;
        struct probe *probe = &p->probes[p->parts[part].probe];

        answer(probe, store);
        if (waits(probe, slot->word - 1)) {
            link = &p->parts[part].next;
            continue;
        }
        *link = p->parts[part].next;
        p->parts[part].next = p->part_free;
        p->part_free = part;
        p->waiting--;
    }
    TBD_INVARIANT("PROBES-1", nobody_waits(p, slot, store));
}

static void apply(struct tbd_probes *p, const struct queued *store)
{
    uint64_t first = store->address / 8;
    uint64_t words = (store->address % 8 + store->size + 7) / 8;

    if (words <= p->slot_count) {
        for (uint64_t word = first; word < first + words; word++) {
            struct probe_slot *slot = slot_find(p, word);

            if (slot != NULL)
                store_word(p, slot, store);
        }
        return;
    }
    for (uint32_t i = 0; p->slots != NULL && i <= p->slot_mask; i++) {
        if (p->slots[i].word != 0 && p->slots[i].word - 1 - first < words)
            store_word(p, &p->slots[i], store);
    }
}

void tbd_probes_store(struct tbd_probes *probes, uint64_t time, uint64_t address, uint64_t size,
                      const uint8_t *old)
{
    if (size == 0)
        return;
    if (probes->queued == QUEUE_MAX)
        tbd_probes_step(probes);
    probes->queue[probes->queued++] = (struct queued){ time, address, size, old };
}

void tbd_probes_waiting(const struct tbd_probes *probes, uint64_t *out_start, uint64_t *out_end)
{
    *out_start = probes->waiting == 0 ? 0 : probes->low * 8;
    *out_end = probes->waiting == 0 ? 0 : probes->high * 8;
}

void tbd_probes_step(struct tbd_probes *probes)
{
    for (uint32_t i = 0; i < probes->queued; i++)
        apply(probes, &probes->queue[i]);
    probes->queued = 0;
    for (uint32_t i = 0; i < probes->delayed_count; i++)
        arm(probes, probes->delayed[i]);
    probes->delayed_count = 0;
}

/* ---- the window's end ---- */

static const uint8_t *end_page(struct tbd_probes *p, uint64_t address)
{
    const struct tbd_page_contents *dirty = tbd_window_dirty(p->window, address);

    if (dirty != NULL)
        return dirty->bytes;
    if (p->page_address != address) {
        p->page_address = address;
        p->page_known = tbd_window_page_at_start(p->trace, p->window, address, p->page) == TBD_OK;
    }
    return p->page_known ? p->page : NULL;
}

/* The mapping was removed during the window: the page's contents depend on the moment. No store
 * after the probe wrote the bytes. */
static bool read_at(struct tbd_probes *p, const struct probe *probe, uint64_t address, uint8_t *out)
{
    return tbd_trace_read_unstored(p->trace, p->window, probe->at, address, out, 1) == TBD_OK;
}

static bool read_end(struct tbd_probes *p, const struct probe *probe, uint64_t address,
                     uint8_t *out)
{
    uint64_t page_address = address & ~(TBD_PAGE_SIZE - 1);
    const uint8_t *page;

    if (is_gone(p, page_address))
        return read_at(p, probe, address, out);
    page = end_page(p, page_address);
    if (page != NULL)
        *out = page[address & (TBD_PAGE_SIZE - 1)];
    return page != NULL;
}

void tbd_probes_finish(struct tbd_probes *probes)
{
    tbd_probes_step(probes);
    for (uint32_t n = 0; n < probes->probe_count; n++) {
        struct probe *probe = &probes->probes[n];

        for (unsigned i = 0; probe->open >> i != 0; i++) {
            if ((probe->open >> i & 1) != 0 &&
                !read_end(probes, probe, probe->address + i, &probe->bytes[i]))
                probe->unknown |= (uint8_t)(1u << i);
        }
        probe->open = 0;
    }
}

bool tbd_probes_answer(const struct tbd_probes *probes, uint32_t number, uint64_t *out)
{
    const struct probe *probe;

    if (number >= probes->number_count || probes->probes[probes->numbers[number]].unknown != 0)
        return false;
    probe = &probes->probes[probes->numbers[number]];
    *out = 0;
    memcpy(out, probe->bytes, probe->size);
    return true;
}
