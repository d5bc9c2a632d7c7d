// links: tbd_query tbd_format
// sources: failing.c
// SPDX-License-Identifier: MIT
/* Questions, conditions and what is read of program files, where memory runs out at each of their
 * allocations. */
#include "failing.h"
#include "query/condition/expr.h"
#include "query/condition/question.h"
#include "query/debuginfo/dwarf_file.h"
#include "query/debuginfo/elf_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- conditions ---- */

static bool find_address(void *context, const char *name, uint64_t *out)
{
    (void)context;
    *out = 0x4000 + (uint8_t)name[0];
    return true;
}

static bool find_ranges(void *context, const char *name, enum tbd_name_kind kind,
                        struct tbd_range64 **out, size_t *out_count)
{
    (void)context;
    (void)kind;
    *out_count = 1;
    *out = malloc(sizeof(**out));
    if (!*out)
        return false;
    **out = (struct tbd_range64){ 0x1000 + (uint8_t)name[0], 0x2000 };
    return true;
}

static const struct tbd_expr_names names = { .address = find_address, .ranges = find_ranges };

static const char *const conditions[] = {
    "addr == &counter + 8 * 2 and size == 8",
    "func == main or module == \"libc.so.6\"",
    "not (oldval & 0xff) < signed(-1) and mem[rsp + 8, 8] == mem[mem[addr, 4], 8]",
    "stack=<**,main,*,\"helper\",**>",
    "list->head.next[3].name == \"somebody\" and *p != (unsigned char)q and sizeof(int) == 4",
    "name =~ \"^ab+c$\" and src=<file.c:12>",
    "touches[&buffer, 16] and (thread == 7 ? time > 5 : pc < 9)",
};

static void evaluate(struct tbd_expr *expr, struct outcome *outcome)
{
    static const uint8_t old[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    struct tbd_event event = {
        .type = TBD_EVENT_STORE, .pc = 0x1400, .addr = 0x4000, .size = 8, .old = old
    };
    struct tbd_expr_env env = { .event = &event };
    struct tbd_value value = tbd_expr_eval(expr, expr->root, &env);

    OUTCOME_ADD(outcome, value.v);
    OUTCOME_ADD(outcome, value.state);
}

static void run_condition(void *context, struct outcome *outcome)
{
    struct tbd_query_error error = { 0 };
    struct tbd_expr *expr = NULL;

    outcome->status = tbd_expr_parse(context, 0, TBD_EVENT_STORE, &expr, &error);
    if (outcome->status == TBD_OK)
        outcome->status = tbd_expr_bind_symbols(expr, &names, &error);
    if (outcome->status == TBD_OK)
        outcome->status = tbd_expr_bind_names(expr, &names, false, &error);
    if (outcome->status == TBD_OK)
        evaluate(expr, outcome);
    tbd_expr_free(expr);
}

static void a_condition(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++) {
        struct act act = { .name = conditions[i],
                           .run = run_condition,
                           .context = (void *)(uintptr_t)conditions[i] };

        failing_sweep(&act);
    }
}

static void run_question(void *context, struct outcome *outcome)
{
    struct tbd_query_error error = { 0 };
    struct tbd_question question = { 0 };

    outcome->status = tbd_question_parse(context, 5, &question, &error);
    if (outcome->status == TBD_OK) {
        OUTCOME_ADD(outcome, question.count);
        OUTCOME_ADD(outcome, question.position);
        tbd_question_free(&question);
    }
}

static void a_question(void **state)
{
    static char text[] = "goto 12+1 backward store 40 where addr==1 and stack=<**,main>";
    struct act act = { .name = "a question", .run = run_question, .context = text };

    (void)state;
    failing_sweep(&act);
}

/* ---- program files ---- */

#define PLACES 40u

/* What the first run, with all the memory there is, found at some addresses. */
static struct {
    uint64_t start;
    char name[80];
    uint32_t line;
} places[PLACES];
static size_t place_count;

static void find_places(struct tbd_elf_file *file, struct tbd_dwarf *dwarf)
{
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(file);
    struct tbd_source_line line;

    assert_true(symbols->count > PLACES);
    for (place_count = 0; place_count < PLACES; place_count++) {
        uint64_t start = symbols->all[symbols->count * place_count / PLACES].start;
        const struct tbd_elf_symbol *symbol = tbd_elf_symbol_at(file, start); /* a label has none */

        places[place_count].start = start;
        snprintf(places[place_count].name, sizeof(places[0].name), "%s",
                 symbol ? symbol->name : "");
        if (tbd_dwarf_line_at(dwarf, start, &line))
            places[place_count].line = line.line;
    }
}

/* A file may be without what does not fit into memory; what it says is right. */
static void check_place(struct tbd_elf_file *file, struct tbd_dwarf *dwarf, size_t i)
{
    const struct tbd_elf_symbol *symbol = tbd_elf_symbol_at(file, places[i].start);
    struct tbd_dwarf_scopes scopes;
    struct tbd_source_line line;

    if (symbol && strncmp(symbol->name, "sub_", 4) != 0) /* made of its address: it has no name */
        assert_int_equal(strncmp(symbol->name, places[i].name, sizeof(places[i].name) - 1), 0);
    if (dwarf && tbd_dwarf_line_at(dwarf, places[i].start, &line))
        assert_int_equal(line.line, places[i].line);
    if (dwarf)
        (void)tbd_dwarf_scopes(dwarf, places[i].start, &scopes);
}

static void run_file(void *context, struct outcome *outcome)
{
    struct tbd_elf_file *file = NULL;
    struct tbd_dwarf *dwarf;

    (void)context;
    outcome->status = tbd_elf_open("/proc/self/exe", &file);
    if (outcome->status != TBD_OK)
        return;
    dwarf = tbd_dwarf_of(file);
    if (!place_count)
        find_places(file, dwarf);
    for (size_t i = 0; i < place_count; i++)
        check_place(file, dwarf, i);
    (void)tbd_elf_by_name(file);
    if (dwarf)
        (void)tbd_dwarf_line_ranges(dwarf, "test_failing_query.c", 100, NULL, 0);
    tbd_elf_close(file);
}

static void symbols_and_lines(void **state)
{
    struct act act = { .name = "symbols and lines", .run = run_file, .may_go_without = true };

    (void)state;
    failing_sweep(&act);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_condition),
        cmocka_unit_test(a_question),
        cmocka_unit_test(symbols_and_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
