// SPDX-License-Identifier: MIT
/* blocks.c - a table of blocks by id
 *
 * Ids are looked up in groups of segments of pointers, so that nothing moves when the table grows.  A second,
 * hashed index (open addressing, ids as values) finds a block by its start and code. */
#include "format/window/block_lookup.h"

#include <stdlib.h>
#include <string.h>

#define STORE_BYTES (1u << 20)

struct store {
    struct store *next;
    size_t used;
    size_t capacity;
    _Alignas(16) uint8_t bytes[];
};

struct tbd_block_table *tbd_block_table_new(void)
{
    struct tbd_block_table *table = calloc(1, sizeof(*table));

    if (table)
        atomic_init(&table->references, 1);
    return table;
}

struct tbd_block_table *tbd_block_table_retain(struct tbd_block_table *table)
{
    atomic_fetch_add_explicit(&table->references, 1, memory_order_relaxed);
    return table;
}

static void free_group(const struct tbd_block ***group)
{
    for (uint32_t i = 0; group && i < TBD_GROUP_SEGMENTS; i++)
        free(group[i]);
    free(group);
}

void tbd_block_table_release(struct tbd_block_table *table)
{
    if (!table || atomic_fetch_sub_explicit(&table->references, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < TBD_GROUPS; i++)
        free_group(table->groups[i]);
    while (table->stores) {
        struct store *next = table->stores->next;

        free(table->stores);
        table->stores = next;
    }
    free(table->by_key);
    free(table);
}

static const char *check_op(const struct tbd_block_def *def, const struct tbd_op *op,
                            bool from_replay)
{
    uint64_t data_bytes = 0;

    switch (op->kind) {
    case TBD_OP_STORE:
        data_bytes = op->size;
        if (!op->size)
            return "a store of no bytes";
        break;
    case TBD_OP_CALL: data_bytes = 56; break;
    case TBD_OP_RET: data_bytes = 16; break;
    case TBD_OP_LOAD: break;
    case TBD_OP_NOTE:
        data_bytes = op->size;
        if (!from_replay || op->add < 0 || (uint64_t)op->add > TBD_NOTE_ALL ||
            op->size != tbd_note_bytes((uint64_t)op->add))
            return "a note of impossible registers";
        break;
    default: return "an event of unknown kind";
    }
    if (data_bytes && op->data + data_bytes > def->operand_bytes)
        return "an event's data lie outside the record";
    if (op->base != TBD_BASE_NONE && op->base + 8ull > def->operand_bytes)
        return "an event's base lies outside the record";
    if (op->insn >= def->insn_count)
        return "an event of an instruction that is not there";
    return NULL;
}

const char *tbd_block_check(const struct tbd_block_def *def, const struct tbd_op *ops,
                            bool from_replay)
{
    if (def->operand_bytes > TBD_RECORD_MAX_BYTES)
        return "the record is too long";
    if (def->insn_count > TBD_BLOCK_MAX_INSNS)
        return "too many instructions";
    if (def->end < TBD_END_LIMIT || def->end > TBD_END_FAULT)
        return "an unknown way to end";
    if (def->code_bytes > TBD_BLOCK_MAX_INSNS * 15)
        return "too many code bytes";
    if (def->end != TBD_END_FAULT && (!def->code_bytes || def->last_insn >= def->code_bytes))
        return "the last instruction lies outside the code";
    for (uint16_t i = 0; i < def->op_count; i++) {
        const char *wrong = check_op(def, ops + i, from_replay);

        if (wrong)
            return wrong;
    }
    return NULL;
}

static void *store_take(struct tbd_block_table *table, size_t bytes)
{
    struct store *store = table->stores;
    void *at;

    bytes = (bytes + 15) & ~(size_t)15;
    if (!store || store->capacity - store->used < bytes) {
        size_t capacity = bytes > STORE_BYTES ? bytes : STORE_BYTES;

        store = malloc(sizeof(*store) + capacity);
        if (!store)
            return NULL;
        store->next = table->stores;
        store->used = 0;
        store->capacity = capacity;
        table->stores = store;
    }
    at = store->bytes + store->used;
    store->used += bytes;
    return at;
}

static uint32_t key_hash(uint64_t start, uint64_t code_hash)
{
    return (uint32_t)(((start ^ code_hash) * 0x9e3779b97f4a7c15ull) >> 32);
}

/* The block with an id of the hashed index: it exists. */
static const struct tbd_block *block_of(const struct tbd_block_table *table, uint32_t id)
{
    const struct tbd_block ***group = table->groups[id >> 2 * TBD_SEGMENT_BITS];

    return group[id >> TBD_SEGMENT_BITS & (TBD_GROUP_SEGMENTS - 1)][id & (TBD_SEGMENT_BLOCKS - 1)];
}

static void place_key(struct tbd_block_key *by_key, uint32_t slots, struct tbd_block_key key)
{
    uint32_t slot = key.hash & (slots - 1);

    while (by_key[slot].id)
        slot = (slot + 1) & (slots - 1);
    by_key[slot] = key;
}

static bool key_grow(struct tbd_block_table *table)
{
    uint32_t slots = table->key_slots ? table->key_slots * 2 : 1024;
    struct tbd_block_key *by_key = calloc(slots, sizeof(*by_key));

    if (!by_key)
        return false;
    for (uint32_t i = 0; i < table->key_slots; i++)
        if (table->by_key[i].id)
            place_key(by_key, slots, table->by_key[i]);
    free(table->by_key);
    table->by_key = by_key;
    table->key_slots = slots;
    return true;
}

static bool key_put(struct tbd_block_table *table, const struct tbd_block_def *def, uint32_t id)
{
    if (table->key_count * 2 >= table->key_slots && !key_grow(table))
        return false;
    place_key(table->by_key, table->key_slots,
              (struct tbd_block_key){ id, key_hash(def->start, def->code_hash) });
    table->key_count++;
    return true;
}

/* Where the pointer to the block lies.  NULL: no memory. */
static const struct tbd_block **make_place(struct tbd_block_table *table, uint32_t id)
{
    const struct tbd_block ****group = &table->groups[id >> 2 * TBD_SEGMENT_BITS];
    const struct tbd_block ***segment;

    if (!*group)
        *group = calloc(TBD_GROUP_SEGMENTS, sizeof(**group));
    if (!*group)
        return NULL;
    segment = &(*group)[id >> TBD_SEGMENT_BITS & (TBD_GROUP_SEGMENTS - 1)];
    if (!*segment)
        *segment = calloc(TBD_SEGMENT_BLOCKS, sizeof(**segment));
    return *segment ? &(*segment)[id & (TBD_SEGMENT_BLOCKS - 1)] : NULL;
}

enum tbd_status tbd_block_table_put(struct tbd_block_table *table, uint32_t id,
                                    const struct tbd_block_def *def, const struct tbd_op *ops,
                                    const uint8_t *code)
{
    size_t ops_bytes = sizeof(*ops) * def->op_count;
    const struct tbd_block **place;
    struct tbd_block *block;

    if (!id || id >> 30 || tbd_block_table_get(table, id))
        return TBD_CORRUPT;
    place = make_place(table, id);
    block = store_take(table, sizeof(*block) + ops_bytes + def->code_bytes);
    if (!place || !block)
        return TBD_NOMEM;
    block->def = *def;
    block->ops = (void *)(block + 1);
    block->code = (uint8_t *)(block + 1) + ops_bytes;
    if (ops_bytes)
        memcpy(block + 1, ops, ops_bytes);
    if (def->code_bytes)
        memcpy((uint8_t *)(block + 1) + ops_bytes, code, def->code_bytes);
    *place = block;
    if (id > table->highest)
        table->highest = id;
    return key_put(table, def, id) ? TBD_OK : TBD_NOMEM;
}

const struct tbd_block *tbd_block_table_get(const struct tbd_block_table *table, uint32_t id)
{
    return tbd_block_at(table, id);
}

uint32_t tbd_block_table_count(const struct tbd_block_table *table)
{
    return table->highest;
}

static bool same_code(const struct tbd_block *block, const struct tbd_block_def *def,
                      const uint8_t *code)
{
    return block->def.start == def->start && block->def.code_hash == def->code_hash &&
           block->def.code_bytes == def->code_bytes && block->def.end == def->end &&
           block->def.insn_count == def->insn_count &&
           (!def->code_bytes || memcmp(block->code, code, def->code_bytes) == 0);
}

static bool same_events(const struct tbd_block *block, const struct tbd_block_def *def,
                        const struct tbd_op *ops)
{
    return block->def.op_count == def->op_count && block->def.operand_bytes == def->operand_bytes &&
           (!def->op_count || memcmp(block->ops, ops, sizeof(*ops) * def->op_count) == 0);
}

void tbd_block_table_expect(const struct tbd_block_table *table, uint64_t start, uint64_t code_hash)
{
    if (table->key_slots)
        __builtin_prefetch(&table->by_key[key_hash(start, code_hash) & (table->key_slots - 1)], 1);
}

uint32_t tbd_block_table_find(const struct tbd_block_table *table, const struct tbd_block_def *def,
                              const struct tbd_op *ops, const uint8_t *code, bool exact)
{
    uint32_t found = 0;
    uint32_t hash = key_hash(def->start, def->code_hash), slot = hash;

    if (!table->key_slots)
        return 0;
    for (;; slot++) {
        const struct tbd_block_key *key = &table->by_key[slot & (table->key_slots - 1)];
        const struct tbd_block *block;

        if (!key->id)
            return found;
        if (key->hash != hash)
            continue;
        block = block_of(table, key->id);
        if (!same_code(block, def, code))
            continue;
        if (same_events(block, def, ops))
            return key->id;
        if (!exact && !found)
            found = key->id;
    }
}
