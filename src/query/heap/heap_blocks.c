// SPDX-License-Identifier: MIT
/* heap_blocks.c - blocks of memory, from the calls that made and freed them
 *
 * HEAP_BLOCKS-1  changes[] is in the order of time; a call that frees and allocates (realloc) frees first. (not
 *     checked: it is sorted)
 * HEAP_BLOCKS-2  No two live blocks begin at one address. */
#include "query/heap/heap.h"

#include "base/array.h"
#include "base/assert.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* ---- live blocks by address ---- */

struct live {
    uint64_t start;
    uint32_t block;
};

static int compare_live(const void *left, const void *right)
{
    const struct live *a = left, *b = right;

    return a->start < b->start ? -1 : a->start > b->start;
}

/* ---- calls ---- */

bool tbd_heap_is_inner(const struct tbd_heap *heap, uint32_t thread, struct tbd_position enter)
{
    for (size_t i = heap->call_count; i-- > 0;) {
        const struct tbd_heap_call *outer = &heap->calls[i];

        if (outer->thread == thread)
            return outer->has_ended && tbd_position_compare(enter, outer->exit) < 0;
    }
    return false;
}

int tbd_heap_compare_stacks(const struct tbd_heap *heap, uint32_t call, uint32_t other)
{
    const struct tbd_heap_call *a = &heap->calls[call], *b = &heap->calls[other];
    size_t bytes = a->frame_count * sizeof(*heap->frames);

    if (a->name != b->name)
        return strcmp(a->name, b->name);
    if (a->frame_count != b->frame_count)
        return a->frame_count < b->frame_count ? -1 : 1;
    return bytes == 0 ? 0 : memcmp(heap->frames + a->frames, heap->frames + b->frames, bytes);
}

/* ---- changes ---- */

static bool add_change(struct tbd_heap *heap, uint32_t call, bool is_free)
{
    struct tbd_heap_change *change;

    if (!tbd_array_grow(&heap->changes, heap->change_count, &heap->change_capacity,
                        sizeof(*heap->changes)))
        return false;
    change = &heap->changes[heap->change_count++];
    *change = (struct tbd_heap_change){ .call = call, .block = TBD_HEAP_NONE, .is_free = is_free };
    change->at = is_free ? heap->calls[call].enter : heap->calls[call].exit;
    return true;
}

/* realloc() that fails keeps the old block. */
static bool takes_old(const struct tbd_heap_call *call)
{
    return call->old != 0 && !(call->size != 0 && call->fresh == 0);
}

static bool add_changes(struct tbd_heap *heap)
{
    for (uint32_t i = 0; i < heap->call_count; i++) {
        const struct tbd_heap_call *call = &heap->calls[i];

        if (takes_old(call) && !add_change(heap, i, true))
            return false;
        if (call->fresh != 0 && !add_change(heap, i, false))
            return false;
    }
    return true;
}

static int compare_changes(const void *left, const void *right)
{
    const struct tbd_heap_change *a = left, *b = right;
    int order = tbd_position_compare(a->at, b->at);

    if (order != 0)
        return order;
    return a->call != b->call ? (a->call < b->call ? -1 : 1) : b->is_free - a->is_free;
}

/* ---- pairing ---- */

static bool make_block(struct tbd_heap *heap, void **tree, struct tbd_heap_change *change)
{
    const struct tbd_heap_call *call = &heap->calls[change->call];
    struct live *own = malloc(sizeof(*own)), **found;

    if (own == NULL || !tbd_array_grow(&heap->blocks, heap->block_count, &heap->block_capacity,
                                       sizeof(*heap->blocks))) {
        free(own);
        return false;
    }
    *own = (struct live){ .start = call->fresh, .block = (uint32_t)heap->block_count };
    found = tsearch(own, tree, compare_live);
    if (found == NULL) {
        free(own);
        return false;
    }
    if (*found != own) { /* its free was not seen: by code that was not recorded */
        (*found)->block = own->block;
        free(own);
    }
    change->block = (uint32_t)heap->block_count;
    heap->blocks[heap->block_count++] = (struct tbd_heap_block){
        .start = call->fresh, .size = call->size, .made = change->call, .freed = TBD_HEAP_NONE
    };
    return true;
}

static void free_block(struct tbd_heap *heap, void **tree, struct tbd_heap_change *change)
{
    struct live key = { .start = heap->calls[change->call].old };
    struct live **found = tfind(&key, tree, compare_live), *own;

    if (found == NULL)
        return;
    own = *found;
    TBD_INVARIANT("HEAP_BLOCKS-2", heap->blocks[own->block].freed == TBD_HEAP_NONE);
    change->block = own->block;
    heap->blocks[own->block].freed = change->call;
    (void)tdelete(own, tree, compare_live);
    free(own);
}

bool tbd_heap_pair(struct tbd_heap *heap)
{
    void *tree = NULL;
    bool is_good = add_changes(heap);

    if (is_good && heap->change_count != 0)
        qsort(heap->changes, heap->change_count, sizeof(*heap->changes), compare_changes);
    for (size_t i = 0; i < heap->change_count && is_good; i++) {
        if (heap->changes[i].is_free)
            free_block(heap, &tree, &heap->changes[i]);
        else
            is_good = make_block(heap, &tree, &heap->changes[i]);
    }
    while (tree != NULL) {
        struct live *own = *(struct live **)tree;

        (void)tdelete(own, &tree, compare_live);
        free(own);
    }
    return is_good;
}

void tbd_heap_free(struct tbd_heap *heap)
{
    free(heap->calls);
    free(heap->frames);
    for (size_t i = 0; i < heap->text_count; i++)
        free(heap->texts[i]);
    free(heap->texts);
    free(heap->blocks);
    free(heap->changes);
    *heap = (struct tbd_heap){ 0 };
}
