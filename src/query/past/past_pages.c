// SPDX-License-Identifier: MIT
/* past_pages.c - see past_pages.h
 *
 * A page is read when it is needed first, and kept.  Pages lie in a hash table; a simulation asks for few thousand of them.
 *
 * PAST_PAGES-1  The table is never more than half full. */
#include "query/past/past_pages.h"

#include "base/assert.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, FIRST_SIZE = 256 };

struct kept_page {
    uint64_t address; /* 1: free */
    uint8_t *bytes;   /* owned; NULL: not known */
    bool may_be_constant, is_shared;
    uint8_t *file; /* owned; as the mapped file has it, the first file_bytes of it */
    size_t file_bytes;
};

struct tbd_past_pages {
    struct tbd_session *session;
    const struct tbd_region *regions; /* borrowed from the trace */
    size_t region_count;
    const struct tbd_rings *ring;
    struct kept_page *table; /* owned */
    size_t size, count;
};

static struct kept_page *find(const struct tbd_past_pages *pages, uint64_t address)
{
    size_t at = (size_t)tbd_hash64_mix(address * 0x9e3779b97f4a7c15ull) & (pages->size - 1);

    while (pages->table[at].address != 1 && pages->table[at].address != address)
        at = (at + 1) & (pages->size - 1);
    return &pages->table[at];
}

static bool grow(struct tbd_past_pages *pages)
{
    struct kept_page *old = pages->table;
    size_t old_size = pages->size, size = old_size != 0 ? 2 * old_size : FIRST_SIZE;
    struct kept_page *table = calloc(size, sizeof(*table));

    if (table == NULL)
        return false;
    for (size_t i = 0; i < size; i++)
        table[i].address = 1;
    pages->table = table;
    pages->size = size;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].address != 1)
            *find(pages, old[i].address) = old[i];
    free(old);
    return true;
}

/* Was another file's code mapped there before? */
static bool was_another(const struct tbd_past_pages *pages, uint64_t address)
{
    const struct tbd_crash_dump *dump = &pages->ring->dump;
    const char *path = NULL;

    for (uint32_t i = 0; i < dump->head->module_count; i++) {
        const struct tbd_crash_module *module = &dump->modules[i];

        if (address + PAGE <= module->start || address >= module->end)
            continue;
        if (path != NULL && strcmp(path, module->path) != 0)
            return true;
        path = module->path;
    }
    return false;
}

static bool may_be_constant(const struct tbd_past_pages *pages, uint64_t address)
{
    for (size_t i = 0; i < pages->region_count; i++) {
        const struct tbd_region *region = &pages->regions[i];

        if (address >= region->start && address < region->end)
            return (region->prot & PROT_WRITE) == 0 && region->path[0] == '/' &&
                   !was_another(pages, address);
    }
    return false;
}

/* Others may write there too, at any time. */
static bool is_shared(const struct tbd_past_pages *pages, uint64_t address)
{
    for (size_t i = 0; i < pages->region_count; i++)
        if (address >= pages->regions[i].start && address < pages->regions[i].end)
            return (pages->regions[i].map_flags & MAP_SHARED) != 0 &&
                   (pages->regions[i].prot & PROT_WRITE) != 0;
    return false;
}

static uint8_t *read_page(struct tbd_past_pages *pages, uint64_t address)
{
    const struct tbd_session_past *past = pages->session->past;
    uint8_t *bytes = malloc(PAGE);
    enum tbd_status status = TBD_NOMEM;

    pages->session->past = NULL;
    if (bytes != NULL)
        status = tbd_session_read(pages->session, (struct tbd_position){ 0 }, address, bytes, PAGE);
    pages->session->past = past;
    if (status == TBD_OK)
        return bytes;
    free(bytes);
    return NULL;
}

/* Keeps PAST_PAGES-1.  NULL without memory. */
static struct kept_page *page_at(struct tbd_past_pages *pages, uint64_t address)
{
    struct kept_page *page;

    if (2 * (pages->count + 1) > pages->size && !grow(pages))
        return NULL;
    page = find(pages, address & ~(uint64_t)(PAGE - 1));
    if (page->address != 1)
        return page;
    *page = (struct kept_page){ .address = address & ~(uint64_t)(PAGE - 1) };
    page->is_shared = is_shared(pages, page->address);
    page->bytes = read_page(pages, page->address);
    page->may_be_constant = page->bytes != NULL && may_be_constant(pages, page->address);
    pages->count++;
    TBD_INVARIANT("PAST_PAGES-1", 2 * pages->count <= pages->size);
    return page;
}

struct tbd_past_pages *tbd_past_pages_new(struct tbd_session *session, const struct tbd_rings *ring)
{
    struct tbd_past_pages *pages = calloc(1, sizeof(*pages));

    if (pages == NULL)
        return NULL;
    pages->session = session;
    pages->ring = ring;
    if (tbd_trace_regions(session->trace, 0, &pages->regions, &pages->region_count,
                          &session->why) != TBD_OK)
        pages->region_count = 0;
    if (grow(pages))
        return pages;
    free(pages);
    return NULL;
}

void tbd_past_pages_free(struct tbd_past_pages *pages)
{
    for (size_t i = 0; pages != NULL && i < pages->size; i++) {
        free(pages->table[i].bytes);
        free(pages->table[i].file);
    }
    if (pages != NULL)
        free(pages->table);
    free(pages);
}

static struct tbd_bits word_of(const uint8_t *page, uint64_t address)
{
    uint64_t value;

    memcpy(&value, page + address % PAGE, sizeof(value));
    return tbd_bits_of(value);
}

struct tbd_bits tbd_past_pages_final(void *arg, uint64_t address)
{
    const struct kept_page *page = page_at(arg, address);

    return page == NULL || page->bytes == NULL || page->is_shared ? (struct tbd_bits){ 0, 0 }
                                                                  : word_of(page->bytes, address);
}

/* Words, not pages: the linker writes some of a page's before nobody may write it any more. */
struct tbd_bits tbd_past_pages_constant(void *arg, uint64_t address)
{
    struct tbd_past_pages *pages = arg;
    struct kept_page *page = page_at(pages, address);
    struct tbd_bits is, was;

    if (page == NULL || !page->may_be_constant)
        return (struct tbd_bits){ 0, 0 };
    if (page->file == NULL && (page->file = malloc(PAGE)) != NULL)
        page->file_bytes =
            tbd_symbols_read_file(pages->session->symbols, 0, page->address, page->file, PAGE);
    if (page->file == NULL || address % PAGE + 8 > page->file_bytes)
        return (struct tbd_bits){ 0, 0 };
    is = word_of(page->bytes, address);
    was = word_of(page->file, address);
    return is.value == was.value ? is : (struct tbd_bits){ 0, 0 };
}
