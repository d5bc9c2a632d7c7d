// SPDX-License-Identifier: MIT
// links: tbd_hooks_host
/* Where code may have an instruction that native play must stop at: all places, and no others, wherever they lie. */
#include "hooks/own/own_finds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GROUPS 4096u
#define BYTES  (GROUPS * 16u)

static bool is_pair(const uint8_t *at)
{
    switch (at[0]) {
    case 0x0f: return memchr("\x01\x03\x31\xa2\xae\xc7", at[1], 6) != NULL;
    case 0xd9:
    case 0xdd: return (at[1] >> 3 & 7) == 6;
    case 0xc7: return at[1] == 0xf8;
    case 0x60: return at[1] == 0xff;
    default: return false;
    }
}

static void check(const uint8_t *bytes)
{
    static uint16_t marks[GROUPS + 1];

    marks[GROUPS] = 0x5a5a;
    tbd_own_mark_finds(bytes, marks, GROUPS);
    for (size_t i = 0; i < BYTES; i++)
        if ((marks[i / 16] >> i % 16 & 1) != is_pair(bytes + i))
            fail_msg("%02x %02x at %zu: %s", bytes[i], bytes[i + 1], i,
                     is_pair(bytes + i) ? "not found" : "found");
    assert_int_equal(marks[GROUPS], 0x5a5a);
}

static void every_pair_of_bytes_is_found_or_passed(void **state)
{
    static uint8_t bytes[2 * BYTES + 64];
    size_t shift = 0;

    (void)state;
    for (; shift < 3; shift++) {
        for (uint32_t pair = 0; pair < 65536; pair++) {
            bytes[shift + 2 * pair] = (uint8_t)pair;
            bytes[shift + 2 * pair + 1] = (uint8_t)(pair >> 8);
        }
        check(bytes);
        check(bytes + BYTES);
    }
}

static void pairs_in_random_bytes_are_found(void **state)
{
    static uint8_t bytes[BYTES + 64];
    uint64_t random = 88172645463325252u;

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = random >> 62 ? (uint8_t)(random >> 40) : 0x0f;
    }
    for (size_t shift = 0; shift < 17; shift++)
        check(bytes + shift);
}

static void nothing_is_looked_at_if_nothing_is_asked(void **state)
{
    uint16_t mark = 7;

    (void)state;
    tbd_own_mark_finds(NULL, &mark, 0);
    assert_int_equal(mark, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_of_bytes_is_found_or_passed),
        cmocka_unit_test(pairs_in_random_bytes_are_found),
        cmocka_unit_test(nothing_is_looked_at_if_nothing_is_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
