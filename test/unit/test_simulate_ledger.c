// SPDX-License-Identifier: MIT
// links: tbd_simulate tbd_base Zydis
/* test_simulate_ledger.c - a simulation whose passes leave out what is settled gives what one gives that visits every step
 *
 * Random instructions move pointers between registers and a small memory, in which every word holds one; a small interpreter says what
 * they did.  The simulations get what there is at the end, and now and then a word on the way. */
#include "replay/simulate/simulate_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum {
    WORDS = 64,
    WORD = 0x10000,
    STACK = WORD + 8 * WORDS / 2,
    CODE = 0x400000,
    STEPS = 3000,
    SEEDS = 40,
    FOCUS_FROM = STEPS / 3,
    FOCUS_TO = STEPS / 2,
    RAX = 0,
    RSP = 4,
    RSI = 6,
    RDI = 7,
};

static uint64_t seed, memory[WORDS], at_end_memory[WORDS], registers[16];

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static uint64_t random_pointer(void)
{
    return WORD + 8 * (next_random() % (WORDS / 4));
}

static uint64_t *at(uint64_t address)
{
    return &memory[(address - WORD) / 8];
}

static struct tbd_bits at_end(void *arg, uint64_t address)
{
    (void)arg;
    if (address < WORD || address >= WORD + 8 * WORDS)
        return (struct tbd_bits){ 0, 0 };
    return tbd_bits_of(at_end_memory[(address - WORD) / 8]);
}

/* ---- the instructions ---- */

struct word {
    char bytes[8];
    uint8_t length;
    void (*does)(uint32_t immediate);
};

static void load_rax(uint32_t unused)
{
    (void)unused;
    registers[RAX] = *at(registers[RSI]);
}
static void load_rdi(uint32_t unused)
{
    (void)unused;
    registers[RDI] = *at(registers[RSI]);
}
static void load_rsi(uint32_t unused)
{
    (void)unused;
    registers[RSI] = *at(registers[RDI]);
}
static void store_by_rdi(uint32_t unused)
{
    (void)unused;
    *at(registers[RDI]) = registers[RAX];
}
static void store_by_rsi(uint32_t unused)
{
    (void)unused;
    *at(registers[RSI]) = registers[RAX];
}
static void set_rsi(uint32_t immediate)
{
    registers[RSI] = immediate;
}
static void copy_to_rdi(uint32_t unused)
{
    (void)unused;
    registers[RDI] = registers[RSI];
}
static void push_rax(uint32_t unused)
{
    (void)unused;
    registers[RSP] -= 8;
    *at(registers[RSP]) = registers[RAX];
}
static void pop_rdi(uint32_t unused)
{
    (void)unused;
    registers[RDI] = *at(registers[RSP]);
    registers[RSP] += 8;
}

static const struct word words[] = {
    { "\x48\x8b\x06", 3, load_rax },
    { "\x48\x8b\x3e", 3, load_rdi },
    { "\x48\x8b\x37", 3, load_rsi },
    { "\x48\x89\x07", 3, store_by_rdi },
    { "\x48\x89\x06", 3, store_by_rsi },
    { "\x48\xc7\xc6", 7, set_rsi },
    { "\x48\x89\xf7", 3, copy_to_rdi },
    { "\x50", 1, push_rax },
    { "\x5f", 1, pop_rdi },
};

/* The stack stays in its half. */
static const struct word *random_word(void)
{
    const struct word *word = &words[next_random() % (sizeof(words) / sizeof(*words))];

    if ((word->does == push_rax && registers[RSP] <= STACK) ||
        (word->does == pop_rdi && registers[RSP] >= WORD + 8 * (WORDS - 1)))
        return &words[0];
    return word;
}

static void add_random(struct tbd_simulation *sim)
{
    const struct word *word = random_word();
    uint32_t immediate = (uint32_t)random_pointer();
    uint8_t code[8];

    memcpy(code, word->bytes, sizeof(code));
    if (word->length == 7)
        memcpy(code + 3, &immediate, sizeof(immediate));
    word->does(immediate);
    assert_int_equal(tbd_simulation_add(sim, CODE + 8 * (next_random() % 4096), code, word->length),
                     TBD_OK);
}

static void add_fact(struct tbd_simulation *sim)
{
    uint64_t address = random_pointer();

    if (next_random() % 32 == 0)
        assert_int_equal(tbd_simulation_know_memory(sim, address, 8, *at(address)), TBD_OK);
}

enum focus { NO_FOCUS, WITH_FOCUS };

static struct tbd_simulation *simulated(uint64_t from, bool without_ledger, enum focus focus)
{
    const struct tbd_simulation_source source = { .final = at_end };
    struct tbd_simulation *sim;

    seed = from;
    for (size_t i = 0; i < WORDS; i++)
        memory[i] = random_pointer();
    for (size_t i = 0; i < 16; i++)
        registers[i] = random_pointer();
    registers[RSP] = STACK + 8 * (WORDS / 4);
    assert_int_equal(tbd_simulation_new(&source, &sim), TBD_OK);
    for (size_t i = 0; i < STEPS; i++) {
        add_random(sim);
        add_fact(sim);
    }
    memcpy(at_end_memory, memory, sizeof(memory));
    for (unsigned i = 0; i < 16; i++)
        tbd_simulation_know(sim, i, tbd_bits_of(registers[i]));
    sim->without_ledger = without_ledger;
    if (focus == WITH_FOCUS)
        tbd_simulation_focus(sim, FOCUS_FROM, FOCUS_TO);
    assert_int_equal(tbd_simulation_run(sim, true), TBD_OK);
    return sim;
}

/* ---- the comparison ---- */

static void assert_same_why(const struct tbd_simulation *one, uint32_t of_one,
                            const struct tbd_simulation *other, uint32_t of_other)
{
    struct tbd_assumption a, b;
    bool is_there = tbd_simulation_assumption(one, of_one, &a);

    assert_int_equal(tbd_simulation_assumption(other, of_other, &b), is_there);
    if (is_there) {
        assert_int_equal(a.address, b.address);
        assert_int_equal(a.from, b.from);
        assert_int_equal(a.to, b.to);
        assert_int_equal(a.doubt, b.doubt);
    }
}

static void assert_same_memory(struct tbd_simulation *one, struct tbd_simulation *other)
{
    struct tbd_sim_moment *a, *b;
    struct tbd_simulated of_a, of_b;

    assert_int_equal(tbd_sim_moment_new(one, STEPS / 2, &a), TBD_OK);
    assert_int_equal(tbd_sim_moment_new(other, STEPS / 2, &b), TBD_OK);
    for (unsigned i = 0; i < 20; i++) {
        size_t position = next_random() % STEPS;

        assert_int_equal(tbd_sim_moment_move(a, position), TBD_OK);
        assert_int_equal(tbd_sim_moment_move(b, position), TBD_OK);
        for (size_t k = 0; k < WORDS; k++) {
            of_a = tbd_sim_moment_memory(a, WORD + 8 * k);
            of_b = tbd_sim_moment_memory(b, WORD + 8 * k);
            assert_int_equal(of_a.bits.known, of_b.bits.known);
            assert_int_equal(of_a.bits.value, of_b.bits.value);
            assert_int_equal(of_a.exact, of_b.exact);
            assert_same_why(one, of_a.why, other, of_b.why);
        }
    }
    tbd_sim_moment_free(a);
    tbd_sim_moment_free(b);
}

/* A moment that was moved has what one that was made there has, near where it was and far, back and forward. */
static void test_moments_that_move_have_what_new_ones_have(void **state)
{
    size_t known = 0;

    (void)state;
    for (uint64_t from = 1; from <= SEEDS; from++) {
        struct tbd_simulation *sim = simulated(from * 0x9e3779b97f4a7c15ull, false, NO_FOCUS);
        struct tbd_sim_moment *moved, *new;
        size_t position = STEPS;

        assert_int_equal(tbd_sim_moment_new(sim, position, &moved), TBD_OK);
        for (unsigned i = 0; i < 30; i++) {
            size_t by = next_random() % (i % 10 == 9 ? STEPS : 60);

            position = next_random() % 5 == 0 || by > position ? position + by : position - by;
            position = position < STEPS ? position : STEPS;
            assert_int_equal(tbd_sim_moment_move(moved, position), TBD_OK);
            assert_int_equal(tbd_sim_moment_new(sim, position, &new), TBD_OK);
            for (size_t k = 0; k < WORDS; k++) {
                struct tbd_simulated a = tbd_sim_moment_memory(moved, WORD + 8 * k);
                struct tbd_simulated b = tbd_sim_moment_memory(new, WORD + 8 * k);

                assert_int_equal(a.bits.known, b.bits.known);
                assert_int_equal(a.bits.value, b.bits.value);
                assert_int_equal(a.exact, b.exact);
                assert_same_why(sim, a.why, sim, b.why);
                known += a.bits.known == UINT64_MAX;
            }
            tbd_sim_moment_free(new);
        }
        tbd_sim_moment_free(moved);
        tbd_simulation_free(sim);
    }
    assert_true(known > 0);
}

static void compare_ledgers(enum focus focus)
{
    size_t known = 0, assumed = 0;

    for (uint64_t from = 1; from <= SEEDS; from++) {
        struct tbd_simulation *one = simulated(from * 0x9e3779b97f4a7c15ull, false, focus);
        struct tbd_simulation *other = simulated(from * 0x9e3779b97f4a7c15ull, true, focus);

        assert_int_equal(one->contradictions, 0);
        assert_int_equal(one->variable_count, other->variable_count);
        assert_int_equal(one->passes, other->passes);
        assert_int_equal(one->bar_count, other->bar_count);
        for (size_t i = 0; i < one->variable_count; i++) {
            assert_int_equal(one->variables[i].known, other->variables[i].known);
            assert_int_equal(one->variables[i].value, other->variables[i].value);
            assert_int_equal(one->exact[i], other->exact[i]);
            assert_same_why(one, one->why[i], other, other->why[i]);
            known += one->variables[i].known == UINT64_MAX;
            assumed += one->why[i] != 0;
        }
        assert_same_memory(one, other);
        tbd_simulation_free(one);
        tbd_simulation_free(other);
    }
    assert_true(known > SEEDS * STEPS / 2 && assumed > SEEDS);
}

static void test_passes_with_a_ledger_find_what_passes_without_one_do(void **state)
{
    (void)state;
    compare_ledgers(NO_FOCUS);
}

static void test_passes_over_a_focus_do_too(void **state)
{
    (void)state;
    compare_ledgers(WITH_FOCUS);
}

/* How many registers that steps of the focus write are known. */
static size_t known_in_focus(const struct tbd_simulation *sim)
{
    size_t known = 0;

    for (size_t i = FOCUS_FROM; i < FOCUS_TO; i++)
        for (size_t k = 0; k < sim->steps[i].insn->write_count; k++)
            known += sim->variables[tbd_sim_write_variable(&sim->steps[i], k)].known == UINT64_MAX;
    return known;
}

static void test_in_a_focus_as_much_is_known_and_what_is_exact_is_the_same_everywhere(void **state)
{
    size_t of_focus = 0, of_all = 0, assumed = 0, assumed_of_all = 0;

    (void)state;
    for (uint64_t from = 1; from <= SEEDS; from++) {
        struct tbd_simulation *focus = simulated(from * 0x9e3779b97f4a7c15ull, false, WITH_FOCUS);
        struct tbd_simulation *all = simulated(from * 0x9e3779b97f4a7c15ull, false, NO_FOCUS);

        for (size_t i = 0; i < all->variable_count; i++)
            assert_int_equal(focus->exact[i], all->exact[i]);
        of_focus += known_in_focus(focus);
        of_all += known_in_focus(all);
        assumed += focus->assumption_count;
        assumed_of_all += all->assumption_count;
        tbd_simulation_free(focus);
        tbd_simulation_free(all);
    }
    print_message("known in the focus: %zu, without one %zu; assumptions: %zu, without one %zu\n",
                  of_focus, of_all, assumed, assumed_of_all);
    assert_true(100 * of_focus >= 95 * of_all);
    assert_true(assumed < assumed_of_all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes_with_a_ledger_find_what_passes_without_one_do),
        cmocka_unit_test(test_moments_that_move_have_what_new_ones_have),
        cmocka_unit_test(test_passes_over_a_focus_do_too),
        cmocka_unit_test(test_in_a_focus_as_much_is_known_and_what_is_exact_is_the_same_everywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
