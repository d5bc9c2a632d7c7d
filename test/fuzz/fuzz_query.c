// SPDX-License-Identifier: MIT
// links: tbd_query
/* fuzz_query.c - questions from anywhere: the first byte chooses the type of event, the rest is a
 * condition
 *
 * Oracles: an error points into the text and has a message; parsing again gives the same; what is
 * decided with little knowledge, be it that there is no value, stays so with more; what lowering makes can be
 * evaluated, and with all memory and registers it is never open. */
#include "query/condition/expr_lower.h"
#include "query/condition/question.h"

#include <dwarf.h>
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

static bool is_true(struct tbd_value value)
{
    return value.state == TBD_VALUE_OK && value.v != 0;
}

/* What holds with little knowledge, and with much, of a condition that has this value then. */
static void check_truth(struct tbd_value little, struct tbd_value much, struct tbd_value value)
{
    check(little.state == TBD_VALUE_UNKNOWN || is_true(little) == is_true(much));
    check(is_true(much) == is_true(value));
    check(much.state != TBD_VALUE_UNKNOWN || value.state == TBD_VALUE_UNKNOWN);
}

static void evaluate(const struct tbd_expr *expr, enum tbd_event_type type)
{
    static const uint8_t old[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    static const struct tbd_inlined_call frames[] = { { .pc = 0x10 },
                                                      { .pc = 0x20, .copy = { 0x20, 7 } },
                                                      { .pc = 0x20 } };
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
    check(second.state != TBD_VALUE_UNKNOWN ||
          (expr->uses & (TBD_USES_REGS | TBD_USES_TYPES | TBD_USES_VALUE | TBD_USES_FRAME)) != 0 ||
          type == TBD_EVENT_LOAD);
    if (first.state != TBD_VALUE_UNKNOWN)
        check(second.state == first.state && second.v == first.v);
    check_truth(tbd_expr_holds(expr, expr->root, &little), tbd_expr_holds(expr, expr->root, &much),
                second);
}

/* Variables by their first letter: of types that need no debug information. */
static bool find_variable(void *context, const char *name, bool of_program, struct tbd_data *out)
{
    struct tbd_type byte = tbd_type_made(DW_ATE_signed_char, 1);
    struct tbd_type types[] = { tbd_type_made(DW_ATE_signed, 4), tbd_type_pointer_to(&byte),
                                tbd_type_made(DW_ATE_float, 8),  tbd_type_made(DW_ATE_unsigned, 8),
                                tbd_type_made(DW_ATE_float, 4),  tbd_type_made(0, 0),
                                tbd_type_made(DW_ATE_boolean, 1) };

    (void)context;
    if (name[0] == 'n' || (of_program && name[0] == 'p'))
        return false;
    tbd_data_at(0x1000, &types[(unsigned char)name[0] % 7], out);
    if (name[0] == 'u')
        tbd_data_unknown(out, "optimized out");
    if (name[0] == 'k')
        tbd_data_number(77, &types[0], out);
    return true;
}

static void lower_and_evaluate(struct tbd_expr *expr, enum tbd_event_type type)
{
    struct tbd_place_of place = { 0 };
    struct tbd_c_scope scope = { .place = &place, .variable = find_variable };
    struct tbd_lower at = { .scope = &scope, .type = type, .line = 7 };
    static const uint8_t bytes[8] = { 9, 8, 7 };
    struct tbd_event event = { .type = type, .pc = 0x40, .addr = 0x80, .size = 8, .old = bytes };
    struct tbd_regs regs = { .rflags = 7 };
    static const struct tbd_inlined_call frames[] = { { .pc = 0x10 },
                                                      { .pc = 0x20, .copy = { 0x20, 7 } },
                                                      { .pc = 0x20 } };
    struct tbd_value *memory;
    struct tbd_query_error problem;
    struct tbd_expr *lowered;

    event.fresh = bytes;
    check(tbd_expr_lower(expr, &at, &lowered, &problem) == TBD_OK);
    check(lowered->levels <= TBD_EXPR_MAX_LEVELS);
    memory = calloc(lowered->memory_count + 1, sizeof(*memory));
    check(memory != NULL);
    for (uint32_t i = 0; i < lowered->memory_count; i++)
        memory[i] = (struct tbd_value){ .v = i * 0x1111, .state = TBD_VALUE_OK };
    struct tbd_expr_env env = { .event = &event,
                                .regs = &regs,
                                .memory = memory,
                                .frame = 0x2000,
                                .frames = frames,
                                .frame_count = 3 };
    check(tbd_expr_eval(lowered, lowered->root, &env).state != TBD_VALUE_UNKNOWN ||
          type == TBD_EVENT_LOAD);
    free(memory);
    tbd_expr_free(lowered);
}

static void check_error(const struct tbd_query_error *error, const char *text)
{
    check(error->status != TBD_OK && error->message[0] != '\0');
    check(error->at <= strlen(text));
}

static void try_condition(const char *text, enum tbd_event_type type)
{
    static const struct tbd_expr_names names = { .address = find_address, .ranges = find_ranges };
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
    lower_and_evaluate(expr, type);
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
    if (data[0] % 16 == 15)
        try_question(text);
    else
        try_condition(text, (enum tbd_event_type)(data[0] % TBD_EVENT_TYPE_COUNT));
    free(text);
    return 0;
}
