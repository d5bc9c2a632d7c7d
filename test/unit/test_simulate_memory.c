// SPDX-License-Identifier: MIT
// links: tbd_simulate tbd_base Zydis
/* test_simulate_memory.c - what a simulation takes from memory across stores to addresses that nobody knows
 *
 * Short sequences with a load by rsi and a store by rdi, which is not known. */
#include "replay/simulate/simulate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { WORD = 0x10000, CODE = 0x400000, RSP = 4, RSI = 6 };

struct code {
    const char *bytes;
    size_t length;
};

#define CODE_OF(text) ((struct code){ text, sizeof(text) - 1 })

static const struct code load = CODE_OF("\x48\x8b\x06");            /* mov rax, [rsi] */
static const struct code load_field = CODE_OF("\x48\x8b\x46\x10");  /* mov rax, [rsi + 16] */
static const struct code store = CODE_OF("\x48\x89\x0f");           /* mov [rdi], rcx */
static const struct code store_zero = CODE_OF("\xc6\x07\x00");      /* mov byte [rdi], 0 */
static const struct code store_field = CODE_OF("\x48\x89\x4f\x10"); /* mov [rdi + 16], rcx */
static const struct code store_other = CODE_OF("\x48\x89\x4f\x18"); /* mov [rdi + 24], rcx */
static const struct code pop = CODE_OF("\x58");                     /* pop rax */
static const struct code leave_frame = CODE_OF("\x48\x83\xc4\x10"); /* add rsp, 16 */
static const struct code enter_frame = CODE_OF("\x48\x83\xec\x10"); /* sub rsp, 16 */

static uint64_t word_at_end;

/* The same word everywhere. */
static struct tbd_bits at_end(void *arg, uint64_t address)
{
    (void)arg;
    (void)address;
    return tbd_bits_of(word_at_end);
}

static struct tbd_simulation *begin(const struct code *codes, size_t count)
{
    const struct tbd_simulation_source source = { .final = at_end };
    struct tbd_simulation *sim;
    uint64_t address = CODE;

    assert_int_equal(tbd_simulation_new(&source, &sim), TBD_OK);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(
            tbd_simulation_add(sim, address, (const uint8_t *)codes[i].bytes, codes[i].length),
            TBD_OK);
        address += codes[i].length;
    }
    return sim;
}

/* What the first step of these loads. */
static struct tbd_simulated loaded(const struct code *codes, size_t count, unsigned place,
                                   uint64_t value)
{
    struct tbd_simulation *sim = begin(codes, count);
    struct tbd_simulated out;

    tbd_simulation_know(sim, place, tbd_bits_of(value));
    assert_int_equal(tbd_simulation_run(sim, true), TBD_OK);
    out = tbd_simulation_data(sim, 0, 0);
    tbd_simulation_free(sim);
    return out;
}

static void test_a_word_is_assumed_to_be_as_at_the_end_from_there_on(void **state)
{
    const struct code codes[] = { load, store };
    struct tbd_simulation *sim;
    struct tbd_assumption assumption;
    struct tbd_simulated out;

    (void)state;
    word_at_end = 42;
    sim = begin(codes, 2);
    tbd_simulation_know(sim, RSI, tbd_bits_of(WORD));
    assert_int_equal(tbd_simulation_run(sim, true), TBD_OK);
    out = tbd_simulation_data(sim, 0, 0);
    assert_int_equal(out.bits.value, 42);
    assert_int_equal(out.bits.known, UINT64_MAX);
    assert_int_equal(out.exact, 0);
    assert_true(tbd_simulation_assumption(sim, out.why, &assumption));
    assert_int_equal(assumption.address, WORD);
    assert_int_equal(assumption.from, 0);
    assert_int_equal(assumption.to, 2);
    assert_int_equal(assumption.stores, 1);
    assert_int_equal(assumption.store, 1);
    tbd_simulation_free(sim);
}

static void test_a_store_did_not_hit_where_something_else_is(void **state)
{
    const struct code codes[] = { load, store_zero };
    struct tbd_simulated out;

    (void)state;
    word_at_end = 0x1111001111111111;
    out = loaded(codes, 2, RSI, WORD);
    assert_int_equal(out.bits.value, word_at_end);
    assert_int_equal(out.bits.known, UINT64_MAX);
    assert_int_equal(out.exact, 0xffff00ffffffffff);
}

static void test_a_store_of_what_is_there_changes_nothing(void **state)
{
    struct tbd_simulation *sim;
    struct tbd_simulated out;

    (void)state;
    word_at_end = 0;
    sim = begin(NULL, 0);
    assert_int_equal(tbd_simulation_know_memory(sim, WORD, 8, 5), TBD_OK);
    assert_int_equal(tbd_simulation_add(sim, CODE, (const uint8_t *)store_zero.bytes, 3), TBD_OK);
    assert_int_equal(tbd_simulation_add(sim, CODE + 3, (const uint8_t *)load.bytes, 3), TBD_OK);
    assert_int_equal(tbd_simulation_add(sim, CODE + 6, (const uint8_t *)store.bytes, 3), TBD_OK);
    tbd_simulation_know(sim, RSI, tbd_bits_of(WORD));
    assert_int_equal(tbd_simulation_run(sim, false), TBD_OK);
    out = tbd_simulation_data(sim, 1, 0);
    assert_int_equal(out.bits.known, ~5ull); /* 5 or, with that byte, 0 */
    assert_int_equal(out.exact, ~5ull);
    assert_int_equal(out.bits.value, 0);
    tbd_simulation_free(sim);
}

static void test_a_store_to_the_same_field_of_something_is_not_assumed_to_miss(void **state)
{
    const struct code same[] = { load_field, store_field }, other[] = { load_field, store_other };
    struct tbd_simulated out;

    (void)state;
    word_at_end = 42;
    out = loaded(same, 2, RSI, WORD);
    assert_int_equal(out.bits.known, 0);
    out = loaded(other, 2, RSI, WORD);
    assert_int_equal(out.bits.known, UINT64_MAX);
    assert_int_equal(out.bits.value, 42);
    assert_int_equal(out.exact, 0);
}

static void test_what_was_popped_is_not_assumed_to_be_there_later(void **state)
{
    const struct code dead[] = { pop, leave_frame, store, enter_frame };
    const struct code alive[] = { pop, store };
    struct tbd_simulated out;

    (void)state;
    word_at_end = 42;
    out = loaded(dead, 4, RSP, WORD);
    assert_int_equal(out.bits.known, 0);
    out = loaded(alive, 2, RSP, WORD);
    assert_int_equal(out.bits.known, UINT64_MAX);
    assert_int_equal(out.exact, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_word_is_assumed_to_be_as_at_the_end_from_there_on),
        cmocka_unit_test(test_a_store_did_not_hit_where_something_else_is),
        cmocka_unit_test(test_a_store_of_what_is_there_changes_nothing),
        cmocka_unit_test(test_a_store_to_the_same_field_of_something_is_not_assumed_to_miss),
        cmocka_unit_test(test_what_was_popped_is_not_assumed_to_be_there_later),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
