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
    image->anything = 0;
    image->begin_counter = 0;
}

void tbd_image_free(struct tbd_image *image)
{
    free(image->words);
    free(image->replaced);
    free(image->stores);
    memset(image, 0, sizeof(*image));
}

void tbd_image_forget(struct tbd_image *image, tbd_image_source source)
{
    image->source = source;
    image->count = 0;
    image->replaced_count = 0;
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

void tbd_image_replace(struct tbd_image *image, struct tbd_image_range range,
                       tbd_image_source source)
{
    if (!tbd_array_grow(&image->replaced, image->replaced_count, &image->replaced_capacity,
                        sizeof(*image->replaced))) {
        image->no_memory = true;
        tbd_image_forget(image, source);
        return;
    }
    image->replaced[image->replaced_count++] = range;
    image->after = source;
    for (size_t i = 0; i < image->size; i++) {
        struct tbd_image_word *word = &image->words[i];

        if (word->generation == image->generation && is_in(range, word->address)) {
            word->bits = source(image->arg, word->address);
            word->why = 0;
            word->doubt = 0;
            word->counter = (uint32_t)image->store_count;
        }
    }
}

void tbd_image_note_store(struct tbd_image *image, const struct tbd_image_store *store)
{
    if (image->store_count >= UINT32_MAX ||
        !tbd_array_grow(&image->stores, image->store_count, &image->store_capacity,
                        sizeof(*image->stores))) {
        image->no_memory = true;
        return;
    }
    image->stores[image->store_count++] = *store;
    if (store->bytes == 0)
        image->anything = (uint32_t)image->store_count;
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

/* The bits of a word in which data that begin `offset` bytes after it, or before it if that is negative, lie. */
static struct tbd_bits shifted(struct tbd_bits data, int offset)
{
    unsigned by = 8u * (unsigned)(offset < 0 ? -offset : offset);

    return offset < 0 ? (struct tbd_bits){ data.value >> by, data.known >> by }
                      : (struct tbd_bits){ data.value << by, data.known << by };
}

/* Each place that the store may have had in the word is tried.  Afterwards the word has what was stored: where it has something
 * else, the store was not there.  Before, a bit that is as what was stored is not changed. */
uint64_t tbd_image_may_change(const struct tbd_image_store *store,
                              const struct tbd_image_word *word, bool back)
{
    uint64_t low = tbd_bits_low(8u * store->bytes), changed = 0;
    bool stands_in = word->address >> 63 != 0;

    if (store->bytes == 0)
        return UINT64_MAX;
    if (stands_in && store->stand_in >> 24 == word->address >> 24)
        return 0; /* both are the same variable and a constant */
    if (store->data.known == 0 && (stands_in || store->address.known == 0))
        return UINT64_MAX; /* it is anywhere, and anything */
    if (!stands_in && !may_be_near(store, word->address))
        return 0;
    for (int offset = 1 - (int)store->bytes; offset < 8 && changed != UINT64_MAX; offset++) {
        struct tbd_bits data;
        uint64_t covered, both, differs;

        if (!stands_in && !may_begin_at(store, word->address + (uint64_t)(int64_t)offset))
            continue;
        data = shifted(tbd_bits_only(store->data, low), offset);
        covered = shifted((struct tbd_bits){ low, low }, offset).known;
        both = word->bits.known & data.known & covered;
        differs = (word->bits.value ^ data.value) & both;
        if (!back)
            changed |= covered & ~(both & ~differs);
        else if (differs == 0)
            changed |= covered;
    }
    return changed;
}

static struct tbd_bits first_bits(const struct tbd_image *image, uint64_t address)
{
    for (size_t i = 0; i < image->replaced_count; i++)
        if (is_in(image->replaced[i], address))
            return image->after(image->arg, address);
    return image->source(image->arg, address);
}

struct tbd_image_word *tbd_image_word(struct tbd_image *image, uint64_t address)
{
    struct tbd_image_word *word;

    if (2 * image->count >= image->size && !grow(image))
        return NULL;
    word = find(image, address);
    if (word->generation != image->generation) {
        image->count++;
        *word = (struct tbd_image_word){ .address = address,
                                         .bits = first_bits(image, address),
                                         .step = image->begin,
                                         .counter = image->begin_counter,
                                         .generation = image->generation };
    }
    return word;
}
