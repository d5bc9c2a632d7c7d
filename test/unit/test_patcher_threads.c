// SPDX-License-Identifier: MIT
// links: tbd_patcher_tsan Zydis::Zydis
// timeout: 600
/* test_patcher_threads.c - many threads translate, link, forget and reuse code at once, under the thread sanitizer
 *
 * Translated code cannot run there: its memory is not where the sanitizer wants it, and no instruction of it is seen.  So each thread does
 * what a processor and fixed_x86_64.S do.  It fetches the bytes of a block, one by one; a jump's displacement it fetches in one piece, because
 * it may change (CACHE-5).  It follows jumps that are linked, and the thread's table of indirect targets, without any lock; for all others it
 * leaves to the real tbd_patcher_dispatch().  So a byte that changes while somebody may run it, code that is reused too early (ENGINE_LOCK-2),
 * and a link that is seen before the block that it leads to, are races.
 *
 * What lies at a cache address is looked up in a table of this test: relaxed, so that it orders nothing. */
#include "patcher/cache_private.h"
#include "patcher/engine_lock.h"
#include "patcher/fixed.h"
#include "patcher/patcher.h"

#include <Zydis/Zydis.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

enum {
    THREADS = 6,
    STEPS = 12000, /* TBD_LONG: twenty times as many */
    SLOTS = 2048,
    SLOT_BYTES = 32,
    AREA_BYTES = 128 << 10,
    EXITS = 2
};

/* A block in the cache, as a processor has to know it; all fields relaxed. */
struct fetched {
    uint64_t forgotten; /* tbd_engine_forgotten() + 1 when it was made; 0: there is none */
    uint64_t start, from, end;
    uint32_t exit_count;
    struct {
        uint64_t rel32, stub, site;
    } exit[EXITS];
};

static uint8_t *program, *area;
static struct fetched *
    blocks; /* by offset in the area: under their entries, and under their checks of indirect branches */
static unsigned steps = STEPS;
static uint64_t linked, left_by_stubs, found_in_table, flushes;

struct runner {
    struct tbd_thread *thread;
    uint64_t seed;
    uint64_t linked, stubs, found;
};

static __thread struct runner *mine;

static uint32_t pick(struct runner *r, uint32_t below)
{
    r->seed = r->seed * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(r->seed >> 33) % below;
}

/* ---- the program: test edi, N; jz SLOT, then jmp SLOT, jmp rdi or nothing ---- */

static void put_rel32(uint8_t *at, uint32_t slot)
{
    int32_t distance = (int32_t)(program + slot * SLOT_BYTES - (at + 4));

    memcpy(at, &distance, sizeof(distance));
}

/* With the lock, or before threads run. */
static void write_slot(struct runner *r, uint32_t slot)
{
    static const uint8_t head[] = { 0xf7, 0xc7, 0, 0, 0, 0, 0x0f, 0x84 };
    uint8_t *at = program + slot * SLOT_BYTES;
    uint32_t number = pick(r, 1 << 20);

    memcpy(at, head, sizeof(head));
    memcpy(at + 2, &number, sizeof(number));
    put_rel32(at + 8, pick(r, SLOTS));
    at[12] = 0xff, at[13] = 0xe7; /* jmp rdi */
    if (pick(r, 3)) {
        at[12] = 0xe9;
        put_rel32(at + 13, pick(r, SLOTS));
    }
}

static uint64_t random_slot(struct runner *r)
{
    return (uint64_t)(uintptr_t)program + pick(r, SLOTS) * SLOT_BYTES;
}

/* ---- callbacks ---- */

static uint32_t define(const struct tbd_block_def *def, const struct tbd_op *ops,
                       const uint8_t *code)
{
    static uint32_t count;

    (void)def, (void)ops, (void)code;
    return ++count;
}

static uint64_t executable(struct tbd_app_pc pc, uint64_t want, bool *out_changes)
{
    (void)pc;
    *out_changes = false;
    return want;
}

static uint64_t reserve_area(uint64_t lo, uint64_t hi, uint64_t bytes)
{
    static bool is_given;

    (void)lo, (void)hi;
    if (is_given || bytes != AREA_BYTES)
        return 0;
    is_given = true;
    return (uint64_t)(uintptr_t)area;
}

static void forgetting(void)
{
    flushes++;
}

/* Code changes, and what was made of it is forgotten. */
static void boundary(struct tbd_thread *thread)
{
    uint32_t slot = pick(mine, SLOTS);
    uint64_t start = (uint64_t)(uintptr_t)program + slot * SLOT_BYTES;

    tbd_engine_lock(thread);
    if (pick(mine, 4)) {
        write_slot(mine, slot);
        tbd_patcher_flush_range(thread, start, start + SLOT_BYTES);
    } else { /* a thread ends, and another one has its block */
        tbd_cache_remove_thread(thread);
        tbd_cache_add_thread(thread);
    }
    tbd_engine_unlock(thread);
    thread->regs.rip = random_slot(mine);
}

static void not_used(struct tbd_thread *thread, uint32_t insn_bytes)
{
    (void)thread, (void)insn_bytes;
    abort();
}

static void no_special(struct tbd_thread *thread, enum tbd_special special, uint32_t insn_bytes)
{
    (void)special;
    not_used(thread, insn_bytes);
}

static void no_bad_code(struct tbd_thread *thread)
{
    not_used(thread, 0);
}

static void call_it(void (*fn)(void *), void *arg)
{
    fn(arg);
}

static const struct tbd_patcher_callbacks used = { .define = define,
                                                   .executable = executable,
                                                   .reserve_area = reserve_area,
                                                   .syscall = not_used,
                                                   .special = no_special,
                                                   .boundary = boundary,
                                                   .bad_code = no_bad_code,
                                                   .forgetting = forgetting,
                                                   .with_vector_state = call_it };

/* ---- what is where in the cache ---- */

#define SET(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)
#define GET(field)        __atomic_load_n(&(field), __ATOMIC_RELAXED)

static void note(uint64_t at, uint64_t from, const struct tbd_block_code *block)
{
    struct fetched *f = &blocks[at - (uint64_t)(uintptr_t)area];

    SET(f->forgotten, 0);
    SET(f->start, block->start);
    SET(f->from, from);
    SET(f->end, block->cache_end);
    SET(f->exit_count, block->exit_count);
    for (uint32_t n = 0; n < block->exit_count && n < EXITS; n++) {
        const struct tbd_exit_site *site = tbd_cache_site(block->first_exit + n);

        SET(f->exit[n].rel32, site->rel32);
        SET(f->exit[n].stub, site->stub);
        SET(f->exit[n].site, block->first_exit + n);
    }
    SET(f->forgotten, tbd_engine_forgotten() + 1ull);
}

/* As a signal handler does that has interrupted the thread there. */
static void note_block_at(struct tbd_thread *thread, uint64_t at)
{
    const struct tbd_block_code *block;

    if (!tbd_patcher_owns(at))
        abort();
    tbd_engine_lock_sigsafe(thread);
    block = tbd_cache_block_at(at);
    note(block->entry, block->entry, block);
    if (block->tagged >= block->cache_start && block->tagged < block->entry)
        note(block->tagged, block->tagged, block);
    tbd_engine_unlock(thread);
}

/* NULL: this test does not know it yet. */
static const struct fetched *known_at(uint64_t at)
{
    struct fetched *f;

    if (at - (uint64_t)(uintptr_t)area >= AREA_BYTES)
        return NULL;
    f = &blocks[at - (uint64_t)(uintptr_t)area];
    return GET(f->forgotten) == tbd_engine_forgotten() + 1ull ? f : NULL;
}

/* ---- a processor ---- */

static void fetch(uint64_t from, uint64_t to, const struct fetched *f)
{
    for (uint64_t at = from; at < to; at++) {
        bool is_displacement = false;

        for (uint32_t n = 0; n < GET(f->exit_count); n++)
            is_displacement |= at - GET(f->exit[n].rel32) < 4;
        if (!is_displacement)
            (void)*(const volatile uint8_t *)(uintptr_t)at;
    }
}

static uint64_t leave(struct runner *r, uint64_t kind, uint64_t argument)
{
    uint64_t at;

    r->thread->exit_kind = kind;
    r->thread->exit_arg = argument;
    at = tbd_patcher_dispatch(r->thread);
    note_block_at(r->thread, at);
    return at;
}

static uint64_t leave_at_boundary(struct runner *r, uint64_t at)
{
    r->thread->resume = at;
    return leave(r, TBD_EXIT_BOUNDARY, 0);
}

static uint64_t take_exit(struct runner *r, const struct fetched *f, uint32_t n)
{
    uint64_t rel32 = GET(f->exit[n].rel32), stub = GET(f->exit[n].stub);
    int32_t distance = (int32_t)__atomic_load_n((uint32_t *)(uintptr_t)rel32, __ATOMIC_ACQUIRE);
    uint64_t target = rel32 + 4 + (uint64_t)(int64_t)distance;

    if (target != stub) {
        r->linked++;
        return target;
    }
    for (uint64_t at = stub; at < stub + 17; at++) /* mov [gs], imm32; jmp */
        (void)*(const volatile uint8_t *)(uintptr_t)at;
    r->stubs++;
    return leave(r, TBD_EXIT_DIRECT, GET(f->exit[n].site));
}

static uint64_t jump_indirectly(struct runner *r)
{
    uint64_t pc = random_slot(r);
    uint64_t at = __atomic_load_n(&r->thread->ibl[pc & (TBD_IBL_ENTRIES - 1)], __ATOMIC_RELAXED);
    const struct fetched *f = known_at(at);

    if (!f || GET(f->start) != pc)
        return leave(r, TBD_EXIT_INDIRECT, pc);
    r->found++;
    return at;
}

/* One block; where the next one is. */
static uint64_t run_block(struct runner *r, uint64_t at)
{
    const struct fetched *f = known_at(at);
    uint32_t exits;

    if (!f || !pick(r, 200))
        return leave_at_boundary(r, at);
    fetch(GET(f->from), GET(f->end), f);
    exits = GET(f->exit_count);
    return exits ? take_exit(r, f, pick(r, exits)) : jump_indirectly(r);
}

static void *run_thread(void *argument)
{
    struct runner *r = mine = argument;
    uint64_t at;

    r->thread->regs.rip = random_slot(r);
    at = leave(r, TBD_EXIT_START, 0);
    for (unsigned n = 0; n < steps; n++)
        at = run_block(r, at);
    (void)tbd_engine_leave_code(r->thread);
    return NULL;
}

/* ---- the test ---- */

static void *map(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);

    assert_ptr_not_equal(p, MAP_FAILED);
    return p;
}

static uint32_t init_decoder(void *decoder, int mode, int width)
{
    return ZydisDecoderInit(decoder, (ZydisMachineMode)mode, (ZydisStackWidth)width);
}

static uint32_t decode(const void *decoder, const void *bytes, uint64_t length, void *instruction,
                       void *operands)
{
    return ZydisDecoderDecodeFull(decoder, bytes, length, instruction, operands);
}

static void start_patcher(void)
{
    static const struct tbd_decoder_api api = { init_decoder, decode, NULL };
    static const struct tbd_codegen_config config = {
        .max_insns = 64, .link = true, .area_bytes = AREA_BYTES, .is_free = true
    };

    tbd_patcher_set_decoder(&api);
    assert_true(tbd_patcher_init(&used, &config));
}

static void code_that_may_run_changes_by_jumps_alone(void **state)
{
    static struct runner runners[THREADS];
    pthread_t threads[THREADS];

    (void)state;
    for (unsigned n = 0; n < THREADS; n++) {
        runners[n] = (struct runner){ .thread = map(sizeof(struct tbd_thread)), .seed = n + 1 };
        tbd_cache_add_thread(
            runners[n]
                .thread); /* all before the first one runs: no block follows another (CACHE-5) */
    }
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        write_slot(&runners[0], slot);
    for (unsigned n = 0; n < THREADS; n++)
        assert_int_equal(pthread_create(&threads[n], NULL, run_thread, &runners[n]), 0);
    for (unsigned n = 0; n < THREADS; n++) {
        assert_int_equal(pthread_join(threads[n], NULL), 0);
        linked += runners[n].linked;
        left_by_stubs += runners[n].stubs;
        found_in_table += runners[n].found;
    }
    printf(
        "%lu jumps that were linked, %lu that were not, %lu indirect ones found, forgotten %lu times, all of it %u times\n",
        linked, left_by_stubs, found_in_table, flushes, tbd_engine_forgotten());
    assert_true(linked > steps / 10 && left_by_stubs > steps / 10 && found_in_table > 10 &&
                flushes > 10 && tbd_engine_forgotten() > 2);
}

int main(void)
{
    static const struct CMUnitTest tests[] = { cmocka_unit_test(
        code_that_may_run_changes_by_jumps_alone) };

    if (getenv("TBD_LONG"))
        steps *= 20;
    program = mmap(NULL, SLOTS * SLOT_BYTES + AREA_BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    blocks = mmap(NULL, AREA_BYTES * sizeof(*blocks), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (program == MAP_FAILED || (void *)blocks == MAP_FAILED)
        return 1;
    area = program + SLOTS * SLOT_BYTES;
    start_patcher();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
