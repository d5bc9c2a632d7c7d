// SPDX-License-Identifier: MIT
// links: tbd_simulate tbd_base Zydis
/* test_simulate_memory.c - what a simulation takes from memory across stores to addresses that nobody knows
 *
 * Short sequences with a load by rsi and a store by rdi, which is not known. */
#include "base/hash.h"
#include "replay/simulate/memory_image.h"
#include "replay/simulate/simulate_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { WORD = 0x10000, OTHER_WORD = 0x20000, CODE = 0x400000, RSP = 4, RSI = 6, R8 = 8 };

struct code {
    const char *bytes;
    size_t length;
};

#define CODE_OF(text) ((struct code){ text, sizeof(text) - 1 })

static const struct code load = CODE_OF("\x48\x8b\x06");            /* mov rax, [rsi] */
static const struct code load_field = CODE_OF("\x48\x8b\x46\x10");  /* mov rax, [rsi + 16] */
static const struct code store = CODE_OF("\x48\x89\x0f");           /* mov [rdi], rcx */
static const struct code load_vector = CODE_OF("\xf3\x0f\x6f\x06"); /* movdqu xmm0, [rsi] */
static const struct code store_byte = CODE_OF("\x88\x0f");          /* mov [rdi], cl */
static const struct code store_zero = CODE_OF("\xc6\x07\x00");      /* mov byte [rdi], 0 */
static const struct code store_field = CODE_OF("\x48\x89\x4f\x10"); /* mov [rdi + 16], rcx */
static const struct code store_other = CODE_OF("\x48\x89\x4f\x18"); /* mov [rdi + 24], rcx */
static const struct code save_address = CODE_OF("\x49\x89\x30");    /* mov [r8], rsi */
static const struct code store_first = CODE_OF("\x48\x89\x0b");     /* mov [rbx], rcx */
static const struct code load_address = CODE_OF("\x49\x8b\x38");    /* mov rdi, [r8] */
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

static struct tbd_bits one_word_at_end(void *arg, uint64_t address)
{
    return address == WORD ? at_end(arg, address) : (struct tbd_bits){ 0, 0 };
}

static struct tbd_simulation *begin_with(const struct code *codes, size_t count,
                                         struct tbd_bits (*final)(void *arg, uint64_t address))
{
    const struct tbd_simulation_source source = { .final = final };
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

static struct tbd_simulation *begin(const struct code *codes, size_t count)
{
    return begin_with(codes, count, at_end);
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

/* The store's address is found after it was assumed to have missed, and what it stored is there: nothing contradicts. */
static void test_a_store_that_did_hit_takes_the_assumption_back(void **state)
{
    const struct code codes[] = { save_address, store_first, load_address, load, store_zero };
    struct tbd_simulation *sim = begin_with(codes, 5, one_word_at_end);
    struct tbd_simulated out;

    (void)state;
    word_at_end = 0x1111111111111100;
    tbd_simulation_know(sim, RSI, tbd_bits_of(WORD));
    tbd_simulation_know(sim, R8, tbd_bits_of(OTHER_WORD));
    assert_int_equal(tbd_simulation_run(sim, true), TBD_OK);
    out = tbd_simulation_data(sim, 2, 0);
    assert_int_equal(out.bits.value, WORD);
    assert_int_equal(out.exact, 0);
    out = tbd_simulation_data(sim, 3, 0);
    assert_int_equal(out.bits.value, word_at_end);
    assert_int_equal(out.bits.known, ~0xffull);
    tbd_simulation_free(sim);
}

static void test_nothing_is_assumed_across_a_store_that_did_hit(void **state)
{
    const struct code codes[] = { save_address, store_first, load_address,
                                  load,         leave_frame, store_zero };
    struct tbd_simulation *sim = begin_with(codes, 6, one_word_at_end);

    (void)state;
    word_at_end = 0x1111111111111100;
    tbd_simulation_know(sim, RSI, tbd_bits_of(WORD));
    tbd_simulation_know(sim, R8, tbd_bits_of(OTHER_WORD));
    assert_int_equal(tbd_simulation_run(sim, true), TBD_OK);
    assert_true(tbd_sim_is_barred(sim, WORD, 3, 6));
    assert_true(tbd_sim_is_barred(sim, WORD, 4, 6));
    assert_false(tbd_sim_is_barred(sim, WORD, 5, 6)); /* it begins with what was stored */
    assert_false(tbd_sim_is_barred(sim, WORD, 3, 5));
    tbd_simulation_free(sim);
}

/* Asked for at a moment, too. */
static void test_a_moment_before_a_store_is_not_certain_of_what_it_stored(void **state)
{
    const struct code codes[] = { store_zero };
    struct tbd_simulation *sim;
    struct tbd_sim_moment *moment;
    struct tbd_simulated out;

    (void)state;
    word_at_end = 0x1111001111111111;
    sim = begin(codes, 1);
    assert_int_equal(tbd_simulation_run(sim, true), TBD_OK);
    assert_int_equal(tbd_sim_moment_new(sim, 0, &moment), TBD_OK);
    out = tbd_sim_moment_memory(moment, WORD);
    assert_int_equal(out.bits.value, word_at_end);
    assert_int_equal(out.exact, 0xffff00ffffffffff);
    tbd_sim_moment_free(moment);
    tbd_simulation_free(sim);
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

/* An instruction that moves lanes has no operation, only a variable that it reads and another one that it writes. */
static struct tbd_simulated moved(const struct code *code, unsigned from, unsigned to, bool back)
{
    struct tbd_simulation *sim = begin(NULL, 0);
    struct tbd_simulated out;

    if (!back)
        tbd_simulation_know(sim, from, tbd_bits_of(42));
    assert_int_equal(tbd_simulation_add(sim, CODE, (const uint8_t *)code->bytes, code->length),
                     TBD_OK);
    if (back)
        tbd_simulation_know(sim, to, tbd_bits_of(42));
    assert_int_equal(tbd_simulation_run(sim, false), TBD_OK);
    out = tbd_simulation_place(sim, !back, back ? from : to);
    tbd_simulation_free(sim);
    return out;
}

static void test_what_is_only_moved_between_vectors_and_registers_is_known(void **state)
{
    const struct code to_register = CODE_OF("\x66\x48\x0f\x7e\xc0"); /* movq rax, xmm0 */
    const struct code high = CODE_OF("\x66\x0f\x6c\xc1");            /* punpcklqdq xmm0, xmm1 */

    (void)state;
    for (int back = 0; back < 2; back++) {
        struct tbd_simulated rax = moved(&to_register, TBD_PLACE_VECTOR, 0, back);
        struct tbd_simulated lane = moved(&high, TBD_PLACE_VECTOR + 8, TBD_PLACE_VECTOR + 1, back);

        assert_int_equal(rax.exact, UINT64_MAX);
        assert_int_equal(rax.bits.value, 42);
        assert_int_equal(lane.exact, UINT64_MAX);
        assert_int_equal(lane.bits.value, 42);
    }
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

static void test_a_store_of_a_byte_is_not_assumed_to_miss_text(void **state)
{
    const struct code text[] = { load_vector, store_byte }, whole[] = { load_vector, store },
                      other[] = { load, store_byte };

    (void)state;
    word_at_end = 42;
    assert_int_equal(loaded(text, 2, RSI, WORD).bits.known, 0);
    assert_int_equal(loaded(whole, 2, RSI, WORD).bits.known, UINT64_MAX);
    assert_int_equal(loaded(other, 2, RSI, WORD).bits.known, UINT64_MAX);
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

/* What a step loads by a register that is known before it, if a signal comes after it. */
static struct tbd_simulated loaded_before_a_signal(struct code code, unsigned place)
{
    struct tbd_simulation *sim = begin(NULL, 0);
    struct tbd_simulated out;

    word_at_end = 42;
    tbd_simulation_know(sim, place, tbd_bits_of(WORD));
    assert_int_equal(tbd_simulation_add(sim, CODE, (const uint8_t *)code.bytes, code.length),
                     TBD_OK);
    assert_int_equal(tbd_simulation_break(sim, 1), TBD_OK);
    assert_int_equal(tbd_simulation_add(sim, CODE + 64, (const uint8_t *)store.bytes, store.length),
                     TBD_OK);
    assert_int_equal(tbd_simulation_run(sim, true), TBD_OK);
    out = tbd_simulation_data(sim, 0, 0);
    tbd_simulation_free(sim);
    return out;
}

static void test_across_a_signal_only_what_was_saved_is_assumed_to_be_there(void **state)
{
    struct tbd_simulated out = loaded_before_a_signal(load, RSI);

    (void)state;
    assert_int_equal(out.bits.known, 0);
    out = loaded_before_a_signal(pop, RSP);
    assert_int_equal(out.bits.known, UINT64_MAX);
    assert_int_equal(out.bits.value, 42);
    assert_int_equal(out.exact, 0);
}

/* ---- what a store may change, against trying each place bit by bit ---- */

static uint64_t next_random(void)
{
    static uint64_t seed = 1;

    return tbd_hash64_mix(seed++ * 0x9e3779b97f4a7c15ull);
}

/* Bytes of few values, so that many are equal; bits of some are not known. */
static struct tbd_bits random_bits(unsigned bytes)
{
    struct tbd_bits bits = { 0, UINT64_MAX };
    uint64_t random = next_random();

    for (unsigned i = 0; i < bytes; i++, random >>= 4) {
        bits.value |= (random & 1) << 8 * i;
        if ((random & 14) == 0)
            bits.known &= ~(0xffull << 8 * i);
        else if ((random & 14) == 2)
            bits.known &= ~(0x5aull << 8 * i);
    }
    bits.value &= bits.known;
    return bits;
}

/* What the store writes to bit `at` of the word if it begins at `begin`; false: it does not reach it. */
static bool stored_bit(const struct tbd_image_store *one, uint64_t begin, uint64_t word, int at,
                       bool *known, bool *value)
{
    int64_t in_data = (int64_t)(word - begin) * 8 + at;

    if (in_data < 0 || in_data >= 8 * one->bytes)
        return false;
    *known = one->data.known >> in_data & 1;
    *value = one->data.value >> in_data & 1;
    return true;
}

static uint64_t changed_from(const struct tbd_image_store *one, const struct tbd_image_word *word,
                             uint64_t begin, bool back)
{
    uint64_t covered = 0, same = 0;
    bool fits = true;

    for (int at = 0; at < 64; at++) {
        bool known = false, value = false, is_known = word->bits.known >> at & 1;

        if (!stored_bit(one, begin, word->address, at, &known, &value))
            continue;
        covered |= 1ull << at;
        if (!known || !is_known)
            continue;
        if (value == (word->bits.value >> at & 1))
            same |= 1ull << at;
        else
            fits = false;
    }
    return back ? (fits ? covered : 0) : covered & ~same;
}

static uint64_t may_change(const struct tbd_image_store *one, const struct tbd_image_word *word,
                           bool back)
{
    uint64_t changed = 0;

    for (uint64_t begin = word->address - 7; begin != word->address + 8; begin++)
        if (((begin ^ one->address.value) & one->address.known) == 0)
            changed |= changed_from(one, word, begin, back);
    return changed;
}

static void test_what_a_store_may_change_is_what_each_of_its_places_may(void **state)
{
    static const uint64_t address_bits[] = { 0, 7, ~7ull, ~15ull, UINT64_MAX, 0xff, 1 };

    (void)state;
    for (unsigned i = 0; i < 200000; i++) {
        struct tbd_image_word word = { .address = WORD + 8 * (next_random() & 1),
                                       .bits = random_bits(8) };
        struct tbd_image_store one = { .bytes = (uint8_t)(1 + next_random() % 8) };
        bool back = i & 1;

        one.data = random_bits(one.bytes);
        one.address.known = address_bits[next_random() % 7];
        one.address.value = (WORD + next_random() % 16 - 4) & one.address.known;
        if (one.data.known == 0 && one.address.known == 0)
            continue;
        assert_int_equal(tbd_image_may_change(&one, &word, back), may_change(&one, &word, back));
    }
}

/* Else a word that changed late would be assumed to be as at the end again and again, from a little later on each time. */
static void test_a_long_assumption_that_is_withdrawn_again_is_withdrawn_by_half(void **state)
{
    enum { END = 1 << 20 };
    struct tbd_assumption assumptions[] = {
        { .address = WORD, .from = 0, .to = END, .weakest = 1 },
        { .address = WORD + 8, .from = 0, .to = END, .weakest = 2 },
        { .address = WORD, .from = 1000, .to = END, .weakest = 3 },
        { .address = WORD, .from = END - 1000, .to = END, .weakest = 4 },
    };
    struct tbd_simulation *sim = begin(NULL, 0);

    (void)state;
    sim->assumptions = assumptions;
    sim->assumption_count = 4;
    tbd_sim_withdraw(sim, 1);
    tbd_sim_withdraw(sim, 2);
    assert_true(tbd_sim_is_barred(sim, WORD, 0, END));
    assert_false(tbd_sim_is_barred(sim, WORD, 1, END));
    tbd_sim_withdraw(sim, 3);
    assert_true(tbd_sim_is_barred(sim, WORD, END / 2 + 500, END));
    assert_false(tbd_sim_is_barred(sim, WORD, END / 2 + 501, END));
    assert_false(tbd_sim_is_barred(sim, WORD + 8, 1, END));
    tbd_sim_withdraw(sim, 4); /* a short one is not */
    assert_false(tbd_sim_is_barred(sim, WORD, END - 999, END));
    sim->assumptions = NULL;
    tbd_simulation_free(sim);
}

static struct tbd_bits nothing_at_end(void *arg, uint64_t address)
{
    (void)arg;
    (void)address;
    return (struct tbd_bits){ 0, 0 };
}

static void add_at(struct tbd_simulation *sim, uint64_t address, struct code code)
{
    assert_int_equal(tbd_simulation_add(sim, address, (const uint8_t *)code.bytes, code.length),
                     TBD_OK);
}

/* A store to the word, many to unknown addresses by the instruction at `storer`, and a load of the word. */
static struct tbd_simulated loaded_over_many_stores(uint64_t storer)
{
    enum { MANY = 1100, RCX = 1, RDI = 7 };
    struct tbd_simulation *sim = begin_with(NULL, 0, nothing_at_end);
    struct tbd_simulated out;

    tbd_simulation_know(sim, RCX, tbd_bits_of(42));
    tbd_simulation_know(sim, RDI, tbd_bits_of(WORD));
    add_at(sim, CODE, store);
    add_at(sim, CODE + 16, load_address);
    for (unsigned i = 0; i < MANY; i++)
        add_at(sim, storer, store);
    add_at(sim, CODE + 48, load);
    tbd_simulation_know(sim, RSI, tbd_bits_of(WORD));
    assert_int_equal(tbd_simulation_run(sim, true), TBD_OK);
    out = tbd_simulation_data(sim, 2 + MANY, 0);
    tbd_simulation_free(sim);
    return out;
}

static void test_over_many_stores_one_that_has_hit_is_not_assumed_to_miss(void **state)
{
    struct tbd_simulated out;

    (void)state;
    out = loaded_over_many_stores(CODE + 32);
    assert_int_equal(out.bits.known, UINT64_MAX);
    assert_int_equal(out.bits.value, 42);
    assert_int_equal(out.exact, 0);
    out = loaded_over_many_stores(CODE);
    assert_int_equal(out.bits.known, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_word_is_assumed_to_be_as_at_the_end_from_there_on),
        cmocka_unit_test(test_a_store_did_not_hit_where_something_else_is),
        cmocka_unit_test(test_a_store_that_did_hit_takes_the_assumption_back),
        cmocka_unit_test(test_nothing_is_assumed_across_a_store_that_did_hit),
        cmocka_unit_test(test_a_moment_before_a_store_is_not_certain_of_what_it_stored),
        cmocka_unit_test(test_a_store_of_what_is_there_changes_nothing),
        cmocka_unit_test(test_what_is_only_moved_between_vectors_and_registers_is_known),
        cmocka_unit_test(test_a_store_to_the_same_field_of_something_is_not_assumed_to_miss),
        cmocka_unit_test(test_a_store_of_a_byte_is_not_assumed_to_miss_text),
        cmocka_unit_test(test_what_was_popped_is_not_assumed_to_be_there_later),
        cmocka_unit_test(test_across_a_signal_only_what_was_saved_is_assumed_to_be_there),
        cmocka_unit_test(test_what_a_store_may_change_is_what_each_of_its_places_may),
        cmocka_unit_test(test_over_many_stores_one_that_has_hit_is_not_assumed_to_miss),
        cmocka_unit_test(test_a_long_assumption_that_is_withdrawn_again_is_withdrawn_by_half),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
