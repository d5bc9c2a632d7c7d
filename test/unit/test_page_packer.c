// SPDX-License-Identifier: MIT
// links: tbd_organizer tbd_format tbd_base
/* test_page_packer.c - pages of native play that are packed as they come are what they were, and differences are to what a reader
 * finds (PAGE_PACKER-1) */
#include "organizer/page_packer.h"

#include "base/status.h"
#include "format/files/codec.h"
#include "format/files/page_difference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u
#define BASE 0x400000ull

static uint32_t seed = 1;

static uint8_t next_byte(void)
{
    seed = seed * 1103515245u + 12345u;
    return (uint8_t)(seed >> 16);
}

static void fill(uint8_t *page)
{
    for (unsigned i = 0; i < PAGE; i++)
        page[i] = next_byte();
}

static bool add(struct tbd_page_packer *p, struct tbd_packed_pages *out, unsigned page,
                const uint8_t *bytes)
{
    assert_true(tbd_page_packer_add(p, out, BASE + page * PAGE, bytes, true));
    return out->list[out->count - 1].address & TBD_PACKED_DIFFERENCE;
}

/* What a reader makes of it. */
static void read_page(const struct tbd_packed_pages *pages, size_t index, const uint8_t *before,
                      uint8_t *out)
{
    const struct tbd_packed_page *page = &pages->list[index];

    memset(out, 0, PAGE);
    if (page->length)
        assert_int_equal(tbd_unpack(pages->bytes + page->offset, page->length, out, PAGE), TBD_OK);
    if (page->address & TBD_PACKED_DIFFERENCE)
        tbd_page_xor(out, before);
}

static void pages_come_back(void **state)
{
    struct tbd_page_packer *p = tbd_page_packer_new(8);
    struct tbd_packed_pages pages = { 0 };
    uint8_t contents[40][PAGE] = { { 0 } }, out[PAGE];

    (void)state;
    for (unsigned i = 0; i < 40; i++) { /* zeros, random ones, and what packs well */
        if (i % 3 == 1)
            fill(contents[i]);
        if (i % 3 == 2)
            memset(contents[i], (int)i, PAGE / 2);
        assert_false(add(p, &pages, i, contents[i]));
    }
    for (unsigned i = 0; i < 40; i++) {
        read_page(&pages, i, NULL, out);
        assert_memory_equal(out, contents[i], PAGE);
        memset(out, 1, PAGE);
        assert_true(tbd_page_packer_unpack(p, &pages, i, out));
        assert_memory_equal(out, contents[i], PAGE);
    }
    assert_int_equal(pages.list[0].length, 0);
    tbd_packed_pages_free(&pages);
    tbd_page_packer_free(p);
}

static void a_changed_page_is_a_difference(void **state)
{
    struct tbd_page_packer *p = tbd_page_packer_new(8);
    struct tbd_packed_pages pages = { 0 };
    uint8_t before[PAGE], now[PAGE], out[PAGE];

    (void)state;
    fill(before);
    memcpy(now, before, PAGE);
    now[100]++;
    assert_false(add(p, &pages, 1, before));
    tbd_page_packer_next(p);
    assert_true(add(p, &pages, 1, now));
    read_page(&pages, 1, before, out);
    assert_memory_equal(out, now, PAGE);
    memset(out, 1, PAGE);
    assert_true(tbd_page_packer_unpack(p, &pages, 1, out));
    assert_memory_equal(out, now, PAGE);
    tbd_page_packer_next(p);
    assert_true(add(p, &pages, 1, now)); /* nothing has changed */
    assert_int_equal(pages.list[2].length, 0);
    tbd_packed_pages_free(&pages);
    tbd_page_packer_free(p);
}

/* Each way to lose what a page held, and then it comes again. */
static void what_a_reader_would_not_find_is_not_kept(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 5; way++) {
        struct tbd_page_packer *p = tbd_page_packer_new(8);
        struct tbd_packed_pages pages = { 0 };
        uint8_t page[PAGE];

        fill(page);
        add(p, &pages, 1, page);
        tbd_page_packer_next(p);
        if (way == 0)
            tbd_page_packer_forget(p, BASE + PAGE, BASE + 2 * PAGE);
        else if (way == 1)
            tbd_page_packer_forget(p, 0, UINT64_MAX / 2);
        else if (way == 2)
            assert_true(tbd_page_packer_add(p, &pages, BASE + PAGE, page, false));
        for (unsigned i = 0; way == 3 && i < TBD_PAGE_PACKER_GROUP; i++) {
            add(p, &pages, 2, page);
            tbd_page_packer_next(p);
        }
        for (unsigned i = 0; way == 4 && i < 2; i++)
            add(p, &pages, 1, page); /* twice in one window */
        tbd_page_packer_next(p);
        assert_false(add(p, &pages, 1, page));
        tbd_packed_pages_free(&pages);
        tbd_page_packer_free(p);
    }
}

static void memory_is_bounded(void **state)
{
    struct tbd_page_packer *p = tbd_page_packer_new(2);
    struct tbd_packed_pages pages = { 0 };
    uint8_t page[PAGE];

    (void)state;
    fill(page);
    for (unsigned i = 0; i < 4; i++)
        add(p, &pages, i, page);
    tbd_page_packer_next(p);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(add(p, &pages, i, page), i < 2);
    tbd_page_packer_forget(p, BASE, BASE + PAGE);
    tbd_page_packer_next(p);
    assert_false(add(p, &pages, 3, page)); /* takes the place that is free */
    tbd_page_packer_next(p);
    assert_true(add(p, &pages, 3, page));
    tbd_packed_pages_free(&pages);
    tbd_page_packer_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_come_back),
        cmocka_unit_test(a_changed_page_is_a_difference),
        cmocka_unit_test(what_a_reader_would_not_find_is_not_kept),
        cmocka_unit_test(memory_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
