// SPDX-License-Identifier: MIT
/* call_graph.c - functions and calls of a program's files; the search is in call_stacks.c
 *
 * CALL_GRAPH-1  Functions are sorted by file and start, sites by function. (not checked: they are added in this
 *     order) */
#include "query/contexts/call_graph_private.h"

#include "base/binary_search.h"
#include "base/string.h"
#include "base/array.h"

#include <Zydis/Zydis.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FUNCTION_MAX_BYTES (4u << 20)
#define MOST_FUNCTIONS     (2u << 20)
#define MOST_SITES         (16u << 20)

/* ---- files ---- */

static uint32_t find_file(const struct tbd_call_graph *graph, const char *name)
{
    for (uint32_t i = 0; i < graph->file_count; i++) {
        if (tbd_is_file_called(graph->files[i].path, name, strlen(name)))
            return i;
    }
    return graph->file_count;
}

static enum tbd_status add_file(struct tbd_call_graph *graph, const char *path)
{
    struct tbd_graph_file *file = &graph->files[graph->file_count];
    char real[PATH_MAX];
    enum tbd_status status;

    if (graph->file_count == TBD_CALL_GRAPH_FILES)
        return TBD_OK;
    status = tbd_elf_open(path, &file->elf);
    if (status != TBD_OK)
        return status;
    /* the mapping is named as the file is, whatever links lead to it */
    file->path = strdup(realpath(path, real) ? real : path);
    file->number = tbd_calling_module(file->path ? file->path : "");
    graph->file_count++;
    return file->path ? TBD_OK : TBD_NOMEM;
}

static bool try_in(struct tbd_call_graph *graph, const char *folder, size_t length,
                   const char *name)
{
    char path[PATH_MAX];

    return length > 0 &&
           (size_t)snprintf(path, sizeof(path), "%.*s/%s", (int)length, folder, name) <
               sizeof(path) &&
           access(path, R_OK) == 0 && add_file(graph, path) == TBD_OK;
}

/* A list of folders separated by colons; $ORIGIN is the file's own. */
static bool try_list(struct tbd_call_graph *graph, const char *list, const char *origin,
                     const char *name)
{
    const char *slash = strrchr(origin, '/');
    char folder[PATH_MAX];

    while (list && *list) {
        size_t length = strcspn(list, ":");
        size_t word = strncmp(list, "$ORIGIN", 7) == 0     ? 7
                      : strncmp(list, "${ORIGIN}", 9) == 0 ? 9
                                                           : 0;

        if (word && slash && length >= word) {
            int used = snprintf(folder, sizeof(folder), "%.*s%.*s", (int)(slash - origin), origin,
                                (int)(length - word), list + word);

            if (used > 0 && (size_t)used < sizeof(folder) &&
                try_in(graph, folder, (size_t)used, name))
                return true;
        } else if (try_in(graph, list, length, name)) {
            return true;
        }
        list += length + (list[length] == ':');
    }
    return false;
}

static enum tbd_status add_library(struct tbd_call_graph *graph, const char *runpath,
                                   const char *origin, const char *name)
{
    static const char usual[] = "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/usr/local/lib:"
                                "/lib64:/usr/lib64:/lib:/usr/lib";

    if (find_file(graph, name) < graph->file_count)
        return TBD_OK;
    if (try_list(graph, runpath, origin, name) ||
        try_list(graph, getenv("LD_LIBRARY_PATH"), origin, name) ||
        try_list(graph, usual, origin, name))
        return TBD_OK;
    if (graph->missing_count < TBD_CALL_GRAPH_FILES) {
        graph->missing[graph->missing_count] = strdup(name);
        if (!graph->missing[graph->missing_count++])
            return TBD_NOMEM;
    }
    return TBD_OK;
}

/* The libraries that the file's dynamic section names. */
static enum tbd_status add_libraries(struct tbd_call_graph *graph, uint32_t index)
{
    Elf *elf = graph->files[index].elf->main.elf;
    enum tbd_status status = TBD_OK;
    Elf_Scn *section = NULL;

    while (elf && (section = elf_nextscn(elf, section))) {
        GElf_Shdr header;
        Elf_Data *data;
        const char *runpath = NULL;
        GElf_Dyn entry;

        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNAMIC ||
            !(data = elf_getdata(section, NULL)))
            continue;
        for (int i = 0; gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++)
            if (entry.d_tag == DT_RUNPATH || entry.d_tag == DT_RPATH)
                runpath = elf_strptr(elf, header.sh_link, entry.d_un.d_val);
        for (int i = 0; gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) {
            const char *name =
                entry.d_tag == DT_NEEDED ? elf_strptr(elf, header.sh_link, entry.d_un.d_val) : NULL;

            if (name && status == TBD_OK)
                status = add_library(graph, runpath, graph->files[index].path, name);
        }
    }
    return status;
}

static enum tbd_status add_files(struct tbd_call_graph *graph, const char *program,
                                 char *const *more, size_t count)
{
    enum tbd_status status = add_file(graph, program);

    for (size_t i = 0; i < count && status == TBD_OK; i++)
        status = add_file(graph, more[i]);
    for (uint32_t i = 0; i < graph->file_count && status == TBD_OK; i++)
        status = add_libraries(graph, i);
    return status;
}

/* ---- functions ---- */

static bool add_function(struct tbd_call_graph *graph, uint32_t file, uint64_t start, uint64_t end)
{
    struct tbd_graph_function *last =
        graph->function_count ? &graph->functions[graph->function_count - 1] : NULL;

    if (last && last->file == file && start < last->end)
        last->end = start; /* the inner one has its own code */
    if (graph->function_count >= MOST_FUNCTIONS ||
        !tbd_array_grow(&graph->functions, graph->function_count, &graph->function_capacity,
                        sizeof(*graph->functions)))
        return false;
    graph->functions[graph->function_count++] =
        (struct tbd_graph_function){ .start = start, .end = end, .file = file };
    return true;
}

static bool add_functions(struct tbd_call_graph *graph, uint32_t index)
{
    struct tbd_graph_file *file = &graph->files[index];
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(file->elf);

    file->first = (uint32_t)graph->function_count;
    for (size_t i = 0; i < symbols->span_count; i++) {
        const struct tbd_elf_span *span = &symbols->spans[i];

        if (!tbd_elf_is_code(file->elf, span->start) || symbols->all[span->symbol].is_stub)
            continue;
        if (!add_function(graph, index, span->start, span->end))
            return false;
    }
    file->count = (uint32_t)graph->function_count - file->first;
    return true;
}

uint32_t tbd_graph_function_at(const struct tbd_call_graph *graph, uint32_t file, uint64_t address)
{
    uint32_t first = graph->files[file].first, count = graph->files[file].count;
    size_t at = first + TBD_COUNT_BEFORE(i, count, graph->functions[first + i].end <= address);

    return at < (size_t)first + count && graph->functions[at].start <= address ? (uint32_t)at
                                                                               : TBD_NO_FUNCTION;
}

/* The first file that has it exports it, as far as we know. */
static uint32_t function_named(const struct tbd_call_graph *graph, const char *name, size_t length)
{
    char text[512];

    if (length >= sizeof(text))
        return TBD_NO_FUNCTION;
    memcpy(text, name, length);
    text[length] = '\0';
    for (uint32_t i = 0; i < graph->file_count; i++) {
        struct tbd_elf_file *elf = graph->files[i].elf;
        const struct tbd_elf_symbols *symbols = tbd_elf_symbols(elf);
        const uint32_t *by_name = tbd_elf_by_name(elf);
        size_t at = by_name ? tbd_elf_lower_bound(elf, text) : symbols->count;

        for (; at < symbols->count && strcmp(symbols->all[by_name[at]].name, text) == 0; at++) {
            const struct tbd_elf_symbol *symbol = &symbols->all[by_name[at]];

            if (!symbol->is_stub && !symbol->is_resolver && tbd_elf_is_code(elf, symbol->start))
                return tbd_graph_function_at(graph, i, symbol->start);
        }
    }
    return TBD_NO_FUNCTION;
}

/* ---- calls ---- */

struct graph_reading {
    struct tbd_call_graph *graph;
    uint32_t file;
    uint32_t function;
    ZydisDecoder decoder;
};

static bool add_site(struct graph_reading *r, struct tbd_graph_site site)
{
    struct tbd_call_graph *graph = r->graph;

    if (graph->site_count >= MOST_SITES ||
        !tbd_array_grow(&graph->sites, graph->site_count, &graph->site_capacity,
                        sizeof(*graph->sites)))
        return false;
    graph->sites[graph->site_count++] = site;
    return true;
}

static bool add_reference(struct graph_reading *r, uint64_t address)
{
    struct tbd_call_graph *graph = r->graph;
    uint32_t function = tbd_graph_function_at(graph, r->file, address);

    if (function != TBD_NO_FUNCTION) {
        if (graph->functions[function].start == address) {
            graph->functions[function].is_taken = true;
            graph->main = r->function == graph->entry ? function : graph->main;
        }
        return true;
    }
    if (graph->reference_count >= MOST_SITES ||
        !tbd_array_grow(&graph->references, graph->reference_count, &graph->reference_capacity,
                        sizeof(*graph->references)))
        return false;
    graph->references[graph->reference_count++] =
        (struct tbd_graph_reference){ address, r->function };
    return true;
}

static const char *slot_name(const struct tbd_elf_symbols *symbols, uint64_t address)
{
    size_t low = TBD_COUNT_BEFORE(i, symbols->slot_count, symbols->slots[i].address < address);

    return low < symbols->slot_count && symbols->slots[low].address == address
               ? symbols->slots[low].name
               : NULL;
}

static void set_target(struct graph_reading *r, struct tbd_graph_site *site, const char *name,
                       size_t length)
{
    static const char own[] = "tbd_context";

    site->asks = length == sizeof(own) - 1 && memcmp(name, own, length) == 0;
    site->target = function_named(r->graph, name, length);
}

/* Where the instruction leads: a function, by way of a stub too, or into the unknown. */
static void find_target(struct graph_reading *r, struct tbd_graph_site *site, bool is_direct,
                        uint64_t address)
{
    struct tbd_elf_file *elf = r->graph->files[r->file].elf;
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(elf);
    const struct tbd_elf_symbol *symbol;
    const char *name;

    site->target = TBD_NO_FUNCTION;
    if (!is_direct) {
        name = address ? slot_name(symbols, address) : NULL;
        if (name)
            set_target(r, site, name, strlen(name));
        return;
    }
    symbol = tbd_elf_symbol_at(elf, address);
    if (symbol && symbol->is_stub)
        set_target(r, site, symbol->name, strcspn(symbol->name, "@"));
    else
        site->target = tbd_graph_function_at(r->graph, r->file, address);
}

/* The address of the operand, if it is known: an immediate, or relative to rip. */
static uint64_t address_of(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operand,
                           uint64_t pc)
{
    ZyanU64 address = 0;

    if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->mem.base != ZYDIS_REGISTER_RIP)
        return 0;
    if (operand->type != ZYDIS_OPERAND_TYPE_MEMORY && operand->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
        return 0;
    if (operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && !operand->imm.is_relative)
        return operand->imm.value.u;
    return ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(insn, operand, pc, &address)) ? address : 0;
}

uint64_t tbd_graph_offset(const struct tbd_elf_file *elf, uint64_t address)
{
    for (size_t i = 0; i < elf->segment_count; i++)
        if (address > elf->segments[i].p_vaddr &&
            address - elf->segments[i].p_vaddr <= elf->segments[i].p_filesz)
            return address - elf->segments[i].p_vaddr + elf->segments[i].p_offset;
    return 0;
}

static bool take_transfer(struct graph_reading *r, const ZydisDecodedInstruction *insn,
                          const ZydisDecodedOperand *operand, uint64_t pc, bool is_call)
{
    const struct tbd_graph_file *file = &r->graph->files[r->file];
    struct tbd_graph_site site = { .function = r->function, .after = pc + insn->length };

    find_target(r, &site, operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE,
                address_of(insn, operand, pc));
    if (is_call)
        site.number = tbd_calling_number(file->number, tbd_graph_offset(file->elf, site.after));
    else if (site.target == TBD_NO_FUNCTION || site.target == r->function)
        return true;
    return add_site(r, site);
}

static bool take_instruction(struct graph_reading *r, const ZydisDecodedInstruction *insn,
                             const ZydisDecodedOperand *operands, uint64_t pc)
{
    bool ok = true;

    if (insn->mnemonic == ZYDIS_MNEMONIC_CALL)
        return take_transfer(r, insn, operands, pc, true);
    if (insn->meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
        insn->meta.category == ZYDIS_CATEGORY_COND_BR)
        return take_transfer(r, insn, operands, pc, false);
    for (unsigned i = 0; i < insn->operand_count_visible && ok; i++) {
        uint64_t address = address_of(insn, &operands[i], pc);

        if (address > 4096)
            ok = add_reference(r, address);
    }
    return ok;
}

static bool read_function(struct graph_reading *r)
{
    const struct tbd_graph_function *function = &r->graph->functions[r->function];
    uint64_t bytes = function->end - function->start;
    uint8_t *code;
    size_t have, at = 0;
    bool ok = true;

    if (bytes == 0 || bytes > FUNCTION_MAX_BYTES)
        return true;
    code = malloc(bytes);
    if (!code)
        return false;
    have = tbd_elf_read(r->graph->files[r->file].elf, function->start, code, bytes);
    while (ok && at < have) {
        ZydisDecodedInstruction insn;
        ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

        if (!ZYAN_SUCCESS(
                ZydisDecoderDecodeFull(&r->decoder, code + at, have - at, &insn, operands))) {
            at++;
            continue;
        }
        ok = take_instruction(r, &insn, operands, r->graph->functions[r->function].start + at);
        at += insn.length;
    }
    free(code);
    return ok;
}

/* Words of the file's data, tables of relocations included, that are addresses of functions. */
static void take_data(struct tbd_call_graph *graph, uint32_t index)
{
    struct tbd_elf_file *elf = graph->files[index].elf;
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(elf);
    uint64_t words[512];

    for (size_t i = 0; i < elf->segment_count; i++) {
        uint64_t at = (elf->segments[i].p_vaddr + 7) & ~7ull;
        uint64_t end = elf->segments[i].p_vaddr + elf->segments[i].p_filesz;

        for (; !(elf->segments[i].p_flags & PF_X) && at < end; at += sizeof(words)) {
            size_t count = tbd_elf_read(elf, at, words, sizeof(words)) / 8;

            for (size_t n = 0; n < count; n++) {
                uint32_t function = tbd_graph_function_at(graph, index, words[n]);

                if (function != TBD_NO_FUNCTION && graph->functions[function].start == words[n])
                    graph->functions[function].is_taken = true;
            }
            if (!count)
                break;
        }
    }
    for (size_t i = 0; i < symbols->slot_count; i++) {
        const char *name = symbols->slots[i].name;
        uint32_t function = name ? function_named(graph, name, strlen(name)) : TBD_NO_FUNCTION;

        if (function != TBD_NO_FUNCTION)
            graph->functions[function].is_taken = true;
    }
}

/* ---- order ---- */

static const struct tbd_graph_site *sorted_sites;

static int compare_targets(const void *a, const void *b)
{
    uint32_t one = sorted_sites[*(const uint32_t *)a].target;
    uint32_t other = sorted_sites[*(const uint32_t *)b].target;

    return one < other ? -1 : one > other;
}

static bool sort_sites(struct tbd_call_graph *graph)
{
    graph->by_target = malloc((graph->site_count + 1) * sizeof(uint32_t));
    graph->indirect = malloc((graph->site_count + 1) * sizeof(uint32_t));
    if (!graph->by_target || !graph->indirect)
        return false;
    for (uint32_t i = 0; i < graph->site_count; i++) {
        struct tbd_graph_function *function = &graph->functions[graph->sites[i].function];

        graph->by_target[i] = i;
        if (function->call_count++ == 0)
            function->calls = i;
        if (graph->sites[i].target == TBD_NO_FUNCTION)
            graph->indirect[graph->indirect_count++] = i;
    }
    sorted_sites = graph->sites;
    qsort(graph->by_target, graph->site_count, sizeof(uint32_t), compare_targets);
    for (uint32_t i = 0; i < graph->site_count; i++) {
        uint32_t target = graph->sites[graph->by_target[i]].target;

        if (target != TBD_NO_FUNCTION && graph->functions[target].caller_count++ == 0)
            graph->functions[target].callers = i;
    }
    return true;
}

static void find_entry(struct tbd_call_graph *graph)
{
    Elf *elf = graph->files[0].elf->main.elf;
    GElf_Ehdr header;

    graph->entry = TBD_NO_FUNCTION;
    graph->main = TBD_NO_FUNCTION;
    if (elf && gelf_getehdr(elf, &header))
        graph->entry = tbd_graph_function_at(graph, 0, header.e_entry);
}

static bool read_code(struct tbd_call_graph *graph)
{
    struct graph_reading r = { .graph = graph };

    ZydisDecoderInit(&r.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (uint32_t i = 0; i < graph->file_count; i++)
        if (!add_functions(graph, i))
            return false;
    find_entry(graph);
    for (uint32_t i = 0; i < graph->file_count; i++)
        take_data(graph, i);
    for (uint32_t i = 0; i < graph->function_count; i++) {
        r.function = i;
        r.file = graph->functions[i].file;
        if (!read_function(&r))
            return false;
    }
    return sort_sites(graph);
}

enum tbd_status tbd_call_graph_open(const char *program, char *const *more, size_t more_count,
                                    struct tbd_call_graph **out)
{
    struct tbd_call_graph *graph = calloc(1, sizeof(*graph));
    enum tbd_status status = graph ? add_files(graph, program, more, more_count) : TBD_NOMEM;

    *out = NULL;
    if (status == TBD_OK)
        *out = graph;
    else
        tbd_call_graph_free(graph);
    return status;
}

enum tbd_status tbd_call_graph_new(const char *program, char *const *more, size_t more_count,
                                   struct tbd_call_graph **out)
{
    enum tbd_status status = tbd_call_graph_open(program, more, more_count, out);

    if (status != TBD_OK || read_code(*out))
        return status;
    tbd_call_graph_free(*out);
    *out = NULL;
    return TBD_NOMEM;
}

void tbd_call_graph_free(struct tbd_call_graph *graph)
{
    if (!graph)
        return;
    for (uint32_t i = 0; i < graph->file_count; i++) {
        tbd_elf_close(graph->files[i].elf);
        free(graph->files[i].path);
    }
    for (uint32_t i = 0; i < graph->missing_count; i++)
        free(graph->missing[i]);
    free(graph->functions);
    free(graph->sites);
    free(graph->by_target);
    free(graph->indirect);
    free(graph->references);
    free(graph->edges);
    free(graph->edges_by_site);
    free(graph->known);
    tbd_start_stacks_free(&graph->starts);
    free(graph);
}

const char *tbd_call_graph_missing(const struct tbd_call_graph *graph, size_t index)
{
    return index < graph->missing_count ? graph->missing[index] : NULL;
}
