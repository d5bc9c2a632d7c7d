// SPDX-License-Identifier: MIT
/* consume_defs.c - imports a stream's block definitions into the table of blocks, and makes a plan
 * of each
 *
 * Invariants
 * CONSUME_DEFS-1  A definition is imported before any window that may name it is given out.
 * CONSUME_DEFS-2  `plans` never moves: it is reserved for all ids at once. */
#include "organizer/consume_private.h"

#include "base/assert.h"
#include "base/copy_once.h"
#include "format/files/file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STORES_BYTES (256u << 10)
#define EXPECT_AHEAD 4u /* definitions */

struct tbd_plan_stores {
    struct tbd_plan_stores *next;
    size_t used;
    size_t capacity;
    struct tbd_plan_store stores[];
};

enum tbd_status tbd_consumer_reserve_plans(struct tbd_consumer *c)
{
    void *at;

    c->plans_bytes = ((size_t)c->def_capacity + 1) * sizeof(*c->plans);
    at = mmap(NULL, c->plans_bytes, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return TBD_NOMEM;
    c->plans = at;
    return TBD_OK;
}

void tbd_consumer_free_plans(struct tbd_consumer *c)
{
    while (c->stores) {
        struct tbd_plan_stores *next = c->stores->next;

        free(c->stores);
        c->stores = next;
    }
    if (c->plans)
        munmap(c->plans, c->plans_bytes);
}

static struct tbd_plan_store *take_stores(struct tbd_consumer *c, size_t count)
{
    struct tbd_plan_stores *stores = c->stores;

    if (!stores || stores->capacity - stores->used < count) {
        size_t capacity = STORES_BYTES / sizeof(struct tbd_plan_store);

        if (capacity < count)
            capacity = count;
        stores = malloc(sizeof(*stores) + capacity * sizeof(struct tbd_plan_store));
        if (!stores)
            return NULL;
        stores->next = c->stores;
        stores->used = 0;
        stores->capacity = capacity;
        c->stores = stores;
    }
    stores->used += count;
    return stores->stores + stores->used - count;
}

static enum tbd_status make_plan(struct tbd_consumer *c, const struct tbd_block_def *def,
                                 const struct tbd_op *ops, uint32_t id)
{
    struct tbd_block_plan plan = { .id = id,
                                   .operand_bytes = (uint16_t)def->operand_bytes,
                                   .op_count = def->op_count };
    struct tbd_plan_store *stores;

    for (uint16_t i = 0; i < def->op_count; i++) {
        plan.store_count = (uint16_t)(plan.store_count + (ops[i].kind == TBD_OP_STORE));
        plan.calls = (uint8_t)(plan.calls + (ops[i].kind == TBD_OP_CALL));
        plan.returns = (uint8_t)(plan.returns + (ops[i].kind == TBD_OP_RET));
    }
    stores = take_stores(c, plan.store_count);
    if (!stores)
        return TBD_NOMEM;
    plan.stores = stores;
    for (uint16_t i = 0; i < def->op_count; i++)
        if (ops[i].kind == TBD_OP_STORE)
            *stores++ = (struct tbd_plan_store){ ops[i].base, ops[i].size, ops[i].add, i + 1u,
                                                 ops[i].insn };
    c->plans[++c->plan_count] = plan;
    TBD_INVARIANT("CONSUME_DEFS-2",
                  ((size_t)c->plan_count + 1) * sizeof(*c->plans) <= c->plans_bytes);
    return TBD_OK;
}

/* The block's id in the trace; 0 if a replay meets a block that play did not have. */
static enum tbd_status settle_id(struct tbd_consumer *c, const struct tbd_block_def *def,
                                 const struct tbd_op *ops, const uint8_t *code, uint32_t *out)
{
    if (c->known) {
        *out = tbd_block_table_find(c->known, def, ops, code, false);
        if (!*out || tbd_block_table_get(c->table, *out))
            return TBD_OK;
    } else {
        *out = tbd_block_table_find(c->table, def, ops, code, true);
        if (*out)
            return TBD_OK;
        *out = tbd_block_table_count(c->table) + 1;
    }
    return tbd_block_table_put(c->table, *out, def, ops, code);
}

static uint64_t def_offset(const struct tbd_consumer *c, uint32_t id)
{
    return c->defs_offset + (uint64_t)(id - 1) * sizeof(struct tbd_block_def);
}

static enum tbd_status import_one(struct tbd_consumer *c, uint32_t id, struct tbd_error *why)
{
    uint64_t at = def_offset(c, id);
    struct tbd_op *ops = NULL;
    uint8_t code[TBD_BLOCK_MAX_INSNS * 15];
    const char *wrong = NULL;
    struct tbd_block_def def;
    enum tbd_status status;
    uint32_t ours;

    tbd_copy_once(&def, c->bytes + at, sizeof(def));
    if (!tbd_stream_fits(def.ops_offset, def.op_count, sizeof(*ops), c->heap_capacity) ||
        !tbd_stream_fits(def.code_offset, def.code_bytes, 1, c->heap_capacity) ||
        def.code_bytes > sizeof(code))
        return tbd_error_set(why, TBD_CORRUPT, "stream", at, "block %u lies outside the heap", id);
    ops = malloc(sizeof(*ops) * def.op_count + 1);
    if (!ops)
        return TBD_NOMEM;
    tbd_copy_once(ops, c->bytes + c->heap_offset + def.ops_offset, sizeof(*ops) * def.op_count);
    tbd_copy_once(code, c->bytes + c->heap_offset + def.code_offset, def.code_bytes);
    wrong = tbd_block_check(&def, ops, c->known != NULL);
    if (wrong) {
        free(ops);
        return tbd_error_set(why, TBD_CORRUPT, "stream", at, "block %u: %s", id, wrong);
    }
    if (def.code_offset + def.code_bytes > c->heap_used)
        c->heap_used = def.code_offset + def.code_bytes;
    status = settle_id(c, &def, ops, code, &ours);
    if (!status)
        status = make_plan(c, &def, ops, ours);
    free(ops);
    return status;
}

/* Prefetches the block's slot in the table: fetching it is most of the time that a lookup takes. */
static void expect_one(const struct tbd_consumer *c, uint32_t id)
{
    struct tbd_block_def def;

    memcpy(&def, c->bytes + def_offset(c, id), sizeof(def));
    tbd_block_table_expect(c->known ? c->known : c->table, def.start, def.code_hash);
}

enum tbd_status tbd_consumer_import(struct tbd_consumer *c, struct tbd_error *why)
{
    uint32_t count = __atomic_load_n(&c->head->def_count, __ATOMIC_ACQUIRE);

    if (count > c->def_capacity)
        return tbd_error_set(why, TBD_CORRUPT, "stream", 132, "%u definitions", count);
    while (c->plan_count < count) {
        enum tbd_status status;

        if (count - c->plan_count > EXPECT_AHEAD)
            expect_one(c, c->plan_count + 1 + EXPECT_AHEAD);
        status = import_one(c, c->plan_count + 1, why);
        if (status)
            return status;
    }
    TBD_INVARIANT("CONSUME_DEFS-1", c->plan_count >= count);
    return TBD_OK;
}
