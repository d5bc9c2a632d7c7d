// SPDX-License-Identifier: MIT
// links: tbd_format tbd_base
/* From the memory of a program that died to the file `crash`, and back: what was entered last, in order, whatever the rings and the
 * file look like. */
#include "base/hash.h"
#include "format/files/crash_file.h"
#include "format/files/trace_dir.h"

#include "folder.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { RINGS = 3, DEFS = 8, PAGE = 4096, IDS = TBD_CRASH_RING_BYTES / 4 };
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

static uint32_t *ring(unsigned n)
{
    return (uint32_t *)(memory + head()->areas_offset + (1 + n) * (AREA + PAGE));
}

/* Blocks 1 .. DEFS begin at 0x1000 * id. */
static int make(void **state)
{
    uint64_t defs = PAGE * 2, areas = PAGE * 4;
    struct tbd_block_def *def;

    (void)state;
    bytes = areas + (RINGS + 1) * (AREA + PAGE);
    memory = aligned_alloc(PAGE, bytes); /* as the stream's memory is */
    if (!memory || !folder_make(folder, "rings"))
        return -1;
    dir = tbd_dir_open(folder);
    memset(memory, 0, bytes);
    *head() = (struct tbd_stream_head){ .magic = TBD_STREAM_MAGIC,
                                        .version = TBD_STREAM_VERSION,
                                        .defs_offset = defs,
                                        .areas_offset = areas,
                                        .area_bytes = AREA,
                                        .area_count = RINGS + 1,
                                        .def_capacity = DEFS,
                                        .def_count = DEFS };
    def = (struct tbd_block_def *)(memory + defs);
    for (unsigned i = 0; i < DEFS; i++)
        def[i] = (struct tbd_block_def){ .start = 0x1000 * (i + 1), .code_bytes = i + 1 };
    crash()->thread_count = RINGS - 1;
    crash()->ring_bytes = AREA;
    return dir < 0 ? -1 : 0;
}

static int take_away(void **state)
{
    (void)state;
    close(dir);
    free(memory);
    return folder_remove(folder) ? 0 : -1;
}

static enum tbd_status write_and_open(struct tbd_crash_dump *out)
{
    struct tbd_error why;
    enum tbd_status status = tbd_crash_write(dir, memory, bytes, 42);

    *out = (struct tbd_crash_dump){ .data = NULL };
    return status ? status : tbd_crash_open(folder, out, &why);
}

static uint64_t start_of(const struct tbd_crash_dump *dump, uint64_t entry)
{
    return dump->blocks[dump->entries[entry]].start;
}

/* ---- rings ---- */

static void a_ring_that_is_not_full_begins_at_its_start(void **state)
{
    struct tbd_crash_dump dump;

    (void)state;
    for (unsigned i = 0; i < 5; i++)
        ring(0)[i] = i + 2;
    crash()->tids[0] = 77;
    assert_int_equal(write_and_open(&dump), TBD_OK);
    assert_int_equal(dump.head->thread_count, 1); /* the other has run nothing */
    assert_int_equal(dump.head->pid, 42);
    assert_int_equal(dump.threads[0].tid, 77);
    assert_int_equal(dump.threads[0].flags, 0);
    assert_int_equal(dump.threads[0].count, 5);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(start_of(&dump, i), 0x1000 * (i + 2));
    tbd_crash_close(&dump);
}

static void a_full_ring_goes_on_after_the_gap(void **state)
{
    struct tbd_crash_dump dump;

    (void)state;
    for (unsigned i = 0; i < IDS; i++)
        ring(1)[i] = i % DEFS + 1;
    ring(1)[1000] = 0;
    crash()->tids[1] = 78;
    assert_int_equal(write_and_open(&dump), TBD_OK);
    assert_int_equal(dump.head->thread_count, 1);
    assert_int_equal(dump.threads[0].flags, TBD_CRASH_HAS_OLDER);
    assert_int_equal(dump.threads[0].count, IDS - 1);
    assert_int_equal(start_of(&dump, IDS - 2), 0x1000 * (999 % DEFS + 1));
    assert_int_equal(start_of(&dump, 0), 0x1000 * (1001 % DEFS + 1));
    assert_int_equal(start_of(&dump, IDS - 1002), 0x1000 * ((IDS - 1) % DEFS + 1));
    assert_int_equal(start_of(&dump, IDS - 1001), 0x1000);
    tbd_crash_close(&dump);
}

/* Nothing follows the gap there: only the lap's number tells whether there were earlier ones. */
static void a_lap_that_is_just_over_is_the_first_or_not(void **state)
{
    static const struct {
        uint32_t lap, flags;
    } cases[] = {
        { TBD_CRASH_FIRST_LAP, 0 },
        { TBD_CRASH_FIRST_LAP + 1, TBD_CRASH_HAS_OLDER },
        { 0, TBD_CRASH_HAS_OLDER },
    };
    struct tbd_crash_dump dump;

    (void)state;
    for (unsigned i = 0; i + 1 < IDS; i++)
        ring(0)[i] = i % DEFS + 1;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        crash()->laps[0] = cases[i].lap;
        assert_int_equal(write_and_open(&dump), TBD_OK);
        assert_int_equal(dump.threads[0].count, IDS - 1);
        assert_int_equal(dump.threads[0].flags, cases[i].flags);
        tbd_crash_close(&dump);
        assert_int_equal(unlinkat(dir, TBD_CRASH_FILE, 0), 0);
    }
}

static void a_block_has_the_module_that_was_there_when_it_was_made(void **state)
{
    struct tbd_crash_module *module = crash()->modules;
    struct tbd_crash_dump dump;

    (void)state;
    module[0] = (struct tbd_crash_module){ 0x1000, 0x4000, 0, 1, 0, "/first" };
    module[1] = (struct tbd_crash_module){ 0x2000, 0x4000, 0, 3, 0, "/second" };
    crash()->module_count = 2;
    ring(0)[0] = 1;
    ring(0)[1] = 2;
    ring(0)[2] = 3;
    ring(0)[3] = 4;
    assert_int_equal(write_and_open(&dump), TBD_OK);
    assert_int_equal(dump.blocks[0].module, 0);
    assert_int_equal(dump.blocks[1].module, 0); /* the second came after it */
    assert_int_equal(dump.blocks[2].module, 1);
    assert_int_equal(dump.blocks[3].module, TBD_NO_MODULE);
    assert_string_equal(dump.modules[1].path, "/second");
    tbd_crash_close(&dump);
}

/* ---- hostile memory ---- */

static void scribbled_memory_is_left_out_or_refused(void **state)
{
    struct tbd_crash_dump dump;
    uint64_t seed = 17;

    (void)state;
    ring(0)[0] = DEFS + 1; /* no such block */
    ring(0)[1] = 1;
    crash()->thread_count = 1u << 30;
    memset(crash()->modules[0].path, 'x', TBD_CRASH_PATH_BYTES);
    crash()->modules[0].end = UINT64_MAX;
    crash()->module_count = 1;
    assert_int_equal(write_and_open(&dump), TBD_OK);
    assert_int_equal(dump.head->entry_count, 1);
    tbd_crash_close(&dump);
    for (unsigned i = 0; i < 600; i++) {
        uint8_t *at = memory + tbd_hash64_mix(seed += i) % sizeof(struct tbd_stream_head);
        uint8_t before = *at;

        *at = (uint8_t)tbd_hash64_mix(seed);
        if (!write_and_open(&dump))
            tbd_crash_close(&dump);
        *at = before;
    }
    crash()->module_count = TBD_CRASH_MODULES + 1;
    assert_int_equal(write_and_open(&dump), TBD_CORRUPT);
}

static void rings_that_nobody_used_are_empty(void **state)
{
    (void)state;
    assert_true(tbd_crash_is_empty(memory, bytes));
    ring(1)[0] = 3;
    assert_false(tbd_crash_is_empty(memory, bytes));
    ring(1)[0] = 0;
    ring(RINGS - 1)[0] = 3; /* the one that nobody reads */
    assert_true(tbd_crash_is_empty(memory, bytes));
    assert_false(tbd_crash_is_empty(memory, 100)); /* it is no stream with rings */
}

/* The code of a block that ran comes with it, if the stream has it. */
static void code_comes_along(void **state)
{
    struct tbd_block_def *def = (struct tbd_block_def *)(memory + head()->defs_offset);
    struct tbd_crash_dump dump;

    (void)state;
    head()->heap_offset = PAGE;
    head()->heap_capacity = PAGE;
    memcpy(memory + PAGE + 100, "\x90\x90\xc3", 3);
    def[2].code_offset = 100;            /* block 3: 3 bytes */
    def[4].code_offset = PAGE - 4;       /* block 5: one too many */
    def[5].code_offset = UINT64_MAX - 2; /* block 6 */
    for (unsigned i = 0; i < 3; i++)
        ring(0)[i] = (const uint32_t[]){ 3, 5, 6 }[i];
    assert_int_equal(write_and_open(&dump), TBD_OK);
    assert_int_equal(dump.head->block_count, 3);
    assert_int_equal(dump.head->code_bytes, 3);
    assert_int_equal(dump.blocks[0].code_offset, 0);
    assert_memory_equal(dump.code, "\x90\x90\xc3", 3);
    assert_int_equal(dump.blocks[1].code_offset, TBD_NO_CODE);
    assert_int_equal(dump.blocks[2].code_offset, TBD_NO_CODE);
    tbd_crash_close(&dump);
}

/* ---- hostile files ---- */

static void put(const uint8_t *data, size_t size)
{
    assert_int_equal(tbd_dir_write(dir, TBD_CRASH_FILE, data, size), TBD_OK);
}

/* As tbd_crash_write() makes it, so that only the contents are wrong. */
static void put_with_sum(uint8_t *data, size_t size)
{
    struct tbd_crash_head *file = (struct tbd_crash_head *)data;

    file->checksum = 0;
    file->checksum =
        tbd_hash64(file, sizeof(*file)) ^ tbd_hash64(data + sizeof(*file), size - sizeof(*file));
    put(data, size);
}

static void a_damaged_file_is_refused(void **state)
{
    struct tbd_crash_dump dump, other;
    struct tbd_error why;
    uint8_t *copy;

    (void)state;
    for (unsigned i = 0; i < 20; i++)
        ring(0)[i] = i % DEFS + 1;
    crash()->modules[0] = (struct tbd_crash_module){ 0x1000, 0x4000, 0, 1, 0, "/first" };
    crash()->module_count = 1;
    assert_int_equal(write_and_open(&dump), TBD_OK);
    copy = malloc(dump.bytes);
    for (size_t i = 0; i < dump.bytes; i += 3) {
        memcpy(copy, dump.data, dump.bytes);
        copy[i] ^= 0x40;
        put(copy, dump.bytes);
        assert_int_equal(tbd_crash_open(folder, &other, &why), TBD_CORRUPT);
    }
    for (size_t i = 0; i < dump.bytes; i += 7) {
        put(dump.data, i);
        assert_int_equal(tbd_crash_open(folder, &other, &why), TBD_CORRUPT);
    }
    /* with a checksum that is right: whatever is accepted can be read */
    for (size_t i = 0; i < dump.bytes; i++) {
        memcpy(copy, dump.data, dump.bytes);
        copy[i] ^= 0x40;
        put_with_sum(copy, dump.bytes);
        if (tbd_crash_open(folder, &other, &why))
            continue;
        for (uint64_t n = 0; n < other.head->entry_count; n++)
            assert_true(start_of(&other, n) != 1);
        tbd_crash_close(&other);
    }
    free(copy);
    tbd_crash_close(&dump);
}

/* A file of 16 GiB, all hole: what it is shows in its first bytes, and no error of the system is blamed. */
static void a_large_file_is_refused_by_its_head(void **state)
{
    struct tbd_crash_head file = { .magic = 1, .major = TBD_CRASH_MAJOR };
    struct tbd_crash_dump dump;
    struct tbd_error why;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        int fd;

        put((const uint8_t *)&file, sizeof(file));
        fd = openat(dir, TBD_CRASH_FILE, O_WRONLY | O_CLOEXEC);
        assert_int_equal(ftruncate(fd, (off_t)16 << 30), 0);
        close(fd);
        assert_int_equal(tbd_crash_open(folder, &dump, &why), TBD_CORRUPT);
        assert_non_null(strstr(why.detail, i == 0 ? "not a crash dump" : "not as long as it says"));
        file.magic = TBD_CRASH_MAGIC;
    }
}

static void another_folder_is_no_dump(void **state)
{
    struct tbd_crash_dump dump;
    struct tbd_error why;

    (void)state;
    assert_int_equal(tbd_crash_open(folder, &dump, &why), TBD_NOTRACE);
    assert_int_equal(tbd_crash_open("/nowhere", &dump, &why), TBD_NOTRACE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_ring_that_is_not_full_begins_at_its_start, make,
                                        take_away),
        cmocka_unit_test_setup_teardown(a_full_ring_goes_on_after_the_gap, make, take_away),
        cmocka_unit_test_setup_teardown(a_lap_that_is_just_over_is_the_first_or_not, make,
                                        take_away),
        cmocka_unit_test_setup_teardown(a_block_has_the_module_that_was_there_when_it_was_made,
                                        make, take_away),
        cmocka_unit_test_setup_teardown(scribbled_memory_is_left_out_or_refused, make, take_away),
        cmocka_unit_test_setup_teardown(rings_that_nobody_used_are_empty, make, take_away),
        cmocka_unit_test_setup_teardown(code_comes_along, make, take_away),
        cmocka_unit_test_setup_teardown(a_damaged_file_is_refused, make, take_away),
        cmocka_unit_test_setup_teardown(a_large_file_is_refused_by_its_head, make, take_away),
        cmocka_unit_test_setup_teardown(another_folder_is_no_dump, make, take_away),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
