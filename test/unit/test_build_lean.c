// SPDX-License-Identifier: MIT
// links: tbd_organizer tbd_format tbd_base
// sources: stream_maker.c
/* Raw windows of programs that take the same paths again and again, choose among some, or never
 * take the same path twice: counts without coding records equal counts with it, by every method
 * (BUILD_LEAN-1), and a window may change the method in the middle. */
#include "organizer/lean_private.h"

#include "format/files/large_buffers.h"
#include "format/window/window.h"
#include "stream_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PHRASES     12u
#define PHRASE_MOST 24u

enum {
    CODED,
    CHAIN,
    TABLE,
    ROWS,
    BLOCKS,
    FREE,
    CHAIN_EARLY,
    TABLE_EARLY,
    BLOCKS_EARLY,
    FREE_EARLY,
    BUILDERS
};

struct scene {
    struct sim sim;
    struct maker maker;
    struct tbd_block_table *table;
    struct tbd_consumer *consumer;
    struct tbd_builder *builders[BUILDERS];
    uint32_t phrases[PHRASES][PHRASE_MOST], lengths[PHRASES];
    uint64_t bases[SIM_BLOCKS];
};

static void open_scene(struct scene *scene, uint64_t seed)
{
    struct tbd_error why = { 0 };

    maker_open(&scene->maker, 0);
    scene->maker.alone = true;
    sim_start(&scene->sim, &scene->maker, seed);
    scene->table = tbd_block_table_new();
    assert_int_equal(tbd_consumer_new(scene->maker.fd, scene->table, NULL, &scene->consumer, &why),
                     TBD_OK);
    for (uint32_t i = 0; i < BUILDERS; i++) {
        scene->builders[i] = tbd_builder_new();
        assert_non_null(scene->builders[i]);
        tbd_builder_code(scene->builders[i], i == CODED);
        if (i != CODED)
            scene->builders[i]->lean = calloc(1, sizeof(struct tbd_lean));
    }
    for (uint32_t p = 0; p < PHRASES; p++) {
        scene->lengths[p] = 1 + (uint32_t)(sim_random(&scene->sim) % PHRASE_MOST);
        for (uint32_t n = 0; n < scene->lengths[p]; n++)
            scene->phrases[p][n] = (uint32_t)(sim_random(&scene->sim) % SIM_BLOCKS);
    }
}

static void close_scene(struct scene *scene)
{
    for (uint32_t i = 0; i < BUILDERS; i++)
        tbd_builder_free(scene->builders[i]);
    tbd_consumer_free(scene->consumer);
    tbd_block_table_release(scene->table);
    sim_free(&scene->sim);
    maker_close(&scene->maker);
}

/* ---- the program ---- */

/* Some blocks store to the same address, some to increasing ones, some to random ones; across words
 * and pages, too. */
static uint64_t next_base(struct scene *scene, uint32_t block)
{
    uint64_t random = sim_random(&scene->sim);

    if (block % 3 == 1)
        scene->bases[block] += block;
    else if (!scene->bases[block] || block % 3 == 2 || random % 64 == 0)
        scene->bases[block] = SIM_BASE + (random >> 8) % (SIM_PAGES * 4096ull);
    return scene->bases[block];
}

static void enter(struct scene *scene, uint32_t block)
{
    uint64_t base = next_base(scene, block);
    uint8_t record[512] = { 0 };

    memcpy(record, &base, sizeof(base));
    maker_enter(&scene->maker, scene->sim.ids[block], record, scene->sim.defs[block].operand_bytes);
}

static void say(struct scene *scene)
{
    struct tbd_msg_syscall call = { .number = 1 };
    uint64_t limit = sim_random(&scene->sim) % 8, page = SIM_BASE;

    if (limit % 3 == 0)
        maker_message(&scene->maker, TBD_MSG_INTERRUPTED, &limit, sizeof(limit));
    else if (limit % 3 == 1)
        maker_message(&scene->maker, TBD_MSG_SYSCALL, &call, sizeof(call));
    else
        maker_message(&scene->maker, TBD_MSG_READ_PAGES, &page, sizeof(page));
}

/* Gives chunks back, so that more can be filled. */
static void drain(struct scene *scene)
{
    struct tbd_raw_window raw;
    struct tbd_error why = { 0 };

    assert_int_equal(tbd_consumer_take(scene->consumer, &raw, &why), TBD_NOTFOUND);
}

/* `freedom` 0: the same three phrases again and again; 1: all in any order; 2: any blocks.  A
 * message follows one block of `quiet`. */
static void run(struct scene *scene, uint32_t blocks, uint32_t freedom, uint32_t quiet)
{
    for (uint32_t n = 0, p = 0; n < blocks; p++) {
        uint32_t phrase = freedom ? (uint32_t)(sim_random(&scene->sim) % PHRASES) : p % 3;

        for (uint32_t k = 0; k < scene->lengths[phrase]; k++, n++) {
            enter(scene, freedom > 1 ? (uint32_t)(sim_random(&scene->sim) % SIM_BLOCKS)
                                     : scene->phrases[phrase][k]);
            if (sim_random(&scene->sim) % quiet == 0)
                say(scene);
        }
        drain(scene);
    }
}

/* ---- building it ---- */

static struct tbd_raw_window copy_of(const struct tbd_raw_window *raw)
{
    struct tbd_raw_window copy = *raw;

    copy.entries = tbd_large_buffer_take(raw->entry_count * sizeof(*raw->entries));
    copy.operands = tbd_large_buffer_take(raw->operand_bytes + TBD_ROW_SLACK);
    assert_true(copy.entries && copy.operands);
    memcpy(copy.entries, raw->entries, raw->entry_count * sizeof(*raw->entries));
    memcpy(copy.operands, raw->operands, raw->operand_bytes);
    return copy;
}

/* Builds some pieces of it: records end anywhere, and the raw window moves each time. */
static void build_early(struct scene *scene, struct tbd_builder *builder,
                        struct tbd_raw_window *raw)
{
    size_t entries = 0, operands = 0;

    for (uint32_t n = (uint32_t)(sim_random(&scene->sim) % 5); n--;) {
        struct tbd_raw_window moved = copy_of(raw), piece = moved;

        tbd_raw_window_free(raw);
        *raw = moved;
        entries += sim_random(&scene->sim) % (raw->entry_count - entries + 1);
        operands += sim_random(&scene->sim) % (raw->operand_bytes - operands + 1);
        piece.entry_count = entries;
        piece.operand_bytes = operands;
        assert_true(
            tbd_build_early(builder, &piece, tbd_consumer_plans(scene->consumer), scene->table));
    }
}

/* As if all other methods had failed at once. */
static void begin_blocks(struct scene *scene, struct tbd_builder *builder,
                         const struct tbd_raw_window *raw)
{
    struct tbd_raw_window nothing = *raw;

    nothing.entry_count = nothing.operand_bytes = 0;
    assert_true(
        tbd_build_early(builder, &nothing, tbd_consumer_plans(scene->consumer), scene->table));
    builder->begun->work.method = TBD_COUNT_BLOCKS;
}

static struct tbd_product build(struct scene *scene, uint32_t method,
                                const struct tbd_raw_window *raw)
{
    struct tbd_raw_window copy = copy_of(raw);
    struct tbd_lean *lean = scene->builders[method]->lean;
    struct tbd_product product;

    if (lean && method != FREE && method != FREE_EARLY) {
        lean->chain_wait =
            (struct tbd_lean_wait){ .left = method != CHAIN && method != CHAIN_EARLY };
        lean->table_wait = (struct tbd_lean_wait){ .left = method == ROWS || method == BLOCKS ||
                                                           method == BLOCKS_EARLY };
    }
    if (method == BLOCKS || method == BLOCKS_EARLY)
        begin_blocks(scene, scene->builders[method], &copy);
    if (method >= CHAIN_EARLY)
        build_early(scene, scene->builders[method], &copy);
    assert_int_equal(tbd_build(scene->builders[method], &copy, tbd_consumer_plans(scene->consumer),
                               scene->table, &product),
                     TBD_OK);
    return product;
}

static void assert_alike(const struct tbd_product *a, const struct tbd_product *b)
{
    const struct tbd_window *v = a->window, *w = b->window;

    assert_int_equal(a->damaged, b->damaged);
    assert_string_equal(a->damage, b->damage);
    assert_memory_equal(&a->counts, &b->counts, sizeof(a->counts));
    assert_int_equal(v->blocks, w->blocks);
    assert_int_equal(v->entry_count, w->entry_count);
    assert_memory_equal(v->entries, w->entries, w->entry_count * sizeof(*w->entries));
    assert_int_equal(v->operand_bytes, w->operand_bytes);
    assert_memory_equal(v->operands, w->operands, w->operand_bytes);
    assert_int_equal(v->word_count, w->word_count);
    assert_memory_equal(v->words, w->words, w->word_count * sizeof(*w->words));
    assert_int_equal(v->block_summary_count, w->block_summary_count);
    assert_memory_equal(v->block_summaries, w->block_summaries,
                        w->block_summary_count * sizeof(*w->block_summaries));
    assert_int_equal(v->digest, w->digest);
}

static void check_raw(struct scene *scene, const struct tbd_raw_window *raw)
{
    struct tbd_product coded = build(scene, CODED, raw);

    assert_true(coded.window->blocks || coded.damaged);
    for (uint32_t method = CHAIN; method < BUILDERS; method++) {
        struct tbd_product lean = build(scene, method, raw);

        assert_alike(&coded, &lean);
        tbd_product_free(&lean);
    }
    tbd_product_free(&coded);
}

/* Checks the window; with `spoils`, its part before damage in the middle. */
static void check_window(struct scene *scene, bool spoils)
{
    struct tbd_raw_window raw;
    struct tbd_error why = { 0 };
    size_t middle;

    sim_end_window(&scene->sim);
    assert_int_equal(tbd_consumer_take(scene->consumer, &raw, &why), TBD_OK);
    check_raw(scene, &raw);
    middle = sim_random(&scene->sim) % raw.entry_count;
    if (spoils) {
        size_t operand_bytes = raw.operand_bytes;

        raw.operand_bytes -= sim_random(&scene->sim) % raw.operand_bytes;
        check_raw(scene, &raw);
        raw.operand_bytes = operand_bytes;
        raw.entries[middle] = 0;
        check_raw(scene, &raw);
    }
    tbd_raw_window_free(&raw);
}

/* ---- tests ---- */

static void all_ways_count_alike(void **state)
{
    static struct scene scene;

    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        scene = (struct scene){ 0 };
        open_scene(&scene, seed);
        for (uint32_t window = 0; window < 12; window++) {
            run(&scene, 3000, (uint32_t)(seed + window) % 3, window % 2 ? 1000 : 5);
            check_window(&scene, true);
        }
        close_scene(&scene);
    }
}

/* More paths than are kept at a time. */
static void paths_are_forgotten_in_the_middle(void **state)
{
    static struct scene scene;

    (void)state;
    scene = (struct scene){ 0 };
    open_scene(&scene, 7);
    for (uint32_t window = 0; window < 5; window++) {
        run(&scene, 30000, 2, 500);
        check_window(&scene, false);
    }
    close_scene(&scene);
}

static void a_way_that_fails_is_left(void **state)
{
    static struct scene scene;
    struct tbd_lean *lean;

    (void)state;
    scene = (struct scene){ 0 };
    open_scene(&scene, 8);
    lean = scene.builders[FREE]->lean;
    run(&scene, 300000, 0, 50000);
    check_window(&scene, false);
    assert_int_equal(lean->chain_wait.left, 0);
    run(&scene, 300000, 1, 100000);
    check_window(&scene, false);
    assert_int_not_equal(lean->chain_wait.left, 0);
    assert_int_equal(lean->table_wait.left, 0);
    run(&scene, 100000, 2, 10000);
    check_window(&scene, false);
    assert_int_not_equal(lean->table_wait.left, 0);
    close_scene(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ways_count_alike),
        cmocka_unit_test(paths_are_forgotten_in_the_middle),
        cmocka_unit_test(a_way_that_fails_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
