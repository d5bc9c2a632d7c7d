// SPDX-License-Identifier: MIT
// links: tbd_hooks_host
/* The producer's side of a stream, with a consumer in the test: nothing lost, nothing out of order,
 * chunks end where something is due. */
#include "hooks/stream/ring.h"

#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static struct tbd_ring ring;
static struct tbd_thread *thread;

static const struct tbd_ring_config config = {
    .chunks = 4,
    .def_capacity = 8,
    .heap_capacity = 8192,
    .window_blocks = 100,
    .hook_set = TBD_HOOKS_PLAY,
    .pid = 1,
    .areas = 1,
    .area_bytes = TBD_OPERANDS_BYTES + 8192,
};

static int set_up(void **state)
{
    int fd = memfd_create("stream", 0);

    (void)state;
    thread = calloc(1, sizeof(*thread));
    if (tbd_ring_create(&ring, fd, &config) != TBD_OK || !tbd_ring_guard(&ring))
        return -1;
    close(fd);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    munmap((void *)TBD_STREAM_BASE, ring.bytes);
    free(thread);
    return 0;
}

/* ---- a consumer ---- */

static uint32_t taken;

static const struct tbd_chunk *chunk(uint32_t number)
{
    return &ring.head->chunks[number % config.chunks];
}

static const uint8_t *chunk_start(uint32_t number)
{
    return (const uint8_t *)ring.head + ring.head->chunks_offset +
           (uint64_t)chunk(number)->slot * TBD_CHUNK_STRIDE;
}

static uint32_t entry(uint32_t number, uint32_t index)
{
    uint32_t value;

    memcpy(&value, chunk_start(number) + chunk(number)->entries_offset + index * 4, 4);
    return value;
}

static const uint8_t *operands(uint32_t number)
{
    return chunk_start(number) + TBD_ENTRIES_BYTES + TBD_PAGE_SIZE;
}

static void release_all(void)
{
    while (taken != ring.head->published) {
        memset((void *)(uintptr_t)(chunk_start(taken) + chunk(taken)->entries_offset), 0,
               chunk(taken)->entry_count * 4u);
        taken++;
    }
    ring.head->released = taken;
}

/* What translated code does at a block's entry. */
static void enter(uint32_t id, size_t record)
{
    memcpy((void *)thread->entry_next, &id, 4);
    thread->entry_next += 4;
    memset((void *)thread->operand_next, (int)id, record);
    thread->operand_next += record;
}

static uint64_t space(void)
{
    const uint8_t *end = chunk_start(ring.number) + TBD_ENTRIES_BYTES;

    return ((uint64_t)(uintptr_t)end - thread->entry_next) / 4;
}

/* ---- tests ---- */

static void the_head_describes_the_file(void **state)
{
    (void)state;
    assert_int_equal(ring.head->magic, TBD_STREAM_MAGIC);
    assert_int_equal(ring.head->chunk_count, 4);
    assert_int_equal(ring.head->total_bytes, tbd_ring_bytes(&config));
    assert_int_equal(ring.head->defs_offset % TBD_PAGE_SIZE, 0);
    assert_int_equal(ring.head->chunks_offset % TBD_PAGE_SIZE, 0);
    assert_true(ring.head->heap_offset >=
                ring.head->defs_offset + 8 * sizeof(struct tbd_block_def));
}

static void the_entries_end_when_something_is_due(void **state)
{
    (void)state;
    tbd_ring_start(&ring, thread, 1000, 1100);
    assert_int_equal(space(), 100);
    for (unsigned i = 0; i < 60; i++)
        enter(1, 0);
    assert_int_equal(tbd_ring_time(&ring, thread), 1060);
    tbd_ring_turn(&ring, thread, 0);
    assert_int_equal(space(), 40);
    assert_int_equal(tbd_ring_time(&ring, thread), 1060);
    assert_int_equal(chunk(ring.number)->first_time, 1060);
    for (unsigned i = 0; i < 40; i++)
        enter(1, 0);
    assert_int_equal(space(), 0);
    assert_int_equal(tbd_ring_guard_sigsafe(&ring, thread->entry_next), TBD_GUARD_ENTRIES);
}

static void messages_take_entries_but_no_time(void **state)
{
    struct tbd_part part = { "hello", 5 };
    struct tbd_message head;

    (void)state;
    tbd_ring_start(&ring, thread, 0, 50);
    enter(3, 10);
    tbd_ring_send(&ring, thread, TBD_MSG_NOTE, &part, 1);
    enter(4, 0);
    assert_int_equal(tbd_ring_time(&ring, thread), 2);
    tbd_ring_turn(&ring, thread, TBD_CHUNK_ENDS_WINDOW);
    assert_int_equal(ring.head->published, 1);
    assert_int_equal(chunk(0)->entry_count, 3);
    assert_int_equal(chunk(0)->flags, TBD_CHUNK_ENDS_WINDOW);
    assert_int_equal(chunk(0)->operand_bytes, 10 + sizeof(head) + 5);
    assert_int_equal(entry(0, 0), 3);
    assert_int_equal(entry(0, 1), TBD_ENTRY_MESSAGE | TBD_MSG_NOTE);
    assert_int_equal(entry(0, 2), 4);
    memcpy(&head, operands(0) + 10, sizeof(head));
    assert_int_equal(head.kind, TBD_MSG_NOTE);
    assert_memory_equal(operands(0) + 10 + sizeof(head), "hello", 5);
}

static void a_message_that_does_not_fit_goes_into_the_next_chunk(void **state)
{
    static uint8_t big[TBD_MESSAGE_MAX_BYTES];
    struct tbd_part part = { big, sizeof(big) };

    (void)state;
    taken = 0;
    tbd_ring_start(&ring, thread, 0, TBD_TIME_NEVER);
    for (unsigned i = 0; i < 10; i++) {
        tbd_ring_send(&ring, thread, TBD_MSG_NOTE, &part, 1);
        release_all();
    }
    assert_int_equal(ring.head->published, 3); /* three fit into a megabyte */
    assert_int_equal(ring.messages, 1);
    assert_null(tbd_ring_reserve(&ring, thread, TBD_MSG_NOTE, TBD_MESSAGE_MAX_BYTES + 1));
}

static void a_message_after_the_last_block_still_fits(void **state)
{
    struct tbd_part part = { "x", 1 };

    (void)state;
    tbd_ring_start(&ring, thread, 0, 5);
    for (unsigned i = 0; i < 5; i++)
        enter(1, 0);
    tbd_ring_send(&ring, thread, TBD_MSG_NOTE, &part, 1);
    assert_int_equal(tbd_ring_time(&ring, thread), 5);
    assert_int_equal(ring.head->published, 1);
    assert_true(space() > 0);
}

static void turn_with_an_entry(void)
{
    enter(1, 0);
    tbd_ring_turn(&ring, thread, 0);
}

static void the_slot_given_back_last_is_filled_first(void **state)
{
    (void)state;
    taken = 0;
    tbd_ring_start(&ring, thread, 0, TBD_TIME_NEVER);
    turn_with_an_entry();
    /* a consumer that takes a chunk while the next one is filled */
    for (uint32_t n = 1; n < 10; n++) {
        assert_int_equal(chunk(n)->slot, n % 2);
        assert_int_equal(entry(n - 1, 0), 1);
        release_all();
        turn_with_an_entry();
    }
}

static void turn_and_count(unsigned *uses)
{
    uses[chunk(ring.number)->slot]++;
    turn_with_an_entry();
}

static void a_late_consumer_finds_all_slots_in_use_and_none_twice(void **state)
{
    unsigned uses[4] = { 0 };

    (void)state;
    taken = 0;
    tbd_ring_start(&ring, thread, 0, TBD_TIME_NEVER);
    for (uint32_t n = 0; n < 3; n++)
        turn_and_count(uses);
    uses[chunk(3)->slot]++;
    for (uint32_t n = 0; n < 4; n++)
        assert_int_equal(uses[n], 1);
    for (uint32_t n = 0; n < 3; n++)
        assert_int_equal(entry(n, 0), 1);
}

static void a_dead_consumer_stops_nobody(void **state)
{
    (void)state;
    tbd_ring_start(&ring, thread, 0, TBD_TIME_NEVER);
    ring.head->organizer_lock = 0x40000000u | 77;
    for (unsigned i = 0; i < 10; i++) {
        enter(1, 0);
        tbd_ring_turn(&ring, thread, 0);
    }
    assert_true(ring.discard);
    assert_int_equal(ring.head->published,
                     1); /* noticed at the first chunk, though there is space for more */
    assert_int_equal(tbd_ring_time(&ring, thread), 10);
}

static void an_unfinished_record_moves_whole(void **state)
{
    uint64_t entry_next;
    uint64_t operand_next;

    (void)state;
    tbd_ring_start(&ring, thread, 0, 100);
    enter(1, 0);
    enter(2, TBD_OPERANDS_BYTES - 100);
    enter(3, 0);
    memset((void *)thread->operand_next, 0x5a, 90);
    entry_next = thread->entry_next;
    operand_next = thread->operand_next;
    tbd_ring_move_record_sigsafe(&ring, &entry_next, &operand_next, 90);
    assert_int_equal(ring.head->published, 1);
    assert_int_equal(chunk(0)->entry_count, 2);
    assert_int_equal(chunk(0)->operand_bytes, TBD_OPERANDS_BYTES - 100);
    assert_int_equal(entry(1, 0), 3);
    assert_int_equal(((const uint8_t *)operand_next)[89], 0x5a);
    assert_ptr_equal((const void *)operand_next, operands(1));
    thread->entry_next = entry_next;
    assert_int_equal(tbd_ring_time(&ring, thread), 3);
}

static void in_an_area_operands_go_on_where_the_chunk_before_ends(void **state)
{
    uint64_t area = tbd_ring_area(&ring, 0);

    (void)state;
    ring.area = area;
    tbd_ring_start(&ring, thread, 0, 100);
    enter(1, 4096);
    tbd_ring_turn(&ring, thread, 0);
    assert_int_equal(chunk(0)->operand_bytes, 4096);
    assert_int_equal(chunk(0)->flags, 0);
    assert_int_equal(thread->operand_next, area + 4096);
    assert_int_equal(tbd_ring_guard_sigsafe(&ring, area + config.area_bytes), TBD_GUARD_OPERANDS);
    assert_int_equal(tbd_ring_guard_sigsafe(&ring, area + config.area_bytes - 1), TBD_GUARD_NONE);
    enter(1, 8192);
    ring.head->released = 2; /* as soon as it is published */
    tbd_ring_turn(&ring, thread, 0);
    assert_int_equal(chunk(1)->operand_bytes, 8192);
    assert_int_equal(chunk(1)->flags, TBD_CHUNK_WRAPS);
    assert_int_equal(thread->operand_next, area);
}

/* Two pages of memory that are mapped eight times, one after the other, with nothing after them. */
#define UNREAD_BYTES (16 * TBD_PAGE_SIZE)
static uint64_t map_unread(void)
{
    int fd = memfd_create("unread", 0);
    uint8_t *start = mmap(NULL, UNREAD_BYTES + TBD_PAGE_SIZE, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    assert_true(fd >= 0 && start != MAP_FAILED && ftruncate(fd, 2 * TBD_PAGE_SIZE) == 0);
    for (uint8_t *at = start; at < start + UNREAD_BYTES; at += 2 * TBD_PAGE_SIZE)
        assert_ptr_equal(
            mmap(at, 2 * TBD_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0), at);
    close(fd);
    return (uint64_t)(uintptr_t)start;
}

static void unmap_unread(uint64_t start)
{
    munmap((void *)start, UNREAD_BYTES + TBD_PAGE_SIZE);
}

static void records_aside_leave_messages_alone_in_the_chunks(void **state)
{
    struct tbd_part part = { "hello", 5 };
    struct tbd_msg_passed passed;
    struct tbd_message head;
    uint64_t entries = map_unread(), records = map_unread();
    uint64_t entry_next, operand_next;

    (void)state;
    ring.counting = entries;
    ring.aside = records;
    ring.counting_bytes = ring.aside_bytes = UNREAD_BYTES;
    tbd_ring_start(&ring, thread, 0, TBD_TIME_NEVER);
    assert_int_equal(thread->operand_next, records);
    for (unsigned i = 0; i < UNREAD_BYTES / 16; i++) {
        assert_int_equal(tbd_ring_guard_sigsafe(&ring, thread->entry_next), TBD_GUARD_ENTRIES);
        enter(1 + i % 3, 16);
    }
    assert_int_equal(tbd_ring_guard_sigsafe(&ring, thread->operand_next), TBD_GUARD_OPERANDS);
    enter(7, 0); /* its record would be after the end */
    entry_next = thread->entry_next;
    operand_next = thread->operand_next;
    tbd_ring_move_record_sigsafe(&ring, &entry_next, &operand_next, 0);
    assert_int_equal(operand_next, records);
    thread->entry_next = entry_next;
    thread->operand_next = operand_next + 16;
    tbd_ring_send(&ring, thread, TBD_MSG_NOTE, &part, 1);
    assert_int_equal(tbd_ring_time(&ring, thread), UNREAD_BYTES / 16 + 1);
    tbd_ring_turn(&ring, thread, TBD_CHUNK_ENDS_WINDOW);
    assert_int_equal(ring.head->published, 1);
    assert_int_equal(chunk(0)->entry_count, 2);
    assert_int_equal(entry(0, 0), TBD_ENTRY_MESSAGE | TBD_MSG_PASSED);
    assert_int_equal(entry(0, 1), TBD_ENTRY_MESSAGE | TBD_MSG_NOTE);
    assert_int_equal(chunk(0)->operand_bytes, sizeof(head) + sizeof(passed) + sizeof(head) + 5);
    memcpy(&passed, operands(0) + sizeof(head), sizeof(passed));
    assert_int_equal(passed.blocks, UNREAD_BYTES / 16 + 1);
    assert_int_equal(passed.last, 7);
    assert_memory_equal(operands(0) + sizeof(head) + sizeof(passed) + sizeof(head), "hello", 5);
    unmap_unread(entries);
    unmap_unread(records);
}

static void entries_that_are_only_counted_go_where_they_take_little_memory(void **state)
{
    uint64_t entries = map_unread();

    (void)state;
    ring.discards_into = entries;
    ring.discards_bytes = UNREAD_BYTES;
    ring.discard = true;
    tbd_ring_start(&ring, thread, 1000, 1000 + UNREAD_BYTES / 4 + 10);
    assert_int_equal(thread->entry_next, entries);
    for (unsigned i = 0; i < UNREAD_BYTES / 4; i++)
        enter(1 + i, 0);
    assert_int_equal(tbd_ring_guard_sigsafe(&ring, thread->entry_next), TBD_GUARD_ENTRIES);
    assert_int_equal(tbd_ring_last_block(&ring, thread), UNREAD_BYTES / 4);
    tbd_ring_go_on(&ring, thread);
    assert_int_equal(tbd_ring_time(&ring, thread), 1000 + UNREAD_BYTES / 4);
    assert_int_equal(thread->entry_next, entries + UNREAD_BYTES - 40);
    assert_int_equal(ring.head->published, 0);
    ring.discard = false; /* the first slice that is wanted begins */
    tbd_ring_start(&ring, thread, 2000, TBD_TIME_NEVER);
    assert_int_equal(space(), TBD_ENTRIES_BYTES / 4);
    unmap_unread(entries);
}

static void definitions_are_complete_before_their_number_shows(void **state)
{
    struct tbd_op ops[2] = { { .kind = TBD_OP_STORE, .size = 8 }, { .kind = TBD_OP_RET } };
    struct tbd_block_def def = { .start = 0x1000, .code_bytes = 3, .op_count = 2, .insn_count = 1 };
    const struct tbd_block_def *out;
    const uint8_t *heap = (const uint8_t *)ring.head + ring.head->heap_offset;

    (void)state;
    for (uint32_t id = 1; id <= 8; id++) {
        def.start += 16;
        assert_int_equal(tbd_ring_define(&ring, &def, ops, (const uint8_t *)"abc"), id);
        assert_int_equal(ring.head->def_count, id);
        out = (const struct tbd_block_def *)((const uint8_t *)ring.head + ring.head->defs_offset) +
              (id - 1);
        assert_int_equal(out->start, def.start);
        assert_int_equal(out->ops_offset % 8, 0);
        assert_memory_equal(heap + out->ops_offset, ops, sizeof(ops));
        assert_memory_equal(heap + out->code_offset, "abc", 3);
        assert_true(out->code_offset + 3 <= ring.head->heap_used);
    }
    assert_false(ring.full);
    tbd_ring_define(&ring, &def, ops, (const uint8_t *)"abc");
    assert_true(ring.full);
    assert_int_equal(ring.head->def_count, 8);
}

static void an_interrupted_record_gets_its_length(void **state)
{
    struct tbd_block_def def = { .start = 0x1000, .operand_bytes = 64, .insn_count = 4 };
    uint32_t id = tbd_ring_define(&ring, &def, NULL, NULL);
    const uint8_t *record;

    (void)state;
    tbd_ring_start(&ring, thread, 0, 100);
    enter(id, 0);
    record = (const uint8_t *)thread->operand_next;
    memset((void *)thread->operand_next, 0x77, 64);
    tbd_ring_close_record_sigsafe(&ring, thread, 24);
    assert_int_equal(record[23], 0x77);
    for (unsigned i = 24; i < 64; i++)
        assert_int_equal(record[i], 0);
    assert_ptr_equal((const void *)thread->operand_next, record + 64);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_head_describes_the_file),
        TEST(the_entries_end_when_something_is_due),
        TEST(messages_take_entries_but_no_time),
        TEST(a_message_that_does_not_fit_goes_into_the_next_chunk),
        TEST(a_message_after_the_last_block_still_fits),
        TEST(the_slot_given_back_last_is_filled_first),
        TEST(a_late_consumer_finds_all_slots_in_use_and_none_twice),
        TEST(a_dead_consumer_stops_nobody),
        TEST(an_unfinished_record_moves_whole),
        TEST(in_an_area_operands_go_on_where_the_chunk_before_ends),
        TEST(records_aside_leave_messages_alone_in_the_chunks),
        TEST(entries_that_are_only_counted_go_where_they_take_little_memory),
        TEST(definitions_are_complete_before_their_number_shows),
        TEST(an_interrupted_record_gets_its_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
