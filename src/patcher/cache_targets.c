// SPDX-License-Identifier: MIT
/* cache_targets.c - the tables in which threads' indirect branches and returns find translated
 * blocks */
#include "patcher/cache_private.h"

#include "patcher/fixed.h"

/* The thread may be jumping by these words meanwhile. */
static void set(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static void clear_targets(struct tbd_thread *thread)
{
    thread->minus_two = 0 - 2ull;
    thread->one = 1;
    for (uint32_t n = 0; n < TBD_IBL_ENTRIES; n++)
        set(&thread->ibl[n], (uint64_t)(uintptr_t)tbd_fixed_miss);
    for (uint32_t n = 0; n < TBD_SECOND_ENTRIES; n++)
        set(&thread->second[n].minus_target, 1);
}

static struct tbd_second_target *second_of(struct tbd_thread *thread, uint64_t pc)
{
    return &thread->second[(pc >> TBD_SECOND_SHIFT) & (TBD_SECOND_ENTRIES - 1)];
}

/* Sets both tables: the first has one target for each low 16 bits, the second keeps targets that
 * the first drops. */
void tbd_cache_set_target(struct tbd_thread *thread, struct tbd_block_code *block)
{
    if (block->found_by != thread)
        block->found_by = block->found_by ? TBD_FOUND_BY_MANY : thread;
    thread->ibl[block->start & (TBD_IBL_ENTRIES - 1)] = block->tagged;
    *second_of(thread, block->start) =
        (struct tbd_second_target){ .minus_target = 0 - block->start, .entry = block->entry };
}

void tbd_cache_add_thread(struct tbd_thread *thread)
{
    for (uint32_t n = 0; n < tbd_cache.thread_count; n++)
        if (tbd_cache.thread[n] == thread)
            return;
    clear_targets(thread);
    if (tbd_cache.thread_count < TBD_CACHE_THREADS)
        tbd_cache.thread[tbd_cache.thread_count++] = thread;
    tbd_cache.is_shared = tbd_cache.is_shared || tbd_cache.thread_count > 1;
}

void tbd_cache_remove_thread(struct tbd_thread *thread)
{
    for (uint32_t n = 0; n < tbd_cache.thread_count; n++)
        if (tbd_cache.thread[n] == thread)
            tbd_cache.thread[n] = tbd_cache.thread[--tbd_cache.thread_count];
}

void tbd_cache_after_fork(void)
{
    for (uint32_t n = 0; n < tbd_cache.thread_count; n++)
        tbd_cache.thread[n]->in_code = 0;
}

static void forget(struct tbd_thread *thread, const struct tbd_block_code *block)
{
    uint64_t *slot = &thread->ibl[block->start & (TBD_IBL_ENTRIES - 1)];
    struct tbd_second_target *second = second_of(thread, block->start);

    if (*slot == block->tagged)
        set(slot, (uint64_t)(uintptr_t)tbd_fixed_miss);
    if (second->minus_target == 0 - block->start)
        set(&second->minus_target, 1);
}

/* Tables of a thread that did not find the block are left alone: they are in no cache. */
void tbd_cache_forget_target(const struct tbd_block_code *block)
{
    for (uint32_t n = 0; n < tbd_cache.thread_count && block->found_by; n++)
        if (block->found_by == TBD_FOUND_BY_MANY || block->found_by == tbd_cache.thread[n])
            forget(tbd_cache.thread[n], block);
}

void tbd_cache_forget_targets(void)
{
    for (uint32_t n = 0; n < tbd_cache.thread_count; n++)
        clear_targets(tbd_cache.thread[n]);
}
