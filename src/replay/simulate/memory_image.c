// SPDX-License-Identifier: MIT
/* memory_image.c - see memory_image.h */
#include "replay/simulate/memory_image.h"

#include "base/array.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_SIZE = 4096 };

void tbd_image_begin(struct tbd_image *image, uint32_t begin, tbd_image_source source, void *arg)
{
    tbd_image_forget(image, source);
    image->begin = begin;
    image->arg = arg;
    image->store_count = 0;
    image->begin_counter = 0;
}

void tbd_image_free(struct tbd_image *image)
{
    free(image->words);
    free(image->replaced);
    free(image->stores);
    memset(image, 0, sizeof(*image));
}

/* An array of `capacity` bytes takes those of another one, and is made larger for that. */
static bool copy_array(void **to, size_t capacity, const void *from, size_t bytes)
{
    if (capacity < bytes) {
        free(*to);
        *to = malloc(bytes);
    }
    if (bytes != 0 && *to != NULL)
        memcpy(*to, from, bytes);
    return bytes == 0 || *to != NULL;
}

static size_t larger(size_t one, size_t other)
{
    return one > other ? one : other;
}

bool tbd_image_copy(struct tbd_image *to, const struct tbd_image *from)
{
    struct tbd_image old = *to;
    void *words = old.words, *stores = old.stores, *replaced = old.replaced;
    bool done = copy_array(&words, old.size * sizeof(*old.words), from->words,
                           from->size * sizeof(*from->words));

    done &= copy_array(&stores, old.store_capacity * sizeof(*old.stores), from->stores,
                       from->store_count * sizeof(*from->stores));
    done &= copy_array(&replaced, old.replaced_capacity * sizeof(*old.replaced), from->replaced,
                       from->replaced_count * sizeof(*from->replaced));
    *to = *from;
    to->words = words;
    to->stores = stores;
    to->replaced = replaced;
    to->store_capacity = larger(old.store_capacity, from->store_count);
    to->replaced_capacity = larger(old.replaced_capacity, from->replaced_count);
    if (!done)
        tbd_image_free(to);
    return done;
}

void tbd_image_forget(struct tbd_image *image, tbd_image_source source)
{
    image->source = source;
    image->count = 0;
    image->replaced_count = 0;
    image->forgotten = 0;
    image->begin_counter = (uint32_t)image->store_count;
    if (++image->generation == 0) { /* words of 2^32 forgettings ago would come back */
        if (image->words != NULL)
            memset(image->words, 0, image->size * sizeof(*image->words));
        image->generation = 1;
    }
}

/* The place of a word, or where it would be. */
static struct tbd_image_word *find(const struct tbd_image *image, uint64_t address)
{
    size_t at = (size_t)tbd_hash64_mix(address * 0x9e3779b97f4a7c15ull) & (image->size - 1);

    while (image->words[at].generation == image->generation && image->words[at].address != address)
        at = (at + 1) & (image->size - 1);
    return &image->words[at];
}

static bool grow(struct tbd_image *image)
{
    struct tbd_image old = *image;

    image->size = old.size ? 2 * old.size : FIRST_SIZE;
    image->words = calloc(image->size, sizeof(*image->words));
    if (image->words == NULL) {
        *image = old;
        image->no_memory = true;
        return false;
    }
    for (size_t i = 0; i < old.size; i++)
        if (old.words[i].generation == image->generation)
            *find(image, old.words[i].address) = old.words[i];
    free(old.words);
    return true;
}

static bool is_in(struct tbd_image_range range, uint64_t address)
{
    return address >= range.from && address < range.to;
}

void tbd_image_replace_word(const struct tbd_image *image, struct tbd_image_word *word)
{
    word->bits = image->after(image->arg, word->address);
    word->why = 0;
    word->doubt = 0;
    word->counter = (uint32_t)image->store_count;
}

struct tbd_image_word *tbd_image_next_in(const struct tbd_image *image,
                                         const struct tbd_image_range *range, uint64_t *cursor)
{
    uint64_t words = (range->to - range->from) / 8;
    bool by_address = words < image->size;

    while (*cursor < (by_address ? words : image->size)) {
        uint64_t at = (*cursor)++;
        struct tbd_image_word *word =
            by_address ? find(image, range->from + 8 * at) : &image->words[at];

        if (word->generation == image->generation && is_in(*range, word->address))
            return word;
    }
    return NULL;
}

void tbd_image_replace(struct tbd_image *image, struct tbd_image_range range,
                       tbd_image_source source)
{
    struct tbd_image_word *word;
    uint64_t cursor = 0;

    if (!tbd_array_grow(&image->replaced, image->replaced_count, &image->replaced_capacity,
                        sizeof(*image->replaced))) {
        image->no_memory = true;
        tbd_image_forget(image, source);
        return;
    }
    image->replaced[image->replaced_count++] = range;
    image->after = source;
    while ((word = tbd_image_next_in(image, &range, &cursor)) != NULL)
        tbd_image_replace_word(image, word);
}

void tbd_image_note_store(struct tbd_image *image, const struct tbd_image_store *store)
{
    const struct tbd_image_store *before;
    struct tbd_image_store *new;

    if (image->store_count >= UINT32_MAX ||
        !tbd_array_grow(&image->stores, image->store_count, &image->store_capacity,
                        sizeof(*image->stores))) {
        image->no_memory = true;
        return;
    }
    before = image->store_count == 0 ? NULL : &image->stores[image->store_count - 1];
    new = &image->stores[image->store_count++];
    *new = *store;
    new->anything = store->bytes == 0 ? (uint32_t)image->store_count
                    : before          ? before->anything
                                      : 0;
    new->stirred = store->stirs ? (uint32_t)image->store_count : before ? before->stirred : 0;
}

static bool may_begin_at(const struct tbd_image_store *store, uint64_t address)
{
    return ((address ^ store->address.value) & store->address.known) == 0;
}

#define NEAR_BYTES 128u /* more than a store and a word together */

/* May it touch the word, by the upper bits of its address? */
static bool may_be_near(const struct tbd_image_store *store, uint64_t address)
{
    uint64_t upper = store->address.known & ~(uint64_t)(NEAR_BYTES - 1);

    return (((address + 1 - store->bytes) ^ store->address.value) & upper) == 0 ||
           (((address + 7) ^ store->address.value) & upper) == 0;
}

/* ---- where a store may have been ---- */

/* Places of a store's first byte as a set: bit i stands for the byte i - 7 of the word.  So byte j of the data lies in byte k of the
 * word from place k + 7 - j. */
enum { PLACES = 15, FIRST_PLACE = 7 };

#define EACH_BYTE 0x0101010101010101ull

/* The bytes of `x` that are not 0, as a set. */
static unsigned set_of_bytes(uint64_t x)
{
    const uint64_t low = 0x7f * EACH_BYTE;
    uint64_t tops = (((x & low) + low) | x) & ~low;

    return (unsigned)((tops >> 7) * 0x0102040810204080ull >> 56);
}

/* All bits of the bytes in a set. */
static uint64_t bits_of_bytes(unsigned set)
{
    const uint64_t low = 0x7f * EACH_BYTE;
    uint64_t one_each = (set & 0xff) * EACH_BYTE & 0x8040201008040201ull;

    return ((((one_each & low) + low) | one_each) >> 7 & EACH_BYTE) * 0xff;
}

/* The places that the address allows. */
static unsigned places_of(const struct tbd_image_store *store, uint64_t word)
{
    unsigned all = (1u << PLACES) - (1u << (8 - store->bytes)), places = 0;

    if (word >> 63 != 0 || store->address.known == 0)
        return all;
    for (unsigned i = 8u - store->bytes; i < PLACES; i++)
        if (may_begin_at(store, word + i - FIRST_PLACE))
            places |= 1u << i;
    return places;
}

static struct tbd_bits repeated(struct tbd_bits data, unsigned byte)
{
    return (struct tbd_bits){ (data.value >> 8 * byte & 0xff) * EACH_BYTE,
                              (data.known >> 8 * byte & 0xff) * EACH_BYTE };
}

/* Afterwards the word has what was stored: where it has something else, the store was not there. */
static uint64_t may_have_written(const struct tbd_image_store *store, struct tbd_bits word,
                                 unsigned places)
{
    unsigned covered = 0;

    for (unsigned j = 0; j < store->bytes && places != 0; j++) {
        struct tbd_bits byte = repeated(store->data, j);
        unsigned differs = set_of_bytes((word.value ^ byte.value) & word.known & byte.known);

        places &= ~(differs << (FIRST_PLACE - j));
    }
    for (unsigned j = 0; j < store->bytes; j++)
        covered |= places << j;
    return bits_of_bytes(covered >> FIRST_PLACE);
}

/* Before it, a bit that is as what was stored is not changed. */
static uint64_t may_write(const struct tbd_image_store *store, struct tbd_bits word,
                          unsigned places)
{
    uint64_t changed = 0;

    for (unsigned j = 0; j < store->bytes && changed != UINT64_MAX; j++) {
        struct tbd_bits byte = repeated(store->data, j);
        uint64_t same = word.known & byte.known & ~(word.value ^ byte.value);

        changed |= ~same & bits_of_bytes(places >> (FIRST_PLACE - j));
    }
    return changed;
}

uint64_t tbd_image_may_change(const struct tbd_image_store *store,
                              const struct tbd_image_word *word, bool back)
{
    bool stands_in = word->address >> 63 != 0;
    unsigned places;

    if (store->bytes == 0)
        return UINT64_MAX;
    if (stands_in && store->stand_in >> 24 == word->address >> 24)
        return 0; /* both are the same variable and a constant */
    if (store->data.known == 0 && (stands_in || store->address.known == 0))
        return UINT64_MAX; /* it is anywhere, and anything */
    if (!stands_in && !may_be_near(store, word->address))
        return 0;
    places = places_of(store, word->address);
    return back ? may_have_written(store, word->bits, places)
                : may_write(store, word->bits, places);
}

struct tbd_bits tbd_image_first(const struct tbd_image *image, uint64_t address, size_t replaced)
{
    for (size_t i = 0; i < replaced; i++)
        if (is_in(image->replaced[i], address))
            return image->after(image->arg, address);
    return image->source(image->arg, address);
}

bool tbd_image_has(const struct tbd_image *image, uint64_t address)
{
    return image->size != 0 && find(image, address)->generation == image->generation;
}

struct tbd_image_word *tbd_image_place(struct tbd_image *image, uint64_t address, bool *out_is_new)
{
    struct tbd_image_word *word;

    if (2 * image->count >= image->size && !grow(image))
        return NULL;
    word = find(image, address);
    *out_is_new = word->generation != image->generation;
    if (*out_is_new) {
        image->count++;
        *word = (struct tbd_image_word){ .address = address,
                                         .step = image->begin,
                                         .counter = image->begin_counter,
                                         .generation = image->generation };
    }
    return word;
}
