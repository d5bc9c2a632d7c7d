// links: tbd_replay
// SPDX-License-Identifier: MIT
/* Region table of the replay process, compared with a byte per page. */
#include "replay/stub/regions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAGES 64

struct model {
    uint32_t prot[PAGES]; /* 0 = nothing mapped */
};

static void check(const struct tbd_replay_regions *regions, const struct model *model)
{
    for (size_t i = 0; i < PAGES; i++) {
        const struct tbd_replay_region *found = tbd_replay_regions_find(regions, i * 4096 + 17);

        if (model->prot[i]) {
            assert_non_null(found);
            assert_int_equal(found->prot, model->prot[i]);
        } else {
            assert_null(found);
        }
    }
    for (size_t i = 1; i < regions->count; i++)
        assert_true(regions->table[i - 1].end <= regions->table[i].start);
}

static void one_step(struct tbd_replay_regions *regions, struct model *model, unsigned seed)
{
    uint64_t first = (unsigned)rand() % PAGES;
    uint64_t last = first + 1 + (unsigned)rand() % (PAGES - first);
    uint32_t prot = 1 + (unsigned)rand() % 7;
    struct tbd_replay_region added = { .start = first * 4096, .end = last * 4096, .prot = prot };

    for (uint64_t i = first; i < last; i++)
        model->prot[i] = seed == 0 ? prot : seed == 1 ? 0 : model->prot[i] ? prot : 0;
    if (seed == 0)
        assert_true(tbd_replay_regions_add(regions, added));
    else if (seed == 1)
        assert_true(tbd_replay_regions_remove(regions, added.start, added.end));
    else
        assert_true(tbd_replay_regions_protect(regions, added.start, added.end, prot));
}

static void random_changes_agree_with_a_page_array(void **state)
{
    static struct tbd_replay_region table[PAGES + 4];
    struct tbd_replay_regions regions = { .table = table, .capacity = PAGES + 4 };
    struct model model = { { 0 } };

    (void)state;
    srand(1);
    for (int i = 0; i < 5000; i++) {
        one_step(&regions, &model, (unsigned)rand() % 3);
        check(&regions, &model);
    }
}

static void a_full_table_refuses_and_stays_as_it_was(void **state)
{
    struct tbd_replay_region table[3];
    struct tbd_replay_regions regions = { .table = table, .capacity = 3 };
    struct tbd_replay_region one = { .start = 4096, .end = 5 * 4096, .prot = 1 };

    (void)state;
    assert_true(tbd_replay_regions_add(&regions, one));
    assert_false(tbd_replay_regions_remove(&regions, 2 * 4096, 3 * 4096));
    assert_int_equal(regions.count, 1);
    assert_int_equal(tbd_replay_regions_find(&regions, 2 * 4096)->end, 5 * 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_changes_agree_with_a_page_array),
        cmocka_unit_test(a_full_table_refuses_and_stays_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
