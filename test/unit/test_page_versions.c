// SPDX-License-Identifier: MIT
// links: tbd_organizer tbd_format tbd_base
/* test_page_versions.c - the bases of lean windows' page differences are the ones that a reader
 * finds */
#include "organizer/page_versions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define PAGES 12u
#define BASE  0x400000u
#define LIMIT 64u

/* A window with only pages. */
struct sample {
    struct tbd_window window;
    struct tbd_page_contents dirty[PAGES], gone[PAGES], first[PAGES];
    uint8_t bytes[PAGES][4096], first_bytes[PAGES][4096];
    struct tbd_side_message side[PAGES];
    struct tbd_range ranges[PAGES];
    struct tbd_product product;
    struct tbd_page_bases bases;
};

static struct sample *sample_new(uint32_t number)
{
    struct sample *s = calloc(1, sizeof(*s));

    assert_non_null(s);
    s->window = (struct tbd_window){ .number = number,
                                     .blocks = 100,
                                     .complete = true,
                                     .dirty = s->dirty,
                                     .gone = s->gone,
                                     .first = s->first };
    s->product = (struct tbd_product){ .window = &s->window, .side = s->side };
    return s;
}

static uint64_t address_of(unsigned page)
{
    return BASE + page * 4096ull;
}

/* Pages in ascending order. */
static void add_dirty(struct sample *s, unsigned page, uint8_t value)
{
    size_t i = s->window.dirty_count++;

    memset(s->bytes[i], value, 4096);
    s->dirty[i] = (struct tbd_page_contents){ .address = address_of(page), .bytes = s->bytes[i] };
}

static void add_first(struct sample *s, unsigned page, uint64_t time, uint8_t value)
{
    size_t i = s->window.first_count++;

    memset(s->first_bytes[i], value, 4096);
    s->first[i] = (struct tbd_page_contents){ .address = address_of(page),
                                              .time = time,
                                              .bytes = s->first_bytes[i] };
}

static void add_gone(struct sample *s, unsigned page)
{
    s->gone[s->window.gone_count++] =
        (struct tbd_page_contents){ .address = address_of(page), .time = 3 };
}

static void add_unmap(struct sample *s, uint64_t time, uint64_t start, uint64_t end)
{
    size_t i = s->product.side_count++;

    s->ranges[i] = (struct tbd_range){ start, end };
    s->side[i] = (struct tbd_side_message){ .kind = TBD_MSG_UNMAP,
                                            .bytes = sizeof(struct tbd_range),
                                            .payload = (const uint8_t *)&s->ranges[i],
                                            .time = time };
}

static void join(struct sample *s, struct tbd_page_versions *v)
{
    tbd_page_bases_copy(&s->bases, v, &s->window);
    tbd_page_bases_join(&s->bases, v, &s->product);
    memset(s->bytes, 0xee, sizeof(s->bytes)); /* a window's memory may go away: copies count */
}

/* The value of the page's base; -1: none. */
static int base_of(struct sample *s, unsigned page)
{
    const uint8_t *base = tbd_page_bases_find(&s->bases, address_of(page));

    if (!base)
        return -1;
    assert_memory_equal(base, base + 1, 4095);
    return base[0];
}

static void done(struct sample *s)
{
    tbd_page_bases_free(&s->bases);
    free(s);
}

/* Window `number` modifies only page 5; returns the value of its base. */
static int next_of_page_5(struct tbd_page_versions *v, uint32_t number, uint8_t value)
{
    struct sample *s = sample_new(number);
    int base;

    add_dirty(s, 5, value);
    join(s, v);
    base = base_of(s, 5);
    done(s);
    return base;
}

static void a_version_is_a_difference_to_the_one_before(void **state)
{
    struct tbd_page_versions *v = tbd_page_versions_new(LIMIT);

    (void)state;
    assert_int_equal(next_of_page_5(v, 0, 10), -1);
    assert_int_equal(next_of_page_5(v, 1, 11), 10);
    assert_int_equal(next_of_page_5(v, 6, 12), 11);
    assert_int_equal(next_of_page_5(v, TBD_PAGE_VERSIONS_GROUP, 13), -1); /* another group */
    assert_int_equal(next_of_page_5(v, TBD_PAGE_VERSIONS_GROUP + 1, 14), 13);
    tbd_page_versions_free(v);
}

static void what_is_unmapped_is_no_base(void **state)
{
    // clang-format off
    static const struct { uint64_t time, start, end; int next; } cases[] = {
        { 40, BASE + 0x5000, BASE + 0x6000, -1 }, { 40, 0, 0x700000000000, -1 },
        { 40, BASE, BASE + 0x5000, 1 },           { 40, BASE + 0x6000, 0x700000000000, 1 },
        { 0, BASE + 0x5800, BASE + 0x5900, -1 },
    };
    // clang-format on

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        for (unsigned is_kept = 0; is_kept < 2; is_kept++) {
            struct tbd_page_versions *v = tbd_page_versions_new(LIMIT);
            struct sample *s = sample_new(1);

            next_of_page_5(v, 0, 1);
            add_unmap(s, cases[i].time, cases[i].start, cases[i].end);
            if (is_kept)
                join(s, v);
            else
                tbd_page_versions_unmap(v, &s->product);
            done(s);
            assert_int_equal(next_of_page_5(v, 2, 2), cases[i].next);
            tbd_page_versions_free(v);
        }
}

/* In the window that modifies the page: before the contents, or at its very end, after them. */
static void unmapped_in_the_same_window(void **state)
{
    (void)state;
    for (unsigned is_behind = 0; is_behind < 2; is_behind++) {
        struct tbd_page_versions *v = tbd_page_versions_new(LIMIT);
        struct sample *s = sample_new(1);

        next_of_page_5(v, 0, 1);
        add_dirty(s, 5, 2);
        add_unmap(s, is_behind ? 100 : 50, BASE, BASE + 0x100000);
        join(s, v);
        assert_int_equal(base_of(s, 5), -1);
        done(s);
        assert_int_equal(next_of_page_5(v, 2, 3), is_behind ? -1 : 2);
        tbd_page_versions_free(v);
    }
}

/* A reader finds these contents for the next window. */
static void other_contents_in_between_are_no_base(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 3; kind++) {
        struct tbd_page_versions *v = tbd_page_versions_new(LIMIT);
        struct sample *s = sample_new(1);

        next_of_page_5(v, 0, 1);
        if (kind == 0)
            add_gone(s, 5);
        else if (kind == 1)
            add_first(s, 5, 0, 7);
        else
            add_dirty(s, 5, 9); /* of a window whose pages stay whole */
        tbd_page_bases_copy(&s->bases, kind == 2 ? NULL : v, &s->window);
        tbd_page_bases_join(&s->bases, v, &s->product);
        assert_int_equal(base_of(s, 5), kind == 1 ? 7 : -1);
        done(s);
        assert_int_equal(next_of_page_5(v, 2, 3), -1);
        assert_int_equal(next_of_page_5(v, 3, 4), 3);
        tbd_page_versions_free(v);
    }
}

static void first_contents_of_the_same_window_go_first(void **state)
{
    struct tbd_page_versions *v = tbd_page_versions_new(LIMIT);
    struct sample *s = sample_new(1);

    (void)state;
    next_of_page_5(v, 0, 1);
    add_dirty(s, 3, 30);
    add_dirty(s, 4, 40);
    add_dirty(s, 5, 50);
    add_first(s, 3, 0, 7);
    add_first(s, 4, 12, 8); /* of a mapping that was made in the window */
    add_first(s, 5, 12, 9);
    join(s, v);
    assert_int_equal(base_of(s, 3), 7);
    assert_int_equal(base_of(s, 4), -1);
    assert_int_equal(base_of(s, 5), 1);
    assert_int_equal(base_of(s, 6), -1);
    done(s);
    assert_int_equal(next_of_page_5(v, 2, 3), 50);
    tbd_page_versions_free(v);
}

static void a_page_named_twice_has_no_version(void **state)
{
    struct tbd_page_versions *v = tbd_page_versions_new(LIMIT);
    struct sample *s = sample_new(1);

    (void)state;
    next_of_page_5(v, 0, 1);
    add_dirty(s, 5, 2);
    add_dirty(s, 5, 3);
    join(s, v);
    assert_int_equal(base_of(s, 5), 1);
    done(s);
    assert_int_equal(next_of_page_5(v, 2, 4), -1);
    tbd_page_versions_free(v);
}

/* Pages that do not fit are stored whole; no version is lost over many windows. */
static void memory_is_bounded(void **state)
{
    struct tbd_page_versions *v = tbd_page_versions_new(8);
    unsigned differences = 0;

    (void)state;
    for (uint32_t w = 0; w < 800; w++) {
        struct sample *s = sample_new(w);
        unsigned bases = 0;

        for (unsigned p = 0; p < PAGES; p++)
            if ((p + w) % 3)
                add_dirty(s, p, (uint8_t)(w + 1));
        join(s, v);
        for (unsigned p = 0; p < PAGES; p++)
            bases += base_of(s, p) >= 0;
        assert_true(bases <= 8);
        differences += bases;
        done(s);
    }
    assert_true(differences > 800);
    tbd_page_versions_free(v);
}

/* Windows in work at the same time: copied and written in any order, joined in window order.
 * `held` is what a reader would find: as PAGE_VERSIONS-1 and PAGE_VERSIONS-2 say. */
static void windows_in_any_order(void **state)
{
    struct tbd_page_versions *v = tbd_page_versions_new(LIMIT);
    struct sample *work[3] = { 0 };
    int held[PAGES], found = 0;

    (void)state;
    srand(7);
    for (uint32_t w = 0; w < 3000; w++) {
        struct sample *s = sample_new(w);

        if (w % TBD_PAGE_VERSIONS_GROUP == 0)
            memset(held, -1, sizeof(held));
        for (unsigned p = 0; p < PAGES; p++) {
            int what = rand() % 8;

            if (what < 4)
                add_dirty(s, p, (uint8_t)rand());
            else if (what == 4)
                add_gone(s, p);
        }
        if (rand() % 4 == 0) {
            unsigned p = (unsigned)rand() % PAGES;

            add_unmap(s, 50, address_of(p), address_of(p + 1));
            held[p] = -1;
        }
        tbd_page_bases_copy(&s->bases, v, &s->window);
        if (work[w % 3])
            done(work[w % 3]);
        work[w % 3] = s;
        tbd_page_bases_join(&s->bases, v, &s->product);
        for (size_t i = 0; i < s->window.dirty_count; i++) {
            unsigned p = (unsigned)((s->dirty[i].address - BASE) / 4096);

            assert_int_equal(base_of(s, p), held[p]);
            found += held[p] >= 0;
            held[p] = s->bytes[i][0];
        }
        for (size_t i = 0; i < s->window.gone_count; i++)
            held[(s->gone[i].address - BASE) / 4096] = -1;
    }
    assert_true(found > 3000);
    for (unsigned i = 0; i < 3; i++)
        done(work[i]);
    tbd_page_versions_free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_version_is_a_difference_to_the_one_before),
        cmocka_unit_test(what_is_unmapped_is_no_base),
        cmocka_unit_test(unmapped_in_the_same_window),
        cmocka_unit_test(other_contents_in_between_are_no_base),
        cmocka_unit_test(first_contents_of_the_same_window_go_first),
        cmocka_unit_test(a_page_named_twice_has_no_version),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(windows_in_any_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
