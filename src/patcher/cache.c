// SPDX-License-Identifier: MIT
/* cache.c - makes translated blocks, and forgets them
 *
 * Keeps CACHE-1 to CACHE-4, with the files that cache_private.h names. */
#include "patcher/asked_places.h"
#include "patcher/cache_private.h"

#include "base/assert.h"
#include "patcher/engine_lock.h"

/* ---- counts and indices ---- */

void tbd_cache_count(uint32_t *out_blocks, uint32_t *out_areas)
{
    *out_blocks = tbd_cache.block_count;
    *out_areas = tbd_cache.area_count;
}

struct tbd_block_code *tbd_cache_block(uint32_t index)
{
    return &tbd_cache.block[index];
}

struct tbd_exit_site *tbd_cache_site(uint32_t index)
{
    return &tbd_cache.site[index];
}

const struct tbd_block_code *tbd_cache_with_id(uint32_t id)
{
    uint32_t n = tbd_cache.block_count - 1;

    while (n != 0 && (tbd_cache.block[n].id != id || tbd_cache.block[n].is_stop))
        n--;
    return &tbd_cache.block[n];
}

uint32_t tbd_cache_index(const struct tbd_block_code *block)
{
    return (uint32_t)(block - tbd_cache.block);
}

/* ---- making ---- */

/* Where the check of an indirect branch's target leads to if it is another. */
static void mismatch_emit(struct tbd_patch_area *area, uint64_t rel32)
{
    struct tbd_emit e;

    area->cold -= TBD_CACHE_STUB_BYTES;
    e = (struct tbd_emit){ .at = (uint8_t *)(uintptr_t)area->cold,
                           .end = (uint8_t *)(uintptr_t)area->cold + TBD_CACHE_STUB_BYTES };
    tbd_cache_set_rel32(rel32, area->cold);
    tbd_translate_mismatch(&e);
    tbd_emit_jmp(&e, area->miss);
}

static uint64_t place_in_area(const struct tbd_translation *t, const uint8_t *in_buffer)
{
    return (uint64_t)((int64_t)(uintptr_t)in_buffer + t->e.delta);
}

static void make_exits(struct tbd_patch_area *area, const struct tbd_translation *t,
                       struct tbd_block_code *block)
{
    block->first_exit = tbd_cache.site_count;
    block->exit_count = (uint8_t)t->exit_count;
    for (uint32_t n = 0; n < t->exit_count; n++) {
        struct tbd_exit_site *site = &tbd_cache.site[tbd_cache.site_count++];

        *site = (struct tbd_exit_site){ .rel32 = place_in_area(t, t->exit[n].rel32),
                                        .target = t->exit[n].target,
                                        .block = tbd_cache_index(block),
                                        .linked = TBD_NO_INDEX,
                                        .area = (uint32_t)(area - tbd_cache.area),
                                        .next = TBD_NO_INDEX };
        area->cold -= TBD_CACHE_STUB_BYTES;
        site->stub = area->cold;
        tbd_cache_emit_stub(site);
        tbd_cache_set_rel32(site->rel32, site->stub);
    }
    if (t->mismatch)
        mismatch_emit(area, place_in_area(t, t->mismatch));
}

static void fill_block(struct tbd_block_code *block, const struct tbd_cut *cut, uint32_t id)
{
    const struct tbd_insn *last = cut->count ? &cut->insn[cut->count - 1] : NULL;

    *block = (struct tbd_block_code){
        .start = cut->def.start,
        .id = id,
        .incoming = TBD_NO_INDEX,
        .code_bytes = cut->def.code_bytes,
        .last_insn = last ? (uint16_t)(last->pc - cut->def.start) : 0,
        .last_bytes = last ? last->length : 0,
        .end = cut->def.end,
        .special = last ? last->special : 0,
        .live = true,
    };
}

struct cut_request {
    const struct tbd_patcher_callbacks *callbacks;
    const struct tbd_codegen_config *config;
    struct tbd_cut *cut;
    uint64_t pc;
};

static struct tbd_branches_at branches_of(const struct cut_request *how,
                                          const struct tbd_block_code *block)
{
    if (!how->config->counts_branches)
        return (struct tbd_branches_at){ .function = NULL };
    return how->callbacks->branches(block->start);
}

static void set_up(struct tbd_translation *t, const struct tbd_patch_area *area,
                   const struct tbd_cut *cut, const struct cut_request *how,
                   const struct tbd_block_code *block)
{
    const struct tbd_codegen_config *config = how->config;

    *t = (struct tbd_translation){ .cut = cut,
                                   .head = area->head,
                                   .at_home = tbd_at_home(config),
                                   .hook_set = config->hook_set,
                                   .only_counts = config->only_counts,
                                   .in_ring = tbd_codegen_has_ring(config),
                                   .says_left =
                                       !tbd_codegen_entries_tell(config) || block->foretells_later,
                                   .records = config->records,
                                   .calling = (enum tbd_calling_scheme)config->calling,
                                   .call_number = how->callbacks->call_number,
                                   .branches = branches_of(how, block),
                                   .branches_are_chosen = config->counts_branches,
                                   .id = block->id,
                                   .block = tbd_cache_index(block),
                                   .stop = block->is_stop,
                                   .foretold = block->foretold,
                                   .is_constant = block->read != 0 };
}

static void put_in_area(struct tbd_patch_area *area, struct tbd_block_code *block,
                        const struct tbd_translation *t)
{
    block->cache_start = area->hot;
    block->cache_end = tbd_emit_pc(&t->e);
    block->entry = t->entry;
    block->answered = t->answered;
    block->tail = t->tail;
    block->tagged = t->tagged ? t->tag : 0;
    area->block[area->count++] = tbd_cache_index(block);
    area->hot = (block->cache_end + 15) & ~15ull;
    make_exits(area, t, block);
}

static void cut_with_vectors(void *arg)
{
    struct cut_request *r = arg;

    tbd_cut_block(r->cut, r->callbacks, r->config, r->pc);
}

static bool is_full(void)
{
    return tbd_cache.block_count == TBD_CACHE_BLOCKS || tbd_cache.site_count + 2 > TBD_CACHE_SITES;
}

/* Emits tbd_cache.cut at area->hot. */
static bool emit_block(struct tbd_patch_area *area, struct tbd_block_code *block,
                       const struct cut_request *how, bool tagged)
{
    struct tbd_translation t;

    set_up(&t, area, &tbd_cache.cut, how, block);
    t.tagged = tagged;
    t.e = (struct tbd_emit){ .at = (uint8_t *)(uintptr_t)area->hot,
                             .end = (uint8_t *)(uintptr_t)area->hot + TBD_CACHE_BLOCK_SPACE };
    tbd_translate(&t);
    if (t.e.overflow)
        return false;
    tbd_cache.block_count++;
    put_in_area(area, block, &t);
    tbd_cache_enter_pages(block);
    return true;
}

static void join_exit(const struct tbd_codegen_config *config, uint32_t after,
                      struct tbd_block_code *block)
{
    if (after != TBD_NO_INDEX && !tbd_cache.site[after].rel32)
        tbd_cache_join(&tbd_cache.site[after], block);
    else if (after != TBD_NO_INDEX && config->link)
        tbd_cache_link(&tbd_cache.site[after], block);
}

static bool is_in_area(const struct tbd_patch_area *area, const struct tbd_block_code *block)
{
    return tbd_cache_area_of(block->entry) == area && block->cache_start <= block->entry &&
           block->entry < block->cache_end && block->cache_end <= area->cold &&
           area->hot <= area->cold;
}

/* Into the block of tbd_cache.cut; not where code lies before its entry. */
static bool can_fall_into(const struct tbd_codegen_config *config, uint64_t pc)
{
    const struct tbd_cut *cut = &tbd_cache.cut;

    return !cut->check_bytes && !tbd_asked_places_has(pc) &&
           !(config->records && tbd_translate_may_record(cut));
}

static void foretell(struct tbd_block_code *block, const struct tbd_patcher_callbacks *callbacks,
                     const struct tbd_codegen_config *config, const struct tbd_patch_area *area)
{
    struct tbd_foretold foretold = tbd_foretell(callbacks, config, area, &tbd_cache.cut);

    block->foretold = foretold.target;
    block->read = foretold.read;
    block->foretells_later = foretold.is_due;
}

struct tbd_block_code *tbd_cache_make(const struct tbd_patcher_callbacks *callbacks,
                                      const struct tbd_codegen_config *config,
                                      const struct tbd_make *make)
{
    struct cut_request request = { callbacks, config, &tbd_cache.cut, make->pc };
    struct tbd_patch_area *area = tbd_cache_area_for(callbacks, config, make->pc);
    struct tbd_block_code *block = &tbd_cache.block[tbd_cache.block_count];

    if (!area || is_full())
        return NULL;
    callbacks->with_vector_state(cut_with_vectors, &request);
    if (tbd_cache.cut.check_bytes && callbacks->looked)
        callbacks->looked((struct tbd_app_pc){ make->pc }, tbd_cache.cut.check_bytes);
    fill_block(block, &tbd_cache.cut, tbd_cache_id_of(&tbd_cache.cut, callbacks, config));
    if (make->stop_insns) {
        tbd_cut_shorten(&tbd_cache.cut, make->stop_insns);
        fill_block(block, &tbd_cache.cut, block->id);
        block->is_stop = true;
        block->stop_insns = make->stop_insns;
    } else {
        foretell(block, callbacks, config, area);
    }
    if (make->after != TBD_NO_INDEX && config->link && can_fall_into(config, make->pc))
        tbd_cache_open_tail(area, &tbd_cache.site[make->after]);
    if (!emit_block(area, block, &request, make->tagged))
        return NULL;
    if (!block->is_stop)
        tbd_cache_map(tbd_cache_index(block));
    join_exit(config, make->after, block);
    TBD_INVARIANT("CACHE-1", is_in_area(area, block));
    TBD_INVARIANT("CACHE-2", block->is_stop || tbd_cache_find(block->start) == block);
    return block;
}

bool tbd_cache_add_tag(struct tbd_block_code *block)
{
    struct tbd_patch_area *area = &tbd_cache.area[tbd_cache_area_of(block->entry) - tbd_cache.area];
    struct tbd_translation t = { .cut = NULL };
    uint64_t at = area->hot;

    if (area->cold - area->hot < TBD_CACHE_STUB_SPACE + TBD_CACHE_BLOCK_SPACE)
        return false;
    t.e = (struct tbd_emit){ .at = (uint8_t *)(uintptr_t)at,
                             .end = (uint8_t *)(uintptr_t)at + TBD_CACHE_STUB_SPACE };
    tbd_translate_tag(&t, block->start);
    tbd_emit_jmp(&t.e, block->entry);
    area->hot = (tbd_emit_pc(&t.e) + 15) & ~15ull;
    mismatch_emit(area, place_in_area(&t, t.mismatch));
    block->tagged = t.tag;
    return true;
}

const struct tbd_block_code *tbd_cache_added_tag(uint64_t cache_pc)
{
    const struct tbd_block_code *found = NULL;

    for (uint32_t n = 0; n < tbd_cache.block_count; n++) {
        const struct tbd_block_code *block = &tbd_cache.block[n];
        bool is_apart = block->tagged < block->cache_start || block->tagged >= block->cache_end;

        if (is_apart && (!found || block->tagged > found->tagged) &&
            block->tagged <= cache_pc + TBD_TAG_MISMATCH_BYTES)
            found = block;
    }
    if (!found || (cache_pc >= found->tagged && cache_pc - found->tagged >= TBD_CACHE_TAG_BYTES))
        return NULL;
    return found;
}

/* ---- forgetting ---- */

/* The live block that control falls through from into this one; NULL: there is none. */
static struct tbd_block_code *block_before(const struct tbd_block_code *block)
{
    for (uint32_t n = block->incoming; n != TBD_NO_INDEX; n = tbd_cache.site[n].next)
        if (!tbd_cache.site[n].rel32 && tbd_cache.block[tbd_cache.site[n].block].live)
            return &tbd_cache.block[tbd_cache.site[n].block];
    return NULL;
}

static void kill_one(struct tbd_block_code *block)
{
    block->live = false;
    tbd_cache_remember_id(block);
    tbd_cache_unlink_incoming(block);
    for (uint32_t n = 0; n < block->exit_count && !tbd_cache.is_free; n++)
        tbd_cache_leave_list(block->first_exit + n);
    if (block->tagged)
        tbd_cache_forget_target(block);
}

/* With other threads no jump can be put between two blocks any more: those before it die, too. */
void tbd_cache_kill(struct tbd_block_code *block)
{
    while (block && block->live) {
        struct tbd_block_code *before = tbd_cache.is_shared ? block_before(block) : NULL;

        kill_one(block);
        block = before;
    }
}

void tbd_cache_drain(struct tbd_thread *thread)
{
    if (!tbd_cache.is_free)
        return;
    for (uint32_t n = 0; n < tbd_cache.block_count && tbd_cache.is_shared; n++)
        tbd_cache_unlink_incoming(&tbd_cache.block[n]);
    tbd_cache_forget_targets();
    tbd_engine_drain(thread, tbd_cache.thread, tbd_cache.thread_count);
}

void tbd_cache_flush_all(void)
{
    tbd_cache_forget_targets();
    if (!tbd_cache.block_count)
        return;
    for (uint32_t n = 0; n < tbd_cache.block_count; n++)
        tbd_cache_remember_id(&tbd_cache.block[n]);
    tbd_cache_empty_map();
    for (uint32_t n = 0; n < tbd_cache.area_count; n++)
        tbd_cache_reset_area(&tbd_cache.area[n]);
    tbd_cache.block_count = 0;
    tbd_cache.site_count = 0;
    tbd_cache.read_pages = 0;
}

/* ---- dry runs ---- */

bool tbd_cache_dry_run(const struct tbd_patcher_callbacks *callbacks,
                       const struct tbd_codegen_config *config, const struct tbd_block_code *block,
                       struct tbd_watch *watch, struct tbd_cut *cut)
{
    static uint8_t buffer[TBD_CACHE_BLOCK_SPACE];
    struct cut_request request = { callbacks, config, cut, block->start };
    const struct tbd_patch_area *area = tbd_cache_area_of(block->cache_start);
    struct tbd_translation t;

    callbacks->with_vector_state(cut_with_vectors, &request);
    if (block->is_stop)
        tbd_cut_shorten(cut, block->stop_insns);
    set_up(&t, area, cut, &request, block);
    t.watch = watch;
    t.tagged = block->tagged >= block->cache_start && block->tagged < block->cache_end;
    t.e = (struct tbd_emit){ .at = buffer,
                             .end = buffer + sizeof(buffer),
                             .delta = (int64_t)block->cache_start - (int64_t)(uintptr_t)buffer };
    tbd_translate(&t);
    watch->tail = t.tail;
    watch->leads_to = t.is_constant ? t.foretold : 0;
    watch->compare = t.compare;
    watch->compare_end = t.compare_end;
    watch->first_exit_end = t.exit_count ? place_in_area(&t, t.exit[0].rel32) + 4 : 0;
    return tbd_emit_pc(&t.e) >= block->cache_end; /* its last jump may be left out (CACHE-4) */
}
