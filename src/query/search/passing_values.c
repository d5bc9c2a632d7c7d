// SPDX-License-Identifier: MIT
/* passing_values.c - see passing_values.h
 *
 * A page of memory that stores wait for has a slot for each word: the store that waits for bytes of this word alone, and whether others wait,
 * too.  Nearly all stores meet one that wrote the same bytes, or none.  The others are in chains by word, as are those that cross a word's
 * end: which of their bytes have an answer is known byte by byte.
 *
 * PASSING_VALUES-1  After a store, none waits for a byte that it covers. (not checked: test_passing_values compares with memory) */
#include "query/search/passing_values.h"

#include "base/array.h"
#include "base/layout.h"

#include <stdlib.h>
#include <string.h>

#define WORDS  (TBD_PAGE_SIZE / 8)
#define RECENT 256u
#define NONE   UINT32_MAX

/* A store that waits for bytes of one word.  bytes 0: there is none. */
struct slot {
    uint64_t old;
    uint32_t time, block;
    uint16_t op;
    uint8_t first, bytes; /* of the word */
    bool has_others;      /* in a chain */
};

struct page {
    uint64_t number; /* address / TBD_PAGE_SIZE */
    struct slot slots[WORDS];
};

/* A store in chains: of its first byte's word, and of the next one. */
struct other {
    struct tbd_waiting_store store;
    uint64_t value;  /* of the bytes that have an answer */
    uint8_t open;    /* bit i: byte i has none */
    uint8_t unknown; /* bit i: it never gets one */
    uint32_t next
        [2]; /* in the chain of its first word, of its second; next[0] in the list of free ones */
};

struct chain {
    uint64_t word; /* + 1; 0: free */
    uint32_t head;
};

struct tbd_passing_values {
    bool (*found)(void *context, const struct tbd_waiting_store *store, uint64_t value,
                  bool is_known);
    void *context;
    struct page *recent[RECENT]; /* by number */
    struct page **pages;         /* hash table, owned */
    size_t page_count, page_capacity;
    struct other *others; /* owned */
    uint32_t other_free;
    size_t other_count, other_capacity;
    struct chain *chains; /* hash table, owned */
    size_t chain_count, chain_capacity;
};

struct tbd_passing_values *
tbd_passing_values_new(bool (*found)(void *context, const struct tbd_waiting_store *store,
                                     uint64_t value, bool is_known),
                       void *context)
{
    struct tbd_passing_values *v = calloc(1, sizeof(*v));

    if (v == NULL)
        return NULL;
    v->found = found;
    v->context = context;
    v->other_free = NONE;
    return v;
}

void tbd_passing_values_free(struct tbd_passing_values *v)
{
    if (v == NULL)
        return;
    for (size_t i = 0; i < v->page_capacity; i++)
        free(v->pages[i]);
    free(v->pages);
    free(v->others);
    free(v->chains);
    free(v);
}

/* ---- pages ---- */

static size_t hash_of(uint64_t key, size_t capacity)
{
    return (size_t)((key * 0x9e3779b97f4a7c15ull) >> 32) & (capacity - 1);
}

static struct page **place_of(struct page **pages, size_t capacity, uint64_t number)
{
    size_t i = hash_of(number, capacity);

    while (pages[i] != NULL && pages[i]->number != number)
        i = (i + 1) & (capacity - 1);
    return &pages[i];
}

/* NULL: nothing waits for bytes of it, nor ever has. */
static struct page *find_page(struct tbd_passing_values *v, uint64_t number)
{
    struct page **recent = &v->recent[number % RECENT];

    if (*recent != NULL && (*recent)->number == number)
        return *recent;
    if (v->page_capacity == 0)
        return NULL;
    *recent = *place_of(v->pages, v->page_capacity, number);
    return *recent;
}

static bool grow_pages(struct tbd_passing_values *v)
{
    size_t capacity = v->page_capacity == 0 ? 1024 : 2 * v->page_capacity;
    struct page **pages = calloc(capacity, sizeof(struct page *));

    if (pages == NULL)
        return false;
    for (size_t i = 0; i < v->page_capacity; i++) {
        if (v->pages[i] != NULL)
            *place_of(pages, capacity, v->pages[i]->number) = v->pages[i];
    }
    free(v->pages);
    v->pages = pages;
    v->page_capacity = capacity;
    return true;
}

static struct page *make_page(struct tbd_passing_values *v, uint64_t number)
{
    struct page *page = find_page(v, number);

    if (page != NULL)
        return page;
    if (2 * v->page_count >= v->page_capacity && !grow_pages(v))
        return NULL;
    page = calloc(1, sizeof(*page));
    if (page == NULL)
        return NULL;
    page->number = number;
    *place_of(v->pages, v->page_capacity, number) = page;
    v->page_count++;
    v->recent[number % RECENT] = page;
    return page;
}

static struct slot *make_slot(struct tbd_passing_values *v, uint64_t word)
{
    struct page *page = make_page(v, word / WORDS);

    return page == NULL ? NULL : &page->slots[word % WORDS];
}

/* ---- chains ---- */

static struct chain *chain_of(struct chain *chains, size_t capacity, uint64_t word)
{
    size_t i = hash_of(word, capacity);

    while (chains[i].word != 0 && chains[i].word != word + 1)
        i = (i + 1) & (capacity - 1);
    return &chains[i];
}

/* Leaves out words for which none waits any more. */
static bool grow_chains(struct tbd_passing_values *v)
{
    size_t used = 0, capacity = 1024;
    struct chain *chains;

    for (size_t i = 0; i < v->chain_capacity; i++)
        used += v->chains[i].word != 0 && v->chains[i].head != NONE;
    while (capacity < 4 * used)
        capacity *= 2;
    chains = calloc(capacity, sizeof(*chains));
    if (chains == NULL)
        return false;
    for (size_t i = 0; i < v->chain_capacity; i++) {
        if (v->chains[i].word != 0 && v->chains[i].head != NONE)
            *chain_of(chains, capacity, v->chains[i].word - 1) = v->chains[i];
    }
    free(v->chains);
    v->chains = chains;
    v->chain_capacity = capacity;
    v->chain_count = used;
    return true;
}

static struct chain *make_chain(struct tbd_passing_values *v, uint64_t word)
{
    struct chain *chain;

    if (2 * v->chain_count >= v->chain_capacity && !grow_chains(v))
        return NULL;
    chain = chain_of(v->chains, v->chain_capacity, word);
    if (chain->word == 0) {
        *chain = (struct chain){ .word = word + 1, .head = NONE };
        v->chain_count++;
    }
    return chain;
}

static uint8_t bits_of(uint64_t bytes)
{
    return bytes >= 8 ? UINT8_MAX : (uint8_t)((1u << bytes) - 1);
}

static bool take_other(struct tbd_passing_values *v, uint32_t *out)
{
    if (v->other_free != NONE) {
        *out = v->other_free;
        v->other_free = v->others[*out].next[0];
        return true;
    }
    if (v->other_count >= NONE ||
        !tbd_array_grow(&v->others, v->other_count, &v->other_capacity, sizeof(*v->others)))
        return false;
    *out = (uint32_t)v->other_count++;
    return true;
}

static bool put_other(struct tbd_passing_values *v, const struct tbd_waiting_store *store)
{
    uint64_t first = store->address / 8, last = (store->address + store->bytes - 1) / 8;
    uint32_t number;

    if (!take_other(v, &number))
        return false;
    v->others[number] = (struct other){ .store = *store, .open = bits_of(store->bytes) };
    for (uint64_t word = first; word <= last; word++) {
        struct slot *slot = make_slot(v, word);
        struct chain *chain = make_chain(v, word);

        if (slot == NULL || chain == NULL)
            return false;
        slot->has_others = true;
        v->others[number].next[word - first] = chain->head;
        chain->head = number;
    }
    return true;
}

/* Does it wait for bytes of the word? */
static bool waits_for(const struct other *other, uint64_t word)
{
    for (unsigned i = 0; i < other->store.bytes; i++) {
        if ((other->open >> i & 1) != 0 && (other->store.address + i) / 8 == word)
            return true;
    }
    return false;
}

/* Bytes of one word: `bytes` of them from `address` on. */
struct covering {
    uint64_t address;
    uint64_t bytes;
    const uint8_t *old; /* NULL: not known */
};

static void answer_other(struct other *other, const struct covering *by)
{
    for (unsigned i = 0; i < other->store.bytes; i++) {
        uint64_t at = other->store.address + i - by->address;

        if ((other->open >> i & 1) == 0 || at >= by->bytes)
            continue;
        other->open &= (uint8_t) ~(1u << i);
        if (by->old == NULL)
            other->unknown |= (uint8_t)(1u << i);
        else
            other->value |= (uint64_t)by->old[at] << 8 * i;
    }
}

static bool tell_other(struct tbd_passing_values *v, uint32_t number)
{
    const struct other other = v->others[number];

    v->others[number].next[0] = v->other_free;
    v->other_free = number;
    return v->found(v->context, &other.store, other.value, other.unknown == 0);
}

static bool answer_others(struct tbd_passing_values *v, struct slot *slot, uint64_t word,
                          const struct covering *by)
{
    struct chain *chain = chain_of(v->chains, v->chain_capacity, word);
    uint32_t *link = &chain->head;
    bool good = true;

    while (good && *link != NONE) {
        uint32_t number = *link;
        struct other *other = &v->others[number];
        size_t which = word - other->store.address / 8;

        answer_other(other, by);
        if (waits_for(other, word)) {
            link = &other->next[which];
            continue;
        }
        *link = other->next[which];
        if (other->open == 0)
            good = tell_other(v, number);
    }
    slot->has_others = chain->head != NONE;
    return good;
}

/* ---- slots ---- */

static struct tbd_waiting_store store_of(const struct slot *slot, uint64_t word)
{
    return (struct tbd_waiting_store){ .address = word * 8 + slot->first,
                                       .old = slot->old,
                                       .time = slot->time,
                                       .block = slot->block,
                                       .op = slot->op,
                                       .bytes = slot->bytes };
}

/* The bytes of the slot's store, which are all covered. */
static bool tell_slot(struct tbd_passing_values *v, struct slot *slot, uint64_t word,
                      const struct covering *by)
{
    struct tbd_waiting_store store = store_of(slot, word);
    uint64_t value = 0;

    slot->bytes = 0;
    if (by->old == NULL)
        return v->found(v->context, &store, 0, false);
    if (store.bytes == 8)
        memcpy(&value, by->old, 8);
    else if (store.bytes == 4)
        memcpy(&value, by->old + (store.address - by->address), 4);
    else
        memcpy(&value, by->old + (store.address - by->address), store.bytes);
    return v->found(v->context, &store, value, true);
}

static bool answer_word(struct tbd_passing_values *v, struct slot *slot, uint64_t word,
                        const struct covering *by)
{
    uint64_t first = by->address % 8;
    bool good = true;

    if (slot->bytes != 0 && slot->first >= first &&
        slot->first + slot->bytes <= first + by->bytes) {
        good = tell_slot(v, slot, word, by);
    } else if (slot->bytes != 0 && slot->first < first + by->bytes &&
               first < (uint64_t)slot->first + slot->bytes) {
        struct tbd_waiting_store store = store_of(slot, word);

        slot->bytes = 0;
        good = put_other(v, &store);
    }
    return good && (!slot->has_others || answer_others(v, slot, word, by));
}

bool tbd_passing_values_store(struct tbd_passing_values *v, uint64_t address, uint64_t bytes,
                              const uint8_t *old)
{
    uint64_t done = 0;
    bool good = true;

    while (good && done < bytes) {
        uint64_t at = address + done, word = at / 8, here = 8 - at % 8;
        struct page *page = find_page(v, word / WORDS);
        struct covering by = { at, here < bytes - done ? here : bytes - done,
                               old == NULL ? NULL : old + done };

        if (page == NULL) {
            done += TBD_PAGE_SIZE - at % TBD_PAGE_SIZE;
            continue;
        }
        if (page->slots[word % WORDS].bytes != 0 || page->slots[word % WORDS].has_others)
            good = answer_word(v, &page->slots[word % WORDS], word, &by);
        done += by.bytes;
    }
    return good;
}

bool tbd_passing_values_wait(struct tbd_passing_values *v, const struct tbd_waiting_store *store)
{
    struct slot *slot;

    if (store->address % 8 + store->bytes > 8)
        return put_other(v, store);
    slot = make_slot(v, store->address / 8);
    if (slot == NULL)
        return false;
    if (slot->bytes != 0)
        return put_other(v, store);
    *slot = (struct slot){ .old = store->old,
                           .time = store->time,
                           .block = store->block,
                           .op = store->op,
                           .first = (uint8_t)(store->address % 8),
                           .bytes = store->bytes,
                           .has_others = slot->has_others };
    return true;
}

/* ---- the window's end ---- */

bool tbd_passing_values_end(struct tbd_passing_values *v,
                            const uint8_t *(*read)(void *context, uint64_t page), void *context)
{
    bool good = true;

    for (size_t i = 0; i < v->page_capacity && good; i++) {
        const uint8_t *bytes;

        if (v->pages[i] == NULL)
            continue;
        bytes = read(context, v->pages[i]->number * TBD_PAGE_SIZE);
        good =
            tbd_passing_values_store(v, v->pages[i]->number * TBD_PAGE_SIZE, TBD_PAGE_SIZE, bytes);
    }
    return good;
}
