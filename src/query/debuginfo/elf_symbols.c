// SPDX-License-Identifier: MIT
/* elf_symbols.c - the symbol table of one ELF file: collect, sort, look up
 *
 * Collected from .symtab of the file and of its debug file, from .dynsym, from import stubs, whose
 * names are found through the relocation of the slot they jump through, and for functions that
 * none of them covers, from frame information (elf_frames.c).
 *
 * ELF_SYMBOLS-1  all[] is sorted by (start, rank, name); spans[] has one entry for each start that
 *     covers something.
 * ELF_SYMBOLS-2  Every symbol lies inside the file's segments.
 * ELF_SYMBOLS-3  A look-up walks back at most LOOKUP_MAX spans, however symbols nest. (not checked:
 *     it is the bound of a loop) */
#include "query/debuginfo/elf_file.h"

#include "base/assert.h"
#include "base/array.h"
#include "base/binary_search.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOKUP_MAX  4096
#define SYMBOLS_MAX (16u << 20)

static struct tbd_elf_symbol *add_symbol(struct tbd_elf_symbols *symbols)
{
    if (symbols->count >= SYMBOLS_MAX ||
        !tbd_array_grow(&symbols->all, symbols->count, &symbols->capacity, sizeof(*symbols->all)))
        return NULL;
    symbols->all[symbols->count] = (struct tbd_elf_symbol){ 0 };
    return &symbols->all[symbols->count++];
}

/* The order of aliases, best name first: functions, global names, few leading underscores,
 * short. */
static uint16_t rank_of(const char *name, unsigned kind, bool is_local)
{
    size_t underscores = strspn(name, "_"), length = strlen(name);

    return (uint16_t)(kind << 13 | (unsigned)is_local << 12 |
                      (underscores > 15 ? 15u : (unsigned)underscores) << 8 |
                      (length > 255 ? 255u : (unsigned)length));
}

size_t tbd_elf_whole_length(const char *name)
{
    const char *mark = strstr(name, ".cold");

    if (mark == NULL || mark == name || (mark[5] != '\0' && mark[5] != '.'))
        return strlen(name);
    return (size_t)(mark - name);
}

/* ---- ELF symbol tables ---- */

enum { KIND_FUNCTION, KIND_DATA, KIND_LABEL, KIND_NONE };

static unsigned kind_of(const GElf_Sym *symbol, bool in_code)
{
    switch (GELF_ST_TYPE(symbol->st_info)) {
    case STT_FUNC:
    case STT_GNU_IFUNC: return KIND_FUNCTION;
    case STT_OBJECT:
    case STT_COMMON: return KIND_DATA;
    case STT_NOTYPE:
        if (in_code && GELF_ST_BIND(symbol->st_info) != STB_LOCAL)
            return KIND_FUNCTION;
        return in_code && symbol->st_size == 0 ? KIND_NONE : KIND_LABEL;
    default: return KIND_NONE;
    }
}

/* The end of the range that `symbol` covers: labels cover nothing; unsized functions reach to the
 * section's end, until set_open_ends() knows the next symbol. */
static uint64_t end_of(const GElf_Sym *symbol, unsigned kind, const GElf_Shdr *section)
{
    if (symbol->st_size)
        return symbol->st_value + symbol->st_size;
    if (kind == KIND_FUNCTION && symbol->st_value - section->sh_addr < section->sh_size)
        return UINT64_MAX;
    return symbol->st_value;
}

static const char *without_version(struct tbd_elf_file *file, const char *name)
{
    const char *at = strchr(name, '@');

    return at && at != name ? tbd_names_add(&file->names, name, (size_t)(at - name), "") : name;
}

static void take_symbol(struct tbd_elf_file *file, Elf *elf, const GElf_Sym *symbol,
                        const char *name)
{
    struct tbd_elf_symbol *out;
    GElf_Shdr section;
    unsigned kind;

    if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= SHN_LORESERVE ||
        !gelf_getshdr(elf_getscn(elf, symbol->st_shndx), &section) ||
        !(section.sh_flags & SHF_ALLOC))
        return;
    kind = kind_of(symbol, section.sh_flags & SHF_EXECINSTR);
    if (kind == KIND_NONE || !name || !*name || symbol->st_value < file->low ||
        symbol->st_value > file->high || symbol->st_size > file->high - symbol->st_value)
        return;
    name = without_version(file, name);
    out = name ? add_symbol(&file->symbols) : NULL;
    if (!out)
        return;
    out->start = symbol->st_value;
    out->end = end_of(symbol, kind, &section);
    out->name = name;
    out->is_function = kind == KIND_FUNCTION;
    out->is_resolver = GELF_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC;
    out->is_part = out->is_function && name[tbd_elf_whole_length(name)] != '\0';
    out->rank = rank_of(name, kind, GELF_ST_BIND(symbol->st_info) == STB_LOCAL);
}

static void take_table(struct tbd_elf_file *file, Elf *elf, Elf_Scn *section,
                       const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Sym symbol;

    if (!data || !data->d_buf)
        return;
    for (size_t i = 1; i < data->d_size / sizeof(Elf64_Sym); i++)
        if (gelf_getsym(data, (int)i, &symbol))
            take_symbol(file, elf, &symbol, elf_strptr(elf, header->sh_link, symbol.st_name));
}

/* True if there was a table of that type. */
static bool take_tables(struct tbd_elf_file *file, Elf *elf, uint32_t type)
{
    Elf_Scn *section = NULL;
    bool found = false;

    while ((section = elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr header;

        if (gelf_getshdr(section, &header) && header.sh_type == type) {
            take_table(file, elf, section, &header);
            found = true;
        }
    }
    return found;
}

/* ---- import stubs ---- */

static bool add_slot(struct tbd_elf_symbols *symbols, struct tbd_elf_slot slot)
{
    if (!tbd_array_grow(&symbols->slots, symbols->slot_count, &symbols->slot_capacity,
                        sizeof(slot)))
        return false;
    symbols->slots[symbols->slot_count++] = slot;
    return true;
}

/* The slot that a relocation fills; false if it is of no interest. */
static bool slot_of(Elf *elf, const GElf_Rela *rela, Elf_Data *symbols, const GElf_Shdr *table,
                    struct tbd_elf_slot *out)
{
    GElf_Sym symbol;

    *out = (struct tbd_elf_slot){ .address = rela->r_offset };
    switch (GELF_R_TYPE(rela->r_info)) {
    case R_X86_64_IRELATIVE: out->resolver = (uint64_t)rela->r_addend; return true;
    case R_X86_64_JUMP_SLOT:
    case R_X86_64_GLOB_DAT:
        if (symbols && gelf_getsym(symbols, (int)GELF_R_SYM(rela->r_info), &symbol))
            out->name = elf_strptr(elf, table->sh_link, symbol.st_name);
        return out->name != NULL;
    default: return false;
    }
}

static void take_relocations(struct tbd_elf_file *file, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf *elf = file->main.elf;
    Elf_Scn *table = elf_getscn(elf, header->sh_link);
    GElf_Shdr table_header = { 0 };
    Elf_Data *data = elf_getdata(section, NULL), *symbols = NULL;
    struct tbd_elf_slot slot;
    GElf_Rela rela;

    if (!data || !data->d_buf)
        return;
    if (table && gelf_getshdr(table, &table_header) && table_header.sh_type == SHT_DYNSYM)
        symbols = elf_getdata(table, NULL);
    for (size_t i = 0; i < data->d_size / sizeof(Elf64_Rela); i++)
        if (gelf_getrela(data, (int)i, &rela) &&
            slot_of(elf, &rela, symbols, &table_header, &slot) && !add_slot(&file->symbols, slot))
            return;
}

static int compare_slots(const void *left, const void *right)
{
    const struct tbd_elf_slot *a = left, *b = right;

    return (a->address > b->address) - (a->address < b->address);
}

static const struct tbd_elf_slot *slot_at(const struct tbd_elf_symbols *symbols, uint64_t address)
{
    struct tbd_elf_slot key = { .address = address };

    return symbols->slot_count
               ? bsearch(&key, symbols->slots, symbols->slot_count, sizeof(key), compare_slots)
               : NULL;
}

static const char *resolver_name(const struct tbd_elf_symbols *symbols, size_t count,
                                 uint64_t address)
{
    const struct tbd_elf_symbol *best = NULL;

    for (size_t i = 0; i < count; i++)
        if (symbols->all[i].start == address && (!best || symbols->all[i].rank < best->rank))
            best = &symbols->all[i];
    return best ? best->name : NULL;
}

static void add_stub(struct tbd_elf_file *file, uint64_t start, uint64_t end,
                     const struct tbd_elf_slot *slot, size_t real_count)
{
    const char *name =
        slot->name ? slot->name : resolver_name(&file->symbols, real_count, slot->resolver);
    struct tbd_elf_symbol *out;

    if (!name || !*name || start < file->low || end > file->high) /* ELF_SYMBOLS-2 */
        return;
    name = tbd_names_add(&file->names, name, strcspn(name, "@"), "@plt");
    out = name ? add_symbol(&file->symbols) : NULL;
    if (!out)
        return;
    out->start = start;
    out->end = end;
    out->name = name;
    out->rank = rank_of(name, KIND_FUNCTION, false);
    out->is_function = true;
    out->is_stub = true;
}

/* A stub is the entry in which `jmp *[rip+x]` (FF 25 x) uses a slot that a relocation fills. */
static void take_stubs_of(struct tbd_elf_file *file, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf_Data *data = elf_rawdata(section, NULL);
    uint64_t step = header->sh_entsize == 8 ? 8 : 16;
    size_t real_count = file->symbols.count;

    if (!data || !data->d_buf)
        return;
    for (uint64_t at = 0; at + step <= data->d_size; at += step) {
        const uint8_t *bytes = (const uint8_t *)data->d_buf + at;

        for (uint64_t i = 0; i + 6 <= step; i++) {
            const struct tbd_elf_slot *slot;
            int32_t displacement;

            if (bytes[i] != 0xff || bytes[i + 1] != 0x25)
                continue;
            memcpy(&displacement, bytes + i + 2, 4);
            slot = slot_at(&file->symbols,
                           header->sh_addr + at + i + 6 + (uint64_t)(int64_t)displacement);
            if (slot)
                add_stub(file, header->sh_addr + at, header->sh_addr + at + step, slot, real_count);
            break;
        }
    }
}

static bool is_stub_section(Elf *elf, size_t names, const GElf_Shdr *header)
{
    const char *name = elf_strptr(elf, names, header->sh_name);

    return header->sh_type == SHT_PROGBITS && (header->sh_flags & SHF_EXECINSTR) && name &&
           (strcmp(name, ".plt") == 0 || strncmp(name, ".plt.", 5) == 0 ||
            strcmp(name, ".iplt") == 0);
}

static void take_stubs(struct tbd_elf_file *file)
{
    Elf *elf = file->main.elf;
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    size_t names;

    if (elf_getshdrstrndx(elf, &names) != 0)
        return;
    while ((section = elf_nextscn(elf, section)) != NULL)
        if (gelf_getshdr(section, &header) && header.sh_type == SHT_RELA &&
            (header.sh_flags & SHF_ALLOC))
            take_relocations(file, section, &header);
    if (file->symbols.slot_count)
        qsort(file->symbols.slots, file->symbols.slot_count, sizeof(struct tbd_elf_slot),
              compare_slots);
    while ((section = elf_nextscn(elf, section)) != NULL)
        if (gelf_getshdr(section, &header) && is_stub_section(elf, names, &header))
            take_stubs_of(file, section, &header);
}

/* ---- sorting ---- */

static int compare_symbols(const void *left, const void *right)
{
    const struct tbd_elf_symbol *a = left, *b = right;

    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Unsized functions end where the next symbol begins; at most at the end of the segments. */
static void set_open_ends(struct tbd_elf_file *file)
{
    struct tbd_elf_symbols *symbols = &file->symbols;
    uint64_t next = file->high, current = file->high;

    for (size_t i = symbols->count; i-- > 0;) {
        struct tbd_elf_symbol *symbol = &symbols->all[i];

        if (symbol->start != current) {
            next = current;
            current = symbol->start;
        }
        if (symbol->end == UINT64_MAX)
            symbol->end = next;
    }
}

static bool make_spans(struct tbd_elf_symbols *symbols)
{
    uint64_t reach = 0;

    symbols->spans = malloc((symbols->count + 1) * sizeof(symbols->spans[0]));
    if (!symbols->spans)
        return false;
    for (size_t i = 0; i < symbols->count; i++) {
        const struct tbd_elf_symbol *symbol = &symbols->all[i];
        struct tbd_elf_span *span = symbols->spans + symbols->span_count;

        if (symbol->end <= symbol->start)
            continue;
        if (symbol->end > reach)
            reach = symbol->end;
        if (symbols->span_count && span[-1].start == symbol->start) {
            if (symbol->end > span[-1].end)
                span[-1].end = symbol->end;
            span[-1].reach = reach;
            continue;
        }
        *span = (struct tbd_elf_span){ symbol->start, symbol->end, reach, (uint32_t)i };
        symbols->span_count++;
    }
    return true;
}

/* ---- look-up ---- */

/* Keeps ELF_SYMBOLS-3. */
static const struct tbd_elf_symbol *span_at(const struct tbd_elf_symbols *symbols, uint64_t address)
{
    size_t upto = TBD_COUNT_BEFORE(i, symbols->span_count, symbols->spans[i].start <= address);

    for (size_t steps = 0; upto-- > 0 && steps < LOOKUP_MAX; steps++) {
        if (address >= symbols->spans[upto].reach)
            return NULL;
        if (address < symbols->spans[upto].end)
            return &symbols->all[symbols->spans[upto].symbol];
    }
    return NULL;
}

const struct tbd_elf_symbol *tbd_elf_symbol_at(struct tbd_elf_file *file, uint64_t address)
{
    return span_at(tbd_elf_symbols(file), address);
}

/* ---- functions without a symbol ---- */

static void add_made_up(struct tbd_elf_file *file, const struct tbd_elf_range *range)
{
    struct tbd_elf_symbol *out;
    char name[32];
    const char *kept;

    snprintf(name, sizeof(name), "sub_%" PRIx64, range->start);
    kept = tbd_names_add(&file->names, name, strlen(name), "");
    out = kept ? add_symbol(&file->symbols) : NULL;
    if (!out)
        return;
    *out = (struct tbd_elf_symbol){ .start = range->start,
                                    .end = range->end,
                                    .name = kept,
                                    .is_function = true,
                                    .is_made_up = true,
                                    .rank = rank_of(kept, KIND_FUNCTION, true) };
}

/* A function that the kernel's signal frames return to has its description from the byte before on, so that who looks for the
 * caller of the instruction before its first one finds it. */
static bool is_before_a_function(const struct tbd_elf_symbols *symbols, uint64_t address)
{
    const struct tbd_elf_symbol *next = span_at(symbols, address + 1);

    return next && next->is_function && next->start == address + 1;
}

/* Needs the spans of all real symbols; true if it added any. */
static bool take_unnamed(struct tbd_elf_file *file)
{
    struct tbd_elf_range *ranges;
    size_t count = tbd_elf_frame_functions(file, &ranges), before = file->symbols.count;

    for (size_t i = 0; i < count; i++) {
        const struct tbd_elf_symbol *known = span_at(&file->symbols, ranges[i].start);

        if ((!known || !known->is_function) &&
            !is_before_a_function(&file->symbols, ranges[i].start))
            add_made_up(file, &ranges[i]);
    }
    free(ranges);
    return file->symbols.count > before;
}

/* ---- all of it ---- */

/* Sorts, and makes the tables that look-ups use; again after more symbols came. */
static bool index_symbols(struct tbd_elf_file *file)
{
    struct tbd_elf_symbols *symbols = &file->symbols;

    free(symbols->spans);
    symbols->spans = NULL;
    symbols->span_count = 0;
    if (symbols->count) {
        qsort(symbols->all, symbols->count, sizeof(symbols->all[0]), compare_symbols);
        set_open_ends(file);
    }
    return make_spans(symbols);
}

static bool symbols_ascend(const struct tbd_elf_symbols *symbols)
{
    for (size_t i = 1; i < symbols->count; i++)
        if (compare_symbols(&symbols->all[i - 1], &symbols->all[i]) > 0)
            return false;
    for (size_t i = 0; i < symbols->span_count; i++) {
        const struct tbd_elf_span *span = &symbols->spans[i];

        if (span->end <= span->start || span->reach < span->end ||
            symbols->all[span->symbol].start != span->start ||
            (i > 0 && span[-1].start >= span->start))
            return false;
    }
    return true;
}

static bool symbols_are_inside(const struct tbd_elf_file *file)
{
    for (size_t i = 0; i < file->symbols.count; i++) {
        const struct tbd_elf_symbol *symbol = &file->symbols.all[i];

        if (symbol->start < file->low || symbol->end > file->high)
            return false;
    }
    return true;
}

const struct tbd_elf_symbols *tbd_elf_symbols(struct tbd_elf_file *file)
{
    struct tbd_elf_symbols *symbols = &file->symbols;
    Elf *debug;

    if (symbols->loaded)
        return symbols;
    symbols->loaded = true;
    /* .dynsym adds nothing to .symtab, which has all its symbols. */
    if (!take_tables(file, file->main.elf, SHT_SYMTAB)) {
        debug = tbd_elf_debug(file);
        if (!debug || !take_tables(file, debug, SHT_SYMTAB))
            take_tables(file, file->main.elf, SHT_DYNSYM);
    }
    take_stubs(file);
    if (!index_symbols(file) || (take_unnamed(file) && !index_symbols(file))) {
        symbols->count = 0;
        symbols->span_count = 0;
    }
    TBD_INVARIANT("ELF_SYMBOLS-1", symbols_ascend(symbols));
    TBD_INVARIANT("ELF_SYMBOLS-2", symbols_are_inside(file));
    return symbols;
}
