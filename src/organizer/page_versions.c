// SPDX-License-Identifier: MIT
/* page_versions.c - contents of pages at the end of the last windows
 *
 * Invariants
 * PAGE_VERSIONS-1  A page's version in the table is what a reader finds for the next window that
 *     modifies it (format/pages/page_base.c): the END contents in the last window that has contents
 *     of the page. A window that has other contents (GONE, FIRST), or some that could not be
 *     copied, takes the version out. (not checked: test_page_versions does)
 * PAGE_VERSIONS-2  A version belongs to the current mapping: munmap takes it out. So a change of
 *     older windows (merging, lowering) keeps it. (not checked: test_page_versions does)
 * PAGE_VERSIONS-3  A version is in the table, or lent to the bases of one window, or free; it is not
 *     written to after it was copied. (not checked: the type is const, and page_slots.c checks what is free)
 * PAGE_VERSIONS-4  `lock` guards the table and the free list; the table is used in order of
 *     windows. (not checked: threads: tsan does) */
#include "organizer/page_versions.h"

#include "format/window/window_make.h"
#include "organizer/page_slots.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES TBD_SLOT_BYTES

struct tbd_page_versions {
    pthread_mutex_t lock;
    struct tbd_page_slots slots; /* version n is in slot n */
    uint32_t group;              /* of windows; all versions in the table belong to it */
};

struct tbd_page_versions *tbd_page_versions_new(uint32_t pages)
{
    struct tbd_page_versions *v = calloc(1, sizeof(*v));

    if (!v)
        return NULL;
    pthread_mutex_init(&v->lock, NULL);
    if (tbd_page_slots_make(&v->slots, pages))
        return v;
    tbd_page_versions_free(v);
    return NULL;
}

void tbd_page_versions_free(struct tbd_page_versions *v)
{
    if (!v)
        return;
    pthread_mutex_destroy(&v->lock);
    tbd_page_slots_free(&v->slots);
    free(v);
}

/* ---- the table ---- */

/* Takes out pages that were unmapped at or after a moment of the window. */
static void forget_unmapped_locked(struct tbd_page_versions *v, const struct tbd_product *product,
                                   uint64_t time)
{
    for (size_t i = 0; i < product->side_count && v->slots.table.used; i++) {
        const struct tbd_side_message *side = &product->side[i];
        struct tbd_range range;

        if (side->kind != TBD_MSG_UNMAP || side->time < time)
            continue;
        memcpy(&range, side->payload, sizeof(range));
        tbd_page_slots_forget_range(&v->slots, range.start, range.end);
    }
}

static void forget_pages_locked(struct tbd_page_versions *v, const struct tbd_page_contents *pages,
                                size_t count)
{
    for (size_t i = 0; i < count; i++)
        tbd_page_slots_forget(&v->slots, pages[i].address / PAGE_BYTES);
}

/* Sets the page's new version.  A window may name the page twice, in unknown order: then it has
 * none. */
static void put_in_locked(struct tbd_page_versions *v, uint64_t page, uint32_t number)
{
    uint32_t other = tbd_page_slots_take_out(&v->slots, page);

    if (number && !other && tbd_page_slots_put(&v->slots, page, number))
        return;
    tbd_page_slots_give(&v->slots, number);
    tbd_page_slots_give(&v->slots, other);
}

/* ---- a window's pages ---- */

/* Pages whose frame alone is known get none. */
static void take_numbers(struct tbd_page_versions *v, uint32_t *numbers,
                         const struct tbd_window *window)
{
    pthread_mutex_lock(&v->lock);
    for (size_t i = 0; i < window->dirty_count; i++)
        numbers[i] = window->dirty[i].bytes ? tbd_page_slots_take(&v->slots) : 0;
    pthread_mutex_unlock(&v->lock);
}

void tbd_page_bases_copy(struct tbd_page_bases *bases, struct tbd_page_versions *v,
                         const struct tbd_window *window)
{
    *bases = (struct tbd_page_bases){ .window = window };
    if (!v || !window->dirty_count)
        return;
    bases->numbers = calloc(window->dirty_count, sizeof(*bases->numbers));
    if (!bases->numbers)
        return;
    bases->versions = v;
    take_numbers(v, bases->numbers, window);
    for (size_t i = 0; i < window->dirty_count; i++)
        if (bases->numbers[i])
            memcpy(v->slots.pages[bases->numbers[i] - 1], window->dirty[i].bytes, PAGE_BYTES);
}

/* Exchanges the window's copies for the versions before. */
static void exchange_locked(struct tbd_page_versions *v, struct tbd_page_bases *bases,
                            const struct tbd_window *window)
{
    uint32_t *before = calloc(window->dirty_count + 1, sizeof(*before));

    for (size_t i = 0; i < window->dirty_count && before; i++)
        before[i] = tbd_page_slots_take_out(&v->slots, window->dirty[i].address / PAGE_BYTES);
    if (!before)
        forget_pages_locked(v, window->dirty, window->dirty_count);
    forget_pages_locked(v, window->gone, window->gone_count);
    forget_pages_locked(v, window->first, window->first_count);
    for (size_t i = 0; i < window->dirty_count; i++)
        put_in_locked(v, window->dirty[i].address / PAGE_BYTES, bases->numbers[i]);
    for (size_t i = 0; i < window->dirty_count; i++)
        bases->numbers[i] = before ? before[i] : 0;
    free(before);
}

/* Joins a window whose turn has come. */
static void join_locked(struct tbd_page_versions *v, struct tbd_page_bases *bases,
                        const struct tbd_window *window)
{
    uint32_t group = window->number / TBD_PAGE_VERSIONS_GROUP;

    if (group != v->group)
        tbd_page_slots_forget_all(&v->slots);
    v->group = group;
    if (bases->versions)
        return exchange_locked(v, bases, window);
    forget_pages_locked(v, window->dirty, window->dirty_count);
    forget_pages_locked(v, window->gone, window->gone_count);
    forget_pages_locked(v, window->first, window->first_count);
}

void tbd_page_bases_join(struct tbd_page_bases *bases, struct tbd_page_versions *v,
                         const struct tbd_product *product)
{
    if (!v)
        return;
    pthread_mutex_lock(&v->lock);
    forget_unmapped_locked(v, product, 0);
    join_locked(v, bases, product->window);
    forget_unmapped_locked(v, product, product->window->blocks);
    pthread_mutex_unlock(&v->lock);
}

void tbd_page_versions_unmap(struct tbd_page_versions *v, const struct tbd_product *product)
{
    if (!v)
        return;
    pthread_mutex_lock(&v->lock);
    forget_unmapped_locked(v, product, 0);
    pthread_mutex_unlock(&v->lock);
}

const uint8_t *tbd_page_bases_find(void *context, uint64_t address)
{
    const struct tbd_page_bases *bases = context;
    const struct tbd_window *window = bases->window;
    const struct tbd_page_contents *first = tbd_window_first(window, address);
    const struct tbd_page_contents *dirty =
        bases->versions ? tbd_window_dirty(window, address) : NULL;
    uint32_t number = dirty ? bases->numbers[dirty - window->dirty] : 0;

    if (first && !first->time && !first->order)
        return first->bytes;
    return number ? bases->versions->slots.pages[number - 1] : NULL;
}

void tbd_page_bases_free(struct tbd_page_bases *bases)
{
    struct tbd_page_versions *v = bases->versions;

    if (v) {
        pthread_mutex_lock(&v->lock);
        for (size_t i = 0; i < bases->window->dirty_count; i++)
            tbd_page_slots_give(&v->slots, bases->numbers[i]);
        pthread_mutex_unlock(&v->lock);
    }
    free(bases->numbers);
    *bases = (struct tbd_page_bases){ 0 };
}
