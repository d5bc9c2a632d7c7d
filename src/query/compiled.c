// SPDX-License-Identifier: MIT
/* compiled.c - see compiled.h
 *
 * I1  Entries are sorted by start and do not overlap: an answer is cut to the gap it falls into.
 * I2  They are right for the modules of one window; when a window has others, all go. */
#include "query/compiled.h"

#include "query/source_place.h"

#include <stdlib.h>
#include <string.h>

#define ENTRIES_MAX 65536u

struct entry {
    uint64_t start, end;
    enum tbd_compiled_state state;
    struct tbd_c_code *code; /* owned; NULL unless state is CODE */
};

struct tbd_compiled {
    struct tbd_session *session;
    const struct tbd_c_fields *fields;
    char *text;                     /* owned */
    struct tbd_source_place *place; /* owned; only places[0] counts */
    struct tbd_query_error error;
    uint32_t window;
    uint64_t modules;      /* a digest of what the window has mapped */
    struct entry *entries; /* owned */
    size_t count, capacity;
    size_t last; /* index of the last answer */
};

/* Which names are types is not known yet: none, or all. */
static bool every_name(void *context, const char *name, struct tbd_type *out)
{
    (void)context;
    (void)name;
    *out = tbd_type_made(0, 0);
    return true;
}

static enum tbd_status check_text(const char *text, size_t from, size_t to,
                                  struct tbd_query_error *error)
{
    struct tbd_c_types all = { .find = every_name };
    struct tbd_query_error other;
    struct tbd_c_tree tree;
    enum tbd_status status = tbd_c_parse(NULL, text, from, to, &tree, error);

    if (status == TBD_SYNTAX && tbd_c_parse(&all, text, from, to, &tree, &other) == TBD_OK)
        status = TBD_OK;
    tbd_c_tree_free(&tree);
    return status;
}

enum tbd_status tbd_compiled_new(struct tbd_session *session, const struct tbd_c_fields *fields,
                                 const char *text, size_t from, size_t to,
                                 struct tbd_compiled **out, struct tbd_query_error *error)
{
    struct tbd_compiled *compiled = calloc(1, sizeof(*compiled));

    *out = NULL;
    *error = (struct tbd_query_error){ .status = TBD_NOMEM };
    if (compiled == NULL)
        return TBD_NOMEM;
    compiled->session = session;
    compiled->fields = fields;
    compiled->window = UINT32_MAX;
    compiled->text = strndup(text + from, to - from);
    compiled->place = calloc(1, sizeof(*compiled->place));
    if (compiled->text != NULL && compiled->place != NULL &&
        check_text(text, from, to, error) == TBD_OK) {
        *out = compiled;
        return TBD_OK;
    }
    tbd_compiled_free(compiled);
    return error->status;
}

static void forget(struct tbd_compiled *compiled)
{
    for (size_t i = 0; i < compiled->count; i++)
        tbd_c_code_free(compiled->entries[i].code);
    compiled->count = 0;
    compiled->last = 0;
}

void tbd_compiled_free(struct tbd_compiled *compiled)
{
    if (compiled == NULL)
        return;
    forget(compiled);
    free(compiled->entries);
    free(compiled->text);
    free(compiled->place);
    free(compiled);
}

/* Keeps I2. */
static void take_window(struct tbd_compiled *compiled, uint32_t window)
{
    const struct tbd_module *modules;
    size_t count = 0;
    uint64_t digest = 14695981039346656037ull;

    if (compiled->window == window)
        return;
    if (tbd_symbols_modules(compiled->session->symbols, window, &modules, &count) != TBD_OK)
        count = 0;
    for (size_t i = 0; i < count; i++) {
        digest = (digest ^ modules[i].start) * 1099511628211ull;
        digest = (digest ^ modules[i].bias) * 1099511628211ull;
        digest = (digest ^ (uintptr_t)modules[i].file) * 1099511628211ull;
    }
    if (compiled->window == UINT32_MAX || digest != compiled->modules)
        forget(compiled);
    compiled->modules = digest;
    compiled->window = window;
}

/* The first entry that ends behind `address`. */
static size_t entry_at(const struct tbd_compiled *compiled, uint64_t address)
{
    size_t low = 0, high = compiled->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compiled->entries[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Room for one more; all others go when there are too many. */
static bool make_room(struct tbd_compiled *compiled)
{
    size_t wanted = compiled->capacity == 0 ? 64 : 2 * compiled->capacity;
    struct entry *bigger;

    if (compiled->count >= ENTRIES_MAX)
        forget(compiled);
    if (compiled->count < compiled->capacity)
        return true;
    bigger = realloc(compiled->entries, wanted * sizeof(*bigger));
    if (bigger == NULL)
        return false;
    compiled->entries = bigger;
    compiled->capacity = wanted;
    return true;
}

/* Names and types hold in the whole range of the scopes; what has no code is known as far. */
static struct entry compile(struct tbd_compiled *compiled, uint32_t window, uint64_t address)
{
    struct tbd_source_place *place = compiled->place;
    struct entry entry = { .start = address, .end = address + 1 };
    struct tbd_elf_file *file = tbd_source_place_static(compiled->session, window, address, place);
    struct tbd_c_scope scope = tbd_source_scope(place);
    const struct tbd_place_of *at = &place->places[0];
    struct tbd_elf_range range;
    enum tbd_status status = tbd_c_compile(&scope, file, compiled->fields, compiled->text, 0,
                                           strlen(compiled->text), &entry.code, &compiled->error);

    if (status == TBD_OK) {
        entry.start = entry.code->start;
        entry.end = entry.code->end;
        return entry;
    }
    entry.state = status == TBD_UNSUPPORTED ? TBD_COMPILED_SLOW : TBD_COMPILED_NOWHERE;
    if (entry.state == TBD_COMPILED_NOWHERE && file != NULL && at->dwarf != NULL) {
        tbd_dwarf_scope_range(at->dwarf, &at->scopes, at->address, &range);
        entry.start = range.start + at->bias;
        entry.end = range.end + at->bias;
    }
    return entry;
}

/* Keeps I1. */
static size_t insert(struct tbd_compiled *compiled, struct entry entry, uint64_t address)
{
    size_t at;

    if (!make_room(compiled)) {
        tbd_c_code_free(entry.code);
        return SIZE_MAX;
    }
    at = entry_at(compiled, address);
    if (entry.start > address || entry.end <= address) {
        entry.start = address;
        entry.end = address + 1;
    }
    if (at > 0 && compiled->entries[at - 1].end > entry.start)
        entry.start = compiled->entries[at - 1].end;
    if (at < compiled->count && compiled->entries[at].start < entry.end)
        entry.end = compiled->entries[at].start;
    memmove(compiled->entries + at + 1, compiled->entries + at,
            (compiled->count - at) * sizeof(*compiled->entries));
    compiled->entries[at] = entry;
    compiled->count++;
    return at;
}

enum tbd_compiled_state tbd_compiled_at(struct tbd_compiled *compiled, uint32_t window,
                                        uint64_t address, const struct tbd_c_code **out)
{
    size_t at = compiled->last;

    *out = NULL;
    take_window(compiled, window);
    if (at >= compiled->count || address < compiled->entries[at].start ||
        address >= compiled->entries[at].end)
        at = entry_at(compiled, address);
    if (at >= compiled->count || address < compiled->entries[at].start)
        at = insert(compiled, compile(compiled, window, address), address);
    if (at == SIZE_MAX)
        return TBD_COMPILED_SLOW;
    compiled->last = at;
    *out = compiled->entries[at].code;
    return compiled->entries[at].state;
}

const struct tbd_query_error *tbd_compiled_error(const struct tbd_compiled *compiled)
{
    return &compiled->error;
}
