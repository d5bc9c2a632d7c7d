// SPDX-License-Identifier: MIT
// links: tbd_query
/* Conditions on memory at a store: reads of every size at every distance from stores of every size
 * give the bytes before or after it, or are not known; never bytes that the store did not have. */
#include "query/condition/expr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ADDRESS 0x4000u /* of the store */
#define AROUND  64u     /* bytes of memory on each side */

static uint8_t memory[2 * AROUND]; /* from ADDRESS - AROUND on, before the store */
static uint8_t old_bytes[AROUND], new_bytes[AROUND]; /* the event's; more than it stored is junk */

static enum tbd_value_state read_memory(void *context, uint64_t address, uint64_t bytes,
                                        uint64_t *out)
{
    (void)context;
    *out = 0;
    if (address < ADDRESS - AROUND || address + bytes > ADDRESS + AROUND)
        return TBD_VALUE_BAD;
    memcpy(out, memory + (address - (ADDRESS - AROUND)), bytes);
    return TBD_VALUE_OK;
}

static struct tbd_event store_of(uint32_t size)
{
    for (uint32_t i = 0; i < sizeof(memory); i++)
        memory[i] = (uint8_t)(i * 37 + 11);
    for (uint32_t i = 0; i < AROUND; i++) {
        old_bytes[i] = i < size ? memory[AROUND + i] : 0xee;
        new_bytes[i] = i < size ? (uint8_t)(i * 53 + 7) : 0xdd;
    }
    return (struct tbd_event){
        .type = TBD_EVENT_STORE, .addr = ADDRESS, .size = size, .old = old_bytes, .fresh = new_bytes
    };
}

static struct tbd_value value_of(const char *text, const struct tbd_event *event, bool can_read)
{
    struct tbd_expr_env env = { .event = event, .read = can_read ? read_memory : NULL };
    struct tbd_query_error error;
    struct tbd_expr *expr;
    struct tbd_value value;

    assert_int_equal(tbd_expr_parse(text, 0, TBD_EVENT_STORE, &expr, &error), TBD_OK);
    value = tbd_expr_eval(expr, expr->root, &env);
    tbd_expr_free(expr);
    return value;
}

static void expect(const char *text, const struct tbd_value *found, bool is_known,
                   const uint8_t *bytes, uint32_t count)
{
    uint64_t wanted = 0;

    memcpy(&wanted, bytes, count);
    if ((found->state == TBD_VALUE_OK) != is_known || (is_known && found->v != wanted))
        fail_msg("%s: state %d, %#lx; it is %s, %#lx", text, (int)found->state, found->v,
                 is_known ? "known" : "not known", wanted);
}

static void check(const struct tbd_event *event, int32_t distance, uint32_t bytes)
{
    const uint8_t *before = memory + AROUND + distance;
    bool inside = distance >= 0 && (uint32_t)distance + bytes <= event->size;
    char text[64];
    struct tbd_value found;

    snprintf(text, sizeof(text), "mem[%d, %u]", (int)ADDRESS + distance, bytes);
    found = value_of(text, event, true);
    expect(text, &found, true, before, bytes);
    found = value_of(text, event, false);
    expect(text, &found, inside, before, bytes);
    snprintf(text, sizeof(text), "after[%d, %u]", (int)ADDRESS + distance, bytes);
    found = value_of(text, event, true);
    expect(text, &found, inside, new_bytes + (inside ? distance : 0), bytes);
}

static void reads_around_a_store_give_its_bytes_or_none(void **state)
{
    static const uint32_t sizes[] = { 1, 2, 4, 8, 16, 32 };

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct tbd_event event = store_of(sizes[i]);

        for (uint32_t bytes = 1; bytes <= 8; bytes++)
            for (int32_t distance = -20; distance < 40; distance++)
                check(&event, distance, bytes);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_around_a_store_give_its_bytes_or_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
