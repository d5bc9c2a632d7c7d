// SPDX-License-Identifier: MIT
/* passing_stores.c - stores, while their window passes (search_passing.c)
 *
 * What the record does not have, the value, comes with the next store to the same bytes (passing_values.h): until then the store
 * waits, unless it can be told already that nobody wants it. */
#include "query/search/passing.h"

#include "base/copy_once.h"
#include "base/layout.h"
#include "format/pages/pages.h"
#include "format/reading/window_read.h"
#include "format/window/window_make.h"

#include <string.h>

static uint64_t low_bytes(const uint8_t *from, uint64_t bytes)
{
    uint64_t value = 0;

    if (bytes >= 8)
        memcpy(&value, from, 8);
    else if (bytes == 4)
        memcpy(&value, from, 4);
    else
        memcpy(&value, from, (size_t)bytes);
    return value;
}

/* By what its record has. */
static bool may_be_wanted(const struct tbd_passing_window *p, uint64_t address, uint32_t size,
                          uint64_t old)
{
    const struct tbd_search_plan *plan = &p->run->plan;

    if (!tbd_is_within(&p->bounds, TBD_FIELD_ADDR, address) ||
        !tbd_is_within(&p->bounds, TBD_FIELD_SIZE, size) ||
        !tbd_is_within(&p->bounds, TBD_FIELD_OLDVAL, old))
        return false;
    return !plan->has_range || (address < plan->range_end && (address >= plan->range_start ||
                                                              plan->range_start - address < size));
}

/* `old` has the store's first bytes. */
static bool judge(struct tbd_passing_window *p, const struct tbd_waiting_store *store,
                  const uint8_t *old, uint64_t value, bool has_value)
{
    const struct tbd_op *op = &p->block[store->block]->ops[store->op];
    uint32_t counter = p->first[store->block] + store->op;
    struct tbd_event event;

    if (p->only_counts && (has_value || p->values == NULL)) {
        p->matches++;
        if (p->run->search->many_by_value)
            return tbd_value_counts_add(&p->by_value, value);
        if (p->matched != NULL)
            p->matched[counter]++;
        return true;
    }
    event = tbd_passing_event(p, store->block, store->time, op->insn);
    event.addr = store->address;
    event.size = op->size;
    event.old = old;
    event.value = value;
    event.flags = has_value ? TBD_EVENT_HAS_VALUE : 0;
    return !tbd_passing_holds(p, &event) || tbd_passing_take(p, &event, counter);
}

static bool found(void *context, const struct tbd_waiting_store *store, uint64_t value,
                  bool is_known)
{
    struct tbd_passing_window *p = context;
    uint8_t old[8];

    if (is_known && !tbd_is_within(&p->bounds, TBD_FIELD_NEWVAL, value))
        return true;
    memcpy(old, &store->old, sizeof(old));
    return judge(p, store, old, value, is_known);
}

/* ---- the stores of a block ---- */

/* Those of an instruction wait once all of them have been made. */
static bool let_wait(struct tbd_passing_window *p)
{
    bool good = true;

    for (unsigned i = 0; i < p->armed_count && good; i++)
        good = tbd_passing_values_wait(p->values, &p->armed[i]);
    p->candidates += p->armed_count;
    p->armed_count = 0;
    return good;
}

static bool take_store(struct tbd_passing_window *p, const struct tbd_waiting_store *store,
                       const uint8_t *record)
{
    const struct tbd_op *op = &p->block[store->block]->ops[store->op];
    uint8_t old[8];

    if (!may_be_wanted(p, store->address, op->size, store->old))
        return true;
    if (p->values == NULL) {
        memcpy(old, &store->old, sizeof(old));
        return judge(p, store, op->size <= sizeof(old) ? old : record + op->data, 0, false);
    }
    if (p->armed_count == sizeof(p->armed) / sizeof(p->armed[0])) {
        p->gives_up = true;
        return false;
    }
    p->armed[p->armed_count++] = *store;
    return true;
}

bool tbd_passing_stores(struct tbd_passing_window *p, uint32_t id, const uint8_t *record)
{
    const struct tbd_block *block = p->block[id];
    bool is_wanted = (p->does[id] & TBD_DOES_WANT) != 0, good = true;
    uint16_t insn = 0;

    for (uint16_t i = 0; i < block->def.op_count && good; i++) {
        const struct tbd_op *op = &block->ops[i];
        struct tbd_waiting_store store = { .time = (uint32_t)p->time, .block = id, .op = i };

        if (op->kind != TBD_OP_STORE || op->size == 0)
            continue;
        if (p->armed_count != 0 && op->insn != insn)
            good = let_wait(p);
        insn = op->insn;
        store.address = (uint64_t)op->add;
        if (op->base != TBD_BASE_NONE)
            store.address += tbd_read_once_u64(record + op->base);
        if (good && p->values != NULL)
            good = tbd_passing_values_store(p->values, store.address, op->size, record + op->data);
        if (!good || !is_wanted)
            continue;
        store.bytes = op->size < 8 ? (uint8_t)op->size : 8;
        store.old = low_bytes(record + op->data, store.bytes);
        good = take_store(p, &store, record);
    }
    return good && (p->armed_count == 0 || let_wait(p));
}

/* ---- writes by others ---- */

static bool take_write(struct tbd_passing_window *p, const struct tbd_write_view *view)
{
    const struct tbd_block_def *def = &p->block[p->last]->def;
    struct tbd_event event =
        tbd_passing_event(p, p->last, p->time - 1, def->insn_count == 0 ? 0 : def->insn_count - 1u);

    event.addr = view->address;
    event.size = view->bytes;
    event.old = view->old_bytes;
    event.fresh = view->new_bytes;
    if (p->values != NULL && event.fresh == NULL) {
        p->gives_up = true;
        return false;
    }
    return !tbd_passing_holds(p, &event) ||
           tbd_passing_take(p, &event, p->first[p->last] + def->op_count);
}

bool tbd_passing_writes(struct tbd_passing_window *p, uint32_t kind, const uint8_t *payload,
                        uint32_t bytes)
{
    struct tbd_write_cursor writes;
    struct tbd_write_view view;
    bool good = true;

    tbd_writes_first(kind, payload, bytes, &writes);
    while (good && tbd_writes_next(&writes, &view)) {
        if (p->values != NULL && view.bytes != 0)
            good = tbd_passing_values_store(p->values, view.address, view.bytes, view.old_bytes);
        good = good && take_write(p, &view);
    }
    return good;
}

/* ---- values ---- */

bool tbd_passing_begin_values(struct tbd_passing_window *p)
{
    if ((p->run->uses & TBD_USES_VALUE) == 0 && !p->run->wants_values)
        return true;
    p->values = tbd_passing_values_new(found, p);
    return p->values != NULL;
}

struct end_pages {
    struct tbd_passing_window *passing;
    uint8_t page[TBD_PAGE_SIZE];
};

static const uint8_t *read_end(void *context, uint64_t address)
{
    struct end_pages *pages = context;
    const struct tbd_passing_window *p = pages->passing;
    const struct tbd_page_contents *dirty = tbd_window_dirty(p->toc, address);

    if (dirty != NULL)
        return dirty->bytes;
    return tbd_window_page_at_start(p->run->session->trace, p->toc, address, pages->page) == TBD_OK
               ? pages->page
               : NULL;
}

bool tbd_passing_end_values(struct tbd_passing_window *p)
{
    struct end_pages pages = { .passing = p };

    return p->values == NULL || tbd_passing_values_end(p->values, read_end, &pages);
}
