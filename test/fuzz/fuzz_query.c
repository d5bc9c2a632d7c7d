// SPDX-License-Identifier: MIT
// links: tbd_query
/* fuzz_query.c - questions from anywhere: the first byte chooses the type of event, the rest is a
 * condition
 *
 * Oracles: an error points into the text and has a message; parsing again gives the same; what is
 * decided with little knowledge stays decided the same with more. */
#include "query/expr.h"
#include "query/question.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

static bool find_address(void *context, const char *name, uint64_t *out)
{
    (void)context;
    *out = strlen(name) * 8;
    return true;
}

static bool find_ranges(void *context, const char *name, enum tbd_name_kind kind,
                        struct tbd_range64 **out, size_t *out_count)
{
    (void)context;
    *out = calloc(1, sizeof(**out));
    check(*out != NULL);
    (*out)->start = strlen(name) * (kind == TBD_NAME_MODULE ? 0x1000 : 0x10);
    (*out)->end = (*out)->start + 0x100;
    *out_count = 1;
    return true;
}

static enum tbd_value_state read_memory(void *context, uint64_t address, uint64_t bytes,
                                        uint64_t *out)
{
    (void)context;
    *out = address ^ bytes;
    return TBD_VALUE_OK;
}

static void evaluate(const struct tbd_expr *expr, enum tbd_event_type type)
{
    static const uint8_t old[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    static const uint64_t frames[] = { 0x10, 0x20, 0x30 };
    struct tbd_event event = { .type = type, .pc = 0x40, .addr = 0x80, .size = 8, .old = old };
    struct tbd_event known = event;
    struct tbd_regs regs = { .rflags = 7 };
    struct tbd_expr_env little = { .event = &event };
    struct tbd_expr_env much = {
        .event = &known, .regs = &regs, .read = read_memory, .frames = frames, .frame_count = 3
    };
    struct tbd_value first = tbd_expr_eval(expr, expr->root, &little);
    struct tbd_value second;

    known.flags = TBD_EVENT_HAS_VALUE;
    known.value = 0x55;
    second = tbd_expr_eval(expr, expr->root, &much);
    check(second.state != TBD_VALUE_UNKNOWN || (expr->uses & TBD_USES_REGS) == 0);
    if (first.state == TBD_VALUE_OK)
        check(second.state != TBD_VALUE_OK || first.v == second.v);
    else if (first.state == TBD_VALUE_BAD)
        check(second.state == TBD_VALUE_BAD || second.v == 0);
}

static void check_error(const struct tbd_query_error *error, const char *text)
{
    check(error->status != TBD_OK && error->message[0] != '\0');
    check(error->at <= strlen(text));
}

static void try_condition(const char *text, enum tbd_event_type type)
{
    static const struct tbd_expr_names names = { find_address, find_ranges, NULL };
    struct tbd_query_error error = { 0 };
    struct tbd_query_error again = { 0 };
    struct tbd_expr *expr = NULL;
    struct tbd_expr *twice = NULL;
    enum tbd_status status = tbd_expr_parse(text, 0, type, &expr, &error);

    check(tbd_expr_parse(text, 0, type, &twice, &again) == status);
    if (status != TBD_OK) {
        check_error(&error, text);
        check(error.at == again.at && expr == NULL && twice == NULL);
        return;
    }
    check(expr->node_count == twice->node_count && expr->uses == twice->uses);
    tbd_expr_free(twice);
    check(tbd_expr_bind_symbols(expr, &names, &error) == TBD_OK);
    check(tbd_expr_bind_names(expr, &names, true, &error) == TBD_OK);
    evaluate(expr, type);
    tbd_expr_free(expr);
}

static void try_question(const char *text)
{
    struct tbd_query_error error;
    struct tbd_question question;

    if (tbd_question_parse(text, 0, &question, &error) != TBD_OK)
        check_error(&error, text);
    else
        check(!question.is_search || question.count >= 1);
    tbd_question_free(&question);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text;

    if (size < 1 || size > 4096)
        return 0;
    text = calloc(size, 1);
    check(text != NULL);
    memcpy(text, data + 1, size - 1);
    if (data[0] % 8 == 7)
        try_question(text);
    else
        try_condition(text, (enum tbd_event_type)(data[0] % 8));
    free(text);
    return 0;
}
