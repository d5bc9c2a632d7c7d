// SPDX-License-Identifier: MIT
/* past_pages.c - see past_pages.h
 *
 * A page is read when it is needed first, and kept.  Pages lie in a hash table; a simulation asks for few thousand of them.
 *
 * PAST_PAGES-1  The table is never more than half full. */
#include "query/past/past_pages.h"

#include "base/assert.h"
#include "base/array.h"
#include "base/hash.h"
#include "hooks/table/syscalls.h"
#include "query/past/past_others.h"

#include <asm/unistd_64.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, FIRST_SIZE = 256 };

struct kept_page {
    uint64_t address; /* 1: free */
    uint8_t *bytes;   /* owned; NULL: not known */
    bool may_be_constant, is_shared;
    bool is_fixed; /* nobody may write it at the end, and it is no other process's */
    bool has_since;
    size_t since;  /* if it has one */
    uint8_t *file; /* owned; as the mapped file has it, the first file_bytes of it */
    size_t file_bytes;
};

/* What a system call has mapped, unmapped or protected. */
struct mapped {
    struct tbd_sys_range range;
    size_t after;
};

struct tbd_past_pages {
    struct tbd_session *session;
    const struct tbd_region *regions; /* borrowed from the trace */
    size_t region_count;
    const struct tbd_rings *ring;
    const struct tbd_past_others *others; /* borrowed, or NULL */
    uint32_t own;
    struct mapped *mapped; /* owned */
    size_t mapped_count, mapped_capacity;
    size_t last_unknown;     /* position after the last system call that may have mapped anything */
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

/* The kernel's own pages are no mapping of a file; they change. */
static bool is_fixed(const struct tbd_past_pages *pages, uint64_t address)
{
    for (size_t i = 0; i < pages->region_count; i++) {
        const struct tbd_region *region = &pages->regions[i];

        if (address >= region->start && address < region->end)
            return (region->prot & PROT_WRITE) == 0 && region->path[0] == '/' &&
                   (region->map_flags & MAP_SHARED) == 0;
    }
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
    page->is_fixed = page->bytes != NULL && is_fixed(pages, page->address);
    page->may_be_constant = pages->session->info->has_rings_only
                                ? !was_another(pages, page->address)
                                : page->bytes != NULL && may_be_constant(pages, page->address);
    pages->count++;
    TBD_INVARIANT("PAST_PAGES-1", 2 * pages->count <= pages->size);
    return page;
}

struct tbd_past_pages *tbd_past_pages_new(struct tbd_session *session,
                                          const struct tbd_past_pages_of *of)
{
    struct tbd_past_pages *pages = calloc(1, sizeof(*pages));

    if (pages == NULL)
        return NULL;
    pages->session = session;
    pages->ring = of->ring;
    pages->others = of->others;
    pages->own = of->own;
    if (tbd_trace_regions(session->trace, 0, &pages->regions, &pages->region_count,
                          &session->why) != TBD_OK)
        pages->region_count = 0;
    if (grow(pages))
        return pages;
    free(pages);
    return NULL;
}

bool tbd_past_pages_is_theirs(void *arg, uint64_t address)
{
    const struct tbd_past_pages *pages = arg;

    return tbd_past_others_store(pages->others, pages->own, address);
}

void tbd_past_pages_free(struct tbd_past_pages *pages)
{
    for (size_t i = 0; pages != NULL && i < pages->size; i++) {
        free(pages->table[i].bytes);
        free(pages->table[i].file);
    }
    if (pages != NULL) {
        free(pages->table);
        free(pages->mapped);
    }
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

static enum tbd_status note_range(struct tbd_past_pages *pages, size_t after,
                                  struct tbd_sys_range range)
{
    if (!tbd_array_grow(&pages->mapped, pages->mapped_count, &pages->mapped_capacity,
                        sizeof(*pages->mapped)))
        return TBD_NOMEM;
    pages->mapped[pages->mapped_count++] = (struct mapped){ range, after };
    return TBD_OK;
}

enum tbd_status tbd_past_pages_note_call(struct tbd_past_pages *pages, size_t after,
                                         const struct tbd_value_call *call)
{
    struct tbd_sys_call sys = { .number = call == NULL ? 0 : call->number };
    struct tbd_sys_range changed[6];
    enum tbd_status status = TBD_OK;
    size_t count = 0;

    if (call != NULL)
        memcpy(sys.args, call->args, sizeof(sys.args));
    if (call != NULL && (sys.number == __NR_mprotect || sys.number == __NR_pkey_mprotect))
        return note_range(pages, after, (struct tbd_sys_range){ sys.args[0], sys.args[1] });
    if (call == NULL || (sys.number != __NR_brk && (call->flags & TBD_VALUE_ALL_RANGES) == 0 &&
                         !tbd_syscall_changed(&sys, call->result, changed, &count)))
        pages->last_unknown = after;
    for (size_t i = 0; status == TBD_OK && i < count; i++)
        status = note_range(pages, after, changed[i]);
    return status;
}

static size_t fixed_since(const struct tbd_past_pages *pages, const struct kept_page *page)
{
    size_t since = pages->last_unknown;

    if (!page->is_fixed || pages->ring->dump.head->thread_count > 1)
        return SIZE_MAX;
    for (size_t i = 0; i < pages->mapped_count; i++)
        if (pages->mapped[i].after > since &&
            pages->mapped[i].range.address < page->address + PAGE &&
            page->address < pages->mapped[i].range.address + pages->mapped[i].range.bytes)
            since = pages->mapped[i].after;
    return since;
}

/* Keeps the answer: no call is noted after the first question. */
size_t tbd_past_pages_fixed_since(void *arg, uint64_t address)
{
    struct kept_page *page = page_at(arg, address);

    if (page == NULL)
        return SIZE_MAX;
    if (!page->has_since)
        page->since = fixed_since(arg, page);
    page->has_since = true;
    return page->since;
}

/* Is it in a segment of its file that nobody may write?  A dump without memory has no more to compare. */
static bool is_of_constants(const struct tbd_past_pages *pages, uint64_t address)
{
    const struct tbd_module *module = tbd_symbols_module_at(pages->session->symbols, 0, address);

    return module != NULL &&
           tbd_elf_is_constant(module->file, address - module->bias, sizeof(uint64_t));
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
    was = word_of(page->file, address);
    if (page->bytes == NULL)
        return is_of_constants(pages, address) ? was : (struct tbd_bits){ 0, 0 };
    is = word_of(page->bytes, address);
    return is.value == was.value ? is : (struct tbd_bits){ 0, 0 };
}
