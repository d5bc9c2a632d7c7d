// SPDX-License-Identifier: MIT
// links: tbd_patcher_host tbd_base Zydis::Zydis
// sources: patcher_harness.c
/* test_patcher_foretold.c - a jump through memory with a fixed address goes where that memory says, whatever is expected */
#include "patcher/cache_private.h"
#include "patcher_harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

/* jmp [rip + 58]: the slot; push 7; pop rax; ret */
static const uint8_t import[] = { 0xff, 0x25, 0x3a, 0, 0, 0, 0x68, 7, 0, 0, 0, 0x58, 0xc3 };
enum { BINDS = 6, SLOT = 64, FIRST = 80, SECOND = 96, ADDED = 3 };
/* lea rax, [rcx + 9]; ret */
static const uint8_t target[] = { 0x48, 0x8d, 0x41, 9, 0xc3 };
static uint8_t *program;

static uint64_t at(unsigned offset)
{
    return (uint64_t)(uintptr_t)program + offset;
}

static uint64_t call(unsigned leads_to)
{
    uint64_t where = at(leads_to), args[6] = { 0, 0, 0, 100 };

    memcpy(program + SLOT, &where, sizeof(where));
    return harness_call(program, args);
}

static void the_memory_says_where_it_goes(void **state)
{
    uint64_t left;

    (void)state;
    assert_int_equal(call(FIRST), 109);
    assert_int_equal(tbd_cache_find(at(0))->foretold, at(FIRST));
    assert_int_equal(call(SECOND), 110);
    left = tbd_patcher_stats().indirect + tbd_patcher_stats().direct;
    for (unsigned n = 0; n < 100; n++)
        assert_int_equal(n % 3 ? call(FIRST) : call(SECOND), n % 3 ? 109 : 110);
    assert_true(tbd_patcher_stats().indirect + tbd_patcher_stats().direct <= left + 100);
}

static void what_is_not_bound_yet_is_foretold_later(void **state)
{
    (void)state;
    tbd_cache_flush_all();
    assert_int_equal(call(BINDS), 7);
    assert_null(tbd_cache_find(at(0)));
    assert_int_equal(call(SECOND), 110);
    assert_int_equal(tbd_cache_find(at(0))->foretold, at(SECOND));
    assert_int_equal(call(BINDS), 7);
    assert_int_equal(call(FIRST), 109);
}

static const uint8_t to_r10[] = { 0x4c, 0x8b, 0xd1 }, to_rcx[] = { 0x49, 0x8b, 0xca };

static bool is_code(uint64_t pc, const uint8_t move[3])
{
    return memcmp((const void *)(uintptr_t)pc, move, 3) == 0;
}

/* The comparison has rcx in r10 from its first instruction to the last, on both ways. */
static void a_signal_in_the_comparison_finds_the_registers(void **state)
{
    struct tbd_regs cpu = { 0 }, found;
    const struct tbd_block_code *block;
    uint64_t first = 0, last = 0;

    (void)state;
    tbd_cache_flush_all();
    call(FIRST);
    block = tbd_cache_find(at(0));
    for (uint64_t pc = block->entry; pc < block->cache_end; pc++) {
        if (!first && is_code(pc, to_r10))
            first = pc;
        if (is_code(pc, to_rcx))
            last = pc;
    }
    assert_true(first && last > first);
    cpu.gpr[TBD_R11] = at(SECOND);
    cpu.gpr[TBD_R10] = 5;
    cpu.gpr[TBD_RCX] = 6;
    for (cpu.rip = first; cpu.rip < block->cache_end; cpu.rip++) {
        assert_int_equal(tbd_patcher_interrupted(harness_thread(), &cpu, &found).where,
                         TBD_INT_BOUNDARY);
        assert_int_equal(found.rip, at(SECOND));
        assert_int_equal(found.gpr[TBD_RCX], cpu.rip > first && cpu.rip <= last ? 5 : 6);
    }
}

/* Not written without a flush: its block jumps there directly. */
static void a_constant_is_read_again_after_a_flush(void **state)
{
    (void)state;
    tbd_cache_flush_all();
    assert_false(tbd_patcher_may_read(at(0), at(4096)));
    harness_constant_memory(true);
    assert_int_equal(call(FIRST), 109);
    assert_int_equal(tbd_cache_find(at(0))->read, at(SLOT));
    assert_int_equal(call(SECOND), 109); /* it was not flushed */
    assert_true(tbd_patcher_may_read(at(SLOT + 7), at(SLOT + 8)));
    tbd_patcher_flush_range(harness_thread(), at(SLOT + 7), at(SLOT + 8));
    assert_null(tbd_cache_find(at(0)));
    assert_int_equal(call(SECOND), 110);
    harness_constant_memory(false);
    tbd_patcher_flush_range(harness_thread(), at(SLOT), at(SLOT + 1));
    assert_int_equal(call(FIRST), 109);
    assert_int_equal(call(SECOND), 110);
}

static void a_signal_on_the_way_to_a_constant_goes_on_there(void **state)
{
    static const uint64_t no_arguments[6];
    struct tbd_regs cpu = { 0 }, found;
    const struct tbd_block_code *block;

    (void)state;
    tbd_cache_flush_all();
    harness_constant_memory(true);
    harness_call(program + FIRST, no_arguments); /* then no block falls into it */
    call(FIRST);
    harness_constant_memory(false);
    block = tbd_cache_find(at(0));
    cpu.gpr[TBD_RCX] = 6;
    assert_true(block->cache_end > block->tail);
    for (cpu.rip = block->tail; cpu.rip < block->cache_end; cpu.rip++) {
        assert_int_equal(tbd_patcher_interrupted(harness_thread(), &cpu, &found).where,
                         TBD_INT_BOUNDARY);
        assert_int_equal(found.rip, at(FIRST));
        assert_int_equal(found.gpr[TBD_RCX], 6);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_memory_says_where_it_goes),
        cmocka_unit_test(what_is_not_bound_yet_is_foretold_later),
        cmocka_unit_test(a_signal_in_the_comparison_finds_the_registers),
        cmocka_unit_test(a_constant_is_read_again_after_a_flush),
        cmocka_unit_test(a_signal_on_the_way_to_a_constant_goes_on_there),
    };

    if (harness_obstacle()) {
        printf("skipped: %s\n", harness_obstacle());
        return 77;
    }
    program =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (program == MAP_FAILED)
        return 1;
    memcpy(program, import, sizeof(import));
    memcpy(program + FIRST, target, sizeof(target));
    memcpy(program + SECOND, target, sizeof(target));
    program[SECOND + ADDED]++;
    harness_also_as_other_processors();
    harness_init_free();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
