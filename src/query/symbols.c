// SPDX-License-Identifier: MIT
/* symbols.c - which file is where in a window, and names in it
 *
 * Regions of a window (trace.h) become modules: a file that is mapped executable, with the bias
 * that its segments give.  Names inside a file are elf_symbols.c's.
 *
 * I1  view.modules is sorted by start.  It belongs to one window; files outlive it.
 * I2  A file that cannot be used is remembered as such, with one note, and not opened again.
 * I3  Without a copy in the trace, a file is used only if the code of the trace's blocks is in it.
 * */
#include "query/symbols.h"

#include "base/layout.h"
#include "base/search.h"
#include "query/demangle.h"
#include "query/elf_file.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define NO_WINDOW      UINT32_MAX
#define VDSO_MAX_BYTES (64u << 10)
#define CODE_CHECKS    256

struct known_file {
    struct known_file *next; /* owned */
    char *path;              /* owned; what was opened */
    char *shown;             /* owned; the path that the program mapped */
    uint64_t inode;
    uint32_t device;
    struct tbd_elf_file *file; /* owned; NULL: cannot be used (I2) */
};

struct view {
    uint32_t window;            /* NO_WINDOW: none yet */
    bool deep;                  /* mappings that lived only inside the window are in too */
    struct tbd_module *modules; /* owned */
    size_t count;
    size_t capacity;
};

struct tbd_symbols {
    struct tbd_trace *trace;        /* borrowed; NULL with fixed regions */
    const struct tbd_region *fixed; /* borrowed */
    size_t fixed_count;
    struct known_file *files; /* owned */
    struct view view;
    struct tbd_names names;
    char **notes; /* owned array; strings live in names */
    size_t note_count;
};

enum tbd_status tbd_symbols_new(struct tbd_trace *trace, struct tbd_symbols **out)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return TBD_NOMEM;
    (*out)->trace = trace;
    (*out)->view.window = NO_WINDOW;
    return TBD_OK;
}

enum tbd_status tbd_symbols_new_fixed(const struct tbd_region *regions, size_t count,
                                      struct tbd_symbols **out)
{
    enum tbd_status status = tbd_symbols_new(NULL, out);

    if (status == TBD_OK) {
        (*out)->fixed = regions;
        (*out)->fixed_count = count;
    }
    return status;
}

void tbd_symbols_free(struct tbd_symbols *symbols)
{
    if (!symbols)
        return;
    while (symbols->files) {
        struct known_file *known = symbols->files;

        symbols->files = known->next;
        tbd_elf_close(known->file);
        free(known->path);
        free(known->shown);
        free(known);
    }
    free(symbols->view.modules);
    free(symbols->notes);
    tbd_names_free(&symbols->names);
    free(symbols);
}

/* ---- notes ---- */

__attribute__((format(printf, 2, 3))) static void add_note(struct tbd_symbols *symbols,
                                                           const char *format, ...)
{
    char text[1024];
    char **grown, *kept;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    kept = tbd_names_add(&symbols->names, text, strlen(text), "");
    grown = kept ? realloc(symbols->notes, (symbols->note_count + 1) * sizeof(*grown)) : NULL;
    if (!grown)
        return;
    symbols->notes = grown;
    grown[symbols->note_count++] = kept;
}

const char *tbd_symbols_note(const struct tbd_symbols *symbols, size_t index)
{
    return index < symbols->note_count ? symbols->notes[index] : NULL;
}

/* ---- files ---- */

static struct known_file *known_find(struct tbd_symbols *symbols, const char *path,
                                     const struct tbd_region *region)
{
    for (struct known_file *known = symbols->files; known; known = known->next)
        if (known->inode == region->inode && known->device == region->device &&
            strcmp(known->path, path) == 0)
            return known;
    return NULL;
}

static struct known_file *known_add(struct tbd_symbols *symbols, const char *path,
                                    const struct tbd_region *region)
{
    struct known_file *known = calloc(1, sizeof(*known));

    if (!known)
        return NULL;
    known->path = strdup(path);
    known->shown = strdup(*region->path ? region->path : path);
    if (!known->path || !known->shown) {
        free(known->path);
        free(known->shown);
        free(known);
        return NULL;
    }
    known->inode = region->inode;
    known->device = region->device;
    known->next = symbols->files;
    symbols->files = known;
    return known;
}

static bool block_is_in_file(const struct tbd_block *block, struct tbd_elf_file *file,
                             uint64_t bias)
{
    uint8_t bytes[TBD_BLOCK_MAX_INSNS * 15];
    size_t count = block->def.code_bytes;

    return count <= sizeof(bytes) &&
           tbd_elf_read(file, block->def.start - bias, bytes, count) == count &&
           memcmp(bytes, block->code, count) == 0;
}

/* I3.  A few blocks may differ (code patched at run time); most may not. */
static bool has_recorded_code(struct tbd_symbols *symbols, struct tbd_elf_file *file,
                              const struct tbd_region *region, uint64_t bias)
{
    uint32_t count = tbd_trace_block_count(symbols->trace), same = 0, other = 0;

    for (uint32_t id = 1; id <= count && same + other < CODE_CHECKS; id++) {
        const struct tbd_block *block = tbd_trace_block(symbols->trace, id);

        if (!block || block->def.code_bytes == 0 || block->def.start < region->start ||
            block->def.start + block->def.code_bytes > region->end)
            continue;
        if (block_is_in_file(block, file, bias))
            same++;
        else
            other++;
    }
    return same >= other;
}

static struct tbd_elf_file *open_original(struct tbd_symbols *symbols,
                                          const struct tbd_region *region)
{
    struct tbd_elf_file *file;
    uint64_t bias;

    if (tbd_elf_open(region->path, &file) != TBD_OK) {
        add_note(symbols, "%s cannot be read and the trace has no copy: no names from it",
                 region->path);
        return NULL;
    }
    if (symbols->trace && (!tbd_elf_bias(file, region->start, region->file_offset, &bias) ||
                           !has_recorded_code(symbols, file, region, bias))) {
        add_note(symbols,
                 "%s has changed since it was recorded and the trace has no copy: no names from it",
                 region->path);
        tbd_elf_close(file);
        return NULL;
    }
    return file;
}

/* The vDSO is a file that is only in memory. */
static struct tbd_elf_file *open_vdso(struct tbd_symbols *symbols, uint32_t window,
                                      const struct tbd_region *region)
{
    uint64_t bytes = region->end - region->start;
    struct tbd_elf_file *file = NULL;
    uint8_t *image;

    if (!symbols->trace || bytes > VDSO_MAX_BYTES || bytes % TBD_PAGE_SIZE)
        return NULL;
    image = calloc(1, bytes);
    if (!image)
        return NULL;
    for (uint64_t at = 0; at < bytes; at += TBD_PAGE_SIZE)
        if (tbd_trace_page_at_start(symbols->trace, window, region->start + at, image + at) !=
            TBD_OK)
            goto out_image;
    if (tbd_elf_open_image("[vdso]", image, bytes, &file) != TBD_OK)
        file = NULL;
out_image:
    free(image);
    return file;
}

static bool is_vdso(const struct tbd_region *region)
{
    return (region->flags & TBD_REGION_VDSO) || strcmp(region->path, "[vdso]") == 0;
}

static struct known_file *file_of(struct tbd_symbols *symbols, uint32_t window,
                                  const struct tbd_region *region)
{
    const char *path = is_vdso(region) ? "[vdso]" : region->copy ? region->copy : region->path;
    struct known_file *known = known_find(symbols, path, region);

    if (known)
        return known;
    known = known_add(symbols, path, region);
    if (!known)
        return NULL;
    if (is_vdso(region)) {
        known->file = open_vdso(symbols, window, region);
    } else if (!region->copy) {
        known->file = open_original(symbols, region);
    } else if (tbd_elf_open_copy(region->copy, region->path, &known->file) != TBD_OK) {
        add_note(symbols, "the trace's copy of %s cannot be used: %s", region->path, region->copy);
        known->file = open_original(symbols, region);
    }
    return known;
}

/* ---- modules of a window ---- */

static bool view_has(const struct view *view, const struct tbd_elf_file *file, uint64_t bias)
{
    for (size_t i = 0; i < view->count; i++)
        if (view->modules[i].file == file && view->modules[i].bias == bias)
            return true;
    return false;
}

static struct tbd_module *view_room(struct view *view)
{
    if (view->count == view->capacity) {
        size_t capacity = view->capacity ? 2 * view->capacity : 16;
        struct tbd_module *grown = realloc(view->modules, capacity * sizeof(*grown));

        if (!grown)
            return NULL;
        view->modules = grown;
        view->capacity = capacity;
    }
    return &view->modules[view->count++];
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

static void add_region(struct tbd_symbols *symbols, uint32_t window,
                       const struct tbd_region *region)
{
    struct known_file *known;
    struct tbd_module *module;
    uint64_t bias;

    if (!(region->prot & PROT_EXEC) || region->end <= region->start ||
        (region->flags & TBD_REGION_PATCH) || !(is_vdso(region) || region->path[0] == '/'))
        return;
    known = file_of(symbols, window, region);
    if (!known || !known->file ||
        !tbd_elf_bias(known->file, region->start, region->file_offset, &bias) ||
        view_has(&symbols->view, known->file, bias))
        return;
    module = view_room(&symbols->view);
    if (!module)
        return;
    *module = (struct tbd_module){ .name = base_name(known->shown),
                                   .path = known->shown,
                                   .build_id = known->file->build_id_text,
                                   .start = bias + known->file->low,
                                   .end = bias + known->file->high,
                                   .bias = bias,
                                   .file = known->file };
}

static int compare_modules(const void *left, const void *right)
{
    const struct tbd_module *a = left, *b = right;

    return (a->start > b->start) - (a->start < b->start);
}

static void sort_modules(struct view *view)
{
    if (view->count)
        qsort(view->modules, view->count, sizeof(view->modules[0]), compare_modules);
}

static enum tbd_status add_regions_at(struct tbd_symbols *symbols, uint32_t window)
{
    const struct tbd_region *regions;
    size_t count;
    enum tbd_status status = tbd_trace_regions(symbols->trace, window, &regions, &count, NULL);

    for (size_t i = 0; status == TBD_OK && i < count; i++)
        add_region(symbols, window, &regions[i]);
    return status;
}

static enum tbd_status view_build(struct tbd_symbols *symbols, uint32_t window)
{
    enum tbd_status status = TBD_OK;

    symbols->view.count = 0;
    symbols->view.deep = false;
    if (!symbols->trace) {
        for (size_t i = 0; i < symbols->fixed_count; i++)
            add_region(symbols, 0, &symbols->fixed[i]);
    } else {
        status = add_regions_at(symbols, window);
        /* What came during the window is there at the next one's start, mostly. */
        if (status == TBD_OK && window + 1 < tbd_trace_window_count(symbols->trace))
            status = add_regions_at(symbols, window + 1);
    }
    sort_modules(&symbols->view);
    symbols->view.window = status == TBD_OK ? window : NO_WINDOW;
    return status;
}

static enum tbd_status view_at(struct tbd_symbols *symbols, uint32_t window)
{
    if (!symbols->trace)
        window = 0;
    return symbols->view.window == window ? TBD_OK : view_build(symbols, window);
}

/* A module that came and went inside the window, or came in the last one, is not there when any begins. */
static bool view_deepen(struct tbd_symbols *symbols, uint32_t window)
{
    size_t before = symbols->view.count, end;

    if (!symbols->trace || symbols->view.deep)
        return false;
    symbols->view.deep = true;
    end = tbd_trace_mapping_changes(symbols->trace, window + 1);
    for (size_t i = tbd_trace_mapping_changes(symbols->trace, window); i < end; i++) {
        struct tbd_region region;

        if (tbd_trace_mapping_change(symbols->trace, i, &region))
            add_region(symbols, window, &region);
    }
    sort_modules(&symbols->view);
    return symbols->view.count > before;
}

enum tbd_status tbd_symbols_modules(struct tbd_symbols *symbols, uint32_t window,
                                    const struct tbd_module **out, size_t *out_count)
{
    enum tbd_status status = view_at(symbols, window);

    if (status == TBD_OK)
        view_deepen(symbols, window);
    *out = symbols->view.modules;
    *out_count = status == TBD_OK ? symbols->view.count : 0;
    return status;
}

static const struct tbd_module *view_find(const struct view *view, uint64_t address)
{
    size_t upto = TBD_COUNT_BEFORE(i, view->count, view->modules[i].start <= address);

    return upto && address < view->modules[upto - 1].end ? &view->modules[upto - 1] : NULL;
}

const struct tbd_module *tbd_symbols_module_at(struct tbd_symbols *symbols, uint32_t window,
                                               uint64_t address)
{
    const struct tbd_module *module;

    if (view_at(symbols, window) != TBD_OK)
        return NULL;
    module = view_find(&symbols->view, address);
    if (!module && view_deepen(symbols, window))
        module = view_find(&symbols->view, address);
    return module;
}

/* ---- names ---- */

static struct tbd_symbol make_symbol(const struct tbd_module *module,
                                     const struct tbd_elf_symbol *symbol)
{
    return (struct tbd_symbol){ .module = module->name,
                                .name = tbd_elf_symbol_name(module->file, symbol),
                                .start = module->bias + symbol->start,
                                .end = module->bias + symbol->end,
                                .is_function = symbol->is_function,
                                .is_stub = symbol->is_stub,
                                .is_resolver = symbol->is_resolver,
                                .is_made_up = symbol->is_made_up };
}

bool tbd_symbols_at(struct tbd_symbols *symbols, uint32_t window, uint64_t address,
                    struct tbd_symbol *out)
{
    const struct tbd_module *module = tbd_symbols_module_at(symbols, window, address);
    const struct tbd_elf_symbol *symbol;

    *out = (struct tbd_symbol){ .module = "" };
    if (!module)
        return false;
    symbol = tbd_elf_symbol_at(module->file, address - module->bias);
    if (symbol)
        *out = make_symbol(module, symbol);
    else
        *out = (struct tbd_symbol){ .module = module->name,
                                    .start = module->start,
                                    .end = module->end };
    return true;
}

bool tbd_symbols_is_function_start(struct tbd_symbols *symbols, uint32_t window, uint64_t address)
{
    struct tbd_symbol symbol;

    return tbd_symbols_at(symbols, window, address, &symbol) && symbol.is_function &&
           symbol.start == address;
}

/* "libc.so.6" is meant by libc.so.6, libc and libc.so. */
static bool is_module_called(const struct tbd_module *module, const char *name, size_t length)
{
    const char *so = strstr(module->name, ".so");

    if (strncmp(module->name, name, length) != 0)
        return false;
    return module->name[length] == 0 ||
           (so && (module->name + length == so || module->name + length == so + 3));
}

struct search {
    struct tbd_symbols *symbols;
    uint32_t window;
    struct tbd_symbol *out;
    size_t max;
    size_t found;
};

/* Aliases have the same start; the first one found stays. */
static bool is_known(const struct search *search, uint64_t start)
{
    for (size_t i = 0; i < search->found && i < search->max; i++)
        if (search->out[i].start == start)
            return true;
    return false;
}

static void add_match(struct search *search, struct tbd_symbol symbol)
{
    if (is_known(search, symbol.start))
        return;
    if (search->found < search->max)
        search->out[search->found] = symbol;
    search->found++;
}

static bool read_word(struct search *search, uint32_t window, uint64_t address, uint64_t *out)
{
    uint8_t page[TBD_PAGE_SIZE];
    uint64_t at = address % TBD_PAGE_SIZE;

    if (at > TBD_PAGE_SIZE - sizeof(*out) ||
        tbd_trace_page_at_start(search->symbols->trace, window, address - at, page) != TBD_OK)
        return false;
    memcpy(out, page + at, sizeof(*out));
    return true;
}

/* The function that the slot at `place` leads to at the start of `window`; false if it is not
 * bound yet. */
static bool take_target(struct search *search, uint32_t window, uint64_t place, const char *name)
{
    const struct tbd_module *target;
    const struct tbd_elf_symbol *symbol;
    struct tbd_symbol found;
    uint64_t address;

    if (!read_word(search, window, place, &address) ||
        (target = view_find(&search->symbols->view, address)) == NULL)
        return false;
    symbol = tbd_elf_symbol_at(target->file, address - target->bias);
    if (!symbol || symbol->is_stub || symbol->is_resolver || !symbol->is_function ||
        target->bias + symbol->start != address)
        return false;
    found = make_symbol(target, symbol);
    found.name = name;
    add_match(search, found);
    return true;
}

/* With lazy binding a slot may be filled later than at the window's start: the last window knows.
 * */
static bool follow_slot(struct search *search, uint64_t place, const char *name)
{
    uint32_t windows = search->symbols->trace ? tbd_trace_window_count(search->symbols->trace) : 0;

    return windows && (take_target(search, search->window, place, name) ||
                       take_target(search, windows - 1, place, name));
}

/* An indirect function is never called itself: the resolver runs once and says what to call.  False
 * if no slot says so. */
static bool take_targets(struct search *search, const struct tbd_module *owner,
                         const struct tbd_elf_symbol *resolver)
{
    const struct view *view = &search->symbols->view;
    bool any = false;

    for (size_t i = 0; i < view->count; i++) {
        const struct tbd_module *module = &view->modules[i];
        const struct tbd_elf_symbols *symbols = tbd_elf_symbols(module->file);

        for (size_t k = 0; k < symbols->slot_count; k++) {
            const struct tbd_elf_slot *slot = &symbols->slots[k];

            if (slot->name ? strcmp(slot->name, resolver->name) == 0
                           : module == owner && slot->resolver == resolver->start)
                any |= follow_slot(search, module->bias + slot->address, resolver->name);
        }
    }
    return any;
}

static void take_match(struct search *search, const struct tbd_module *module,
                       const struct tbd_elf_symbol *symbol)
{
    if (!symbol->is_resolver || !take_targets(search, module, symbol))
        add_match(search, make_symbol(module, symbol));
}

static void find_in(const struct tbd_module *module, const char *name, bool is_pattern,
                    struct search *search)
{
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(module->file);

    const uint32_t *by_name = tbd_elf_by_name(module->file);

    for (size_t i = is_pattern ? 0 : tbd_elf_lower_bound(module->file, name);
         by_name != NULL && i < symbols->count; i++) {
        const struct tbd_elf_symbol *symbol = &symbols->all[by_name[i]];

        if (is_pattern ? fnmatch(name, symbol->name, 0) == 0 : strcmp(name, symbol->name) == 0)
            take_match(search, module, symbol);
        else if (!is_pattern)
            break;
    }
}

enum how { BY_PATTERN, BY_NAME, BY_OVERLOAD };

static bool is_called(const struct tbd_module *module, const struct tbd_elf_symbol *symbol,
                      const char *name, enum how how)
{
    char *whole;
    bool is;

    if (how == BY_PATTERN)
        return fnmatch(name, tbd_elf_symbol_name(module->file, symbol), 0) == 0;
    if (!tbd_may_be_called(symbol->name, name))
        return false;
    if (how == BY_NAME)
        return tbd_is_name_for(tbd_elf_symbol_name(module->file, symbol), name);
    whole = tbd_demangle_whole(symbol->name);
    is = whole != NULL && tbd_is_overload(whole, name);
    free(whole);
    return is;
}

/* Mangled names that `name` is the readable form of, or the end of it. */
static void find_readable(const struct tbd_module *module, const char *name, enum how how,
                          struct search *search)
{
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(module->file);
    const uint32_t *by_name = tbd_elf_by_name(module->file);

    if (how == BY_PATTERN)
        tbd_elf_read_names(module->file);
    for (size_t i = tbd_elf_lower_bound(module->file, "_Z"); by_name != NULL && i < symbols->count;
         i++) {
        const struct tbd_elf_symbol *symbol = &symbols->all[by_name[i]];

        if (!tbd_is_mangled(symbol->name))
            break;
        if (is_called(module, symbol, name, how))
            take_match(search, module, symbol);
    }
}

static int order_of(const struct tbd_symbol *symbol)
{
    return symbol->is_stub ? 2 : !symbol->is_function;
}

static int compare_found(const void *left, const void *right)
{
    const struct tbd_symbol *a = left, *b = right;

    if (order_of(a) != order_of(b))
        return order_of(a) - order_of(b);
    return (a->start > b->start) - (a->start < b->start);
}

static void find_in_view(const struct view *view, const char *name, struct search *search)
{
    static const enum how orders[][2] = { { BY_PATTERN, BY_OVERLOAD }, { BY_NAME, BY_OVERLOAD } };
    const char *mark = strchr(name, '!');
    size_t length = mark ? (size_t)(mark - name) : 0;
    const char *symbol = mark ? mark + 1 : name;
    bool is_pattern = strpbrk(symbol, "*?[") != NULL;

    for (size_t i = 0; i < view->count; i++)
        if (!mark || is_module_called(&view->modules[i], name, length))
            find_in(&view->modules[i], symbol, is_pattern, search);
    if (search->found != 0 && !is_pattern)
        return;
    /* "copy(char*)" may be meant as it stands. */
    for (size_t way = 0; way < 2 && (way == 0 || search->found == 0); way++)
        for (size_t i = 0; i < view->count; i++)
            if (!mark || is_module_called(&view->modules[i], name, length))
                find_readable(&view->modules[i], symbol, orders[!is_pattern][way], search);
}

size_t tbd_symbols_find(struct tbd_symbols *symbols, uint32_t window, const char *name,
                        struct tbd_symbol *out, size_t max)
{
    struct search search = { symbols, window, out, max, 0 };

    if (view_at(symbols, window) != TBD_OK)
        return 0;
    find_in_view(&symbols->view, name, &search);
    if (!search.found && view_deepen(symbols, window))
        find_in_view(&symbols->view, name, &search);
    if (search.found && max)
        qsort(out, search.found < max ? search.found : max, sizeof(*out), compare_found);
    return search.found;
}

char *tbd_symbols_format(struct tbd_symbols *symbols, uint32_t window, uint64_t address, char *out,
                         size_t out_bytes)
{
    struct tbd_symbol symbol;

    if (!tbd_symbols_at(symbols, window, address, &symbol))
        snprintf(out, out_bytes, "0x%" PRIx64, address);
    else if (!symbol.name)
        snprintf(out, out_bytes, "%s+0x%" PRIx64, symbol.module, address - symbol.start);
    else if (address == symbol.start)
        snprintf(out, out_bytes, "%s!%s", symbol.module, symbol.name);
    else
        snprintf(out, out_bytes, "%s!%s+0x%" PRIx64, symbol.module, symbol.name,
                 address - symbol.start);
    return out;
}

size_t tbd_symbols_read_file(struct tbd_symbols *symbols, uint32_t window, uint64_t address,
                             void *out, size_t bytes)
{
    const struct tbd_module *module = tbd_symbols_module_at(symbols, window, address);

    return module ? tbd_elf_read(module->file, address - module->bias, out, bytes) : 0;
}
