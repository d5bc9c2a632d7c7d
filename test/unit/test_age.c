// SPDX-License-Identifier: MIT
// links: tbd_organizer
/* A budget while windows and keys are written side by side (age.h): in any order of steps, the
 * files on disk never exceed it, and leave space for one that the ager writes.  Windows lose only
 * their events: all other changes need a recorded trace (test/e2e/test_ageing.py). */
#include "organizer/age.h"

#include "folder.h"
#include "format/merging/replayed_events.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define BUDGET      (4u << 20)
#define WINDOWS     150u
#define IN_WORK     5u
#define KEY_WINDOWS 12u
#define KEY_BYTES   150000u
#define HALF        70000u /* of the largest window, which comes first */
#define TOC_BYTES   2000u
/* Records in the index that come with windows in work. */
#define RECORDS 4096u

static struct tbd_writer *writer;
static struct tbd_ager *ager;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct tbd_window_files work[WINDOWS];
static uint32_t begun, put, committed; /* windows, in order */
static bool keys_wait;
static uint32_t key_files;
static unsigned seed;

static unsigned random_below(unsigned limit)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16) % limit;
}

static uint64_t disk_bytes;

static int add_file(const char *path, const struct stat *status, int type, struct FTW *at)
{
    (void)path;
    (void)at;
    if (type == FTW_F)
        disk_bytes += (uint64_t)status->st_size;
    return 0;
}

/* Includes the share of cache/. */
static void assert_in_budget(void)
{
    uint64_t most = BUDGET + RECORDS - tbd_cache_share(BUDGET);

    disk_bytes = 0;
    assert_int_equal(nftw(tbd_writer_path(writer), add_file, 16, FTW_PHYS), 0);
    assert_true(disk_bytes + 2 * HALF + TOC_BYTES <= most);
}

/* A hole takes as much of a budget as anything else. */
static void make_file(const char *name, uint64_t bytes)
{
    char path[FOLDER_BYTES + 128];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", tbd_writer_path(writer), name);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && !ftruncate(fd, (off_t)bytes));
    close(fd);
}

static void make_folder(const char *name)
{
    char path[FOLDER_BYTES + 128];

    snprintf(path, sizeof(path), "%s/%s", tbd_writer_path(writer), name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void make_window_files(const struct tbd_disk_window *disk)
{
    char name[64];

    snprintf(name, sizeof(name), "windows/0/%03u.toc", disk->window);
    make_file(name, disk->toc_bytes);
    snprintf(name, sizeof(name), "windows/0/%03u.trace", disk->window);
    make_file(name, disk->trace_bytes);
    snprintf(name, sizeof(name), "windows/0/%03u.blocks", disk->window);
    make_file(name, disk->block_bytes);
}

static int set_up(void **state)
{
    struct tbd_age_limits limits = { .budget = BUDGET };
    struct tbd_disk_config config = { .window_blocks = 1 };
    struct tbd_msg_start start = { .pid = 1, .tid = 1 };
    static char root[FOLDER_BYTES];
    struct tbd_error why;

    seed = 1;
    begun = put = committed = key_files = 0;
    keys_wait = false;
    assert_true(folder_make(root, "age"));
    *state = root;
    assert_int_equal(tbd_writer_new(root, "x", &writer, &why), TBD_OK);
    assert_int_equal(tbd_writer_start(writer, &start, sizeof(start), &config), TBD_OK);
    make_folder("windows/0");
    make_folder("keys");
    assert_int_equal(tbd_ager_new(&limits, writer, &lock, &ager), TBD_OK);
    return 0;
}

static int tear_down(void **state)
{
    tbd_ager_free(ager);
    tbd_writer_free(writer);
    return folder_remove(*state) ? 0 : -1;
}

/* ---- what may happen next; false: not now ---- */

static bool begin_window(void)
{
    unsigned less = begun ? 20000 : 1;

    if (begun == WINDOWS || begun - committed == IN_WORK || !tbd_ager_may_write_locked(ager))
        return false;
    work[begun] = (struct tbd_window_files){
        .disk = { .window = begun,
                  .level = TBD_LEVEL_EVENTS,
                  .complete = 1,
                  .first_time = begun,
                  .blocks = 1,
                  .toc_bytes = TOC_BYTES,
                  .trace_bytes = HALF - random_below(less),
                  .block_bytes = HALF - random_below(less) },
    };
    begun++;
    return true;
}

static bool put_window(void)
{
    if (put == begun)
        return false;
    make_window_files(&work[put++].disk);
    return true;
}

static bool commit_window(void)
{
    if (committed == put)
        return false;
    assert_int_equal(tbd_writer_commit_window(writer, &work[committed]), TBD_OK);
    assert_int_equal(tbd_ager_add_locked(ager, &work[committed].disk, true), TBD_OK);
    if (++committed % KEY_WINDOWS == 0 && !keys_wait) {
        tbd_ager_expect_keys_locked(ager, KEY_BYTES);
        keys_wait = true;
    }
    return true;
}

static bool write_keys(void)
{
    char name[64];

    if (!keys_wait || !tbd_ager_may_write_keys_locked(ager))
        return false;
    snprintf(name, sizeof(name), "keys/%016x", key_files++);
    make_file(name, KEY_BYTES);
    assert_in_budget();
    tbd_ager_add_keys_locked(ager, KEY_BYTES);
    keys_wait = false;
    return true;
}

static bool step(void)
{
    if (!tbd_ager_is_due_locked(ager))
        return false;
    assert_int_equal(tbd_ager_step(ager), TBD_OK);
    return true;
}

static void test_no_order_of_writes_exceeds_a_budget(void **state)
{
    static bool (*const events[])(void) = { begin_window, put_window, commit_window, write_keys,
                                            step };
    unsigned idle = 0;

    (void)state;
    while (committed < WINDOWS || keys_wait) {
        bool has_happened = events[random_below(5)]();

        idle = has_happened ? 0 : idle + 1;
        assert_true(idle < 1000); /* else there is a deadlock */
        if (has_happened)
            assert_in_budget();
    }
    assert_true(disk_bytes > BUDGET / 2);
    assert_true(key_files > WINDOWS / KEY_WINDOWS / 2);
}

/* Everything that fits while nothing has been given up yet: the first key file, too. */
static void test_keys_wait_until_there_is_space(void **state)
{
    (void)state;
    while (!tbd_ager_is_due_locked(ager)) {
        assert_true(begin_window() && put_window() && commit_window());
        keys_wait = false; /* none yet */
    }
    tbd_ager_expect_keys_locked(ager, BUDGET / 4);
    assert_false(tbd_ager_may_write_keys_locked(ager));
    while (step())
        ;
    assert_true(tbd_ager_may_write_keys_locked(ager));
    make_file("keys/0", BUDGET / 4);
    assert_in_budget();
    tbd_ager_add_keys_locked(ager, BUDGET / 4);
    while (begin_window() && put_window())
        assert_in_budget();
}

static void test_the_smaller_limit_is_what_a_trace_may_have(void **state)
{
    (void)state;
    assert_int_equal(tbd_age_bytes(&(struct tbd_age_limits){ .keep_seconds = 5 }), 0);
    assert_int_equal(tbd_age_bytes(&(struct tbd_age_limits){ .budget = 5 }), 5);
    assert_int_equal(tbd_age_bytes(&(struct tbd_age_limits){ .keep_bytes = 7 }), 7);
    assert_int_equal(tbd_age_bytes(&(struct tbd_age_limits){ .budget = 5, .keep_bytes = 7 }), 5);
    assert_int_equal(tbd_age_bytes(&(struct tbd_age_limits){ .budget = 7, .keep_bytes = 5 }), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_no_order_of_writes_exceeds_a_budget, set_up,
                                        tear_down),
        cmocka_unit_test(test_the_smaller_limit_is_what_a_trace_may_have),
        cmocka_unit_test_setup_teardown(test_keys_wait_until_there_is_space, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
