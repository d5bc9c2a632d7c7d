// SPDX-License-Identifier: MIT
// links: tbd_format tbd_base
/* Ids to bits and back, whatever they are; and from the memory of a ring whose laps were condensed to the file `crash`: what can be
 * there if a program was killed, and what cannot. */
#include "format/files/crash_file.h"
#include "format/files/trace_dir.h"

#include "folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { DEFS = 8, PAGE = 4096 };
#define AREA    ((uint64_t)TBD_CRASH_RING_BYTES)
#define STRIDE  (AREA + PAGE)
#define CHUNKS  ((uint64_t)TBD_CONDENSED_LEAST)
#define AREA_AT ((uint64_t)PAGE * 4)

static struct tbd_condenser tables;
static uint32_t ids[TBD_CONDENSED_IDS], back[TBD_CONDENSED_IDS];
static uint8_t bits[TBD_CHUNK_BYTES];

static uint64_t state = 88172645463325252u;

static uint32_t chance(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}

/* ---- ids ---- */

static void fill(uint32_t count, uint32_t kinds, uint32_t loop)
{
    for (uint32_t i = 0; i < count; i++)
        ids[i] = loop && i >= loop && chance() % 50 ? ids[i - loop] : chance() % kinds + 1;
}

static uint64_t there_and_back(uint32_t count)
{
    uint32_t width = tbd_id_bits(ids, count);
    uint64_t taken = tbd_condense(&tables, ids, count, width, bits);

    assert_true(taken + sizeof(struct tbd_condensed_chunk) + 8 <= TBD_CHUNK_BYTES);
    assert_true(tbd_expand(&tables, bits, taken, width, back, count));
    assert_memory_equal(ids, back, count * sizeof(*ids));
    return taken;
}

static void ids_come_back(void **unused)
{
    (void)unused;
    for (uint32_t round = 0; round < 200; round++) {
        uint32_t count = 1 + chance() % (round % 10 ? 3000 : TBD_CONDENSED_IDS);

        fill(count, 1u << chance() % 31, chance() % 40);
        there_and_back(count);
    }
}

static void the_worst_fit_and_the_best_are_small(void **unused)
{
    (void)unused;
    for (uint32_t i = 0; i < TBD_CONDENSED_IDS; i++)
        ids[i] = UINT32_MAX - i;
    assert_in_range(there_and_back(TBD_CONDENSED_IDS), 1, TBD_CHUNK_BYTES);
    for (uint32_t i = 0; i < TBD_CONDENSED_IDS; i++)
        ids[i] = 1 + i % 7;
    assert_in_range(there_and_back(TBD_CONDENSED_IDS), 1, 200);
}

static void forged_bits_are_refused_or_ids(void **unused)
{
    uint32_t refused = 0;

    (void)unused;
    for (uint32_t round = 0; round < 3000; round++) {
        uint32_t count = 1 + chance() % 500;
        uint64_t taken;

        fill(count, 100, 7);
        taken = tbd_condense(&tables, ids, count, 7, bits);
        bits[chance() % taken] ^= (uint8_t)(1u << chance() % 8);
        if (tbd_expand(&tables, bits, chance() % 4 ? taken : taken / 2, 1 + chance() % 32, back,
                       count))
            for (uint32_t i = 0; i < count; i++)
                assert_int_not_equal(back[i], 0);
        else
            refused++;
    }
    assert_in_range(refused, 100, 2999);
}

/* ---- the memory ---- */

static char folder[FOLDER_BYTES];
static int dir;
static uint8_t *memory;
static size_t memory_bytes;
static uint64_t next, newest, number;

static struct tbd_crash *crash(void)
{
    return (struct tbd_crash *)(memory + AREA_AT);
}

static uint32_t *ring(void)
{
    return (uint32_t *)(memory + AREA_AT + STRIDE);
}

static struct tbd_condensed *condensed(void)
{
    return (struct tbd_condensed *)(memory + AREA_AT + TBD_CRASH_TABLES * STRIDE);
}

static uint8_t *chunks(void)
{
    return (uint8_t *)condensed() + TBD_CHUNKS_AT;
}

static int make(void **unused)
{
    uint64_t beside = tbd_condensed_rings(CHUNKS) * (CHUNKS + TBD_CONDENSED_MORE);
    uint32_t areas = TBD_CRASH_TABLES + (uint32_t)(beside / AREA + 1);
    struct tbd_block_def *def;

    (void)unused;
    memory_bytes = AREA_AT + areas * STRIDE;
    memory = calloc(1, memory_bytes);
    if (!memory || !folder_make(folder, "condensed"))
        return -1;
    dir = tbd_dir_open(folder);
    *(struct tbd_stream_head *)memory = (struct tbd_stream_head){ .magic = TBD_STREAM_MAGIC,
                                                                  .version = TBD_STREAM_VERSION,
                                                                  .defs_offset = (uint64_t)PAGE * 2,
                                                                  .areas_offset = AREA_AT,
                                                                  .area_bytes = AREA,
                                                                  .area_count = areas,
                                                                  .def_capacity = DEFS,
                                                                  .def_count = DEFS };
    def = (struct tbd_block_def *)(memory + (uint64_t)PAGE * 2);
    for (unsigned i = 0; i < DEFS; i++)
        def[i] = (struct tbd_block_def){ .start = i + 1, .code_bytes = 1 };
    crash()->thread_count = 1;
    crash()->ring_bytes = AREA;
    crash()->condensed_bytes = CHUNKS;
    condensed()->lap = 1;
    next = newest = number = 0;
    return dir < 0 ? -1 : 0;
}

static int take_away(void **unused)
{
    (void)unused;
    close(dir);
    free(memory);
    return folder_remove(folder) ? 0 : -1;
}

/* As the engine does it: `count` ids of one value, or chance for 0. */
static void add(uint64_t lap, uint32_t count, uint32_t id)
{
    struct tbd_condensed_chunk chunk = {
        .number = number + 1, .previous = newest, .lap = lap, .count = count, .id_bits = 4
    };

    number++;
    if (CHUNKS - next < TBD_CHUNK_BYTES)
        next = 0;
    for (uint32_t i = 0; i < count; i++)
        ids[i] = id ? id : chance() % DEFS + 1;
    chunk.bytes =
        (uint32_t)(sizeof(chunk) +
                   tbd_condense(&tables, ids, count, 4, chunks() + next + sizeof(chunk)) + 7) &
        ~7u;
    memcpy(chunks() + next, &chunk, sizeof(chunk));
    condensed()->newest = newest = next + 1;
    next += chunk.bytes;
}

/* The starts of the thread's blocks, each run of equal ones once. */
static void expect(const char *runs, uint64_t count, uint32_t flags)
{
    struct tbd_crash_dump dump;
    struct tbd_error why;
    char found[64] = "";
    size_t used = 0;

    assert_int_equal(tbd_crash_write(dir, memory, memory_bytes, 42), TBD_OK);
    assert_int_equal(tbd_crash_open(folder, &dump, &why), TBD_OK);
    for (uint64_t i = 0; i < dump.head->entry_count && used + 1 < sizeof(found); i++)
        if (!i || dump.entries[i] != dump.entries[i - 1])
            found[used++] = (char)('0' + dump.blocks[dump.entries[i]].start);
    assert_string_equal(found, runs);
    assert_int_equal(dump.head->entry_count, count);
    assert_int_equal(dump.threads[0].flags, flags);
    tbd_crash_close(&dump);
}

static void laps_come_before_the_ring(void **unused)
{
    (void)unused;
    add(1, 1000, 1);
    add(1, 500, 2);
    add(2, 700, 3);
    condensed()->lap = 3;
    ring()[0] = ring()[1] = 4;
    expect("1234", 2202, 0);
    for (unsigned i = 3; i < 13; i++) /* which is the end of lap 2 */
        ring()[i] = 3;
    expect("1234", 2202, 0);
}

/* Killed before the ring's next lap has begun, at each of its three moments. */
static void no_lap_is_there_twice(void **unused)
{
    (void)unused;
    add(1, 1000, 1);
    condensed()->lap = 2;
    for (unsigned i = 0; i < AREA / 4 - 1; i++)
        ring()[i] = 2;
    expect("12", 1000 + AREA / 4 - 1, 0);
    add(2, AREA / 4 - 1, 2);
    expect("12", 1000 + AREA / 4 - 1, 0);
    ring()[0] = 0;
    assert_false(tbd_crash_is_empty(memory, memory_bytes));
    expect("12", 1000 + AREA / 4 - 1, 0);
    condensed()->lap = 3;
    expect("12", 1000 + AREA / 4 - 1, 0);
}

/* A lap of one id, in its place. */
static void fill_lap(uint64_t lap, uint32_t id, uint32_t count)
{
    uint32_t place = tbd_lap_place(condensed()->turned_from, lap);
    uint32_t *at =
        place ? (uint32_t *)((uint8_t *)condensed() + tbd_lap_at(CHUNKS, place)) : ring();

    for (uint32_t i = 0; i < count; i++)
        at[i] = id;
    at[count] = 0;
}

static void laps_that_wait_are_there_whoever_has_died(void **unused)
{
    enum { LAP = AREA / 4 - 1 };

    (void)unused;
    _Static_assert(AREA == TBD_LAP_BYTES, "the ring of this test takes turns");
    condensed()->turned_from = 1;
    for (uint32_t lap = 1; lap < 4; lap++)
        fill_lap(lap, lap, LAP);
    condensed()->lap = 4;
    fill_lap(4, 4, 3);
    expect("1234", 3 * LAP + 3, 0); /* no chunk yet */
    fill_lap(4, 4, LAP);
    expect("1234", 4 * LAP, 0); /* killed before the next lap has begun */
    add(1, LAP, 1);
    expect("1234", 4 * LAP, 0);
    fill_lap(5, 5, 0);
    expect("1234", 4 * LAP, 0); /* the first place is empty, and the lap the same */
    condensed()->lap = 5;
    expect("1234", 4 * LAP, 0);
    fill_lap(5, 5, 2);
    expect("12345", 4 * LAP + 2, 0);
    add(2, LAP, 2); /* a lap in a chunk is not there twice */
    expect("12345", 4 * LAP + 2, 0);
    add(3, LAP, 3);
    add(4, LAP, 4);
    expect("12345", 4 * LAP + 2, 0);
    fill_lap(3, 7, LAP); /* nobody looks at those places any more */
    fill_lap(2, 7, LAP);
    expect("12345", 4 * LAP + 2, 0);
    condensed()->lap = 7; /* laps 5 and 6 wait */
    fill_lap(5, 5, LAP);
    fill_lap(6, 6, LAP);
    fill_lap(7, 7, 1);
    expect("1234567", 6 * LAP + 1, 0);
    condensed()->turned_from = 7; /* the ring has changed its length since: it lies in place 0 */
    fill_lap(7, 7, 1);
    expect("123457", 5 * LAP - 1, 0); /* what the second place has is the 0 after it */
}

static void what_is_being_overwritten_is_left_out(void **unused)
{
    (void)unused;
    for (uint32_t i = 0; i < 7; i++)
        add(i + 1, 1000, i + 1);
    condensed()->lap = 8;
    ring()[0] = 8;
    expect("12345678", 7001, 0);
    condensed()->writing_to = 1; /* a bit of the first */
    expect("2345678", 6001, TBD_CRASH_HAS_OLDER);
    condensed()->writing_to = TBD_CHUNK_BYTES; /* all of them: the newest one is there no more */
    expect("8", 1, 0);
}

static void the_ring_of_bytes_comes_round(void **unused)
{
    uint64_t all = 0;

    (void)unused;
    for (uint32_t i = 0; i < 300; i++) {
        struct tbd_crash_dump dump;
        struct tbd_error why;
        uint32_t count = 1 + chance() % TBD_CONDENSED_IDS;

        add(i + 1, count, 0);
        all += count;
        condensed()->lap = i + 2;
        ring()[0] = 1 + i % DEFS;
        if (i % 10)
            continue;
        assert_int_equal(tbd_crash_write(dir, memory, memory_bytes, 42), TBD_OK);
        assert_int_equal(tbd_crash_open(folder, &dump, &why), TBD_OK);
        assert_int_equal(dump.threads[0].flags, dump.head->entry_count < all + 1);
        if (all > 5 * CHUNKS)
            assert_in_range(dump.head->entry_count, CHUNKS, all);
        for (uint32_t k = 0; k < count; k++)
            assert_int_equal(
                dump.blocks[dump.entries[dump.head->entry_count - 1 - count + k]].start, ids[k]);
        tbd_crash_close(&dump);
    }
}

static uint32_t start_of(const struct tbd_crash_dump *dump, uint64_t entry)
{
    uint32_t block = UINT32_MAX;

    assert_int_equal(tbd_crash_older(dump, 0, entry, 1, &block), TBD_OK);
    assert_in_range(block, 0, dump->head->block_count - 1);
    return (uint32_t)dump->blocks[block].start;
}

/* More than is expanded stays as it is, and is found there; nothing else of it is believed than that it has its length. */
static void many_chunks_stay_condensed(void **unused)
{
    enum { KEPT = 10, EXPANDED = TBD_CONDENSED_ENTRIES / TBD_CONDENSED_IDS };
    static uint32_t several[3 * TBD_CONDENSED_IDS];
    struct tbd_crash_dump dump;
    struct tbd_error why;
    bool wanted[DEFS] = { false };
    uint64_t at;

    (void)unused;
    for (uint32_t i = 0; i < KEPT + EXPANDED; i++)
        add(i + 1, TBD_CONDENSED_IDS, 1 + i % 7);
    condensed()->lap = number + 1;
    ring()[0] = 8;
    assert_int_equal(tbd_crash_write(dir, memory, memory_bytes, 42), TBD_OK);
    assert_int_equal(tbd_crash_open(folder, &dump, &why), TBD_OK);
    assert_int_equal(dump.head->entry_count, TBD_CONDENSED_ENTRIES + 1);
    assert_int_equal(dump.head->chunk_count, KEPT);
    assert_int_equal(dump.threads[0].older, (uint64_t)KEPT * TBD_CONDENSED_IDS);
    assert_int_equal(dump.threads[0].flags, 0);
    for (uint32_t i = 0; i < KEPT; i++) {
        assert_int_equal(start_of(&dump, (uint64_t)i * TBD_CONDENSED_IDS), 1 + i % 7);
        assert_int_equal(start_of(&dump, (i + 1ull) * TBD_CONDENSED_IDS - 1), 1 + i % 7);
    }
    assert_int_equal(tbd_crash_older(&dump, 0, 100, 3 * TBD_CONDENSED_IDS, several), TBD_OK);
    for (uint32_t i = 0; i < 3 * TBD_CONDENSED_IDS; i++)
        assert_int_equal(dump.blocks[several[i]].start, 1 + (100 + i) / TBD_CONDENSED_IDS);
    for (uint32_t i = 0; i < dump.head->block_count; i++)
        wanted[i] = dump.blocks[i].start == 2;
    at = dump.threads[0].older;
    assert_int_equal(tbd_crash_find_older(&dump, 0, wanted, &at), TBD_OK);
    assert_int_equal(at, 9 * TBD_CONDENSED_IDS - 1);
    at = 8 * TBD_CONDENSED_IDS;
    assert_int_equal(tbd_crash_find_older(&dump, 0, wanted, &at), TBD_OK);
    assert_int_equal(at, 2 * TBD_CONDENSED_IDS - 1);
    at = TBD_CONDENSED_IDS;
    assert_int_equal(tbd_crash_find_older(&dump, 0, wanted, &at), TBD_NOTFOUND);
    ((uint8_t *)(uintptr_t)dump.older)[dump.chunks[3].offset] ^= 0xff;
    assert_int_equal(tbd_crash_older(&dump, 0, 3 * TBD_CONDENSED_IDS, 1, several), TBD_CORRUPT);
    assert_int_equal(start_of(&dump, 4 * TBD_CONDENSED_IDS), 5);
    tbd_crash_close(&dump);
}

static void what_cannot_be_is_left_out_or_ends_it(void **unused)
{
    (void)unused;
    for (uint32_t round = 0; round < 300; round++) {
        struct tbd_crash_dump dump;
        struct tbd_error why;

        for (uint32_t i = 0; i < 4; i++)
            add(number + 1, 1 + chance() % 300, 0);
        condensed()->lap = number + 1;
        ring()[0] = 5;
        for (uint32_t i = 0; i < 3; i++) {
            uint8_t *at = chance() % 2
                              ? (uint8_t *)condensed() + chance() % sizeof(struct tbd_condensed)
                              : chunks() + (next + CHUNKS - 1 - chance() % 400) % CHUNKS;

            *at = (uint8_t)chance();
        }
        assert_int_equal(tbd_crash_write(dir, memory, memory_bytes, 42), TBD_OK);
        assert_int_equal(tbd_crash_open(folder, &dump, &why), TBD_OK);
        assert_true(dump.head->entry_count >= 1);
        tbd_crash_close(&dump);
    }
    crash()->condensed_at = UINT64_MAX - 7;
    expect("5", 1, 0);
    crash()->condensed_at = 0;
    crash()->condensed_bytes = UINT64_MAX - 7;
    expect("5", 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_come_back),
        cmocka_unit_test(the_worst_fit_and_the_best_are_small),
        cmocka_unit_test(forged_bits_are_refused_or_ids),
        cmocka_unit_test_setup_teardown(laps_come_before_the_ring, make, take_away),
        cmocka_unit_test_setup_teardown(no_lap_is_there_twice, make, take_away),
        cmocka_unit_test_setup_teardown(laps_that_wait_are_there_whoever_has_died, make, take_away),
        cmocka_unit_test_setup_teardown(what_is_being_overwritten_is_left_out, make, take_away),
        cmocka_unit_test_setup_teardown(the_ring_of_bytes_comes_round, make, take_away),
        cmocka_unit_test_setup_teardown(many_chunks_stay_condensed, make, take_away),
        cmocka_unit_test_setup_teardown(what_cannot_be_is_left_out_or_ends_it, make, take_away),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
