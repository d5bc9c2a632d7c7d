// SPDX-License-Identifier: MIT
/* crash_write.c - the file `crash` from the memory of a program that has ended (crash_file.h)
 *
 * The memory is hostile: what is used of it is copied first, and then checked.  What cannot be right is left
 * out.  Nobody writes to it any more, unless a stranger has the memory, too. */
#include "format/files/crash_write_private.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "format/files/trace_dir.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- the stream ---- */

static bool take_head(struct tbd_crash_making *m)
{
    struct tbd_stream_head *from = &m->from;

    if (m->stream_bytes < sizeof(*from))
        return false;
    memcpy(from, m->stream, sizeof(*from));
    if (from->magic != TBD_STREAM_MAGIC || from->version != TBD_STREAM_VERSION ||
        from->area_count < 2 || from->area_count > TBD_CRASH_MOST_AREAS ||
        from->area_bytes < sizeof(struct tbd_crash) || from->area_bytes % 4096 ||
        from->area_bytes > m->stream_bytes || from->def_count > from->def_capacity ||
        !tbd_crash_is_inside(m, from->defs_offset,
                             (uint64_t)from->def_count * sizeof(struct tbd_block_def)) ||
        !tbd_crash_is_inside(m, from->areas_offset, from->area_count * (from->area_bytes + 4096)) ||
        from->defs_offset % 8 || from->areas_offset % 8)
        return false;
    m->crash = (const struct tbd_crash *)(m->stream + from->areas_offset);
    m->module_count = m->crash->module_count;
    m->ring_bytes = m->crash->ring_bytes;
    m->values_at = m->crash->values_at;
    m->value_slots = m->crash->value_slots;
    m->memory_slots = m->crash->memory_slots;
    m->keeps = m->crash->keeps;
    m->condensed_at = m->crash->condensed_at;
    m->condensed_bytes = m->crash->condensed_bytes;
    if (m->condensed_bytes < TBD_CONDENSED_LEAST || m->condensed_bytes > TBD_CONDENSED_MOST ||
        (m->condensed_at | m->condensed_bytes) % 8 != 0)
        m->condensed_bytes = 0;
    if (m->value_slots > TBD_VALUE_MOST_BYTES / TBD_VALUE_SLOT_BYTES || m->values_at % 8 != 0)
        m->value_slots = 0;
    if (m->value_slots == 0 || m->memory_slots > TBD_VALUE_MEMORY_SLOTS)
        m->memory_slots = 0;
    return m->module_count <= TBD_CRASH_MODULES && m->ring_bytes >= TBD_CRASH_RING_BYTES &&
           m->ring_bytes <= from->area_bytes && m->ring_bytes % 4096 == 0;
}

/* ---- blocks ---- */

/* CRASH-2 */
static uint32_t module_of(const struct tbd_crash_making *m, uint32_t id, uint64_t start)
{
    for (uint32_t i = m->module_count; i-- > 0;)
        if (m->modules[i].first_block <= id && start >= m->modules[i].start &&
            start < m->modules[i].end)
            return m->modules[i].path[0] ? i : TBD_NO_MODULE;
    return TBD_NO_MODULE;
}

/* Where the block's code is in the file's; TBD_NO_CODE: it is not known. */
static uint32_t copy_code(struct tbd_crash_making *m, const struct tbd_block_def *def)
{
    uint64_t at = m->head.code_bytes;

    if (!def->code_bytes || def->code_bytes > TBD_BLOCK_MAX_INSNS * 15u ||
        at + def->code_bytes >= TBD_NO_CODE || def->code_offset > m->from.heap_capacity ||
        def->code_bytes > m->from.heap_capacity - def->code_offset ||
        !tbd_crash_is_inside(m, m->from.heap_offset, m->from.heap_capacity) ||
        !tbd_array_reserve(&m->code, at + def->code_bytes, &m->code_capacity, 1))
        return TBD_NO_CODE;
    memcpy(m->code + at, m->stream + m->from.heap_offset + def->code_offset, def->code_bytes);
    m->head.code_bytes += def->code_bytes;
    return (uint32_t)at;
}

uint32_t tbd_crash_place_of(struct tbd_crash_making *m, uint32_t id)
{
    struct tbd_block_def def;

    if (m->place[id])
        return m->place[id] - 1;
    memcpy(&def, m->stream + m->from.defs_offset + (uint64_t)(id - 1) * sizeof(def), sizeof(def));
    m->blocks[m->head.block_count] =
        (struct tbd_crash_block){ .start = def.start,
                                  .code_bytes = def.code_bytes,
                                  .module = module_of(m, id, def.start),
                                  .code_offset = copy_code(m, &def) };
    m->place[id] = ++m->head.block_count;
    return m->place[id] - 1;
}

/* ---- stamps ---- */

/* The rate of the processor's counter follows from how far it, and the clock, have come since the rings' beginning. */
static long double stamp_unit(const struct tbd_crash_making *m)
{
    uint64_t ns = tbd_clock_ns() - m->crash->stamps_from_ns;
    uint64_t cycles = __builtin_ia32_rdtsc() - m->crash->stamps_from;

    if (m->crash->stamps_count_ns)
        return 1;
    return m->crash->stamps_from && cycles && cycles < INT64_MAX && ns < INT64_MAX
               ? (long double)ns / (long double)cycles
               : 0;
}

uint64_t tbd_crash_stamp(const struct tbd_crash_making *m, uint64_t stamp)
{
    uint64_t since = stamp - m->crash->stamps_from;

    return stamp && m->stamp_ns > 0 && since < INT64_MAX
               ? 1 + (uint64_t)((long double)since * m->stamp_ns)
               : 0;
}

/* ---- threads ---- */

bool tbd_crash_add_entry(struct tbd_crash_making *m, uint32_t id)
{
    if (id == 0 || id > m->from.def_count)
        return true;
    if (!tbd_array_grow(&m->entries, m->head.entry_count, &m->entry_capacity, sizeof(*m->entries)))
        return false;
    m->entries[m->head.entry_count++] = tbd_crash_place_of(m, id);
    return true;
}

/* From the 0 after the last entry once around the ring. */
static bool add_entries(struct tbd_crash_making *m, const struct tbd_crash_ring *from,
                        uint64_t first)
{
    const uint32_t *ring = tbd_crash_ring_of(m, from->index);
    uint64_t length = m->ring_bytes / 4;

    for (uint64_t i = 0; i < length; i++) {
        uint64_t place = (from->last + 1 + i) % length;

        from->entry_at[place] = m->head.entry_count - first;
        if (!tbd_crash_add_entry(m, ring[place]))
            return false;
    }
    return true;
}

/* `last`: where the 0 is.  At the ring's end nothing follows it: only the lap's number, if there is one, says whether it is the first. */
static bool was_full(const struct tbd_crash_making *m, uint32_t index, uint64_t last)
{
    const uint32_t *ring = tbd_crash_ring_of(m, index);

    return last + 1 < m->ring_bytes / 4 ? ring[last + 1] != 0
                                        : m->crash->laps[index] != TBD_CRASH_FIRST_LAP;
}

static bool add_ring(struct tbd_crash_making *m, uint32_t index)
{
    const uint32_t *ring = tbd_crash_ring_of(m, index);
    uint64_t length = m->ring_bytes / 4, last = 0, first = m->head.entry_count;
    struct tbd_crash_thread *thread = &m->threads[m->head.thread_count];
    struct tbd_crash_ring from = { .index = index, .entry_at = m->entry_at };
    uint32_t chunks = m->head.chunk_count;
    uint64_t older = m->head.older_bytes;
    bool has_older;

    while (last < length && ring[last])
        last++;
    from.last = last;
    m->lap_count = 0;
    m->lap_now = 0;
    has_older = was_full(m, index, last);
    *thread =
        (struct tbd_crash_thread){ .tid = m->crash->tids[index],
                                   .ended_ns = tbd_crash_stamp(m, m->crash->called_at[index]) };
    if (!tbd_crash_add_condensed(m, &from, &has_older) || !add_entries(m, &from, first))
        return false;
    if (m->head.entry_count == first) { /* chunks of no block that there is */
        m->head.chunk_count = chunks;
        m->head.older_bytes = older;
        return true;
    }
    thread->flags = has_older ? TBD_CRASH_HAS_OLDER : 0;
    thread->count = m->head.entry_count - first;
    if (!tbd_crash_add_values(m, &from))
        return false;
    m->head.thread_count++;
    return true;
}

/* ---- tables ---- */

/* Rows of one table while it is made: `time_us` is its value in the memory. */
static const uint64_t *table_of(const struct tbd_crash_making *m, uint32_t which)
{
    uint64_t at = m->from.areas_offset + TBD_CRASH_TABLES * (m->from.area_bytes + 4096);

    if (!(m->crash->tables & which) || !tbd_crash_is_inside(m, at, TBD_CRASH_TABLE_BYTES))
        return NULL;
    return (const uint64_t *)(m->stream + at) + (which == TBD_CRASH_LAST ? TBD_CRASH_IDS : 0);
}

static int by_time(const void *one, const void *other)
{
    uint64_t a = ((const struct tbd_crash_when *)one)->time_us;
    uint64_t b = ((const struct tbd_crash_when *)other)->time_us;

    return a < b ? -1 : a > b;
}

/* What ran in laps that are not over. */
static void add_laps(const struct tbd_crash_making *m, uint64_t *values)
{
    uint64_t time = m->now;

    for (uint32_t k = 0; k < tbd_crash_ring_count(m); k++) {
        const uint32_t *ring = tbd_crash_ring_of(m, k);

        for (uint64_t i = 0; i < m->ring_bytes / 4; i++) {
            uint32_t id = ring[i];

            if (!id)
                break;
            if (id <= m->from.def_count && id <= TBD_CRASH_IDS)
                values[id - 1] = time << TBD_CRASH_LAP_SHIFT | i;
        }
    }
}

/* How many rows were added; they begin at m->when[m->when_count]. */
static bool add_table(struct tbd_crash_making *m, uint32_t which, uint32_t *out_count)
{
    const uint64_t *from = table_of(m, which);
    uint32_t ids = m->from.def_count < TBD_CRASH_IDS ? m->from.def_count : TBD_CRASH_IDS;
    struct tbd_crash_when *rows = m->when + m->when_count;
    uint64_t *values = from ? malloc((ids + 1u) * sizeof(*values)) : NULL;
    uint64_t started = m->crash->started_us;
    uint32_t count = 0;

    *out_count = 0;
    if (!from)
        return true;
    if (!values)
        return false;
    memcpy(values, from, ids * sizeof(*values));
    if (which == TBD_CRASH_LAST)
        add_laps(m, values);
    for (uint32_t id = 1; id <= ids; id++)
        if (values[id - 1])
            rows[count++] = (struct tbd_crash_when){ .time_us = values[id - 1],
                                                     .block = tbd_crash_place_of(m, id) };
    free(values);
    qsort(rows, count, sizeof(*rows), by_time);
    for (uint32_t i = 0; i < count; i++)
        rows[i].time_us =
            started +
            (which == TBD_CRASH_LAST ? rows[i].time_us >> TBD_CRASH_LAP_SHIFT : rows[i].time_us) -
            1;
    m->when_count += count;
    *out_count = count;
    return true;
}

static bool add_tables(struct tbd_crash_making *m)
{
    if (!tbd_crash_is_kept(m, TBD_CRASH_KEEPS_RINGS))
        return true;
    m->when = calloc(2ull * m->from.def_count + 1, sizeof(*m->when));
    return m->when && add_table(m, TBD_CRASH_FIRST, &m->head.first_count) &&
           add_table(m, TBD_CRASH_LAST, &m->head.last_count);
}

/* In the unit of the tables. */
static uint64_t time_now(const struct tbd_crash_making *m)
{
    struct timespec now = { 0 };

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000 - m->crash->started_us + 1;
}

static bool gather(struct tbd_crash_making *m)
{
    uint32_t rings = tbd_crash_ring_count(m), condensed;

    m->now = time_now(m);
    m->stamp_ns = stamp_unit(m);
    m->place = calloc((size_t)m->from.def_count + 1, sizeof(*m->place));
    m->blocks = calloc((size_t)m->from.def_count + 1, sizeof(*m->blocks));
    m->threads = calloc((size_t)rings + 1, sizeof(*m->threads));
    m->modules = calloc((size_t)m->module_count + 1, sizeof(*m->modules));
    m->entry_at = calloc(m->ring_bytes / 4, sizeof(*m->entry_at));
    condensed = tbd_crash_condensed_rings(m, rings);
    m->condensed_ids = condensed ? TBD_CONDENSED_ENTRIES / condensed : 0;
    if (!m->place || !m->blocks || !m->threads || !m->modules || !m->entry_at ||
        !tbd_crash_turn_rings(m))
        return false;
    memcpy(m->modules, m->crash->modules, m->module_count * sizeof(*m->modules));
    for (uint32_t i = 0; i < m->module_count; i++)
        m->modules[i].path[TBD_CRASH_PATH_BYTES - 1] = 0;
    for (uint32_t i = 0; tbd_crash_is_kept(m, TBD_CRASH_KEEPS_RINGS) && i < rings; i++)
        if (!add_ring(m, i))
            return false;
    return tbd_crash_add_ids(m) && add_tables(m) && tbd_crash_add_kept(m);
}

/* ---- the file ---- */

static enum tbd_status put(struct tbd_crash_making *m, int dir)
{
    struct tbd_crash_head *head = &m->head;
    size_t modules = head->module_count * sizeof(*m->modules);
    size_t blocks = head->block_count * sizeof(*m->blocks);
    size_t threads = head->thread_count * sizeof(*m->threads);
    size_t when = m->when_count * sizeof(*m->when);
    size_t parts = head->part_count * sizeof(*m->parts);
    size_t kept = head->kept_count * sizeof(*m->kept);
    size_t values = head->value_count * sizeof(*m->values);
    size_t chunks = head->chunk_count * sizeof(*m->chunks);
    size_t ids = head->id_count * sizeof(*m->ids);
    size_t entries = head->entry_count * sizeof(*m->entries);
    size_t code = head->code_bytes, older = head->older_bytes;
    size_t bytes = sizeof(*head) + modules + blocks + threads + when + parts + kept + values +
                   chunks + ids + entries + code + older;
    uint8_t *data = malloc(bytes), *at = data;
    enum tbd_status status;

    if (!data)
        return TBD_NOMEM;
    at += sizeof(*head);
    memcpy(at, m->modules, modules);
    memcpy(at += modules, m->blocks, blocks);
    memcpy(at += blocks, m->threads, threads);
    at += threads;
    if (when)
        memcpy(at, m->when, when);
    memcpy(at += when, m->parts, parts);
    at += parts;
    if (kept)
        memcpy(at, m->kept, kept);
    at += kept;
    if (values)
        memcpy(at, m->values, values);
    at += values;
    if (chunks)
        memcpy(at, m->chunks, chunks);
    if (ids)
        memcpy(at + chunks, m->ids, ids);
    at += chunks + ids;
    if (entries)
        memcpy(at, m->entries, entries);
    if (code)
        memcpy(at + entries, m->code, code);
    if (older)
        memcpy(at + entries + code, m->older, older);
    head->checksum =
        tbd_hash64(head, sizeof(*head)) ^ tbd_hash64(data + sizeof(*head), bytes - sizeof(*head));
    memcpy(data, head, sizeof(*head));
    status = tbd_dir_write(dir, TBD_CRASH_FILE, data, bytes);
    free(data);
    return status;
}

enum tbd_status tbd_crash_write(int dir, const uint8_t *stream, size_t bytes, uint32_t pid)
{
    struct tbd_crash_making m = { .stream = stream, .stream_bytes = bytes };
    enum tbd_status status = TBD_CORRUPT;

    if (take_head(&m)) {
        m.head = (struct tbd_crash_head){ .magic = TBD_CRASH_MAGIC,
                                          .major = TBD_CRASH_MAJOR,
                                          .pid = pid,
                                          .module_count = m.module_count,
                                          .signo = m.crash->signo,
                                          .tid = m.crash->tid,
                                          .regs = m.crash->regs,
                                          .without_ring = m.crash->without_ring };
        memcpy(m.head.siginfo, m.crash->siginfo, sizeof(m.head.siginfo));
        status = gather(&m) ? put(&m, dir) : TBD_NOMEM;
    }
    free(m.place);
    free(m.modules);
    free(m.blocks);
    free(m.threads);
    free(m.entries);
    free(m.code);
    free(m.when);
    free(m.kept);
    free(m.values);
    free(m.entry_at);
    free(m.laps);
    free(m.chunks);
    free(m.older);
    free(m.ids);
    for (uint32_t i = 0; i < m.turned_count; i++)
        free(m.turned[i]);
    free(m.turned);
    return status;
}

const struct tbd_crash *tbd_crash_area(const void *stream, size_t bytes)
{
    struct tbd_crash_making m = { .stream = stream, .stream_bytes = bytes };

    return take_head(&m) ? m.crash : NULL;
}

bool tbd_crash_condensed(const void *stream, size_t bytes, struct tbd_crash_condensed *out)
{
    struct tbd_crash_making m = { .stream = stream, .stream_bytes = bytes };

    return take_head(&m) && tbd_crash_find_condensed(&m, out);
}

/* A ring begins with an entry; when it has just come round, only its second place has one. */
bool tbd_crash_is_empty(const void *stream, size_t bytes)
{
    struct tbd_crash_making m = { .stream = stream, .stream_bytes = bytes };

    if (!take_head(&m))
        return false;
    for (uint32_t i = 0; i < tbd_crash_ring_count(&m); i++)
        if (tbd_crash_ring_of(&m, i)[0] != 0 || tbd_crash_ring_of(&m, i)[1] != 0)
            return false;
    return true;
}
