// SPDX-License-Identifier: MIT
/* crash_parts.c - see crash_parts.h
 *
 * The memory can be scribbled over by the program.  So how long rings of rows are is kept here, and what is read from there is only
 * used as a place within them. */
#include "hooks/stream/crash_parts.h"

#include "base/fmt.h"
#include "base/string.h"
#include "format/stream/part_name.h"

#define MODULE_SHIFT 16u
#define DEFAULT_ROWS ((1u << 20) / (uint32_t)sizeof(struct tbd_crash_row))
#define MOST_ROWS    ((uint32_t)(TBD_CRASH_PART_BYTES / sizeof(struct tbd_crash_row)))

static struct tbd_crash *crash; /* NULL: no part is kept */
static uint32_t *classes;
static struct tbd_crash_row *rows;
static uint32_t capacities[TBD_CRASH_PARTS];
static struct range {
    uint64_t start, end;
    uint32_t part;
} ranges[TBD_PART_RANGES];
static uint32_t range_count;

/* ---- the option: NAME [SIZE];NAME [SIZE]... ---- */

/* At most that many, and a power of 2; 0 for 0. */
static uint32_t power_below(uint64_t number)
{
    return number ? 1u << (63 - __builtin_clzll(number)) : 0;
}

/* Rows for "1M" or "512K"; 0: it is no such size. */
static uint32_t rows_for(const char *text, size_t length)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i + 1 < length; i++) {
        if (text[i] < '0' || text[i] > '9' || bytes > TBD_CRASH_PART_BYTES)
            return 0;
        bytes = bytes * 10 + (uint64_t)(text[i] - '0');
    }
    if (!length || (text[length - 1] != 'K' && text[length - 1] != 'M'))
        return 0;
    bytes <<= text[length - 1] == 'K' ? 10 : 20;
    return bytes > TBD_CRASH_PART_BYTES ? 0 : power_below(bytes / sizeof(struct tbd_crash_row));
}

static bool is_word(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

/* One of the option, up to its end. */
static bool take_part(struct tbd_crash *into, const char *text, size_t length, uint32_t *count)
{
    size_t name = tbd_part_length(text, " ;");
    bool is_modules = is_word(text, name, "modules");
    struct tbd_crash_part *part = &into->parts[is_modules ? 0 : 1 + *count];
    uint32_t capacity = name < length ? rows_for(text + name + 1, length - name - 1) : DEFAULT_ROWS;

    if (!name || name >= TBD_CRASH_PART_NAME || !capacity ||
        (!is_modules && 1 + *count == TBD_CRASH_PARTS))
        return false;
    *count += !is_modules;
    part->capacity = capacity;
    memcpy(part->name, text, name);
    return true;
}

bool tbd_crash_parts_format(struct tbd_crash *into, const char *text)
{
    uint32_t count = 0;
    bool fine = true;

    while (*text) {
        size_t length = tbd_part_length(text, ";;");

        if (length && !take_part(into, text, length, &count))
            fine = false;
        text += length + (text[length] == ';');
    }
    return fine;
}

/* ---- what blocks belong to ---- */

void tbd_crash_parts_start(struct tbd_crash *given, uint8_t *tables)
{
    bool some = false;

    for (uint32_t i = 0; i < TBD_CRASH_PARTS; i++) {
        capacities[i] = given->parts[i].capacity;
        some = some || capacities[i];
    }
    crash = some ? given : NULL;
    range_count = 0;
    classes = (uint32_t *)(tables + TBD_CRASH_CLASSES_AT);
    rows = (struct tbd_crash_row *)(tables + TBD_CRASH_ROWS_AT);
}

/* 0: there is none. */
static uint32_t part_called(const char *name)
{
    for (uint32_t part = 1; part < TBD_CRASH_PARTS; part++)
        if (capacities[part] && strcmp(crash->parts[part].name, name) == 0)
            return part;
    return 0;
}

void tbd_crash_parts_set_ranges(const struct tbd_part_range *given, uint32_t count)
{
    char name[TBD_CRASH_PART_NAME];

    range_count = 0;
    for (uint32_t i = 0; crash && i < count; i++) {
        memcpy(name, given[i].name, sizeof(name));
        name[sizeof(name) - 1] = '\0';
        ranges[range_count] = (struct range){ given[i].start, given[i].end, part_called(name) };
        crash->parts[ranges[range_count++].part].is_found = 1;
    }
}

size_t tbd_crash_parts_missing(char *out, size_t bytes)
{
    size_t used = 0;

    out[0] = '\0';
    for (uint32_t part = 1; crash && part < TBD_CRASH_PARTS; part++) {
        struct tbd_crash_part copy = crash->parts[part];

        copy.name[TBD_CRASH_PART_NAME - 1] = '\0';
        if (capacities[part] && !copy.is_found && used + 1 < bytes &&
            tbd_code_part_of(copy.name, strlen(copy.name)) != TBD_PART_MODULE)
            used += tbd_fmt(out + used, bytes - used, "%s%s", used ? "; " : "", copy.name);
    }
    return used;
}

/* One that is called exactly so comes first; 0: there is none. */
static uint32_t part_with_file(const char *path)
{
    uint32_t found = part_called(tbd_base_name(path));

    for (uint32_t part = 1; !found && part < TBD_CRASH_PARTS; part++) {
        struct tbd_crash_part copy = crash->parts[part];

        copy.name[TBD_CRASH_PART_NAME - 1] = '\0';
        if (capacities[part] && copy.name[0] &&
            tbd_is_file_called(path, copy.name, strlen(copy.name)))
            found = part;
    }
    return found;
}

/* A function is more than its module. */
static uint32_t part_of(uint64_t start, const char *path)
{
    for (uint32_t i = 0; i < range_count; i++)
        if (start >= ranges[i].start && start < ranges[i].end)
            return ranges[i].part;
    return part_with_file(path);
}

void tbd_crash_parts_note(uint32_t id, uint64_t start, uint32_t module, const char *path)
{
    if (crash && id - 1 < TBD_CRASH_IDS)
        classes[id - 1] = (module + 1) << MODULE_SHIFT | part_of(start, path);
}

/* ---- a lap ---- */

#define BATCH 128u

/* Entries that a part keeps, until there are enough of them: other threads may be at their laps, too. */
struct lap_batch {
    uint64_t moment; /* of the lap's first entry */
    uint32_t tid, count;
    struct kept_entry {
        uint32_t at, id, part;
    } all[BATCH];
};

static void put(const struct lap_batch *batch, const struct kept_entry *kept, uint64_t n)
{
    struct tbd_crash_row *row =
        rows + (uint64_t)kept->part * MOST_ROWS + (n & (capacities[kept->part] - 1));

    __atomic_store_n(&row->moment, 0, __ATOMIC_RELAXED);
    row->block = kept->id;
    row->tid = batch->tid;
    __atomic_store_n(&row->moment, batch->moment | kept->at, __ATOMIC_RELEASE);
}

/* All rows of a part with one reservation. */
static void flush(struct lap_batch *batch)
{
    uint64_t next[TBD_CRASH_PARTS] = { 0 };

    for (uint32_t i = 0; i < batch->count; i++)
        next[batch->all[i].part]++;
    for (uint32_t part = 0; part < TBD_CRASH_PARTS; part++)
        if (next[part])
            next[part] =
                __atomic_fetch_add(&crash->parts[part].count, next[part], __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < batch->count; i++)
        put(batch, &batch->all[i], next[batch->all[i].part]++);
    batch->count = 0;
}

static void keep(struct lap_batch *batch, uint32_t part, uint32_t at, uint32_t id)
{
    if (!capacities[part])
        return;
    if (batch->count == BATCH)
        flush(batch);
    batch->all[batch->count++] = (struct kept_entry){ at, id, part };
}

static uint32_t class_of(uint32_t id)
{
    return id - 1 < TBD_CRASH_IDS ? classes[id - 1] : 0;
}

/* Most entries are in the module of the one before, and in no part. */
void tbd_crash_parts_lap_sigsafe(uint32_t index, const uint32_t *ring, uint64_t count,
                                 uint64_t time)
{
    struct lap_batch batch = { .moment = time << TBD_CRASH_LAP_SHIFT };
    uint32_t before;

    if (!crash || index >= TBD_CRASH_RINGS)
        return;
    batch.tid = crash->tids[index];
    before = crash->last_modules[index] << MODULE_SHIFT;
    crash->sorting[index].module = before >> MODULE_SHIFT;
    __atomic_store_n(&crash->sorting[index].moment, batch.moment, __ATOMIC_RELEASE);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t class = class_of(ring[i]), part = class & (TBD_CRASH_PARTS - 1);

        if (class == before && !part)
            continue;
        if ((class ^ before) >> MODULE_SHIFT)
            keep(&batch, 0, i, ring[i]);
        if (part)
            keep(&batch, part, i, ring[i]);
        before = class;
    }
    flush(&batch);
    crash->last_modules[index] = before >> MODULE_SHIFT;
}

void tbd_crash_parts_next_lap_sigsafe(uint32_t index)
{
    if (crash && index < TBD_CRASH_RINGS)
        __atomic_store_n(&crash->sorting[index].moment, 0, __ATOMIC_RELEASE);
}

void tbd_crash_parts_reset(uint32_t index)
{
    if (crash && index < TBD_CRASH_RINGS)
        crash->last_modules[index] = 0;
}
