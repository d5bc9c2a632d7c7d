// SPDX-License-Identifier: MIT
// links: tbd_query_triggers tbd_base
/* test_probe_script.c - scripts of probes become code that computes what C computes
 *
 * The code is carried out by a reader of its own, below, with registers and memory of this process: so expressions over the
 * program's variables are asked of this test's own functions. */
#include "query/probe/probe_script.h"

#include "query/places/running_process.h"

// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- code, carried out ---- */

struct machine {
    uint64_t program[18]; /* its registers */
    uint64_t reg[TBD_PROBE_REGISTERS];
    uint64_t field[16]; /* of the record */
    uint32_t fields, records;
    bool is_unknown;
};

static uint64_t extended(uint64_t value, uint32_t how)
{
    uint32_t shift = 64 - 8 * (how & 15);

    return how & 16 ? (uint64_t)((int64_t)(value << shift) >> shift) : value << shift >> shift;
}

static uint64_t loaded(struct machine *m, uint64_t address, uint32_t how)
{
    uint64_t value = 0;

    if (address < 4096) {
        m->is_unknown = true;
        return 0;
    }
    memcpy(&value, (const void *)(uintptr_t)address,
           how & 15); /* NOLINT(performance-no-int-to-ptr) */
    return extended(value, how);
}

static uint64_t computed(struct machine *m, const struct tbd_probe_insn *insn, uint64_t a,
                         uint64_t b)
{
    int64_t sa = (int64_t)a, sb = (int64_t)b;

    switch ((enum tbd_probe_op)insn->op) {
    case TBD_PROBE_ADD: return a + b;
    case TBD_PROBE_SUB: return a - b;
    case TBD_PROBE_MUL: return a * b;
    case TBD_PROBE_AND: return a & b;
    case TBD_PROBE_OR: return a | b;
    case TBD_PROBE_XOR: return a ^ b;
    case TBD_PROBE_SHL: return a << (b & 63);
    case TBD_PROBE_SHR: return a >> (b & 63);
    case TBD_PROBE_SAR: return (uint64_t)(sa >> (b & 63));
    case TBD_PROBE_EQ: return a == b;
    case TBD_PROBE_NE: return a != b;
    case TBD_PROBE_LT: return sa < sb;
    case TBD_PROBE_LE: return sa <= sb;
    case TBD_PROBE_BELOW: return a < b;
    case TBD_PROBE_BELOW_EQ: return a <= b;
    case TBD_PROBE_NOT: return !a;
    case TBD_PROBE_INVERT: return ~a;
    case TBD_PROBE_NEGATE: return 0 - a;
    case TBD_PROBE_DIV:
    case TBD_PROBE_MOD:
        m->is_unknown |= b == 0;
        return b == 0 ? 0 : (uint64_t)(insn->op == TBD_PROBE_DIV ? sa / sb : sa % sb);
    default: fail_msg("operation %u", insn->op); return 0;
    }
}

/* One instruction; the index of the next one. */
static uint32_t carry_out(struct machine *m, const struct tbd_probe_script *script, uint32_t at)
{
    const struct tbd_probe_insn *insn = &script->code[at];
    uint64_t *d = &m->reg[insn->d], a = m->reg[insn->a];

    switch ((enum tbd_probe_op)insn->op) {
    case TBD_PROBE_IMM: *d = (uint64_t)(int64_t)insn->imm; break;
    case TBD_PROBE_IMM_HIGH: *d = (*d & UINT32_MAX) | (uint64_t)(uint32_t)insn->imm << 32; break;
    case TBD_PROBE_REG: *d = m->program[insn->imm]; break;
    case TBD_PROBE_LOAD: *d = loaded(m, a + (uint64_t)(int64_t)insn->imm, insn->b); break;
    case TBD_PROBE_SKIP: return at + 1 + (uint32_t)insn->imm;
    case TBD_PROBE_SKIP_ZERO: return at + 1 + (a ? 0 : (uint32_t)insn->imm);
    case TBD_PROBE_RECORD: m->fields = 0; break;
    case TBD_PROBE_FIELD:
        assert_true(m->fields < 16);
        m->field[m->fields++] = a;
        break;
    case TBD_PROBE_SEND: m->records++; break;
    case TBD_PROBE_EXTEND: *d = extended(a, insn->b); break;
    default: *d = computed(m, insn, a, m->reg[insn->b]);
    }
    return at + 1;
}

static void carry_out_all(struct machine *m, const struct tbd_probe_script *script, uint32_t at)
{
    while (!m->is_unknown && script->code[at].op != TBD_PROBE_END) {
        uint32_t next = carry_out(m, script, at);

        assert_true(next > at && next < script->code_count);
        at = next;
    }
}

/* ---- numbers ---- */

#define ARG0 0x123456789abcull
#define ARG1 ((uint64_t)-7)

static struct machine with_arguments(void)
{
    struct machine m = { .reg = { 0 } };

    m.program[7] = ARG0;
    m.program[6] = ARG1;
    m.program[0] = 42;
    return m;
}

/* The value of an expression, by `printf("%d", EXPRESSION)`. */
static struct machine asked(const char *expression)
{
    struct tbd_query_error error = { 0 };
    struct tbd_probe_script *script;
    struct machine m = with_arguments();
    char text[512];

    snprintf(text, sizeof(text), "uprobe:a:f { printf(\"%%d\", %s) }", expression);
    script = tbd_script_parse(text, &error);
    if (!script)
        fail_msg("%s: %s", expression, error.message);
    carry_out_all(&m, script, script->where[0].code);
    tbd_script_free(script);
    return m;
}

#define SAME(expression, wanted)                                                                   \
    do {                                                                                           \
        struct machine m_ = asked(expression);                                                     \
        assert_int_equal(m_.records, 1);                                                           \
        assert_int_equal(m_.field[0], (uint64_t)(wanted));                                         \
    } while (0)

static void test_operators_are_those_of_c(void **state)
{
    int64_t a = (int64_t)ARG0, b = (int64_t)ARG1;

    (void)state;
    SAME("arg0 + arg1 * 3", a + b * 3);
    SAME("(arg0 + arg1) * 3", (a + b) * 3);
    SAME("arg0 / arg1", a / b);
    SAME("arg0 % arg1", a % b);
    SAME("arg1 >> 1 & 0xff | 1 << 4", ((ARG1 >> 1) & 0xff) | 1 << 4);
    SAME("arg0 ^ ~arg1", a ^ ~b);
    SAME("- - arg1", b);
    SAME("!arg0 || arg1 < 0", 1);
    SAME("arg0 && !arg1", 0);
    SAME("arg1 <= -7", 1);
    SAME("arg1 >= -6", 0);
    SAME("arg0 > arg1 == 1", 1);
    SAME("10 - 4 - 3", 3);
    SAME("0x7fffffffffffffff", INT64_MAX);
    SAME("(int8)arg0", (int8_t)a);
    SAME("(uint16)arg1", (uint16_t)b);
    SAME("(unsigned)arg1", (uint32_t)b);
    SAME("retval", 42);
    SAME("reg(\"di\")", ARG0);
}

/* What the left side decides is not asked on the right. */
static void test_logical_operators_skip(void **state)
{
    (void)state;
    SAME("arg0 || *(int32 *)0", 1);
    SAME("retval == 42 || 1 / 0", 1);
    SAME("!arg0 && *(int32 *)0", 0);
    assert_true(asked("arg0 && *(int32 *)0").is_unknown);
    assert_true(asked("1 / (arg1 + 7)").is_unknown);
    assert_int_equal(asked("1 / (arg1 + 7)").records, 0);
}

/* ---- the program's own variables ---- */

struct pair {
    int32_t first;
    int16_t second;
    unsigned low : 3, high : 6;
    struct pair *next;
    char name[8];
    double real;
};

static long counted = 77;

__attribute__((noinline, used)) static int visit(const struct pair *pair, int8_t small)
{
    counted += small;
    return pair->first + small;
}

static bool compile_here(const char *expression, struct tbd_probe_process *process,
                         struct tbd_probe_script **out, uint32_t *code,
                         struct tbd_query_error *error)
{
    struct tbd_script_place place = { process, (uint64_t)(uintptr_t)visit, true };
    static char text[512];

    snprintf(text, sizeof(text), "uprobe:a:visit { printf(\"%%d\", %s) }", expression);
    *out = tbd_script_parse(text, error);
    return *out && (*out)->where[0].asks_program &&
           tbd_script_compile(*out, 0, &place, code, error);
}

static struct machine asked_here(const char *expression, const struct pair *pair, int8_t small)
{
    struct tbd_query_error error = { 0 };
    struct tbd_probe_process process;
    struct tbd_probe_script *script = NULL;
    struct machine m = { .reg = { 0 } };
    uint32_t code = 0;

    m.program[7] = (uint64_t)(uintptr_t)pair;
    m.program[6] = (uint64_t)(int64_t)small;
    assert_true(tbd_process_read(&process, getpid(), &error));
    if (!compile_here(expression, &process, &script, &code, &error))
        fail_msg("%s: %s", expression, error.message);
    carry_out_all(&m, script, code);
    tbd_script_free(script);
    tbd_process_free(&process);
    return m;
}

static void test_variables_are_the_program_s(void **state)
{
    struct pair last = { .first = -5, .second = 300, .low = 5, .high = 33, .name = "last" };
    struct pair pair = { .first = 1000000, .second = -2, .low = 2, .high = 60, .next = &last };
    const struct {
        const char *text;
        int64_t value;
    } rows[] = {
        { "pair->first", 1000000 },
        { "pair->second", -2 },
        { "pair->low + pair->high", 62 },
        { "pair->next->first", -5 },
        { "(*pair->next).second", 300 },
        { "pair->next->name[1]", 'a' },
        { "*(&pair->first)", 1000000 },
        { "*(&pair->second) - *(int16 *)(arg0 + 4)", 0 },
        { "(uint8)pair->second", 254 },
        { "pair[0].low << 2 | 1", 9 },
        { "pair->first * pair->next->first - small", 1000000ll * -5 + 3 },
        { "small", -3 },
        { "counted", counted },
        { "((struct pair *)arg0)->second", -2 },
        { "((const struct pair *)pair)->next->low", 5 },
        { "pair->next != 0 && pair->next->next == 0", 1 },
        { "pair->next->next && pair->next->next->first", 0 },
        { "(pair->first + 1) / 2", 500000 },
        { "pair->name - (long)pair", offsetof(struct pair, name) },
    };

    (void)state;
    assert_int_equal(visit(&pair, 0), 1000000);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct machine m = asked_here(rows[i].text, &pair, -3);

        if (m.is_unknown || m.records != 1 || m.field[0] != (uint64_t)rows[i].value)
            fail_msg("%s is %" PRId64 ", not %" PRId64, rows[i].text, (int64_t)m.field[0],
                     rows[i].value);
    }
    assert_true(asked_here("pair->next->first", &last, 0).is_unknown);
}

static void test_what_has_no_value_is_said(void **state)
{
    static const char *const rows[][2] = {
        { "nosuch", "nosuch" },       { "pair->nosuch", "nosuch" },          { "*pair", "struct" },
        { "pair->real", "floating" }, { "(struct nosuch *)arg0", "nosuch" },
    };
    struct tbd_query_error error = { 0 };
    struct tbd_probe_process process;

    (void)state;
    assert_true(tbd_process_read(&process, getpid(), &error));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tbd_probe_script *script = NULL;
        uint32_t code, before;

        error = (struct tbd_query_error){ 0 };
        assert_false(compile_here(rows[i][0], &process, &script, &code, &error));
        if (!script || !strstr(error.message, rows[i][1]))
            fail_msg("%s: %s", rows[i][0], error.message);
        before = script->code_count;
        assert_true(before == script->where[0].code + 1);
        tbd_script_free(script);
    }
    tbd_process_free(&process);
}

/* Places where a clause is the same share its code; what it prints is one printf. */
static void test_code_is_shared(void **state)
{
    struct tbd_query_error error = { 0 };
    struct tbd_probe_process process;
    struct tbd_script_place place = { &process, (uint64_t)(uintptr_t)visit, true };
    struct tbd_probe_script *script = tbd_script_parse(
        "uprobe:a:b { printf(\"%d\", counted); @[counted] = count() } uprobe:a:c { printf(\"x\") }",
        &error);
    uint32_t first, second, count;

    (void)state;
    assert_non_null(script);
    assert_true(tbd_process_read(&process, getpid(), &error));
    assert_true(tbd_script_compile(script, 0, &place, &first, &error));
    count = script->code_count;
    place.address++;
    assert_true(tbd_script_compile(script, 0, &place, &second, &error));
    assert_int_equal(first, second);
    assert_int_equal(script->code_count, count);
    assert_int_equal(script->print_count, 2);
    assert_int_equal(script->map_count, 1);
    tbd_process_free(&process);
    tbd_script_free(script);
}

/* ---- errors ---- */

static void test_errors_have_a_place(void **state)
{
    static const struct {
        const char *text;
        size_t at;
    } rows[] = {
        { "uprobe:a:f { printf(\"%d\") }", 24 },
        { "uprobe:a:f { @x = foo(1) }", 18 },
        { "uprobe:a:f { $x = ; }", 18 },
        { "kprobe:f { }", 0 },
        { "uprobe:a:f /arg0 >/ { exit() }", 18 },
        { "uprobe:a:f { printf(\"%s\", arg0) }", 30 },
        { "uprobe:a:f { printf(\"%d\", n->) }", 29 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tbd_query_error error = { 0 };
        struct tbd_probe_script *script = tbd_script_parse(rows[i].text, &error);

        if (script || error.at != rows[i].at)
            fail_msg("%s: at %zu, not %zu: %s", rows[i].text, error.at, rows[i].at, error.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operators_are_those_of_c),
        cmocka_unit_test(test_logical_operators_skip),
        cmocka_unit_test(test_variables_are_the_program_s),
        cmocka_unit_test(test_what_has_no_value_is_said),
        cmocka_unit_test(test_code_is_shared),
        cmocka_unit_test(test_errors_have_a_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
