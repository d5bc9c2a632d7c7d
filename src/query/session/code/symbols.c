// SPDX-License-Identifier: MIT
/* symbols.c - which file is mapped where in a window, and its names
 *
 * Regions of a window (trace.h) become modules: a file that is mapped executable, with the bias
 * that its segments give.  Names inside a file are elf_symbols.c's.
 *
 * SYMBOLS-1  view.modules is sorted by start.  It belongs to one window; files outlive it.
 * SYMBOLS-2  A file that cannot be used is remembered as such, with one note, and not opened again.
 *     (not checked: it is about what is not done)
 * SYMBOLS-3  Without a copy in the trace, a file is used only if the code of the trace's blocks is
 *     in it. (not checked: it is what decoding checks of its input) */
#include "query/session/code/symbols_private.h"

#include "base/assert.h"
#include "base/array.h"
#include "base/string.h"
#include "base/layout.h"
#include "base/binary_search.h"
#include "format/pages/pages.h"
#include "format/trace/trace_handle.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define NO_WINDOW      UINT32_MAX
#define VDSO_MAX_BYTES (64u << 10)
#define CODE_CHECKS    256

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
    free(symbols->last.name);
    free(symbols->last.found);
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

/* Debug information is looked at when it is needed. */
static void add_refused(struct tbd_symbols *symbols)
{
    for (struct known_file *known = symbols->files; known; known = known->next) {
        if (!known->file || known->file->refused_bytes == 0 || known->is_refused)
            continue;
        known->is_refused = true;
        add_note(symbols,
                 "the debug information of %s is not used: unpacked it would take %" PRIu64
                 " bytes",
                 known->shown, known->file->refused_bytes);
    }
}

const char *tbd_symbols_note(struct tbd_symbols *symbols, size_t index)
{
    if (index == 0)
        add_refused(symbols);
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

/* SYMBOLS-3.  A few blocks may differ (code patched at run time); most may not. */
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

static void note_lost_vdso(struct tbd_symbols *symbols, enum tbd_status status)
{
    struct tbd_error why = { 0 };

    tbd_trace_page_why(symbols->trace, &why);
    add_note(symbols, "[vdso] %s: no names and no build id from it: %s%s%s",
             status == TBD_BUSY ? "is being changed in the trace" : "is damaged in the trace",
             why.file, *why.detail ? ": " : "", why.detail);
}

/* The vDSO is an ELF file that exists only in memory. */
static struct tbd_elf_file *open_vdso(struct tbd_symbols *symbols, uint32_t window,
                                      const struct tbd_region *region)
{
    uint64_t bytes = region->end - region->start;
    struct tbd_elf_file *file = NULL;
    enum tbd_status status = TBD_OK;
    uint8_t *image;

    if (!symbols->trace || tbd_trace_info(symbols->trace)->has_rings_only ||
        bytes > VDSO_MAX_BYTES || bytes % TBD_PAGE_SIZE)
        return NULL;
    image = calloc(1, bytes);
    if (!image)
        return NULL;
    for (uint64_t at = 0; at < bytes && status == TBD_OK; at += TBD_PAGE_SIZE)
        status = tbd_trace_page_at_start(symbols->trace, window, region->start + at, image + at);
    if (status != TBD_OK && status != TBD_NOTFOUND && status != TBD_NOTKEPT)
        note_lost_vdso(symbols, status);
    if (status != TBD_OK || tbd_elf_open_image("[vdso]", image, bytes, &file) != TBD_OK)
        file = NULL;
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
    } else if (tbd_elf_open_copy(tbd_trace_dir(symbols->trace).fd, region->copy, region->path,
                                 &known->file) != TBD_OK) {
        add_note(symbols, "the trace's copy of %s cannot be used: %s", region->path, region->copy);
        known->file = open_original(symbols, region);
    }
    return known;
}

/* ---- modules of a window ---- */

static bool view_has(const struct symbols_view *view, const struct tbd_elf_file *file,
                     uint64_t bias)
{
    for (size_t i = 0; i < view->count; i++)
        if (view->modules[i].file == file && view->modules[i].bias == bias)
            return true;
    return false;
}

static struct tbd_module *add_module(struct symbols_view *view)
{
    return tbd_array_grow(&view->modules, view->count, &view->capacity, sizeof(*view->modules))
               ? &view->modules[view->count++]
               : NULL;
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
    module = add_module(&symbols->view);
    if (!module)
        return;
    *module = (struct tbd_module){ .name = tbd_base_name(known->shown),
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

static void sort_modules(struct symbols_view *view)
{
    if (view->count)
        qsort(view->modules, view->count, sizeof(view->modules[0]), compare_modules);
}

static bool modules_ascend(const struct symbols_view *view)
{
    for (size_t i = 1; i < view->count; i++)
        if (view->modules[i - 1].start > view->modules[i].start)
            return false;
    return true;
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
        /* A module mapped during the window is usually still there at the next window's start. */
        if (status == TBD_OK && window + 1 < tbd_trace_window_count(symbols->trace))
            status = add_regions_at(symbols, window + 1);
    }
    sort_modules(&symbols->view);
    symbols->view.window = status == TBD_OK ? window : NO_WINDOW;
    return status;
}

enum tbd_status tbd_symbols_view_at(struct tbd_symbols *symbols, uint32_t window)
{
    if (!symbols->trace)
        window = 0;
    if (symbols->view.window != window)
        return view_build(symbols, window);
    TBD_INVARIANT("SYMBOLS-1", modules_ascend(&symbols->view));
    return TBD_OK;
}

/* A module that was mapped and unmapped inside the window, or mapped in the last window, is not
 * there at the start of any window. */
bool tbd_symbols_view_deepen(struct tbd_symbols *symbols, uint32_t window)
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
    enum tbd_status status = tbd_symbols_view_at(symbols, window);

    if (status == TBD_OK)
        tbd_symbols_view_deepen(symbols, window);
    *out = symbols->view.modules;
    *out_count = status == TBD_OK ? symbols->view.count : 0;
    return status;
}

/* Even: nothing changed inside the window. */
uint32_t tbd_symbols_mapped(const struct tbd_symbols *symbols, uint32_t window)
{
    size_t changes;

    if (!symbols->trace)
        return 0;
    if (window == UINT32_MAX)
        return UINT32_MAX;
    changes = tbd_trace_mapping_changes(symbols->trace, window);
    return tbd_trace_mapping_changes(symbols->trace, window + 1) == changes ? (uint32_t)changes * 2
                                                                            : window * 2 + 1;
}

const struct tbd_module *tbd_symbols_view_find(const struct symbols_view *view, uint64_t address)
{
    size_t upto = TBD_COUNT_BEFORE(i, view->count, view->modules[i].start <= address);

    return upto && address < view->modules[upto - 1].end ? &view->modules[upto - 1] : NULL;
}

uint64_t tbd_symbols_hash(const struct tbd_module *modules, size_t count)
{
    uint64_t hash = count;

    for (size_t i = 0; i < count; i++)
        hash = (hash ^ modules[i].start ^ (uint64_t)(uintptr_t)modules[i].file) *
               0x9e3779b97f4a7c15ull;
    return hash;
}

const struct tbd_module *tbd_symbols_module_at(struct tbd_symbols *symbols, uint32_t window,
                                               uint64_t address)
{
    const struct tbd_module *module;

    if (tbd_symbols_view_at(symbols, window) != TBD_OK)
        return NULL;
    module = tbd_symbols_view_find(&symbols->view, address);
    if (!module && tbd_symbols_view_deepen(symbols, window))
        module = tbd_symbols_view_find(&symbols->view, address);
    return module;
}

/* ---- names ---- */

struct tbd_symbol tbd_symbols_make(const struct tbd_module *module,
                                   const struct tbd_elf_symbol *symbol)
{
    return (struct tbd_symbol){ .module = module->name,
                                .name = tbd_elf_symbol_name(module->file, symbol),
                                .start = module->bias + symbol->start,
                                .end = module->bias + symbol->end,
                                .is_function = symbol->is_function,
                                .is_stub = symbol->is_stub,
                                .is_resolver = symbol->is_resolver,
                                .is_made_up = symbol->is_made_up,
                                .is_part = symbol->is_part };
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
        *out = tbd_symbols_make(module, symbol);
    else
        *out = (struct tbd_symbol){ .module = module->name,
                                    .start = module->start,
                                    .end = module->end };
    return true;
}

void tbd_symbols_to_whole(struct tbd_symbols *symbols, uint32_t window, struct tbd_symbol *symbol)
{
    const struct tbd_module *module;
    const struct tbd_elf_symbol *part, *whole;

    if (!symbol->is_part ||
        (module = tbd_symbols_module_at(symbols, window, symbol->start)) == NULL)
        return;
    part = tbd_elf_symbol_at(module->file, symbol->start - module->bias);
    whole = part == NULL ? NULL : tbd_elf_whole(module->file, part);
    if (whole != NULL)
        *symbol = tbd_symbols_make(module, whole);
}

bool tbd_symbols_is_function_start(struct tbd_symbols *symbols, uint32_t window, uint64_t address)
{
    struct tbd_symbol symbol;

    return tbd_symbols_at(symbols, window, address, &symbol) && symbol.is_function &&
           !symbol.is_part && symbol.start == address;
}

char *tbd_symbols_format_frame(struct tbd_symbols *symbols, uint32_t window, uint64_t call_pc,
                               uint64_t pc, char *out, size_t out_bytes)
{
    struct tbd_symbol symbol;

    if (!tbd_symbols_at(symbols, window, call_pc, &symbol))
        snprintf(out, out_bytes, "0x%" PRIx64, pc);
    else if (!symbol.name)
        snprintf(out, out_bytes, "%s+0x%" PRIx64, symbol.module, pc - symbol.start);
    else if (pc == symbol.start)
        snprintf(out, out_bytes, "%s!%s", symbol.module, symbol.name);
    else
        snprintf(out, out_bytes, "%s!%s+0x%" PRIx64, symbol.module, symbol.name, pc - symbol.start);
    return out;
}

char *tbd_symbols_format(struct tbd_symbols *symbols, uint32_t window, uint64_t address, char *out,
                         size_t out_bytes)
{
    return tbd_symbols_format_frame(symbols, window, address, address, out, out_bytes);
}

size_t tbd_symbols_read_file(struct tbd_symbols *symbols, uint32_t window, uint64_t address,
                             void *out, size_t bytes)
{
    const struct tbd_module *module = tbd_symbols_module_at(symbols, window, address);

    return module ? tbd_elf_read(module->file, address - module->bias, out, bytes) : 0;
}
