// SPDX-License-Identifier: MIT
/* record_sizes.c - see record_sizes.h */
#include "replay/record_sizes.h"

#include "base/array.h"

#include <stdlib.h>

void tbd_sizes_begin(struct tbd_record_sizes *sizes, struct tbd_consumer *consumer,
                     bool omits_records)
{
    struct tbd_block_table *table = tbd_consumer_table(consumer);

    if (sizes->consumer != consumer || sizes->table != table ||
        sizes->omits_records != omits_records) {
        sizes->count = 0;
        sizes->lacks_blocks = false;
    }
    sizes->consumer = consumer;
    sizes->omits_records = omits_records;
    tbd_block_table_retain(table);
    tbd_block_table_release(sizes->table);
    sizes->table = table;
}

void tbd_sizes_forget(struct tbd_record_sizes *sizes)
{
    sizes->consumer = NULL;
    sizes->count = 0;
    sizes->lacks_blocks = false;
}

void tbd_sizes_free(struct tbd_record_sizes *sizes)
{
    tbd_block_table_release(sizes->table);
    free(sizes->words);
    free(sizes->bytes);
    *sizes = (struct tbd_record_sizes){ 0 };
}

static uint64_t word_of(const struct tbd_record_sizes *sizes, const struct tbd_block *block,
                        uint32_t id)
{
    uint64_t bytes = sizes->omits_records ? 0 : block->def.operand_bytes;

    return id | bytes << 32 | (uint64_t)(block->def.op_count + 1u) << 48;
}

/* Reserves space for `count`; new words are TBD_SIZES_NONE. */
static bool reserve(struct tbd_record_sizes *sizes, uint32_t count)
{
    uint32_t capacity = 1024;

    while (capacity < count)
        capacity *= 2;
    if (!tbd_array_reserve(&sizes->words, capacity, &sizes->capacity, sizeof(*sizes->words)) ||
        !tbd_array_reserve(&sizes->bytes, capacity, &sizes->bytes_capacity, sizeof(*sizes->bytes)))
        return false;
    for (uint32_t i = sizes->count; i < capacity; i++) {
        sizes->words[i] = TBD_SIZES_NONE;
        sizes->bytes[i] = TBD_SIZES_NO_BYTES;
    }
    sizes->mask = capacity - 1;
    return true;
}

bool tbd_sizes_take_definitions(struct tbd_record_sizes *sizes)
{
    const struct tbd_block_plan *plans = tbd_consumer_plans(sizes->consumer);
    uint32_t count = tbd_consumer_plan_count(sizes->consumer);

    if (sizes->count > count)
        return true;
    if (!reserve(sizes, count + 1))
        return false;
    for (; sizes->count <= count; sizes->count++) {
        const struct tbd_block_plan *plan = &plans[sizes->count];
        const struct tbd_block *block =
            sizes->count && plan->id ? tbd_block_table_get(sizes->table, plan->id) : NULL;

        if (!block || block->def.operand_bytes != plan->operand_bytes ||
            block->def.op_count >= TBD_SIZES_EVENTS) {
            sizes->lacks_blocks |= sizes->count != 0;
            continue;
        }
        sizes->words[sizes->count] = word_of(sizes, block, plan->id);
        sizes->bytes[sizes->count] = tbd_sizes_operand_bytes(sizes->words[sizes->count]);
    }
    return true;
}

const char *tbd_sizes_why_not(const struct tbd_record_sizes *sizes, uint32_t entry)
{
    if (!entry || entry >= sizes->count)
        return "a block that was not defined";
    if (tbd_sizes_is_none(sizes->words[entry]))
        return "a block that play did not have";
    return "a record outside the operands";
}
