// SPDX-License-Identifier: MIT
// links: tbd_patcher_host tbd_base Zydis::Zydis
// sources: patcher_harness.c
/* test_patcher_free.c - in free run blocks follow each other as long as there is one thread (CACHE-4), and code
 * that other threads may run only changes by the displacements of jumps (CACHE-5) */
#include "patcher/cache_private.h"
#include "patcher_harness.h"
#include "random_numbers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { SECOND_BLOCK = 11, ADDED = 3 };

/* mov rax, 0; test edi, edi; jz L; lea eax, [rdi + 5]; ret; L: mov eax, 7; ret */
static const uint8_t code[] = { 0x48, 0xc7, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x85, 0xff, 0x74, 0x04,
                                0x8d, 0x47, 0x05, 0xc3, 0xb8, 0x07, 0x00, 0x00, 0x00, 0xc3 };
enum { JUMP = 64, TARGET = 80 };

/* jmp rdi;   mov eax, 9; ret */
static const uint8_t jump[] = { 0xff, 0xe7 };
static const uint8_t target[] = { 0xb8, 0x09, 0x00, 0x00, 0x00, 0xc3 };
enum {
    SHORT = 128,
    SHORT_JCC = SHORT + 9,
    SHORT_TEST = SHORT + 11,
    SHORT_LAST = SHORT + 15,
    SHORT_L = SHORT + 19
};

/* mov eax, 1; test edi, edi; jz L;   js L;   test edi, edi; js L;   lea eax, [rdi + 5]; ret; L: mov eax, 7; ret */
static const uint8_t short_blocks[] = { 0xb8, 0x01, 0x00, 0x00, 0x00, 0x85, 0xff, 0x74, 0x0a,
                                        0x78, 0x08, 0x85, 0xff, 0x78, 0x04, 0x8d, 0x47, 0x05,
                                        0xc3, 0xb8, 0x07, 0x00, 0x00, 0x00, 0xc3 };
static uint8_t *program;

static uint64_t call(uint64_t argument)
{
    uint64_t args[6] = { argument };

    return harness_call(program, args);
}

static struct tbd_block_code *block_at(unsigned offset)
{
    return tbd_cache_find((uint64_t)(uintptr_t)program + offset);
}

/* Does control fall through from this block into the next one? */
static bool falls_through(const struct tbd_block_code *block)
{
    for (unsigned n = 0; n < block->exit_count; n++)
        if (!tbd_cache_site(block->first_exit + n)->rel32)
            return true;
    return false;
}

static void add_second_thread(void)
{
    struct tbd_thread *second =
        mmap(NULL, sizeof(*second), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(second, MAP_FAILED);
    tbd_cache_add_thread(second);
}

static void change_second_block(uint8_t added)
{
    uint64_t start = (uint64_t)(uintptr_t)program + SECOND_BLOCK;

    program[SECOND_BLOCK + 2] = added;
    tbd_patcher_flush_range(harness_thread(), start, start + ADDED);
}

static void blocks_of_one_thread_follow_each_other(void **state)
{
    (void)state;
    assert_int_equal(call(1), 6);
    assert_true(falls_through(block_at(0)));
    change_second_block(6);
    assert_non_null(block_at(0));
    assert_int_equal(call(1), 7);
    assert_int_equal(call(0), 7);
}

static void code_that_others_may_run_is_left_alone(void **state)
{
    struct tbd_block_code *first, *second;
    uint8_t before[64];
    uint64_t from;

    (void)state;
    tbd_cache_flush_all();
    assert_int_equal(call(1), 7);
    first = block_at(0);
    second = block_at(SECOND_BLOCK);
    assert_true(falls_through(first));
    from = first->cache_start;
    assert_true(second->cache_end - from <= sizeof(before));
    memcpy(before, (const void *)(uintptr_t)from, second->cache_end - from);
    add_second_thread();
    change_second_block(8);
    assert_false(second->live);
    assert_false(first->live); /* control would fall through into the second */
    assert_memory_equal(before, (const void *)(uintptr_t)from, second->cache_end - from);
    assert_int_equal(call(1), 9);
    assert_false(falls_through(block_at(0)));
    assert_int_equal(call(0), 7);
}

static uint64_t call_short(uint64_t argument)
{
    uint64_t args[6] = { argument };

    return harness_call(program + SHORT, args);
}

/* `offset` is in the block that begins at `block`. */
static void change(unsigned offset, uint8_t byte, unsigned block)
{
    program[offset] = byte;
    tbd_patcher_flush_range(harness_thread(), (uint64_t)(uintptr_t)program + offset,
                            (uint64_t)(uintptr_t)program + offset + 1);
    assert_null(block_at(block));
}

/* One has no instruction but its jump, one has two bytes before that: the jump back into them is longer. */
static void short_blocks_follow_each_other(void **state)
{
    (void)state;
    assert_int_equal(call_short(1), 6);
    assert_true(falls_through(block_at(SHORT)));
    assert_true(falls_through(block_at(SHORT_JCC)));
    assert_true(falls_through(block_at(SHORT_TEST)));
    assert_int_equal(call_short(0), 7);
    assert_int_equal(call_short((uint32_t)-1), 7);
    assert_int_equal(call_short(1), 6);
    change(SHORT_JCC, 0x79, SHORT_JCC);
    change(SHORT_L + 1, 9, SHORT_L); /* its own jump led there */
    assert_int_equal(call_short(1), 9);
    change(SHORT_JCC, 0x78, SHORT_JCC);
    change(SHORT_L + 1, 7, SHORT_L);
    assert_int_equal(call_short(1), 6);
    change(SHORT_LAST + 2, 6, SHORT_LAST);
    assert_int_equal(call_short(1), 7);
    change(SHORT_TEST + 2, 0x79, SHORT_TEST); /* jns */
    assert_int_equal(call_short(1), 7);
    assert_int_equal(call_short((uint32_t)-1), 7); /* by the js before it */
    change(SHORT_JCC, 0x79, SHORT_JCC);
    assert_int_equal(call_short((uint32_t)-1), 5);
    assert_int_equal(call_short(1), 7);
    change(SHORT_TEST + 2, 0x78, SHORT_TEST); /* those that lead to it are dead in part */
    change(SHORT_JCC, 0x78, SHORT_JCC);
    assert_int_equal(call_short(1), 7);
    change(SHORT_LAST + 2, 5, SHORT_LAST);
    assert_int_equal(call_short(1), 6);
    assert_int_equal(call_short(0), 7);
}

/* A block is found by the low bits of the target that a branch has in r11: that may be another block's start. */
static void a_signal_in_the_check_of_a_branch_goes_on_at_its_target(void **state)
{
    uint64_t args[6] = { (uint64_t)(uintptr_t)program + TARGET };
    const struct tbd_block_code *block;
    struct tbd_regs cpu = { 0 }, found;
    unsigned overflows = 0;

    (void)state;
    assert_int_equal(harness_call(program + JUMP, args), 9);
    block = block_at(TARGET);
    assert_true(block->tagged >= block->cache_start && block->tagged < block->entry);
    cpu.gpr[TBD_R11] = args[0] + 0x10000;
    cpu.gpr[TBD_R10] = 5;
    cpu.gpr[TBD_RCX] = 6;
    cpu.rflags = 0x202;
    for (cpu.rip = block->tagged; cpu.rip < block->entry; cpu.rip++) {
        bool is_rcx_moved = !tbd_translate_has_adx && cpu.rip > block->tagged;

        assert_int_equal(tbd_patcher_interrupted(harness_thread(), &cpu, &found).where,
                         TBD_INT_BOUNDARY);
        assert_int_equal(found.rip, cpu.gpr[TBD_R11]);
        assert_int_equal(found.gpr[TBD_RCX], is_rcx_moved ? 5 : 6);
        overflows += found.rflags == 0xa02;
        assert_true(found.rflags == 0xa02 || found.rflags == cpu.rflags);
    }
    /* OF is in r10 at the jump of two bytes, and at what follows it. */
    assert_int_equal(overflows, tbd_translate_has_adx ? 3 : 0);
    assert_int_not_equal(tbd_patcher_interrupted(harness_thread(), &cpu, &found).where,
                         TBD_INT_NOT_CACHE);
    assert_int_equal(found.rip, block->start);
    assert_int_equal(found.gpr[TBD_RCX], 6);
}

static uint32_t defined;

static uint32_t count_definition(const struct tbd_block_def *def, const struct tbd_op *ops,
                                 const uint8_t *bytes)
{
    (void)def, (void)ops, (void)bytes;
    return ++defined;
}

/* The id of a block of code number `n`, which is made now. */
static uint32_t id_of(uint32_t n)
{
    static const struct tbd_patcher_callbacks callbacks = { .define = count_definition };
    static const struct tbd_codegen_config config = { .hook_set = TBD_HOOK_BLOCKS,
                                                      .is_free = true };
    static struct tbd_cut cut;

    cut.def.start = 0x1000 + 4ull * n;
    cut.def.code_hash = 0x9e3779b97f4a7c15ull * n;
    cut.def.code_bytes = 4;
    return tbd_cache_id_of(&cut, &callbacks, &config);
}

/* More than the table holds at first; every other one is forgotten, and made again. */
static void a_block_that_is_made_again_has_its_id(void **state)
{
    enum { COUNT = 60000 };

    (void)state;
    tbd_cache_forget_ids();
    for (uint32_t n = 0; n < COUNT; n++)
        assert_int_equal(id_of(n), n + 1);
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t n = 0; n < COUNT; n += 2)
            tbd_cache_remember_id(&(struct tbd_block_code){ .id = n + 1 });
    for (uint32_t n = 0; n < COUNT; n += 2)
        assert_int_equal(id_of(n), n + 1);
    assert_int_equal(defined, COUNT);
    assert_int_equal(id_of(COUNT), COUNT + 1);
    tbd_cache_forget_ids();
}

enum { PAGES = 12, STARTS = 1500 };

/* Functions of up to 49 instructions without effects; the last bytes of most pages belong to a block that goes on. */
static uint8_t *map_functions(void)
{
    size_t bytes = PAGES * 4096;
    uint8_t *at =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(at, MAP_FAILED);
    memset(at, 0x90, bytes);
    for (size_t n = 48; n < bytes; n += 49)
        at[n] = 0xc3;
    at[bytes - 1] = 0xc3;
    return at;
}

static bool has_bytes_in(const struct tbd_block_code *block, uint64_t start, uint64_t end)
{
    return block->start < end && block->start + block->code_bytes > start;
}

/* Forgets a range, and counts what was forgotten.  Each block is looked at. */
static unsigned forget(const uint64_t *start, uint64_t from, uint64_t to)
{
    const struct tbd_block_code *before[STARTS];
    unsigned forgotten = 0;
    bool any = false;

    for (unsigned n = 0; n < STARTS; n++) {
        before[n] = tbd_cache_find(start[n]);
        any = any || (before[n] && has_bytes_in(before[n], from, to));
    }
    assert_int_equal(tbd_cache_has_blocks(from, to), any);
    tbd_patcher_flush_range(harness_thread(), from, to);
    assert_false(tbd_cache_has_blocks(from, to));
    for (unsigned n = 0; n < STARTS; n++) {
        bool goes = before[n] && has_bytes_in(before[n], from, to);

        assert_ptr_equal(tbd_cache_find(start[n]), goes ? NULL : before[n]);
        forgotten += goes;
    }
    return forgotten;
}

static void what_has_bytes_in_a_range_is_forgotten_and_nothing_else(void **state)
{
    uint8_t *functions = map_functions();
    uint64_t at = (uint64_t)(uintptr_t)functions, start[STARTS], args[6] = { 0 };
    unsigned forgotten = 0;

    (void)state;
    for (unsigned n = 0; n < STARTS; n++)
        start[n] = at + below(PAGES * 4096);
    for (unsigned round = 0; round < 40; round++) {
        uint64_t from = at + below(PAGES * 4096 - 1);
        uint64_t bytes = 1 + below(round % 2 ? 6000 : 60);

        for (unsigned n = 0; n < STARTS; n++)
            harness_call((void *)(uintptr_t)start[n], args);
        forgotten += forget(start, from, from + bytes);
    }
    assert_true(forgotten > 1000);
    for (unsigned n = 0; n < STARTS; n++)
        harness_call((void *)(uintptr_t)start[n], args);
    assert_int_equal(forget(start, 1, UINT64_MAX), STARTS);
    munmap(functions, PAGES * 4096);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_one_thread_follow_each_other),
        cmocka_unit_test(short_blocks_follow_each_other),
        cmocka_unit_test(code_that_others_may_run_is_left_alone),
        cmocka_unit_test(a_signal_in_the_check_of_a_branch_goes_on_at_its_target),
        cmocka_unit_test(a_block_that_is_made_again_has_its_id),
        cmocka_unit_test(what_has_bytes_in_a_range_is_forgotten_and_nothing_else),
    };

    if (harness_obstacle()) {
        printf("skipped: %s\n", harness_obstacle());
        return 77;
    }
    program =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (program == MAP_FAILED)
        return 1;
    memcpy(program, code, sizeof(code));
    memcpy(program + SHORT, short_blocks, sizeof(short_blocks));
    memcpy(program + JUMP, jump, sizeof(jump));
    memcpy(program + TARGET, target, sizeof(target));
    harness_also_as_other_processors();
    harness_init_free();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
