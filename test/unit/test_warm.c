// SPDX-License-Identifier: MIT
// links: tbd_organizer
/* Memory in use gets large pages: its contents, from before and written meanwhile, stay. */
#include "organizer/warm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define LARGE_PAGES 6u
#define BYTES       (LARGE_PAGES * TBD_LARGE_PAGE)
#define STEP        20480u /* five pages: most are not touched */

static uint8_t *theirs; /* the producer's mapping */
static uint8_t *reserved;
static uint8_t *ours; /* aligned to large pages as in the file */

static int set_up(void **state)
{
    int fd = memfd_create("stream", 0);

    (void)state;
    if (fd < 0 || ftruncate(fd, (off_t)BYTES))
        return -1;
    theirs = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    reserved = mmap(NULL, BYTES + TBD_LARGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ours = reserved + -(uintptr_t)reserved % TBD_LARGE_PAGE;
    if (mmap(ours, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != ours)
        return -1;
    close(fd);
    return theirs == MAP_FAILED ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    munmap(theirs, BYTES);
    munmap(reserved, BYTES + TBD_LARGE_PAGE);
    return 0;
}

static uint8_t value(uint64_t at)
{
    return (uint8_t)(at / STEP % 251 + 1);
}

static void fill(uint64_t from, uint64_t to)
{
    for (uint64_t at = from; at < to; at += STEP)
        theirs[at] = value(at);
}

static void assert_all_there(const uint8_t *bytes)
{
    for (uint64_t at = 0; at < BYTES; at++)
        if (bytes[at] != (at % STEP ? 0 : value(at)))
            fail_msg("byte %lu is %u", at, bytes[at]);
}

static void test_contents_stay(void **state)
{
    struct tbd_warmer *warmer;

    (void)state;
    fill(0, BYTES / STEP / 2 * STEP);
    warmer = tbd_warmer_start(ours + 1, ours + BYTES);
    fill(BYTES / STEP / 2 * STEP, BYTES);
    assert_non_null(warmer);
    while (!tbd_warmer_is_done(warmer))
        usleep(100);
    assert_all_there(theirs);
    assert_all_there(ours);
    tbd_warmer_free(warmer);
    assert_all_there(theirs);
}

static void test_it_may_be_left_at_once(void **state)
{
    (void)state;
    tbd_warmer_free(tbd_warmer_start(ours, ours + BYTES));
    tbd_warmer_free(NULL);
    fill(0, BYTES);
    assert_all_there(ours);
}

static void test_too_little_for_a_large_page(void **state)
{
    (void)state;
    assert_null(tbd_warmer_start(ours + 1, ours + 2 * TBD_LARGE_PAGE - 1));
    assert_null(tbd_warmer_start(ours + TBD_LARGE_PAGE, ours + TBD_LARGE_PAGE));
    assert_null(tbd_warmer_start(ours + 2 * TBD_LARGE_PAGE, ours));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_contents_stay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_it_may_be_left_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_too_little_for_a_large_page, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
