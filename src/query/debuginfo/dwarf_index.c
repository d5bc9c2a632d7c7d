// SPDX-License-Identifier: MIT
/* dwarf_index.c - see dwarf_index.h
 *
 * The table: hashes of names in order; for each where its units begin in `units`; the units.
 *
 * DWARF_INDEX-1  A table from the cache is used only when its parts fit together and every unit
 *     exists. */
#include "query/debuginfo/dwarf_index.h"

#include "base/assert.h"
#include "base/array.h"
#include "base/binary_search.h"
#include "query/debuginfo/name_cache.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define WORTH_UNITS 16u /* with fewer units no table is needed */
#define NESTING_MAX 8   /* as in the walks that look for names */
#define PAIRS_MAX   (1u << 26)
#define KIND        "units"

struct unit_index_head {
    uint64_t units, names, postings;
};

struct tbd_dwarf_index {
    struct tbd_name_table table; /* owned; of the cache, or empty */
    uint8_t *made;               /* owned; NULL if it is of the cache */
    const uint32_t *hashes, *starts, *units;
    size_t names;
};

/* ---- names ---- */

/* The key of a name: a hash of the name without namespaces and template arguments. */
static uint32_t key_of(const char *name)
{
    static const char *const keywords[] = { "struct ", "class ", "union ", "enum " };
    size_t length;

    for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++) {
        if (strncmp(name, keywords[i], strlen(keywords[i])) == 0)
            name += strlen(keywords[i]);
    }
    length = strcspn(name, "<");
    for (size_t i = 0; i + 1 < length; i++) {
        if (name[i] == ':' && name[i + 1] == ':') {
            name += i + 2;
            length = strcspn(name, "<");
            i = (size_t)-1;
        }
    }
    return (uint32_t)XXH3_64bits(name, length);
}

/* ---- making it ---- */

struct pairs {
    uint64_t *all; /* hash in the high half, unit in the low one */
    size_t count, capacity;
    bool is_short; /* too many pairs, or no memory for more */
};

static void add_pair(struct pairs *pairs, const char *name, uint32_t unit)
{
    pairs->is_short =
        pairs->count >= PAIRS_MAX ||
        !tbd_array_grow(&pairs->all, pairs->count, &pairs->capacity, sizeof(*pairs->all));
    if (pairs->is_short)
        return;
    pairs->all[pairs->count++] = (uint64_t)key_of(name) << 32 | unit;
}

static bool has_names(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
           tag == DW_TAG_union_type || tag == DW_TAG_enumeration_type;
}

static void add_names(struct pairs *pairs, const Dwarf_Die *parent, uint32_t unit, int nesting)
{
    Dwarf_Die die;

    for (bool more = tbd_die_child(parent, &die); more && !pairs->is_short;
         more = tbd_die_next(&die, &die)) {
        const char *name = tbd_die_name(&die);

        if (name != NULL)
            add_pair(pairs, name, unit);
        if (has_names(dwarf_tag(&die)) && nesting < NESTING_MAX)
            add_names(pairs, &die, unit, nesting + 1);
    }
}

/* A radix sort by the four bytes of the hash, the least one first.  It is stable: within one hash the
 * units stay in order. */
static bool sort_pairs(struct pairs *pairs)
{
    uint64_t *other = malloc((pairs->count + 1) * sizeof(*other)), *from = pairs->all, *to = other;

    if (other == NULL)
        return false;
    for (unsigned shift = 32; shift < 64; shift += 8) {
        size_t starts[257] = { 0 };
        uint64_t *swap = from;

        for (size_t i = 0; i < pairs->count; i++)
            starts[(from[i] >> shift & 0xff) + 1]++;
        for (size_t i = 0; i < 256; i++)
            starts[i + 1] += starts[i];
        for (size_t i = 0; i < pairs->count; i++)
            to[starts[from[i] >> shift & 0xff]++] = from[i];
        from = to;
        to = swap;
    }
    free(other); /* after four exchanges `from` is pairs->all again */
    return true;
}

static size_t drop_repeats(struct pairs *pairs, size_t *out_names)
{
    size_t used = 0, names = 0;

    for (size_t i = 0; i < pairs->count; i++) {
        if (used != 0 && pairs->all[i] == pairs->all[used - 1])
            continue;
        names += used == 0 || pairs->all[i] >> 32 != pairs->all[used - 1] >> 32;
        pairs->all[used++] = pairs->all[i];
    }
    *out_names = names;
    return used;
}

/* Makes the table, of *out_bytes bytes.  The caller frees it. */
static uint8_t *lay_out(struct pairs *pairs, size_t units, size_t *out_bytes)
{
    struct unit_index_head head = { .units = units };
    size_t names;
    uint32_t *hashes, *starts, *postings;
    uint8_t *bytes;

    head.postings = drop_repeats(pairs, &names);
    head.names = names;
    *out_bytes = sizeof(head) + (2 * names + 1 + head.postings) * sizeof(uint32_t);
    bytes = malloc(*out_bytes);
    if (bytes == NULL)
        return NULL;
    memcpy(bytes, &head, sizeof(head));
    hashes = (uint32_t *)(void *)(bytes + sizeof(head));
    starts = hashes + names;
    postings = starts + names + 1;
    names = 0;
    for (size_t i = 0; i < head.postings; i++) {
        if (i == 0 || pairs->all[i] >> 32 != pairs->all[i - 1] >> 32) {
            hashes[names] = (uint32_t)(pairs->all[i] >> 32);
            starts[names++] = (uint32_t)i;
        }
        postings[i] = (uint32_t)pairs->all[i];
    }
    starts[names] = (uint32_t)head.postings;
    return bytes;
}

static uint8_t *make(struct tbd_dwarf *dwarf, size_t units, size_t *out_bytes)
{
    struct pairs pairs = { .all = NULL };
    uint8_t *bytes = NULL;
    Dwarf_Die unit;

    for (size_t i = 0; i < units && !pairs.is_short; i++) {
        if (tbd_dwarf_unit(dwarf, i, &unit))
            add_names(&pairs, &unit, (uint32_t)i, 0);
    }
    if (!pairs.is_short && sort_pairs(&pairs))
        bytes = lay_out(&pairs, units, out_bytes);
    free(pairs.all);
    return bytes;
}

/* ---- using it ---- */

/* Keeps DWARF_INDEX-1.  `units`: of the debug information; UINT32_MAX: not known. */
static bool take_table(struct tbd_dwarf_index *index, const uint8_t *bytes, size_t count,
                       size_t units)
{
    const uint32_t *numbers =
        (const uint32_t *)(const void *)(bytes + sizeof(struct unit_index_head));
    struct unit_index_head head;

    if (count < sizeof(head))
        return false;
    memcpy(&head, bytes, sizeof(head));
    if (units == UINT32_MAX)
        units = (size_t)head.units;
    if (head.units != units || head.names > PAIRS_MAX || head.postings > PAIRS_MAX ||
        count != sizeof(head) + (2 * head.names + 1 + head.postings) * sizeof(uint32_t))
        return false;
    index->names = (size_t)head.names;
    index->hashes = numbers;
    index->starts = numbers + head.names;
    index->units = index->starts + head.names + 1;
    if (index->starts[head.names] != head.postings)
        return false;
    for (size_t i = 0; i < head.names; i++) {
        if (index->starts[i] > index->starts[i + 1])
            return false;
    }
    for (size_t i = 0; i < head.postings; i++) {
        if (index->units[i] >= units)
            return false;
    }
    return true;
}

static bool fill(struct tbd_dwarf_index *index, struct tbd_dwarf *dwarf, size_t units)
{
    struct tbd_elf_file *file = tbd_dwarf_elf(dwarf);
    struct iovec part;
    size_t bytes;

    if (tbd_name_cache_get(file, KIND, &index->table)) {
        if (take_table(index, index->table.bytes, index->table.count, units))
            return true;
        tbd_name_table_free(&index->table);
    }
    index->made = make(dwarf, units, &bytes);
    if (index->made == NULL || !take_table(index, index->made, bytes, units))
        return false;
    part = (struct iovec){ .iov_base = index->made, .iov_len = bytes };
    tbd_name_cache_put(file, KIND, &part, 1);
    return true;
}

/* The index; NULL if it would not help, or there is no memory. */
static const struct tbd_dwarf_index *index_of(struct tbd_dwarf *dwarf)
{
    struct tbd_dwarf_index **place = tbd_dwarf_index_place(dwarf);
    size_t units = tbd_dwarf_unit_count(dwarf);

    if (units < WORTH_UNITS)
        return NULL;
    if (*place == NULL) {
        *place = calloc(1, sizeof(**place));
        if (*place != NULL && !fill(*place, dwarf, units))
            (*place)->hashes = NULL;
    }
    return *place == NULL || (*place)->hashes == NULL ? NULL : *place;
}

void tbd_dwarf_index_free(struct tbd_dwarf_index *index)
{
    if (index == NULL)
        return;
    tbd_name_table_free(&index->table);
    free(index->made);
    free(index);
}

/* Where the name is in the table; index->names: nowhere. */
static size_t find_key(const struct tbd_dwarf_index *index, const char *name)
{
    uint32_t key = key_of(name);
    size_t at = TBD_COUNT_BEFORE(i, index->names, index->hashes[i] < key);

    return at < index->names && index->hashes[at] == key ? at : index->names;
}

bool tbd_dwarf_may_have(struct tbd_elf_file *file, const char *name)
{
    struct tbd_dwarf_index index = { 0 };
    bool may_have = true;

    if (!tbd_name_cache_get(file, KIND, &index.table))
        return true;
    if (take_table(&index, index.table.bytes, index.table.count, UINT32_MAX))
        may_have = find_key(&index, name) != index.names;
    tbd_name_table_free(&index.table);
    return may_have;
}

void tbd_unit_walk_start(struct tbd_unit_walk *walk, struct tbd_dwarf *dwarf, const char *name)
{
    const struct tbd_dwarf_index *index = index_of(dwarf);
    size_t at;

    *walk = (struct tbd_unit_walk){ .dwarf = dwarf };
    if (index == NULL) {
        walk->end = tbd_dwarf_unit_count(dwarf);
        return;
    }
    at = find_key(index, name);
    if (at != index->names) {
        walk->units = index->units;
        walk->next = index->starts[at];
        walk->end = index->starts[at + 1];
    }
}

bool tbd_unit_walk_next(struct tbd_unit_walk *walk, Dwarf_Die *out)
{
    while (walk->next < walk->end) {
        size_t unit = walk->next++;

        TBD_INVARIANT("DWARF_INDEX-1",
                      walk->units == NULL || walk->units[unit] < tbd_dwarf_unit_count(walk->dwarf));
        if (tbd_dwarf_unit(walk->dwarf, walk->units == NULL ? unit : walk->units[unit], out))
            return true;
    }
    return false;
}
