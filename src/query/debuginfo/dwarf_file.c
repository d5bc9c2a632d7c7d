// SPDX-License-Identifier: MIT
/* dwarf_file.c - units and scopes, from libdw
 *
 * DWARF_FILE-1  Units are indexed by address once, from their own ranges, unless .debug_aranges can
 *     tell.
 * DWARF_FILE-2  Walks are bounded: tbd_die_next() only goes forward in the section, scopes nest at
 *     most TBD_DWARF_MAX_SCOPES deep, and one question visits at most VISITS_MAX entries. */
#include "query/debuginfo/dwarf_private.h"

#include "base/assert.h"
#include "base/array.h"
#include "base/binary_search.h"
#include "base/open_file.h"
#include "query/debuginfo/debug_cache.h"
#include "query/debuginfo/dwarf_index.h"

#include <dwarf.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define RANGES_MAX (1u << 22)
#define VISITS_MAX (1u << 22)

static bool has_debug_info(Elf *elf)
{
    Elf_Scn *section = NULL;
    size_t names;

    if (elf == NULL || elf_getshdrstrndx(elf, &names) != 0)
        return false;
    while ((section = elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr header;
        const char *name;

        if (gelf_getshdr(section, &header) != NULL && header.sh_type != SHT_NOBITS &&
            (name = elf_strptr(elf, names, header.sh_name)) != NULL &&
            (strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0))
            return true;
    }
    return false;
}

struct tbd_dwarf *tbd_dwarf_of(struct tbd_elf_file *file)
{
    Elf *elf = file->main.elf;

    if (file->source_tried)
        return file->source;
    file->source_tried = true;
    if (!has_debug_info(elf))
        elf = tbd_elf_debug(file);
    if (!has_debug_info(elf) ||
        !tbd_elf_can_unpack(file, elf == file->main.elf ? &file->main : &file->debug))
        return NULL;
    file->source = calloc(1, sizeof(*file->source));
    if (file->source == NULL)
        return NULL;
    file->source->file = file;
    if (elf == file->debug.elf &&
        tbd_debug_cache_open(&file->debug, file->build_id_text, &file->unpacked))
        file->source->dwarf = dwarf_begin_elf(file->unpacked.elf, DWARF_C_READ, NULL);
    if (file->source->dwarf == NULL)
        file->source->dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
    if (file->source->dwarf == NULL) {
        free(file->source);
        file->source = NULL;
        return NULL;
    }
    tbd_dwarf_alt_open(file, file->source->dwarf, &file->source->alt);
    return file->source;
}

struct tbd_elf_file *tbd_dwarf_elf(const struct tbd_dwarf *dwarf)
{
    return dwarf->file;
}

struct tbd_dwarf_index **tbd_dwarf_index_place(struct tbd_dwarf *dwarf)
{
    return &dwarf->index;
}

void tbd_dwarf_free(struct tbd_dwarf *dwarf)
{
    if (dwarf == NULL)
        return;
    tbd_dwarf_index_free(dwarf->index);
    dwarf_end(dwarf->dwarf);
    tbd_dwarf_alt_close(&dwarf->alt);
    for (size_t i = 0; i < dwarf->path_count; i++)
        free(dwarf->paths[i].path);
    free(dwarf->paths);
    free(dwarf->units);
    free(dwarf->ranges);
    free(dwarf->last);
    free(dwarf->flow);
    tdestroy(dwarf->found, free);
    free(dwarf);
}

/* ---- names that were asked for ---- */

static int compare_found(const void *a, const void *b)
{
    const struct tbd_dwarf_found *x = a, *y = b;

    return x->unit != y->unit ? (x->unit < y->unit ? -1 : 1) : strcmp(x->name, y->name);
}

struct tbd_dwarf_found *tbd_dwarf_found(struct tbd_dwarf *dwarf, Dwarf_Off unit, const char *name)
{
    size_t bytes = strlen(name) + 1;
    struct tbd_dwarf_found *found = calloc(1, sizeof(*found) + bytes), **at;

    if (found == NULL)
        return NULL;
    found->unit = unit;
    memcpy(found->name, name, bytes);
    at = tsearch(found, &dwarf->found, compare_found);
    if (at == NULL || *at != found)
        free(found);
    return at == NULL ? NULL : *at;
}

/* ---- units ---- */

static void add_range(struct tbd_dwarf *dwarf, uint64_t start, uint64_t end)
{
    /* Functions that the linker dropped begin at 0. */
    if (start == 0 || end <= start || dwarf->range_count >= RANGES_MAX ||
        !tbd_array_grow(&dwarf->ranges, dwarf->range_count, &dwarf->range_capacity,
                        sizeof(*dwarf->ranges)))
        return;
    dwarf->ranges[dwarf->range_count++] =
        (struct dwarf_range){ start, end, (uint32_t)dwarf->unit_count };
}

static void add_unit(struct tbd_dwarf *dwarf, Dwarf *from, bool is_apart, Dwarf_Die *die)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t at = 0;
    size_t ranges = 0;

    if (dwarf->unit_count >= TBD_DWARF_UNITS_MAX ||
        !tbd_array_grow(&dwarf->units, dwarf->unit_count, &dwarf->unit_capacity,
                        sizeof(*dwarf->units)))
        return;
    dwarf->units[dwarf->unit_count] = (struct dwarf_unit){ from, dwarf_dieoffset(die), is_apart };
    while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0 && ranges++ < RANGES_MAX)
        add_range(dwarf, start, end);
    dwarf->unit_count++;
}

static int compare_ranges(const void *left, const void *right)
{
    const struct dwarf_range *a = left, *b = right;

    return (a->start > b->start) - (a->start < b->start);
}

static bool is_unit(Dwarf_Die *die)
{
    return dwarf_tag(die) == DW_TAG_compile_unit || dwarf_tag(die) == DW_TAG_skeleton_unit;
}

/* Units without code: types that several units share. */
bool tbd_dwarf_is_shared_unit(Dwarf_Die *die)
{
    return dwarf_tag(die) == DW_TAG_partial_unit || dwarf_tag(die) == DW_TAG_type_unit;
}

static const char *text_of(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;

    return dwarf_formstring(dwarf_attr(die, name, &attribute));
}

/* A file that libdw opens, and unpacks, by itself. */
static bool is_harmless(const char *path)
{
    struct tbd_elf_one one = { .fd = -1 };
    uint64_t bytes;
    bool good;

    if (!tbd_is_openable(path))
        return false;
    one.fd = tbd_open_named(path);
    one.elf = one.fd < 0 ? NULL : elf_begin(one.fd, ELF_C_READ, NULL);
    good = one.elf == NULL || tbd_elf_one_can_unpack(&one, &bytes);
    tbd_elf_one_close(&one);
    return good;
}

/* `folder` and `name` joined as libdw does. */
static bool is_openable(const char *folder, const char *name, const char *suffix)
{
    char path[3 * PATH_BYTES];

    return (size_t)snprintf(path, sizeof(path), "%s%s%s%s", name[0] == '/' ? "" : folder,
                            name[0] == '/' || folder[0] == '\0' ? "" : "/", name,
                            suffix) < sizeof(path) &&
           is_harmless(path);
}

/* The file of a unit whose entries are in a file of their own (.dwo); NULL: none. */
static const char *split_name(Dwarf_Die *die)
{
    const char *name = text_of(die, DW_AT_dwo_name);

    return name != NULL ? name : text_of(die, DW_AT_GNU_dwo_name);
}

/* Would libdw come to a FIFO, a device, a planted link, or gigabytes out of nothing? */
static bool may_look_for_split(struct tbd_dwarf *dwarf, Dwarf_Die *die)
{
    const struct tbd_elf_file *file = dwarf->file;
    const struct tbd_elf_one *of = file->debug.elf != NULL ? &file->debug : &file->main;
    const char *name = split_name(die), *folder = text_of(die, DW_AT_comp_dir);
    char link[64], path[PATH_BYTES], below[2 * PATH_BYTES];
    char *slash;
    ssize_t length;

    if (name == NULL)
        return true;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", of->fd);
    length = readlink(link, path, sizeof(path) - 1);
    path[length < 0 ? 0 : length] = '\0';
    if (!is_openable("", path, ".dwp"))
        return false;
    slash = strrchr(path, '/');
    if (slash != NULL)
        *slash = '\0';
    snprintf(below, sizeof(below), "%s%s%s", folder != NULL && folder[0] == '/' ? "" : path,
             folder == NULL || folder[0] == '/' ? "" : "/", folder == NULL ? "" : folder);
    return is_openable(path, name, "") && is_openable(below, name, "");
}

/* A unit whose entries are in a file of their own (.dwo): these, if it is there. */
static void take_split(struct tbd_dwarf *dwarf, Dwarf_Die *die)
{
    Dwarf_Die split = { .addr = NULL };
    uint8_t type = 0;

    if (dwarf_cu_info(die->cu, NULL, &type, NULL, NULL, NULL, NULL, NULL) != 0 ||
        type != DW_UT_skeleton || !may_look_for_split(dwarf, die))
        return;
    if (dwarf_cu_info(die->cu, NULL, &type, NULL, &split, NULL, NULL, NULL) == 0 &&
        type == DW_UT_skeleton && split.addr != NULL)
        *die = split;
}

static Dwarf_Die *entry_at(Dwarf *from, Dwarf_Off at, bool is_apart, Dwarf_Die *out)
{
    return is_apart ? dwarf_offdie_types(from, at, out) : dwarf_offdie(from, at, out);
}

static void add_units(struct tbd_dwarf *dwarf, Dwarf *from, bool is_apart)
{
    Dwarf_Off at = 0, next;
    uint64_t signature;
    size_t head;

    while (dwarf->unit_count < TBD_DWARF_UNITS_MAX &&
           dwarf_next_unit(from, at, &next, &head, NULL, NULL, NULL, NULL,
                           is_apart ? &signature : NULL, NULL) == 0 &&
           next > at) {
        Dwarf_Die die;

        if (entry_at(from, at + head, is_apart, &die) != NULL &&
            (is_unit(&die) || tbd_dwarf_is_shared_unit(&die)))
            add_unit(dwarf, from, is_apart, &die);
        at = next;
    }
}

static bool ranges_ascend(const struct tbd_dwarf *dwarf)
{
    for (size_t i = 1; i < dwarf->range_count; i++)
        if (dwarf->ranges[i].start < dwarf->ranges[i - 1].start)
            return false;
    return true;
}

/* Keeps DWARF_FILE-1. */
static void make_index(struct tbd_dwarf *dwarf)
{
    if (dwarf->indexed)
        return;
    dwarf->indexed = true;
    add_units(dwarf, dwarf->dwarf, false);
    add_units(dwarf, dwarf->dwarf, true);
    if (dwarf->alt.dwarf != NULL)
        add_units(dwarf, dwarf->alt.dwarf, false);
    if (dwarf->range_count != 0)
        qsort(dwarf->ranges, dwarf->range_count, sizeof(*dwarf->ranges), compare_ranges);
    TBD_INVARIANT("DWARF_FILE-1", ranges_ascend(dwarf));
}

size_t tbd_dwarf_unit_count(struct tbd_dwarf *dwarf)
{
    make_index(dwarf);
    return dwarf->unit_count;
}

bool tbd_dwarf_unit(struct tbd_dwarf *dwarf, size_t index, Dwarf_Die *out)
{
    const struct dwarf_unit *unit;

    make_index(dwarf);
    unit = index < dwarf->unit_count ? &dwarf->units[index] : NULL;
    if (unit == NULL || entry_at(unit->dwarf, unit->at, unit->is_apart, out) == NULL)
        return false;
    take_split(dwarf, out);
    return true;
}

/* By .debug_aranges, which is faster to read than all units; it may be missing or wrong. */
static bool unit_by_table(struct tbd_dwarf *dwarf, uint64_t address, Dwarf_Die *out)
{
    Dwarf_Aranges *table;
    Dwarf_Arange *found;
    Dwarf_Off offset;

    if (dwarf_getaranges(dwarf->dwarf, &table, NULL) != 0 ||
        (found = dwarf_getarange_addr(table, address)) == NULL ||
        dwarf_getarangeinfo(found, NULL, NULL, &offset) != 0 ||
        dwarf_offdie(dwarf->dwarf, offset, out) == NULL || !is_unit(out) ||
        dwarf_haspc(out, address) != 1)
        return false;
    take_split(dwarf, out);
    return true;
}

bool tbd_dwarf_unit_at(struct tbd_dwarf *dwarf, uint64_t address, Dwarf_Die *out)
{
    size_t upto;

    if (!dwarf->indexed && unit_by_table(dwarf, address, out))
        return true;
    make_index(dwarf);
    upto = TBD_COUNT_BEFORE(i, dwarf->range_count, dwarf->ranges[i].start <= address);
    return upto != 0 && address < dwarf->ranges[upto - 1].end &&
           tbd_dwarf_unit(dwarf, dwarf->ranges[upto - 1].unit, out);
}

const char *tbd_dwarf_missing_file(struct tbd_dwarf *dwarf, uint64_t address)
{
    Dwarf_Die unit;
    uint8_t type = 0;

    if (!tbd_dwarf_unit_at(dwarf, address, &unit) ||
        dwarf_cu_info(unit.cu, NULL, &type, NULL, NULL, NULL, NULL, NULL) != 0 ||
        type != DW_UT_skeleton)
        return NULL;
    return split_name(&unit);
}

/* ---- scopes ---- */

struct descent {
    uint64_t address;
    uint32_t visits;
    Dwarf_Die path[TBD_DWARF_MAX_SCOPES]; /* outermost first */
    size_t depth;
    bool looks_inside; /* functions and classes, too, for the methods of local classes */
};

static bool has_code(int tag)
{
    return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine ||
           tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

/* Lambdas and other local classes lie inside the function, whose code they are no part of. */
static bool may_hold_functions(const struct descent *d, int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_module ||
           (d->looks_inside &&
            (tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block ||
             tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type));
}

/* Follows the children of `die` that hold the address; false when there is none. */
static bool descend(struct descent *d, const Dwarf_Die *die, int nesting)
{
    Dwarf_Die child;

    if (nesting >= TBD_DWARF_MAX_SCOPES || d->depth >= TBD_DWARF_MAX_SCOPES)
        return false;
    for (bool more = tbd_die_child(die, &child); more && d->visits++ < VISITS_MAX;) {
        int tag = dwarf_tag(&child);

        TBD_INVARIANT("DWARF_FILE-2", d->visits <= VISITS_MAX && d->depth < TBD_DWARF_MAX_SCOPES &&
                                          (const char *)child.addr > (const char *)die->addr);
        if (has_code(tag) && dwarf_haspc(&child, d->address) == 1) {
            d->path[d->depth++] = child;
            (void)descend(d, &child, nesting + 1);
            return true;
        }
        if (may_hold_functions(d, tag) && descend(d, &child, nesting + 1))
            return true;
        more = tbd_die_next(&child, &child);
    }
    return false;
}

/* Most code is found without a look inside other functions, which are most of a unit. */
static bool find_scopes(const Dwarf_Die *unit, uint64_t address, struct descent *d)
{
    *d = (struct descent){ .address = address };
    if (descend(d, unit, 0))
        return true;
    *d = (struct descent){ .address = address, .looks_inside = true };
    return descend(d, unit, 0);
}

bool tbd_dwarf_scopes(struct tbd_dwarf *dwarf, uint64_t address, struct tbd_dwarf_scopes *out)
{
    struct descent d;

    if (dwarf->last != NULL && dwarf->last_address == address) {
        *out = *dwarf->last;
        return out->count != 0;
    }
    out->count = 0;
    out->dwarf = dwarf;
    if (tbd_dwarf_unit_at(dwarf, address, &out->unit) && find_scopes(&out->unit, address, &d)) {
        out->count = d.depth;
        for (size_t i = 0; i < d.depth; i++)
            out->dies[i] = d.path[d.depth - 1 - i];
    }
    if (dwarf->last == NULL)
        dwarf->last = malloc(sizeof(*dwarf->last));
    if (dwarf->last != NULL) {
        *dwarf->last = *out;
        dwarf->last_address = address;
    }
    return out->count != 0;
}

const char *tbd_dwarf_source_path(struct tbd_dwarf *dwarf, const Dwarf_Die *unit, uint64_t file)
{
    Dwarf_Die of_unit = *unit;
    const char *path;
    Dwarf_Files *files;
    size_t count;

    if (dwarf_getsrcfiles(&of_unit, &files, &count) != 0 || file >= count)
        return NULL;
    path = dwarf_filesrc(files, (size_t)file, NULL, NULL);
    return path == NULL ? NULL : tbd_dwarf_whole_path(dwarf, unit, path);
}

struct tbd_source_line tbd_dwarf_call_site(struct tbd_dwarf *dwarf, const Dwarf_Die *unit,
                                           const Dwarf_Die *die)
{
    struct tbd_source_line call = { .file = NULL };
    uint64_t file, line;

    if (!tbd_die_number(die, DW_AT_call_file, &file) ||
        !tbd_die_number(die, DW_AT_call_line, &line) || line > INT32_MAX)
        return call;
    call.file = tbd_dwarf_source_path(dwarf, unit, file);
    call.line = call.file == NULL ? 0 : (uint32_t)line;
    return call;
}

size_t tbd_dwarf_functions(const struct tbd_dwarf_scopes *scopes, struct tbd_dwarf_function *out,
                           size_t max)
{
    size_t count = 0, first = 0;

    for (size_t i = 0; i < scopes->count && count < max; i++) {
        Dwarf_Die die = scopes->dies[i];
        int tag = dwarf_tag(&die);
        const char *name;

        if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
            continue;
        name = tbd_die_name(&die);
        out[count] = (struct tbd_dwarf_function){ .first = first,
                                                  .end = i + 1,
                                                  .name = name == NULL ? "?" : name,
                                                  .is_inlined = tag == DW_TAG_inlined_subroutine };
        if (out[count].is_inlined)
            out[count].call = tbd_dwarf_call_site(scopes->dwarf, &scopes->unit, &die);
        count++;
        first = i + 1;
        if (tag == DW_TAG_subprogram)
            break;
    }
    return count;
}
