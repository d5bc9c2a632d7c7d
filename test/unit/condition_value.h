// SPDX-License-Identifier: MIT
/* condition_value.h - the value of a C expression as a condition: lowered at an address, then
 * evaluated with the memory there and no registers */
#ifndef TBD_TEST_CONDITION_VALUE_H
#define TBD_TEST_CONDITION_VALUE_H

#include "query/condition/expr_lower.h"

static inline enum tbd_value_state condition_read(void *context, uint64_t address, uint64_t bytes,
                                                  uint64_t *out)
{
    const struct tbd_stack_memory *memory = context;

    *out = 0;
    return bytes <= sizeof(*out) && memory->read(memory->context, address, out, bytes)
               ? TBD_VALUE_OK
               : TBD_VALUE_BAD;
}

static inline bool condition_has_no_symbols(void *context, const char *name, uint64_t *out)
{
    (void)context;
    (void)name;
    (void)out;
    return false;
}

/* False: it has no value, as it is no condition, has no type, or has no meaning at the address.
 * `line` 0: the source line is not known. */
static inline bool condition_value_in_line(const struct tbd_c_scope *scope, uint32_t line,
                                           const char *text, uint64_t *out)
{
    const struct tbd_expr_names names = { .address = condition_has_no_symbols };
    struct tbd_lower lower = { .scope = scope, .type = TBD_EVENT_LINE, .line = line };
    struct tbd_event event = { .type = TBD_EVENT_LINE };
    struct tbd_expr_env env = { .event = &event,
                                .read = condition_read,
                                .read_context = (void *)(uintptr_t)scope->place->memory };
    struct tbd_query_error problem;
    struct tbd_value value = { .state = TBD_VALUE_BAD };
    struct tbd_expr *expr, *lowered;

    if (tbd_expr_parse(text, 0, TBD_EVENT_LINE, &expr, &problem) != TBD_OK)
        return false;
    if ((expr->uses & TBD_USES_TYPES) != 0 &&
        tbd_expr_bind_symbols(expr, &names, &problem) == TBD_OK &&
        tbd_expr_lower(expr, &lower, &lowered, &problem) == TBD_OK) {
        if (problem.status == TBD_OK)
            value = tbd_expr_eval(lowered, lowered->root, &env);
        tbd_expr_free(lowered);
    }
    tbd_expr_free(expr);
    *out = value.v;
    return value.state == TBD_VALUE_OK;
}

static inline bool condition_value(const struct tbd_c_scope *scope, const char *text, uint64_t *out)
{
    return condition_value_in_line(scope, 0, text, out);
}

#endif
