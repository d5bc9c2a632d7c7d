// SPDX-License-Identifier: MIT
// links: tbd_patcher_host
/* Marks of the touch map: who shares them, which bytes they are made for, and that every byte accessed is on a page that is
 * marked, also where constants are as far apart as can be. */
#include "patcher/touch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct tbd_touch_plan plan;
static struct tbd_touch touch[TBD_BLOCK_MAX_INSNS][TBD_INSN_MAX_ACCESSES];

static void begin(void)
{
    memset(&plan, 0, sizeof(plan));
    memset(touch, 0, sizeof(touch));
}

/* Instruction `insn` accesses `size` bytes at `root` + `add`. */
static void add(uint32_t insn, uint32_t root, int64_t offset, uint16_t size, uint8_t flags)
{
    const struct tbd_access access = { .size = size, .flags = flags };
    const struct tbd_address address = { .base_root = root, .add = offset, .scale = 1 };

    tbd_touch_add(&plan, &access, insn, 0, &address, true);
}

static void neighbours_share_marks(void **state)
{
    (void)state;
    begin();
    add(0, 5, 100, 8, TBD_ACCESS_READ);
    add(1, 5, 80, 8, TBD_ACCESS_READ);
    add(2, 5, 4000, 8, TBD_ACCESS_WRITE);
    add(3, 6, 100, 8, TBD_ACCESS_READ); /* of another register */
    tbd_touch_finish(&plan, touch);
    assert_int_equal(plan.count, 2);
    assert_int_equal(touch[0][0].marks, TBD_MARK_READ | TBD_MARK_LOW | TBD_MARK_HIGH);
    assert_int_equal(touch[0][0].read_at, -20);
    assert_int_equal(touch[0][0].low_at, 3900);
    assert_int_equal(touch[0][0].high_at, 3907);
    assert_int_equal(touch[1][0].marks | touch[2][0].marks, 0);
    assert_int_equal(touch[3][0].marks, TBD_MARK_READ);
}

static void a_page_apart_is_too_far(void **state)
{
    (void)state;
    begin();
    add(0, 5, 0, 8, TBD_ACCESS_READ);
    add(1, 5, 4088, 8, TBD_ACCESS_READ);
    add(2, 5, 4089, 8, TBD_ACCESS_READ);
    tbd_touch_finish(&plan, touch);
    assert_int_equal(plan.count, 2);
    assert_int_equal(touch[2][0].marks, TBD_MARK_READ);
}

static void constants_may_be_as_far_apart_as_can_be(void **state)
{
    (void)state;
    begin();
    add(0, 5, -8844948393469124054, 8, TBD_ACCESS_READ);
    add(1, 5, 3617825603674933073, 8, TBD_ACCESS_READ);
    add(2, 5, INT64_MAX - 3, 8, TBD_ACCESS_WRITE);
    add(3, 5, INT64_MIN + 12, 4, TBD_ACCESS_WRITE); /* 12 bytes on: addresses wrap around */
    tbd_touch_finish(&plan, touch);
    assert_int_equal(plan.count, 3);
    assert_int_equal(touch[0][0].marks, TBD_MARK_READ);
    assert_int_equal(touch[1][0].marks, TBD_MARK_READ);
    assert_int_equal(touch[2][0].marks, TBD_MARK_LOW | TBD_MARK_HIGH);
    assert_int_equal(touch[2][0].low_at, 0);
    assert_int_equal(touch[2][0].high_at, 19);
}

/* [rip+x] and the like: the pages are known. */
static void constant_addresses_on_one_page_are_marked_once(void **state)
{
    (void)state;
    begin();
    add(0, 0, 0x10ff8, 8, TBD_ACCESS_WRITE);
    add(1, 0, 0x10f00, 8, TBD_ACCESS_WRITE);
    add(2, 0, 0x13ff9, 8, TBD_ACCESS_WRITE);
    tbd_touch_finish(&plan, touch);
    assert_int_equal(plan.count, 2);
    assert_int_equal(touch[0][0].marks, TBD_MARK_LOW);
    assert_int_equal(touch[0][0].low_at, -0xf8);
    assert_int_equal(touch[2][0].marks, TBD_MARK_LOW | TBD_MARK_HIGH);
    assert_int_equal(touch[2][0].high_at, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_share_marks),
        cmocka_unit_test(a_page_apart_is_too_far),
        cmocka_unit_test(constants_may_be_as_far_apart_as_can_be),
        cmocka_unit_test(constant_addresses_on_one_page_are_marked_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
