// SPDX-License-Identifier: MIT
// links: tbd_format tbd_base
/* What was recorded beside a ring, from the memory of a program that died to the file `crash`: each slot with the entry that came next,
 * and nothing of laps that are lost, or that cannot be. */
#include "format/files/crash_file.h"
#include "format/files/trace_dir.h"

#include "folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { DEFS = 4, PAGE = 4096, PLACES = TBD_CRASH_RING_BYTES / 4, SLOTS = 8, LAST = 10, LAP = 5 };
#define AREA ((uint64_t)TBD_CRASH_RING_BYTES)

static char folder[FOLDER_BYTES];
static int dir;
static uint8_t *memory;
static size_t bytes;

static struct tbd_stream_head *head(void)
{
    return (struct tbd_stream_head *)memory;
}

static struct tbd_crash *crash(void)
{
    return (struct tbd_crash *)(memory + head()->areas_offset);
}

static struct tbd_crash_value *slot(unsigned n)
{
    return (struct tbd_crash_value *)(memory + head()->areas_offset +
                                      TBD_CRASH_TABLES * (AREA + PAGE)) +
           n;
}

static uint64_t moment(uint32_t lap, uint32_t place, unsigned kind)
{
    return (uint64_t)lap << TBD_VALUE_LAP_SHIFT | (uint64_t)place * 4 | kind;
}

/* One thread, whose ring has come round: places 0 to LAST - 1 are of lap LAP, those after LAST of the one before. */
static int make(void **state)
{
    uint64_t defs = PAGE * 2, areas = PAGE * 4;
    uint32_t *ring;

    (void)state;
    bytes = areas + (TBD_CRASH_TABLES + 17) * (AREA + PAGE);
    memory = aligned_alloc(PAGE, bytes); /* as the stream's memory is */
    if (!memory || !folder_make(folder, "values"))
        return -1;
    dir = tbd_dir_open(folder);
    memset(memory, 0, bytes);
    *head() = (struct tbd_stream_head){ .magic = TBD_STREAM_MAGIC,
                                        .version = TBD_STREAM_VERSION,
                                        .defs_offset = defs,
                                        .areas_offset = areas,
                                        .area_bytes = AREA,
                                        .area_count = TBD_CRASH_TABLES + 17,
                                        .def_capacity = DEFS,
                                        .def_count = DEFS };
    crash()->thread_count = 1;
    crash()->ring_bytes = AREA;
    crash()->value_slots = SLOTS;
    crash()->laps[0] = LAP;
    ring = (uint32_t *)(memory + areas + AREA + PAGE);
    for (unsigned i = 0; i < PLACES - 1; i++)
        ring[i] = i % DEFS + 1;
    ring[LAST] = 0;
    return dir < 0 ? -1 : 0;
}

static int take_away(void **state)
{
    (void)state;
    close(dir);
    free(memory);
    return folder_remove(folder) ? 0 : -1;
}

static void write_and_open(struct tbd_crash_dump *out)
{
    struct tbd_error why;

    assert_int_equal(tbd_crash_write(dir, memory, bytes, 42), TBD_OK);
    assert_int_equal(tbd_crash_open(folder, out, &why), TBD_OK);
}

/* CRASH_VALUES-2 */
static void a_slot_has_the_entry_that_came_next(void **state)
{
    const uint64_t older = PLACES - LAST - 2; /* entries of the lap before */
    struct tbd_crash_dump dump;

    (void)state;
    slot(0)->moment = moment(LAP, 3, TBD_VALUE_REGISTERS);
    slot(1)->moment = moment(LAP, LAST, TBD_VALUE_CALL);
    slot(2)->moment = moment(LAP - 1, LAST - 1, TBD_VALUE_REGISTERS); /* written over */
    slot(3)->moment = moment(LAP - 1, LAST + 1, TBD_VALUE_REGISTERS); /* the oldest entry */
    slot(4)->moment = moment(LAP - 1, LAST + 7, TBD_VALUE_REGISTERS);
    slot(5)->moment = moment(LAP - 1, PLACES - 1, TBD_VALUE_BYTES); /* the next lap's first */
    slot(6)->moment = moment(LAP - 2, PLACES - 5, TBD_VALUE_REGISTERS);
    slot(7)->moment = 0;
    crash()->value_next[0] = 2 + SLOTS; /* slot 2 is the oldest */
    write_and_open(&dump);
    assert_int_equal(dump.head->value_count, 5);
    assert_int_equal(dump.values[0].entry, 0);
    assert_int_equal(dump.values[1].entry, 6);
    assert_int_equal(dump.values[2].entry, older);
    assert_int_equal(dump.values[2].kind, TBD_VALUE_BYTES);
    assert_int_equal(dump.values[3].entry, older + 3);
    assert_int_equal(dump.values[4].entry, older + LAST);
    assert_int_equal(dump.values[4].entry, dump.threads[0].count);
    tbd_crash_close(&dump);
}

/* Copies of memory have slots of their own, and come after the other values of their moment. */
static void copies_of_memory_come_in_order(void **state)
{
    struct tbd_crash_value *copies = slot(SLOTS * TBD_CRASH_RINGS);
    struct tbd_crash_dump dump;

    (void)state;
    slot(0)->moment = moment(LAP, 3, TBD_VALUE_REGISTERS);
    slot(1)->moment = moment(LAP, 5, TBD_VALUE_CALL);
    crash()->value_next[0] = 2;
    crash()->memory_slots = 4;
    crash()->memory_next = 5; /* copy 1 is the oldest */
    copies[1].moment = moment(LAP, 3, TBD_VALUE_REGISTERS);
    copies[2].moment = moment(LAP, 3, TBD_VALUE_BYTES);
    copies[3].moment = moment(LAP - 3, 4, TBD_VALUE_BYTES); /* lost */
    copies[0].moment = moment(LAP, 6, TBD_VALUE_BYTES);
    write_and_open(&dump);
    assert_int_equal(dump.head->value_count, 5);
    for (unsigned i = 1; i < 5; i++)
        assert_true(dump.values[i].entry >= dump.values[i - 1].entry);
    assert_int_equal(dump.values[1].kind, TBD_VALUE_REGISTERS);
    assert_int_equal(dump.values[2].kind, TBD_VALUE_BYTES);
    assert_int_equal(dump.values[3].kind, TBD_VALUE_CALL);
    tbd_crash_close(&dump);
    crash()->memory_slots = UINT32_MAX; /* more than there can be */
    write_and_open(&dump);
    assert_int_equal(dump.head->value_count, 2);
    tbd_crash_close(&dump);
}

static void what_cannot_be_is_left_out(void **state)
{
    struct tbd_crash_dump dump;

    (void)state;
    for (unsigned i = 0; i < SLOTS; i++)
        slot(i)->moment = moment(LAP, i, TBD_VALUE_REGISTERS);
    slot(1)->moment = moment(LAP, 1, 0);
    slot(2)->is.registers.stack_bytes = TBD_VALUE_STACK + 1;
    slot(3)->moment = moment(LAP, 3, TBD_VALUE_CALL);
    slot(3)->is.call.range_count = TBD_VALUE_RANGES + 1;
    slot(4)->moment = moment(LAP, 4, TBD_VALUE_CALL);
    slot(4)->is.call.range_count = 2;
    slot(4)->is.call.ranges[0] = (struct tbd_value_range){ 0x1000, 400, 300 };
    slot(4)->is.call.ranges[1] = (struct tbd_value_range){ 0x2000, 400, 300 };
    slot(5)->moment = moment(LAP, 5, TBD_VALUE_BYTES);
    slot(5)->is.more.count = TBD_VALUE_MORE_BYTES + 1;
    slot(6)->moment = moment(LAP, LAST + 1, TBD_VALUE_REGISTERS); /* not entered yet */
    write_and_open(&dump);
    assert_int_equal(dump.head->value_count, 2);
    tbd_crash_close(&dump);
    crash()->values_at = 1ull << 40;
    write_and_open(&dump);
    assert_int_equal(dump.head->value_count, 0);
    tbd_crash_close(&dump);
    crash()->values_at = 0;
    crash()->value_slots = UINT32_MAX;
    write_and_open(&dump);
    assert_int_equal(dump.head->value_count, 0);
    tbd_crash_close(&dump);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_slot_has_the_entry_that_came_next, make, take_away),
        cmocka_unit_test_setup_teardown(copies_of_memory_come_in_order, make, take_away),
        cmocka_unit_test_setup_teardown(what_cannot_be_is_left_out, make, take_away),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
