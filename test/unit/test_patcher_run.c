// SPDX-License-Identifier: MIT
// links: tbd_patcher_host tbd_base Zydis::Zydis m
// sources: patcher_harness.c
/* test_patcher_run.c - real functions give the same results under translation as natively
 *
 * `test_patcher_run --dump NAME [HOOKS]` prints the code made for one of the functions; HOOKS is
 * the hook set as a number (31 = everything, 0 = none, default: play). */
#include "patcher_harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

typedef uint64_t (*function)(uint64_t, uint64_t);

static uint64_t fib(uint64_t n, uint64_t unused)
{
    (void)unused;
    return n < 2 ? n : fib(n - 1, 0) + fib(n - 2, 0);
}

static uint64_t mix(uint64_t n, uint64_t seed)
{
    uint32_t state[8] = { 1, 2, 3, 4, 5, 6, 7, (uint32_t)seed };

    for (uint64_t i = 0; i < n; i++) {
        uint32_t *s = &state[i & 7];

        *s = (*s << 7 | *s >> 25) + (state[(i + 3) & 7] ^ state[(i + 5) & 7]) + (uint32_t)i;
    }
    return (uint64_t)state[0] << 32 | state[7];
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static uint64_t sort(uint64_t n, uint64_t seed)
{
    uint32_t v[4096];
    uint64_t sum = 0;

    for (uint64_t i = 0; i < n; i++)
        v[i] = (uint32_t)(seed = seed * 6364136223846793005u + 1442695040888963407u);
    qsort(v, n, sizeof(*v), compare);
    for (uint64_t i = 0; i < n; i++)
        sum = sum * 31 + v[i];
    return sum;
}

static uint64_t switches(uint64_t n, uint64_t seed)
{
    uint64_t a = seed;

    for (uint64_t i = 0; i < n; i++) {
        switch ((a ^ i) % 9) {
        case 0: a += 3; break;
        case 1: a ^= i; break;
        case 2: a *= 5; break;
        case 3: a -= i; break;
        case 4: a = a << 3 | a >> 61; break;
        case 5: a += a >> 7; break;
        case 6: a ^= 0x55; break;
        case 7: a = ~a; break;
        default: a++; break;
        }
    }
    return a;
}

static jmp_buf env;

static uint64_t deep(uint64_t n, volatile uint64_t *leave)
{
    if (n == 0) {
        if (*leave)
            longjmp(env, 7);
        return 1;
    }
    return deep(n - 1, leave) + n;
}

static uint64_t jumps(uint64_t n, uint64_t unused)
{
    volatile uint64_t total = 0;
    volatile uint64_t leave = 0;

    (void)unused;
    for (volatile uint64_t i = 0; i < n; i++) {
        leave = i & 3;
        int r = setjmp(env);

        if (r == 0)
            total = total + deep(i % 20, &leave);
        total = total + (uint64_t)r + i;
    }
    return total;
}

static uint64_t floats(uint64_t n, uint64_t seed)
{
    double sum = 0;
    char text[64];
    uint64_t hash = 0;

    for (uint64_t i = 1; i <= n; i++) {
        sum += sin((double)(i + seed)) / sqrt((double)i) + pow(1.0001, (double)i);
        snprintf(text, sizeof(text), "%.17g %s %lld", sum, "x", (long long)i);
        for (const char *c = text; *c; c++)
            hash = hash * 131 + (uint8_t)*c;
    }
    return hash;
}

static uint64_t strings(uint64_t n, uint64_t seed)
{
    uint8_t a[5000] = { 1 }, b[5000] = { 2 };
    uint64_t sum = 0;

    for (uint64_t i = 0; i < n; i++) {
        size_t at = (seed + i * 37) % 900;
        size_t length = (i * i + seed) % 3000;

        memset(a + at, (int)i, length);
        memmove(b + at / 2, a + at, length);
        b[4999] = 0;
        sum += strlen((char *)b) + (uint64_t)(memcmp(a, b, 4000) > 0) +
               (uint64_t)(memchr(b, 0, 5000) != NULL);
        sum = sum * 7 + a[(i * 11) % 5000] + b[(i * 13) % 5000];
    }
    return sum;
}

static uint64_t heap(uint64_t n, uint64_t seed)
{
    uint64_t **list = calloc(n, sizeof(*list));
    uint64_t sum = 0;

    for (uint64_t i = 0; i < n; i++) {
        list[i] = malloc(16 + (seed * i) % 5000);
        *list[i] = i;
    }
    for (uint64_t i = 0; i < n; i += 2) {
        sum += *list[i];
        free(list[i]);
    }
    for (uint64_t i = 1; i < n; i += 2)
        free(list[i]);
    free(list);
    return sum;
}

static uint64_t system_calls(uint64_t n, uint64_t unused)
{
    uint64_t sum = 0;

    (void)unused;
    for (uint64_t i = 0; i < n; i++)
        sum += (uint64_t)getpid() == (uint64_t)getpid();
    return sum;
}

static const struct {
    const char *name;
    function f;
    uint64_t a, b;
} cases[] = {
    { "fib", fib, 20, 0 },
    { "mix", mix, 20000, 5 },
    { "sort", sort, 4000, 99 },
    { "switches", switches, 20000, 3 },
    { "jumps", jumps, 300, 0 },
    { "floats", floats, 300, 1 },
    { "strings", strings, 300, 7 },
    { "heap", heap, 500, 31 },
    { "system_calls", system_calls, 20, 0 },
};

static void check_all(void)
{
    for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
        uint64_t native = cases[n].f(cases[n].a, cases[n].b);
        uint64_t args[6] = { cases[n].a, cases[n].b };
        uint64_t translated = harness_call((void *)(uintptr_t)cases[n].f, args);

        if (native != translated)
            print_error("%s: %llx, translated %llx\n", cases[n].name, (unsigned long long)native,
                        (unsigned long long)translated);
        assert_int_equal(native, translated);
    }
}

static void without_hooks(void **state)
{
    (void)state;
    harness_configure(TBD_HOOKS_NONE, TBD_BLOCK_MAX_INSNS, true);
    check_all();
}

static void with_play_hooks(void **state)
{
    (void)state;
    harness_configure(TBD_HOOKS_PLAY, TBD_BLOCK_MAX_INSNS, true);
    check_all();
    assert_true(harness_blocks() > 10);
}

static void with_all_hooks_and_short_blocks(void **state)
{
    (void)state;
    harness_configure(TBD_HOOKS_PLAY | TBD_HOOK_LOADS, 3, true);
    check_all();
}

static uint64_t blocks_of_mix(void)
{
    uint64_t args[6] = { 100000, 5 };

    harness_configure(TBD_HOOKS_PARTIAL, TBD_BLOCK_MAX_INSNS, true);
    assert_int_equal(harness_call((void *)(uintptr_t)mix, args), mix(100000, 5));
    return harness_blocks();
}

/* More than fit into the area before its guard page. */
static void entries_that_are_only_counted_are_as_many(void **state)
{
    uint64_t written = blocks_of_mix();

    (void)state;
    assert_true(written > TBD_ENTRIES_BYTES / 4);
    harness_only_counts(true);
    assert_int_equal(blocks_of_mix(), written);
    check_all();
    harness_only_counts(false);
}

static void without_chain(void **state)
{
    (void)state;
    harness_configure(TBD_HOOKS_PLAY, TBD_BLOCK_MAX_INSNS, false);
    check_all();
}

/* ---- code made by the test ---- */

#define MANY       20000u
#define CODE_BYTES 0x40000u

static uint8_t *code_memory(void)
{
    static uint8_t *memory;

    if (!memory)
        memory = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    return memory;
}

static uint64_t call_in_turn(uint64_t n, uint64_t memory)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < n; i++)
        sum += ((function)(uintptr_t)(memory + (i % 4) * 0x10000))(i, 0);
    return sum;
}

/* lea rax, [rdi + k]; ret at four places with the same low 16 bits */
static void targets_with_the_same_low_half_do_not_drive_each_other_out(void **state)
{
    uint8_t *memory = code_memory();
    uint64_t args[6] = { 20000, (uint64_t)(uintptr_t)memory };
    uint64_t before;

    (void)state;
    for (unsigned k = 0; k < 4; k++)
        memcpy(memory + k * 0x10000, (uint8_t[]){ 0x48, 0x8d, 0x47, (uint8_t)k, 0xc3 }, 5);
    harness_configure(TBD_HOOKS_PLAY, TBD_BLOCK_MAX_INSNS, true);
    before = tbd_patcher_stats().indirect;
    assert_int_equal(harness_call((void *)(uintptr_t)call_in_turn, args),
                     call_in_turn(args[0], args[1]));
    assert_true(tbd_patcher_stats().indirect - before < 50);
}

static void changed_code_is_translated_anew(void **state)
{
    uint8_t *memory = code_memory();
    uint64_t args[6] = { 5 };

    (void)state;
    harness_configure(TBD_HOOKS_PLAY, TBD_BLOCK_MAX_INSNS, true);
    for (unsigned k = 1; k < 100; k++) {
        /* jz over, falls into: lea rax, [rdi + k]; ret */
        memcpy(memory,
               (uint8_t[]){ 0x48, 0x85, 0xff, 0x74, 0x05, 0x48, 0x8d, 0x47, (uint8_t)k, 0xc3 }, 10);
        tbd_patcher_flush_range(harness_thread(), (uint64_t)(uintptr_t)memory + (k & 1 ? 5 : 0),
                                (uint64_t)(uintptr_t)memory + 9);
        assert_int_equal(harness_call(memory, args), 5 + k);
    }
}

static void note_last_id(const struct harness_event *event, void *arg)
{
    uint64_t start = harness_definition(event->id)->def.start;
    uint32_t *last = arg;

    if (start - (uint64_t)(uintptr_t)code_memory() < CODE_BYTES && event->id > *last)
        *last = event->id;
}

static uint32_t last_id_of_call(uint8_t *code)
{
    static const uint64_t args[6];
    uint32_t last = 0;

    harness_set_sink(note_last_id, &last);
    harness_call(code, args);
    harness_set_sink(NULL, NULL);
    return last;
}

/* So many that the tables of blocks and ids grow: each jumps to the next. */
static void many_blocks_are_found_again_and_keep_their_ids(void **state)
{
    uint8_t *memory = code_memory();
    uint64_t start = (uint64_t)(uintptr_t)memory;
    uint32_t last, blocks;

    (void)state;
    tbd_patcher_flush_range(harness_thread(), start, start + CODE_BYTES);
    for (unsigned k = 0; k < MANY; k++)
        memcpy(memory + 5 * k, (uint8_t[]){ 0xe9, 0, 0, 0, 0 }, 5);
    memory[5 * MANY] = 0xc3;
    harness_configure(TBD_HOOKS_PLAY, TBD_BLOCK_MAX_INSNS, false);
    last = last_id_of_call(memory);
    blocks = tbd_patcher_stats().blocks;
    assert_true(last >= MANY && blocks >= MANY);
    assert_int_equal(last_id_of_call(memory), last);
    assert_in_range(tbd_patcher_stats().blocks, blocks, blocks + 1); /* one of the harness */
    tbd_patcher_flush_range(harness_thread(), start, start + 5 * MANY);
    assert_int_equal(last_id_of_call(memory), last);
}

static unsigned store_into_itself(uint8_t *memory, unsigned k)
{
    /* mov [rip + 1], dil; mov eax, 0: the byte just after the store's block */
    static const uint8_t code[] = { 0x40, 0x88, 0x3d, 1, 0, 0, 0, 0xb8, 0, 0, 0, 0, 0xc3 };
    uint64_t args[6] = { k };

    memcpy(memory, code, sizeof(code));
    return (unsigned)harness_call(memory, args);
}

static void code_that_changes_is_noticed_without_a_flush(void **state)
{
    uint8_t *memory = code_memory();
    uint64_t args[6] = { 5 };

    (void)state;
    harness_configure(TBD_HOOKS_PLAY, TBD_BLOCK_MAX_INSNS, true);
    harness_changing_code(true);
    for (unsigned k = 1; k < 100; k++) {
        memcpy(memory,
               (uint8_t[]){ 0x48, 0x85, 0xff, 0x74, 0x05, 0x48, 0x8d, 0x47, (uint8_t)k, 0xc3 }, 10);
        assert_int_equal(harness_call(memory, args), 5 + k);
        assert_int_equal(store_into_itself(memory, k), k);
    }
    harness_changing_code(false);
    tbd_patcher_flush_range(harness_thread(), (uint64_t)(uintptr_t)memory,
                            (uint64_t)(uintptr_t)memory + 16);
}

/* Must be the first test: areas stay forever. */
static void a_full_cache_is_emptied_and_the_program_goes_on(void **state)
{
    uint64_t flushes = tbd_patcher_stats().flushes;

    (void)state;
    harness_limit_areas(128 << 10, 2);
    harness_configure(TBD_HOOKS_PLAY, TBD_BLOCK_MAX_INSNS, true);
    check_all();
    check_all();
    harness_limit_areas(0, UINT32_MAX);
    assert_true(tbd_patcher_stats().flushes > flushes + 1);
}

static int dump(const char *name, uint32_t hooks)
{
    harness_configure(hooks, TBD_BLOCK_MAX_INSNS, true);
    for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
        uint64_t args[6] = { cases[n].a, cases[n].b };

        if (strcmp(cases[n].name, name) != 0)
            continue;
        harness_call((void *)(uintptr_t)cases[n].f, args);
        harness_dump();
        return 0;
    }
    fprintf(stderr, "no function '%s'\n", name);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_cache_is_emptied_and_the_program_goes_on),
        cmocka_unit_test(without_hooks),
        cmocka_unit_test(with_play_hooks),
        cmocka_unit_test(with_all_hooks_and_short_blocks),
        cmocka_unit_test(entries_that_are_only_counted_are_as_many),
        cmocka_unit_test(without_chain),
        cmocka_unit_test(targets_with_the_same_low_half_do_not_drive_each_other_out),
        cmocka_unit_test(changed_code_is_translated_anew),
        cmocka_unit_test(code_that_changes_is_noticed_without_a_flush),
        cmocka_unit_test(many_blocks_are_found_again_and_keep_their_ids),
    };

    if (harness_obstacle()) {
        printf("skipped: %s\n", harness_obstacle());
        return 77;
    }
    harness_also_as_other_processors();
    harness_init(TBD_HOOKS_NONE, true);
    if (argc >= 3 && !strcmp(argv[1], "--dump"))
        return dump(argv[2], argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : TBD_HOOKS_PLAY);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
