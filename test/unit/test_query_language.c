// SPDX-License-Identifier: MIT
// links: tbd_query
/* test_query_language.c - conditions and questions: their meaning, and the positions of errors
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "query/condition/expr.h"
#include "query/condition/question.h"
#include "query/session/callers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t old_bytes[8] = { 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11 };

/* ---- a small world of names: main 0x1000-0x1100, helper 0x1100-0x1180, libc 0x7000-0x9000 ---- */

static bool find_address(void *context, const char *name, uint64_t *out)
{
    (void)context;
    if (strcmp(name, "counter") != 0 && strcmp(name, "libc!counter") != 0)
        return false;
    *out = strcmp(name, "counter") == 0 ? 0x4000 : 0x8000;
    return true;
}

static bool find_ranges(void *context, const char *name, enum tbd_name_kind kind,
                        struct tbd_range64 **out, size_t *out_count)
{
    static const struct {
        const char *name;
        bool is_module;
        struct tbd_range64 range;
        // clang-format off
    } known[] = {
        { "main", false, { 0x1000, 0x1100 } },
        { "helper", false, { 0x1100, 0x1180 } },
        { "strlen", false, { 0x7000, 0x7040 } },
        { "libc.so.6", true, { 0x7000, 0x9000 } },
    };
    // clang-format on

    (void)context;
    *out = calloc(4, sizeof(**out));
    *out_count = 0;
    for (size_t i = 0; i < 4; i++) {
        if (strcmp(known[i].name, name) == 0 && known[i].is_module == (kind == TBD_NAME_MODULE))
            (*out)[(*out_count)++] = known[i].range;
    }
    return true;
}

/* twice() was inlined at two places, once into a copy of put(). */
static bool find_copies(void *context, const char *name, struct tbd_inlined_copy **out,
                        size_t *out_count)
{
    static const struct {
        const char *name;
        struct tbd_inlined_copy copy;
    } known[] = {
        { "put", { 0x1110, 5 } },
        { "twice", { 0x1010, 9 } },
        { "twice", { 0x1110, 6 } },
    };

    (void)context;
    *out = calloc(3, sizeof(**out));
    *out_count = 0;
    for (size_t i = 0; i < 3; i++) {
        if (strcmp(known[i].name, name) == 0)
            (*out)[(*out_count)++] = known[i].copy;
    }
    return true;
}

static const struct tbd_expr_names names = { .address = find_address,
                                             .ranges = find_ranges,
                                             .copies = find_copies };

static struct tbd_expr *parse(const char *text, enum tbd_event_type type)
{
    struct tbd_query_error error = { 0 };
    struct tbd_expr *expr = NULL;

    if (tbd_expr_parse(text, 0, type, &expr, &error) != TBD_OK)
        fail_msg("%s: %s", text, error.message);
    assert_int_equal(tbd_expr_bind_symbols(expr, &names, &error), TBD_OK);
    assert_int_equal(tbd_expr_bind_names(expr, &names, true, &error), TBD_OK);
    return expr;
}

static struct tbd_event store_event(void)
{
    return (struct tbd_event){ .type = TBD_EVENT_STORE,
                               .position = { 1000, 3 },
                               .pc = 0x1010,
                               .addr = 0x4000,
                               .size = 8,
                               .old = old_bytes,
                               .thread = 7 };
}

static struct tbd_value value_at(const char *text, const struct tbd_event *event)
{
    struct tbd_expr *expr = parse(text, event->type);
    struct tbd_expr_env env = { .event = event };
    struct tbd_value value = tbd_expr_eval(expr, expr->root, &env);

    tbd_expr_free(expr);
    return value;
}

static void check_store(const char *text, uint64_t expected)
{
    struct tbd_event event = store_event();
    struct tbd_value value = value_at(text, &event);

    if (value.state != TBD_VALUE_OK || value.v != expected)
        fail_msg("%s: state %d, 0x%llx instead of 0x%llx", text, (int)value.state,
                 (unsigned long long)value.v, (unsigned long long)expected);
}

static void operators_bind_as_documented(void **state)
{
    (void)state;
    check_store("1 + 2 * 3", 7);
    check_store("(1 + 2) * 3", 9);
    check_store("1 << 4 | 3", 19);
    check_store("7 & 3 == 3", 1); /* & binds tighter than == */
    check_store("6 ^ 3 & 1", 7);
    check_store("- 1 == 0xffffffffffffffff", 1);
    check_store("~0 - 1 == -2", 1);
    check_store("10 - 3 - 2", 5);
    check_store("100 / 7 % 5", 4);
    check_store("not 1 == 2 and 2 > 1 or 0", 1);
    check_store("1 or 0 and 0", 1);
    check_store("not 0 and not 0", 1);
    check_store("1<<64", 0);
}

static void numbers_have_four_bases_and_characters(void **state)
{
    (void)state;
    check_store("0x1F", 31);
    check_store("0o17", 15);
    check_store("017", 15);
    check_store("0b101", 5);
    check_store("'a'", 97);
    check_store("'\\n'", 10);
    check_store("'\\0'", 0);
    check_store("18446744073709551615", UINT64_MAX);
}

static void values_are_unsigned_unless_signed_is_said(void **state)
{
    (void)state;
    check_store("-1 > 1", 1);
    check_store("signed(-1) < 1", 1);
    check_store("signed(-8) / 2 == -4", 1);
    check_store("signed(-8) >> 1 == -4", 1);
    check_store("signed(-7) % 4 == -3", 1);
    check_store("signed(0x8000000000000000) / -1 == 0x8000000000000000", 1);
}

/* Each comparison of each pair: one signed() makes both sides signed. */
static void comparisons_order_values_by_their_kind(void **state)
{
    static const char *const operators[] = { "==", "!=", "<", "<=", ">", ">=" };
    static const struct {
        const char *left, *right;
        int order; /* of left to right: -1, 0, 1 */
    } rows[] = {
        { "1", "2", -1 },
        { "2", "2", 0 },
        { "2", "1", 1 },
        { "1", "-1", -1 },
        { "-1", "1", 1 },
        { "-2", "-1", -1 },
        { "0x7fffffffffffffff", "0x8000000000000000", -1 },
        { "signed(1)", "2", -1 },
        { "signed(2)", "1", 1 },
        { "signed(-1)", "-1", 0 },
        { "signed(-1)", "1", -1 },
        { "signed(1)", "-1", 1 },
        { "1", "signed(-1)", 1 },
        { "signed(-2)", "-1", -1 },
        { "signed(0)", "-1", 1 },
        { "signed(0x7fffffffffffffff)", "0x8000000000000000", 1 },
        { "signed(0x8000000000000000)", "0", -1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool less = rows[i].order < 0, equal = rows[i].order == 0;
        bool truth[] = { equal, !equal, less, less || equal, !less && !equal, !less };

        for (size_t k = 0; k < sizeof(truth) / sizeof(truth[0]); k++) {
            char text[100];

            snprintf(text, sizeof(text), "%s %s %s", rows[i].left, operators[k], rows[i].right);
            check_store(text, truth[k]);
        }
    }
}

static void event_fields_are_read(void **state)
{
    (void)state;
    check_store("addr == 0x4000 and size == 8 and oldval == 0x1122334455667788", 1);
    check_store("time * 10 + offset", 10003);
    check_store("thread", 7);
    check_store("rip == pc", 1);
    check_store("addr == &counter", 1);
    check_store("addr == &libc!counter", 0);
    check_store("addr == &\"counter\" + 0", 1);
    check_store("touches[0x4004, 1]", 1);
    check_store("touches[0x4008, 8]", 0);
    check_store("touches[0x3fff, 1]", 0);
    check_store("touches[0x3fff, 2]", 1);
}

static void names_of_functions_and_modules_match_the_pc(void **state)
{
    struct tbd_event event = store_event();

    (void)state;
    check_store("func==main", 1);
    check_store("func != main", 0);
    check_store("func==\"helper\" or module==\"libc.so.6\"", 0);
    event.pc = 0x7010;
    assert_int_equal(value_at("module==libc.so.6 and func==strlen", &event).v, 1);
}

static void registers_that_the_event_tells_need_no_replay(void **state)
{
    struct tbd_event event = { .type = TBD_EVENT_FUNC_ENTER,
                               .sp = 0x7ff0,
                               .flags = TBD_EVENT_HAS_SP,
                               .args = { 1, 2, 3, 4, 5, 0xabcdef0123456789 } };

    (void)state;
    assert_int_equal(value_at("rdi + rsi + rdx + rcx + r8", &event).v, 15);
    assert_int_equal(
        value_at("arg5 == r9 and r9d == 0x23456789 and r9w == 0x6789 and r9b == 0x89", &event).v,
        1);
    assert_int_equal(value_at("sp == rsp and rsp == 0x7ff0", &event).v, 1);
    assert_int_equal(value_at("rax == 1", &event).state, TBD_VALUE_UNKNOWN);
    event.type = TBD_EVENT_SYSCALL;
    event.number = 1;
    assert_int_equal(value_at("syscall==write and r10==4 and rax==1", &event).v, 1);
    assert_int_equal(value_at("syscall==\"write\"", &event).v, 1);
    assert_int_equal(value_at("syscall==read or syscall==2", &event).v, 0);
}

static void uses_say_what_an_evaluation_may_need(void **state)
{
    static const struct {
        const char *text;
        enum tbd_event_type type;
        uint32_t uses;
    } rows[] = {
        { "addr==1 and oldval==2", TBD_EVENT_STORE, 0 },
        { "newval==2", TBD_EVENT_STORE, TBD_USES_VALUE },
        { "oldval==2", TBD_EVENT_LOAD, TBD_USES_VALUE },
        { "rax==1", TBD_EVENT_STORE, TBD_USES_REGS },
        { "rdi==1 and sp==2", TBD_EVENT_FUNC_ENTER, TBD_USES_OPERANDS },
        { "rax==1", TBD_EVENT_FUNC_EXIT, 0 },
        { "sp==1", TBD_EVENT_STORE, TBD_USES_REGS },
        { "mem[arg0,4]==1", TBD_EVENT_FUNC_ENTER, TBD_USES_MEMORY | TBD_USES_OPERANDS },
        { "stack=<**,main>", TBD_EVENT_STORE, TBD_USES_STACK | TBD_USES_NAMES },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tbd_expr *expr = parse(rows[i].text, rows[i].type);

        assert_int_equal(expr->uses, rows[i].uses);
        tbd_expr_free(expr);
    }
}

static void unknown_values_do_not_hide_a_decision(void **state)
{
    static const struct {
        const char *text;
        enum tbd_value_state state;
        uint64_t v;
    } rows[] = {
        { "rax==1 and 0", TBD_VALUE_OK, 0 },     { "0 and rax==1", TBD_VALUE_OK, 0 },
        { "1 or rax==1", TBD_VALUE_OK, 1 },      { "rax==1 and 1", TBD_VALUE_UNKNOWN, 0 },
        { "rax==1 or 0", TBD_VALUE_UNKNOWN, 0 }, { "not rax==1", TBD_VALUE_UNKNOWN, 0 },
        { "1/0 == 1", TBD_VALUE_BAD, 0 },        { "0 and 1/0", TBD_VALUE_OK, 0 },
        { "1 or 1/0", TBD_VALUE_OK, 1 },         { "1 and 1/0", TBD_VALUE_BAD, 0 },
        { "not 1%0", TBD_VALUE_BAD, 0 },         { "rax==1 and 1/0", TBD_VALUE_UNKNOWN, 0 },
        { "rax == 1/0", TBD_VALUE_BAD, 0 },      { "1/0 or 1", TBD_VALUE_OK, 1 },
        { "rax==1 or 1", TBD_VALUE_OK, 1 },      { "1/0 or rax==1", TBD_VALUE_UNKNOWN, 0 },
        { "1/0 or 0", TBD_VALUE_BAD, 0 },        { "0 or 1/0", TBD_VALUE_BAD, 0 },
        { "1/0 and 0", TBD_VALUE_OK, 0 },        { "not (1/0 and 0)", TBD_VALUE_OK, 1 },
        { "1/0 and 1", TBD_VALUE_BAD, 0 },       { "1/0 and rax==1", TBD_VALUE_UNKNOWN, 0 },
        { "1/0 or 1/0", TBD_VALUE_BAD, 0 },      { "not (1/0 or 1)", TBD_VALUE_OK, 0 },
    };
    struct tbd_event event = store_event();

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tbd_value value = value_at(rows[i].text, &event);

        if (value.state != rows[i].state || (value.state == TBD_VALUE_OK && value.v != rows[i].v))
            fail_msg("%s: state %d value %llu", rows[i].text, (int)value.state,
                     (unsigned long long)value.v);
    }
}

/* 1: it is true; 0: it is not; -1: that is open. */
static void what_holds_may_be_decided_with_less(void **state)
{
    static const struct {
        const char *text;
        int holds;
        uint64_t divisions; /* events that count */
    } rows[] = {
        { "1/0 and rax==1", 0, 1 },
        { "rax==1 and 1/0", -1, 0 },
        { "1/0 or 1", 1, 0 },
        { "1/0 or rax==1", -1, 0 },
        { "1/0 or 1/0", 0, 1 },
        { "1/0 and 0", 0, 1 },
        { "(1/0 and rax==1) or 1", 1, 0 },
        { "0 and 1/0", 0, 0 },
        { "1/0 or 2/0 or 1", 1, 0 },
        { "(1/0 or 1) and 1/0", 0, 1 },
        { "1/0 or 0", 0, 1 },
        { "(1/0 or 1) and 1", 1, 0 },
    };
    struct tbd_event event = store_event();

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tbd_expr *expr = parse(rows[i].text, TBD_EVENT_STORE);
        struct tbd_expr_env env = { .event = &event };
        struct tbd_value value = tbd_expr_holds(expr, expr->root, &env);
        int holds = value.state == TBD_VALUE_UNKNOWN ? -1
                    : value.state == TBD_VALUE_OK    ? value.v != 0
                                                     : 0;

        if (holds != rows[i].holds || env.bad.divisions != rows[i].divisions)
            fail_msg("%s: %d, counted %llu", rows[i].text, holds,
                     (unsigned long long)env.bad.divisions);
        tbd_expr_free(expr);
    }
}

static void what_an_event_need_not_have_leaves_the_other_side(void **state)
{
    struct tbd_event open = { .type = TBD_EVENT_CALL, .number = TBD_CALLERS_UNKNOWN };
    struct tbd_event sent = { .type = TBD_EVENT_SIGNAL, .number = 10 };

    (void)state;
    assert_int_equal(value_at("duration==0", &open).state, TBD_VALUE_BAD);
    assert_int_equal(value_at("duration==0 or not returned", &open).v, 1);
    assert_int_equal(value_at("nesting==1 or duration==0", &open).state, TBD_VALUE_BAD);
    open.flags = TBD_EVENT_RETURNED;
    assert_int_equal(value_at("duration==0", &open).v, 1);
    assert_int_equal(value_at("addr==0", &sent).state, TBD_VALUE_BAD);
    assert_int_equal(value_at("addr==0 or signal==10", &sent).v, 1);
    sent.flags = TBD_EVENT_HAS_ADDR;
    assert_int_equal(value_at("addr==0", &sent).v, 1);
}

static enum tbd_value_state read_memory(void *context, uint64_t address, uint64_t bytes,
                                        uint64_t *out)
{
    (void)context;
    *out = address + bytes;
    return address < 0x100 ? TBD_VALUE_BAD : TBD_VALUE_OK;
}

static void memory_is_read_where_it_can_be(void **state)
{
    struct tbd_event event = store_event();
    struct tbd_regs regs = { .gpr[TBD_RBX] = 0x500 };
    struct tbd_expr_env env = { .event = &event, .regs = &regs, .read = read_memory };
    struct tbd_expr *expr =
        parse("mem[rbx+8, 4] == 0x50c and mem[mem[0x200,8],1] == 0x209", TBD_EVENT_STORE);

    (void)state;
    assert_int_equal(expr->memory_count, 3);
    assert_int_equal(tbd_expr_eval(expr, expr->root, &env).v, 1);
    env.regs = NULL;
    assert_int_equal(tbd_expr_eval(expr, expr->root, &env).state, TBD_VALUE_UNKNOWN);
    tbd_expr_free(expr);
    expr = parse("mem[8, 8] == 16", TBD_EVENT_STORE);
    assert_int_equal(tbd_expr_eval(expr, expr->root, &env).state, TBD_VALUE_BAD);
    assert_int_equal(env.bad.unmapped, 1);
    tbd_expr_free(expr);
}

/* ---- memory that the event itself tells ---- */

#define NOT_TOLD 0x5eed5eed5eed5eedull /* contents of memory that the event does not tell */

static enum tbd_value_state read_elsewhere(void *context, uint64_t address, uint64_t bytes,
                                           uint64_t *out)
{
    (void)context;
    (void)address;
    (void)bytes;
    *out = NOT_TOLD;
    return TBD_VALUE_OK;
}

struct told_row {
    const char *text;
    uint64_t expected;
};

/* after[] is never read from memory: what the event does not tell is unknown. */
static void check_told(const struct tbd_event *event, const struct told_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct tbd_expr *expr = parse(rows[i].text, event->type);
        struct tbd_expr_env env = { .event = event, .read = read_elsewhere };
        struct tbd_value value = tbd_expr_eval(expr, expr->root, &env);

        tbd_expr_free(expr);
        if (value.state == TBD_VALUE_UNKNOWN && strncmp(rows[i].text, "after", 5) == 0)
            value = (struct tbd_value){ .v = NOT_TOLD };
        if (value.state != TBD_VALUE_OK || value.v != rows[i].expected)
            fail_msg("%s of a store of %u bytes: state %d, 0x%llx instead of 0x%llx", rows[i].text,
                     (unsigned)event->size, (int)value.state, (unsigned long long)value.v,
                     (unsigned long long)rows[i].expected);
    }
}

#define CHECK_TOLD(event, rows) check_told(event, rows, sizeof(rows) / sizeof((rows)[0]))

/* The bytes past the store's are recorded, but belong to another event. */
static void a_store_tells_only_bytes_that_it_wrote(void **state)
{
    static const struct told_row rows[] = {
        { "mem[0x4000, 4]", 0x55667788 }, { "mem[0x4000, 2]", 0x7788 },
        { "mem[0x4001, 1]", 0x77 },       { "mem[0x4002, 2]", 0x5566 },
        { "mem[0x4003, 1]", 0x55 },       { "mem[0x4000, 8]", NOT_TOLD },
        { "mem[0x4000, 5]", NOT_TOLD },   { "mem[0x4001, 4]", NOT_TOLD },
        { "mem[0x4003, 2]", NOT_TOLD },   { "mem[0x4004, 1]", NOT_TOLD },
        { "mem[0x3fff, 1]", NOT_TOLD },   { "mem[0x3fff, 2]", NOT_TOLD },
    };
    static const struct told_row loaded[] = { { "mem[0x4000, 4]", NOT_TOLD } };
    struct tbd_event event = store_event();

    (void)state;
    event.size = 4;
    CHECK_TOLD(&event, rows);
    event.type = TBD_EVENT_LOAD;
    CHECK_TOLD(&event, loaded);
}

static void a_store_tells_only_bytes_that_it_leaves(void **state)
{
    static const struct told_row by_bytes[] = {
        { "after[0x4000, 4]", 0x55667788 }, { "after[0x4001, 1]", 0x77 },
        { "after[0x4002, 2]", 0x5566 },     { "after[0x4000, 8]", NOT_TOLD },
        { "after[0x4003, 2]", NOT_TOLD },   { "after[0x4004, 1]", NOT_TOLD },
        { "after[0x3fff, 2]", NOT_TOLD },   { "mem[0x4000, 4]", NOT_TOLD },
    };
    static const struct told_row by_value[] = {
        { "after[0x4000, 4]", 0xaabbccdd }, { "after[0x4000, 1]", 0xdd },
        { "after[0x4000, 8]", NOT_TOLD },   { "after[0x4001, 1]", NOT_TOLD },
        { "after[0x4004, 1]", NOT_TOLD },
    };
    struct tbd_event event = store_event();

    (void)state;
    event.size = 4;
    event.old = NULL;
    event.fresh = old_bytes;
    CHECK_TOLD(&event, by_bytes);
    event.fresh = NULL;
    event.value = 0xaabbccdd;
    event.flags |= TBD_EVENT_HAS_VALUE;
    CHECK_TOLD(&event, by_value);
}

static bool stack_matches(const char *pattern, const struct tbd_inlined_call *innermost_first,
                          size_t count)
{
    struct tbd_event event = store_event();
    struct tbd_expr_env env = { .event = &event, .frames = innermost_first, .frame_count = count };
    struct tbd_expr *expr = parse(pattern, TBD_EVENT_STORE);
    struct tbd_value value = tbd_expr_eval(expr, expr->root, &env);

    tbd_expr_free(expr);
    assert_int_equal(value.state, TBD_VALUE_OK);
    return value.v != 0;
}

static void stack_patterns_have_the_innermost_frame_last(void **state)
{
    /* 0x500 (no name) called main, which called helper, which called strlen */
    static const struct tbd_inlined_call frames[] = {
        { .pc = 0x7010 }, { .pc = 0x1110 }, { .pc = 0x1010 }, { .pc = 0x500 }
    };

    (void)state;
    assert_true(stack_matches("stack=<**,main,helper,strlen>", frames, 4));
    assert_true(stack_matches("stack=<**>", frames, 4));
    assert_true(stack_matches("stack=<**,strlen>", frames, 4));
    assert_true(stack_matches("stack = < ** , main , ** >", frames, 4));
    assert_true(stack_matches("stack=<*,main,*,*>", frames, 4));
    assert_true(stack_matches("stack==<**,\"main\",*,strlen,**>", frames, 4));
    assert_false(stack_matches("stack=<main,helper,strlen>", frames, 4));
    assert_false(stack_matches("stack=<**,helper>", frames, 4));
    assert_false(stack_matches("stack=<**,main,strlen>", frames, 4));
    assert_false(stack_matches("stack=<**,*,*,*,*,*>", frames, 4));
    assert_false(stack_matches("stack=<*>", frames, 4));
}

static void stack_patterns_know_inlined_calls(void **state)
{
    /* main called helper, in whose copy of put lies a copy of twice */
    static const struct tbd_inlined_call frames[] = {
        { 0x1112, { 0x1110, 6 } }, { 0x1112, { 0x1110, 5 } }, { .pc = 0x1112 }, { .pc = 0x1010 }
    };
    static const struct tbd_inlined_call other[] = { { 0x1112, { 0x1110, 7 } }, { .pc = 0x1112 } };

    (void)state;
    assert_true(stack_matches("stack=<main,helper,put,twice>", frames, 4));
    assert_true(stack_matches("stack=<**,helper,*,twice>", frames, 4));
    assert_true(stack_matches("stack=<**,helper,**>", frames, 4));
    assert_false(stack_matches("stack=<**,helper>", frames, 4));
    assert_false(stack_matches("stack=<**,twice,put>", frames, 4));
    assert_false(stack_matches("stack=<main,helper,twice>", frames, 4));
    assert_false(stack_matches("stack=<helper,twice>", other, 2));
    assert_false(stack_matches("stack=<helper,put>", other, 2));
    assert_true(stack_matches("stack=<helper,*>", other, 2));
}

static void constants_are_folded_for_the_planner(void **state)
{
    struct tbd_expr *expr = parse("addr == &counter + 2 * 8", TBD_EVENT_STORE);
    uint64_t value = 0;

    (void)state;
    assert_true(tbd_expr_is_field_equals(expr, expr->root, TBD_FIELD_ADDR, &value));
    assert_int_equal(value, 0x4010);
    tbd_expr_free(expr);
    expr = parse("0x10 == addr", TBD_EVENT_STORE);
    assert_true(tbd_expr_is_field_equals(expr, expr->root, TBD_FIELD_ADDR, &value));
    assert_int_equal(value, 0x10);
    tbd_expr_free(expr);
    expr = parse("addr == oldval", TBD_EVENT_STORE);
    assert_false(tbd_expr_is_field_equals(expr, expr->root, TBD_FIELD_ADDR, &value));
    tbd_expr_free(expr);
}

/* ---- errors ---- */

static void wrong_words_are_pointed_at(void **state)
{
    static const struct {
        const char *text;
        enum tbd_event_type type;
        const char *word; /* what the error points at; NULL: the end */
        enum tbd_status status;
    } rows[] = {
        { "arg0 == 1", TBD_EVENT_STORE, "arg0", TBD_TYPE },
        { "newval == 1", TBD_EVENT_LOAD, "newval", TBD_TYPE },
        { "addr = 5", TBD_EVENT_STORE, "=", TBD_SYNTAX },
        { "addr == 5 && and", TBD_EVENT_STORE, "and", TBD_SYNTAX },
        { "list-> == 5", TBD_EVENT_STORE, "==", TBD_SYNTAX },
        { "list.head. == 5", TBD_EVENT_STORE, " ==", TBD_SYNTAX },
        { "table[1 == 5", TBD_EVENT_STORE, NULL, TBD_SYNTAX },
        { "name =~ 5", TBD_EVENT_STORE, "5", TBD_TYPE },
        { "name =~ \"a(\"", TBD_EVENT_STORE, "\"a(\"", TBD_SYNTAX },
        { "src=<>", TBD_EVENT_STORE, "src", TBD_SYNTAX },
        { "var(5) == 1", TBD_EVENT_STORE, "5", TBD_SYNTAX },
        { "addr == 5 size", TBD_EVENT_STORE, "size", TBD_SYNTAX },
        { "addr ==", TBD_EVENT_STORE, NULL, TBD_SYNTAX },
        { "(addr == 5", TBD_EVENT_STORE, NULL, TBD_SYNTAX },
        { "addr == 0x", TBD_EVENT_STORE, "0x", TBD_SYNTAX },
        { "addr == 12ab", TBD_EVENT_STORE, "12ab", TBD_SYNTAX },
        { "addr == 18446744073709551616", TBD_EVENT_STORE, "18446744073709551616", TBD_SYNTAX },
        { "func", TBD_EVENT_STORE, NULL, TBD_TYPE },
        { "func < main", TBD_EVENT_STORE, "<", TBD_TYPE },
        { "func == 5", TBD_EVENT_STORE, "5", TBD_TYPE },
        { "mem[5] == 1", TBD_EVENT_STORE, "]", TBD_SYNTAX },
        { "mem[5,9] == 1", TBD_EVENT_STORE, "9", TBD_TYPE },
        { "retval < 0", TBD_EVENT_FUNC_EXIT, "<", TBD_TYPE },
        { "1 < 2 < 3", TBD_EVENT_STORE, "< 3", TBD_SYNTAX },
        { "stack=<**,a b>", TBD_EVENT_STORE, "b>", TBD_SYNTAX },
        { "stack=<>", TBD_EVENT_STORE, ">", TBD_SYNTAX },
        { "stack=main", TBD_EVENT_STORE, "main", TBD_SYNTAX },
        { "addr == 5 ; 6", TBD_EVENT_STORE, ";", TBD_SYNTAX },
        { "addr == \"x", TBD_EVENT_STORE, "\"x", TBD_SYNTAX },
        { "& == 1", TBD_EVENT_STORE, "==", TBD_SYNTAX },
        { "", TBD_EVENT_STORE, NULL, TBD_SYNTAX },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tbd_query_error error = { 0 };
        struct tbd_expr *expr = NULL;
        size_t expected = strlen(rows[i].text);

        if (rows[i].word != NULL)
            expected = (size_t)(strstr(rows[i].text, rows[i].word) - rows[i].text);
        if (tbd_expr_parse(rows[i].text, 0, rows[i].type, &expr, &error) != rows[i].status ||
            error.at != expected || error.message[0] == '\0' || expr != NULL)
            fail_msg("%s: status %d at %zu: %s", rows[i].text, (int)error.status, error.at,
                     error.message);
    }
}

static void names_that_do_not_exist_are_pointed_at(void **state)
{
    struct tbd_query_error error = { 0 };
    struct tbd_expr *expr = NULL;

    (void)state;
    assert_int_equal(tbd_expr_parse("addr == &nothing", 0, TBD_EVENT_STORE, &expr, &error), TBD_OK);
    assert_int_equal(tbd_expr_bind_symbols(expr, &names, &error), TBD_NAME);
    assert_int_equal(error.at, 8);
    tbd_expr_free(expr);
    assert_int_equal(tbd_expr_parse("1 and func==nothing", 0, TBD_EVENT_STORE, &expr, &error),
                     TBD_OK);
    assert_int_equal(tbd_expr_bind_names(expr, &names, true, &error), TBD_NAME);
    assert_int_equal(error.at, 12);
    assert_int_equal(tbd_expr_bind_names(expr, &names, false, &error), TBD_OK);
    tbd_expr_free(expr);
}

static void say_where(void *context, const char *name, struct tbd_query_error *error)
{
    (void)context;
    if (strcmp(name, "twice") != 0)
        return;
    snprintf(error->message, sizeof(error->message), "'%s' is elsewhere", name);
    snprintf(error->hint, sizeof(error->hint), "list.c:31 (in main)");
}

static void a_function_without_code_of_its_own_is_explained(void **state)
{
    static const struct tbd_expr_names own = { .address = find_address,
                                               .ranges = find_ranges,
                                               .explain = say_where };
    struct tbd_query_error error = { 0 };
    struct tbd_expr *expr = NULL;

    (void)state;
    assert_int_equal(tbd_expr_parse("func==twice", 0, TBD_EVENT_FUNC_ENTER, &expr, &error), TBD_OK);
    assert_int_equal(tbd_expr_bind_names(expr, &own, true, &error), TBD_NAME);
    assert_int_equal(error.at, 6);
    assert_non_null(strstr(error.message, "'twice' is elsewhere"));
    assert_non_null(strstr(error.hint, "list.c:31 (in main)"));
    tbd_expr_free(expr);
    assert_int_equal(tbd_expr_parse("module==twice", 0, TBD_EVENT_STORE, &expr, &error), TBD_OK);
    assert_int_equal(tbd_expr_bind_names(expr, &own, true, &error), TBD_NAME);
    assert_null(strstr(error.message, "elsewhere"));
    tbd_expr_free(expr);
}

static void deep_nesting_is_refused(void **state)
{
    char text[4001];
    struct tbd_query_error error = { 0 };
    struct tbd_expr *expr = NULL;

    (void)state;
    memset(text, '(', 4000);
    text[4000] = '\0';
    assert_int_equal(tbd_expr_parse(text, 0, TBD_EVENT_STORE, &expr, &error), TBD_SYNTAX);
    memset(text, '~', 4000);
    assert_int_equal(tbd_expr_parse(text, 0, TBD_EVENT_STORE, &expr, &error), TBD_SYNTAX);
}

/* ---- questions ---- */

static void questions_have_all_forms(void **state)
{
    struct tbd_query_error error;
    struct tbd_question question;

    (void)state;
    assert_int_equal(tbd_question_parse("goto first", 5, &question, &error), TBD_OK);
    assert_int_equal(question.from, TBD_FROM_FIRST);
    assert_false(question.is_search);
    assert_int_equal(tbd_question_parse("goto 0x10+3", 5, &question, &error), TBD_OK);
    assert_int_equal(question.position.time, 16);
    assert_int_equal(question.position.offset, 3);
    assert_int_equal(
        tbd_question_parse("goto 12+1 backward store 40 where addr==1", 5, &question, &error),
        TBD_OK);
    assert_true(question.is_search && question.backward);
    assert_int_equal(question.type, TBD_EVENT_STORE);
    assert_int_equal(question.count, 40);
    assert_non_null(question.where);
    tbd_question_free(&question);
    assert_int_equal(tbd_question_parse("goto current forward syscall", 5, &question, &error),
                     TBD_OK);
    assert_int_equal(question.count, 1);
    assert_int_equal(tbd_question_parse_all("all block_entry", 4, &question, &error), TBD_OK);
    assert_int_equal(question.type, TBD_EVENT_BLOCK_ENTRY);
}

static void wrong_questions_are_pointed_at(void **state)
{
    static const struct {
        const char *text;
        const char *word;
    } rows[] = {
        { "goto nowhere", "nowhere" },
        { "goto first up", "up" },
        { "goto first forward stores 1", "stores" },
        { "goto first forward store 0", "0" },
        { "goto first forward store 1 if", "if" },
        { "goto 5+x", "x" },
        { "goto first forward store 1 where addr=1", "=1" },
        { "goto 5 5", "5" },
    };
    struct tbd_query_error error;
    struct tbd_question question;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *last = NULL;

        for (const char *p = rows[i].text; (p = strstr(p, rows[i].word)) != NULL; p++)
            last = p;
        assert_non_null(last);
        assert_int_not_equal(tbd_question_parse(rows[i].text, 5, &question, &error), TBD_OK);
        if (error.at != (size_t)(last - rows[i].text))
            fail_msg("%s: points at %zu: %s", rows[i].text, error.at, error.message);
    }
}

/* ---- made, not parsed ---- */

static struct tbd_expr *parsed(const char *text, enum tbd_event_type type)
{
    struct tbd_query_error error;
    struct tbd_expr *expr = NULL;

    assert_int_equal(tbd_expr_parse(text, 0, type, &expr, &error), TBD_OK);
    return expr;
}

/* Compares everything except positions in the text. */
static void assert_same(const struct tbd_expr *made, const struct tbd_expr *expected)
{
    assert_non_null(made);
    assert_int_equal(made->node_count, expected->node_count);
    assert_int_equal(made->root, expected->root);
    for (uint32_t i = 0; i < made->node_count; i++) {
        const struct tbd_expr_node *a = &made->nodes[i], *b = &expected->nodes[i];

        /* up to `right`; before `value` is padding */
        if (memcmp(a, b, offsetof(struct tbd_expr_node, right) + sizeof(a->right)) != 0 ||
            a->value != b->value)
            fail_msg("node %u differs: op %d and %d", i, a->op, b->op);
    }
    assert_int_equal(made->uses, expected->uses);
    assert_int_equal(made->registers, expected->registers);
    assert_int_equal(made->levels, expected->levels);
    assert_int_equal(made->memory_count, expected->memory_count);
    assert_int_equal(made->name_count, expected->name_count);
    for (uint32_t i = 0; i < made->name_count; i++) {
        assert_string_equal(made->names[i].text, expected->names[i].text);
        assert_int_equal(made->names[i].kind, expected->names[i].kind);
    }
    assert_int_equal(made->symbol_count, expected->symbol_count);
    for (uint32_t i = 0; i < made->symbol_count; i++)
        assert_string_equal(made->symbols[i], expected->symbols[i]);
    assert_int_equal(made->regex_count, expected->regex_count);
    for (uint32_t i = 0; i < made->regex_count; i++)
        assert_string_equal(made->regexes[i].text, expected->regexes[i].text);
    assert_int_equal(made->pattern_count, expected->pattern_count);
    for (uint32_t i = 0; i < made->pattern_count; i++) {
        assert_int_equal(made->patterns[i].count, expected->patterns[i].count);
        assert_memory_equal(made->patterns[i].items, expected->patterns[i].items,
                            made->patterns[i].count * sizeof(int32_t));
    }
}

static void assert_made(struct tbd_expr *made, const char *text, enum tbd_event_type type)
{
    struct tbd_expr *expected = parsed(text, type);

    assert_same(made, expected);
    tbd_expr_free(made);
    tbd_expr_free(expected);
}

static void made_conditions_are_those_that_are_parsed(void **state)
{
    struct tbd_expr_name function = { .text = (char *)(uintptr_t) "main" };
    struct tbd_expr_name source = { .text = (char *)(uintptr_t) "a.c:7", .kind = TBD_NAME_SOURCE };
    struct tbd_expr_name module = { .text = (char *)(uintptr_t) "libc*", .kind = TBD_NAME_MODULE };

    (void)state;
    assert_made(tbd_expr_compare(TBD_EVENT_STORE, TBD_FIELD_TIME, TBD_EXPR_LE, 5), "time <= 5",
                TBD_EVENT_STORE);
    assert_made(tbd_expr_compare(TBD_EVENT_STORE, TBD_FIELD_SP, TBD_EXPR_GE, 9), "sp >= 9",
                TBD_EVENT_STORE);
    assert_made(tbd_expr_compare(TBD_EVENT_FUNC_EXIT, TBD_FIELD_SP, TBD_EXPR_GE, 9), "sp >= 9",
                TBD_EVENT_FUNC_EXIT);
    assert_made(tbd_expr_compare(TBD_EVENT_LINE, TBD_FIELD_FRAME, TBD_EXPR_EQ, 9), "frame == 9",
                TBD_EVENT_LINE);
    assert_made(tbd_expr_compare(TBD_EVENT_STORE, TBD_FIELD_NEWVAL, TBD_EXPR_NE, 0), "newval != 0",
                TBD_EVENT_STORE);
    assert_made(tbd_expr_compare(TBD_EVENT_LINE, TBD_FIELD_LINE, TBD_EXPR_LT, 7), "line < 7",
                TBD_EVENT_LINE);
    assert_made(tbd_expr_touches(0x4000, 8), "touches[0x4000,8]", TBD_EVENT_LOAD);
    assert_made(tbd_expr_changes(0x4000, 0x3f8),
                "touches[0x4000,2] and (size > 8 or "
                "(((oldval ^ newval) >> ((0x4000 - addr) * 8)) | "
                "((oldval ^ newval) << ((addr - 0x4000) * 8))) & 0x3f8 != 0)",
                TBD_EVENT_STORE);
    assert_made(tbd_expr_is_in(&function), "func == main", TBD_EVENT_STORE);
    assert_made(tbd_expr_is_in(&module), "module == \"libc*\"", TBD_EVENT_STORE);
    assert_made(tbd_expr_is_in(&source), "src=<a.c,7>", TBD_EVENT_LINE);
    assert_made(tbd_expr_not(tbd_expr_touches(1, 2)), "not touches[1,2]", TBD_EVENT_STORE);
}

static const char *const halves[] = {
    "func == main and mem[addr,4] == 3",        "module == \"l*\" or stack=<main,**,helper>",
    "name =~ \"^a\" and item->key == (short)3", "mem[mem[rsp,8],8] == &counter",
    "stack=<*,strlen> and func != helper",      "sizeof item == 8 or text =~ \"b+\"",
};

/* Every pair: indices in nodes of the second are moved past the first. */
static void joined_conditions_are_those_that_are_parsed_as_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(halves) / sizeof(halves[0]); i++) {
        for (size_t j = 0; j < sizeof(halves) / sizeof(halves[0]); j++) {
            char text[256];
            struct tbd_expr *made = tbd_expr_join(TBD_EXPR_AND, parsed(halves[i], TBD_EVENT_STORE),
                                                  parsed(halves[j], TBD_EVENT_STORE));

            snprintf(text, sizeof(text), "(%s) and (%s)", halves[i], halves[j]);
            assert_made(made, text, TBD_EVENT_STORE);
        }
    }
    assert_null(tbd_expr_join(TBD_EXPR_OR, parsed(halves[0], TBD_EVENT_STORE), NULL));
    assert_null(tbd_expr_join(TBD_EXPR_OR, NULL, parsed(halves[0], TBD_EVENT_STORE)));
    assert_null(tbd_expr_not(NULL));
}

static void copies_are_unbound_and_their_own(void **state)
{
    struct tbd_query_error error;

    (void)state;
    for (size_t i = 0; i < sizeof(halves) / sizeof(halves[0]); i++) {
        struct tbd_expr *expr = parsed(halves[i], TBD_EVENT_STORE), *copy;

        assert_int_equal(tbd_expr_bind_names(expr, &names, false, &error), TBD_OK);
        copy = tbd_expr_copy(expr);
        for (uint32_t n = 0; n < copy->name_count; n++)
            assert_null(copy->names[n].ranges);
        tbd_expr_free(expr);
        assert_made(copy, halves[i], TBD_EVENT_STORE);
    }
}

static void questions_are_made_of_values(void **state)
{
    struct tbd_question question =
        tbd_question_before((struct tbd_position){ 7, 3 }, TBD_EVENT_STORE);
    struct tbd_question copy;
    struct tbd_expr *expected;

    (void)state;
    assert_true(question.is_search && question.backward && question.from == TBD_FROM_POSITION);
    assert_true(question.position.time == 7 && question.position.offset == 3);
    assert_int_equal(question.count, 1);
    tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_GE, 2);
    tbd_question_where(&question, tbd_expr_touches(16, 4));
    assert_int_equal(tbd_question_copy(&question, &copy), TBD_OK);
    tbd_question_free(&question);
    expected = parsed("time >= 2 and touches[16,4]", TBD_EVENT_STORE);
    assert_same(copy.where, expected);
    tbd_expr_free(expected);
    tbd_question_where(&copy, NULL);
    assert_true(copy.is_lost && copy.where == NULL);
    assert_true(tbd_question_last(TBD_EVENT_LINE).backward);
    assert_false(tbd_question_first(TBD_EVENT_LINE).backward);
    question = tbd_question_first(TBD_EVENT_STATE);
    assert_true(tbd_question_is_states(&question));
    tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_GE, 2);
    assert_false(tbd_question_is_states(&question));
    tbd_question_free(&question);
}

/* `value` is an int at 0x4000, `other` means nothing. */
static bool find_value(void *context, const char *text, size_t at, size_t length,
                       struct tbd_expr_stand_in *out, struct tbd_query_error *error)
{
    (void)context;
    if (length == 5 && memcmp(text + at, "other", 5) == 0)
        return tbd_query_wrong(error, TBD_TYPE, at, length, "no such value");
    *out = (struct tbd_expr_stand_in){ .address = 0x4000, .bytes = 4, .type = "int" };
    return length == 5 && memcmp(text + at, "value", 5) == 0;
}

static void words_of_the_asker_stand_for_memory(void **state)
{
    static const char text[] = "all store of x where value == 3 and newval > 2 by line";
    static const char wrong[] = "all store of x where newval == 3 and other > 2 by line";
    const struct tbd_expr_words own = { find_value, NULL };
    struct tbd_query_error error;
    struct tbd_question question;
    struct tbd_question_words words;
    struct tbd_expr *expected = parsed("(int)mem[0x4000,4] == 3 and newval > 2", TBD_EVENT_STORE);

    (void)state;
    assert_int_equal(tbd_question_read_all(text, 4, strlen(text) - 8, &question, &words, &error),
                     TBD_OK);
    assert_memory_equal(text + words.of, "of", 2);
    assert_int_equal(words.of_end - words.object, 1);
    assert_int_equal(text[words.object], 'x');
    assert_int_equal(tbd_question_take_where(&question, &words, &own, &error), TBD_OK);
    assert_same(question.where, expected);
    tbd_question_free(&question);
    tbd_expr_free(expected);
    assert_int_equal(tbd_question_read_all(wrong, 4, strlen(wrong) - 8, &question, &words, &error),
                     TBD_OK);
    assert_int_equal(tbd_question_take_where(&question, &words, &own, &error), TBD_TYPE);
    assert_int_equal(error.at, strstr(wrong, "other") - wrong);
    assert_null(question.where);
    assert_int_equal(tbd_question_parse_all(text, 4, &question, &error), TBD_SYNTAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_bind_as_documented),
        cmocka_unit_test(numbers_have_four_bases_and_characters),
        cmocka_unit_test(values_are_unsigned_unless_signed_is_said),
        cmocka_unit_test(comparisons_order_values_by_their_kind),
        cmocka_unit_test(event_fields_are_read),
        cmocka_unit_test(names_of_functions_and_modules_match_the_pc),
        cmocka_unit_test(registers_that_the_event_tells_need_no_replay),
        cmocka_unit_test(uses_say_what_an_evaluation_may_need),
        cmocka_unit_test(unknown_values_do_not_hide_a_decision),
        cmocka_unit_test(what_holds_may_be_decided_with_less),
        cmocka_unit_test(what_an_event_need_not_have_leaves_the_other_side),
        cmocka_unit_test(memory_is_read_where_it_can_be),
        cmocka_unit_test(a_store_tells_only_bytes_that_it_wrote),
        cmocka_unit_test(a_store_tells_only_bytes_that_it_leaves),
        cmocka_unit_test(stack_patterns_have_the_innermost_frame_last),
        cmocka_unit_test(stack_patterns_know_inlined_calls),
        cmocka_unit_test(constants_are_folded_for_the_planner),
        cmocka_unit_test(wrong_words_are_pointed_at),
        cmocka_unit_test(names_that_do_not_exist_are_pointed_at),
        cmocka_unit_test(a_function_without_code_of_its_own_is_explained),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(questions_have_all_forms),
        cmocka_unit_test(wrong_questions_are_pointed_at),
        cmocka_unit_test(made_conditions_are_those_that_are_parsed),
        cmocka_unit_test(joined_conditions_are_those_that_are_parsed_as_one),
        cmocka_unit_test(copies_are_unbound_and_their_own),
        cmocka_unit_test(questions_are_made_of_values),
        cmocka_unit_test(words_of_the_asker_stand_for_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
