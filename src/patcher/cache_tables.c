// SPDX-License-Identifier: MIT
/* cache_tables.c - finds translated blocks and the ids of blocks
 *
 * The map from start to block and the one from (start, code) to id are open-addressing tables that
 * double in place: address space is reserved for the largest, pages cost nothing until used. */
#include "patcher/cache_private.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/linux.h"
#include "base/sys.h"

enum {
    MAX_IDS = 1 << 22,
    FIRST_SLOTS = 1 << 14,
};

struct tbd_cache tbd_cache;

static struct tbd_arena arena;

static uint64_t hash_address(uint64_t a)
{
    return tbd_hash64_mix(a * 0x9e3779b97f4a7c15ull);
}

/* Blocks that lie near each other are looked up soon after each other: those of 64 bytes of code share 64 bytes here. */
static struct tbd_cache_slot *first_slot(const struct tbd_cache_table *table, uint64_t start)
{
    uint64_t slot = (hash_address(start >> 6) >> 32 << 3) + (start >> 3 & 7);

    return &table->slot[slot & (table->slots - 1)];
}

static struct tbd_cache_slot *next_slot(const struct tbd_cache_table *table,
                                        const struct tbd_cache_slot *slot)
{
    return &table->slot[(size_t)(slot - table->slot + 1) & (table->slots - 1)];
}

/* ---- blocks ---- */

static struct tbd_cache_slot *map_slot(uint64_t pc)
{
    struct tbd_cache_slot *slot = first_slot(&tbd_cache.map, pc);

    while (slot->index_1 &&
           (slot->check != (uint32_t)pc || tbd_cache.block[slot->index_1 - 1].start != pc))
        slot = next_slot(&tbd_cache.map, slot);
    return slot;
}

struct tbd_block_code *tbd_cache_find(uint64_t pc)
{
    uint32_t index = map_slot(pc)->index_1;

    return index && tbd_cache.block[index - 1].live ? &tbd_cache.block[index - 1] : NULL;
}

/* Private anonymous memory reads as zero after MADV_DONTNEED. */
static void empty_table(struct tbd_cache_table *table)
{
    if (table->used)
        tbd_sys_madvise(tbd_sys_pointer(table->slot), table->slots * sizeof(*table->slot),
                        MADV_DONTNEED);
    table->used = 0;
}

static void map_grow(void)
{
    empty_table(&tbd_cache.map);
    tbd_cache.map.slots *= 2;
    for (uint32_t n = 0; n < tbd_cache.block_count; n++)
        if (!tbd_cache.block[n].is_stop)
            tbd_cache_map(n);
}

/* A dead block keeps its slot; the next block with the same start takes it over. */
void tbd_cache_map(uint32_t index)
{
    struct tbd_cache_slot *slot;

    if (tbd_cache.map.used >= tbd_cache.map.slots / 2)
        map_grow();
    slot = map_slot(tbd_cache.block[index].start);
    if (!slot->index_1)
        tbd_cache.map.used++;
    *slot = (struct tbd_cache_slot){ index + 1, (uint32_t)tbd_cache.block[index].start };
}

/* ---- ids ---- */

static bool is_id_of(const struct tbd_known_id *id, const struct tbd_known_id *key)
{
    return id->start == key->start && id->code_hash == key->code_hash &&
           id->code_bytes == key->code_bytes && id->end == key->end;
}

static struct tbd_cache_slot *id_slot(const struct tbd_known_id *key)
{
    struct tbd_cache_slot *slot = first_slot(&tbd_cache.ids, key->start ^ key->code_hash);

    while (slot->index_1 && (slot->check != (uint32_t)key->code_hash ||
                             !is_id_of(&tbd_cache.id[slot->index_1 - 1], key)))
        slot = next_slot(&tbd_cache.ids, slot);
    return slot;
}

static void enter_id(uint32_t n)
{
    struct tbd_known_id *id = &tbd_cache.id[n];

    *id_slot(id) = (struct tbd_cache_slot){ n + 1, (uint32_t)id->code_hash };
    id->is_entered = true;
    tbd_cache.ids.used++;
}

static void ids_grow(void)
{
    empty_table(&tbd_cache.ids);
    tbd_cache.ids.slots *= 2;
    for (uint32_t n = 0; n < tbd_cache.id_count; n++)
        if (tbd_cache.id[n].is_entered)
            enter_id(n);
}

static void enter_new_id(uint32_t n)
{
    if (tbd_cache.ids.used >= tbd_cache.ids.slots / 2)
        ids_grow();
    enter_id(n);
}

static uint32_t new_id(const struct tbd_known_id *key, uint32_t id)
{
    if (tbd_cache.id_count == MAX_IDS)
        tbd_cache_forget_ids();
    tbd_cache.id[tbd_cache.id_count] = *key;
    tbd_cache.id[tbd_cache.id_count].id = id;
    if (!tbd_cache.is_free)
        enter_new_id(tbd_cache.id_count);
    tbd_cache.id_count++;
    return id;
}

/* The first id that is not below this one: they only rise.  tbd_cache.id_count: there is none. */
static uint32_t find_id(uint32_t id)
{
    uint32_t low = 0, high = tbd_cache.id_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (tbd_cache.id[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void tbd_cache_remember_id(const struct tbd_block_code *block)
{
    uint32_t n;

    if (!tbd_cache.is_free)
        return; /* all are entered */
    n = find_id(block->id);
    if (n < tbd_cache.id_count && tbd_cache.id[n].id == block->id && !tbd_cache.id[n].is_entered)
        enter_new_id(n);
}

uint32_t tbd_cache_id_of(const struct tbd_cut *cut, const struct tbd_patcher_callbacks *callbacks,
                         const struct tbd_codegen_config *config)
{
    struct tbd_known_id key = { .start = cut->def.start,
                                .code_hash = cut->def.code_hash,
                                .code_bytes = cut->def.code_bytes,
                                .end = cut->def.end };
    uint32_t known;

    if (config->is_free && !config->hook_set)
        return 1; /* nobody asks */
    known = id_slot(&key)->index_1;
    if (known)
        return tbd_cache.id[known - 1].id;
    return new_id(
        &key, callbacks->define(&cut->def, cut->op, (const uint8_t *)(uintptr_t)cut->def.start));
}

void tbd_cache_forget_ids(void)
{
    empty_table(&tbd_cache.ids);
    tbd_cache.id_count = 0;
}

/* ---- all of them ---- */

void tbd_cache_empty_map(void)
{
    empty_table(&tbd_cache.map);
    tbd_cache_empty_pages();
}

static void *table_alloc(size_t count, size_t bytes)
{
    return tbd_arena_alloc(&arena, count * bytes, TBD_PAGE_SIZE);
}

static bool make_tables(void)
{
    tbd_cache.block = table_alloc(TBD_CACHE_BLOCKS, sizeof(*tbd_cache.block));
    tbd_cache.site = table_alloc(TBD_CACHE_SITES, sizeof(*tbd_cache.site));
    tbd_cache.id = table_alloc(MAX_IDS, sizeof(*tbd_cache.id));
    tbd_cache.map = (struct tbd_cache_table){ .slot = table_alloc(4 * TBD_CACHE_BLOCKS,
                                                                  sizeof(struct tbd_cache_slot)),
                                              .slots = FIRST_SLOTS };
    tbd_cache.ids =
        (struct tbd_cache_table){ .slot = table_alloc(4 * MAX_IDS, sizeof(struct tbd_cache_slot)),
                                  .slots = FIRST_SLOTS };
    tbd_cache.on_page = table_alloc(TBD_CACHE_PAGE_SLOTS, sizeof(*tbd_cache.on_page));
    for (uint32_t n = 0; n < TBD_CACHE_AREAS; n++)
        tbd_cache.area[n].block = table_alloc(TBD_CACHE_BLOCKS, sizeof(uint32_t));
    return tbd_cache.block && tbd_cache.area[TBD_CACHE_AREAS - 1].block;
}

bool tbd_cache_init(bool is_free)
{
    size_t tables =
        TBD_CACHE_BLOCKS * (sizeof(*tbd_cache.block) + 4 * sizeof(struct tbd_cache_slot)) +
        TBD_CACHE_SITES * sizeof(*tbd_cache.site) +
        MAX_IDS * (sizeof(*tbd_cache.id) + 4 * sizeof(struct tbd_cache_slot)) +
        TBD_CACHE_PAGE_SLOTS * sizeof(*tbd_cache.on_page);

    tbd_cache.is_free = is_free;
    tbd_cache.cut.is_of_cache = true;
    return tbd_cache.block ||
           (tbd_arena_init(&arena, tables + TBD_CACHE_AREAS * TBD_CACHE_BLOCKS * sizeof(uint32_t) +
                                       (1 << 20)) &&
            make_tables());
}

void tbd_cache_populate(void)
{
    tbd_sys_populate(tbd_sys_pointer(tbd_cache.map.slot),
                     tbd_sys_pointer(tbd_cache.map.slot + FIRST_SLOTS));
    tbd_sys_populate(tbd_sys_pointer(tbd_cache.ids.slot),
                     tbd_sys_pointer(tbd_cache.ids.slot + FIRST_SLOTS));
    tbd_decode_known_populate();
}
