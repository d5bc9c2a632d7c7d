// SPDX-License-Identifier: MIT
// links: tbd_format tbd_base
/* Copies of mapped files: traces share them, keep them when the file goes away, and do without
 * sharing where others may write. */
#include "format/files/modules.h"

#include "folder.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[FOLDER_BYTES];
static int root;
static int traces[2];

static int make(void **state)
{
    (void)state;
    if (!folder_make(folder, "modules"))
        return -1;
    root = open(folder, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 2; i++) {
        char name[8];

        snprintf(name, sizeof(name), "t-%d", i);
        if (mkdirat(root, name, 0700))
            return -1;
        traces[i] = openat(root, name, O_RDONLY | O_DIRECTORY);
        if (mkdirat(traces[i], "modules", 0700))
            return -1;
    }
    return 0;
}

static int take_away(void **state)
{
    (void)state;
    close(root);
    close(traces[0]);
    close(traces[1]);
    return folder_remove(folder) ? 0 : -1;
}

static uint64_t write_file(const char *text, char *path, size_t bytes)
{
    struct stat st;
    int fd;

    snprintf(path, bytes, "%s/file", folder);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fstat(fd, &st), 0);
    close(fd);
    return st.st_ino;
}

static void check_copy(int trace, const char *name, const char *text)
{
    char full[64];
    char got[64] = "";
    int fd;

    snprintf(full, sizeof(full), "modules/%s", name);
    fd = openat(trace, full, O_RDONLY);
    assert_true(fd >= 0);
    assert_true(read(fd, got, sizeof(got) - 1) >= 0);
    assert_string_equal(got, text);
    close(fd);
}

static nlink_t names_of(int trace, const char *full)
{
    struct stat st;

    assert_int_equal(fstatat(trace, full, &st, 0), 0);
    return st.st_nlink;
}

static void traces_share_a_copy_and_outlive_the_file(void **state)
{
    char path[128];
    struct tbd_disk_module disk = { .inode = write_file("one", path, sizeof(path)) };

    (void)state;
    assert_true(tbd_modules_keep(root, traces[0], path, "000-file", &disk));
    assert_int_equal(disk.bytes, 3);
    assert_true(tbd_modules_keep(root, traces[1], path, "000-file", &disk));
    assert_int_equal(names_of(traces[0], "modules/000-file"), 3);
    unlink(path);
    tbd_modules_clean(root);
    check_copy(traces[0], "000-file", "one");
    unlinkat(traces[0], "modules/000-file", 0);
    tbd_modules_clean(root);
    check_copy(traces[1], "000-file", "one");
    assert_int_equal(names_of(traces[1], "modules/000-file"), 2);
    unlinkat(traces[1], "modules/000-file", 0);
    tbd_modules_clean(root);
    assert_int_equal(unlinkat(root, ".modules", AT_REMOVEDIR), 0); /* nothing is left in it */
}

static void another_version_is_another_copy(void **state)
{
    char path[128];
    struct tbd_disk_module disk = { .inode = write_file("first", path, sizeof(path)) };

    (void)state;
    assert_true(tbd_modules_keep(root, traces[0], path, "000-file", &disk));
    disk.inode = write_file("other", path, sizeof(path));
    assert_true(tbd_modules_keep(root, traces[1], path, "000-file", &disk));
    check_copy(traces[0], "000-file", "first");
    check_copy(traces[1], "000-file", "other");
}

static void a_file_that_was_replaced_is_not_taken(void **state)
{
    char path[128];
    struct tbd_disk_module disk = { .inode = write_file("text", path, sizeof(path)) + 1 };

    (void)state;
    assert_false(tbd_modules_keep(root, traces[0], path, "000-file", &disk));
    assert_false(tbd_modules_keep(root, traces[0], "/nowhere", "000-file", &disk));
}

static void a_trace_made_from_another_has_its_copies(void **state)
{
    char path[128];
    struct tbd_disk_module disk = { .inode = write_file("old", path, sizeof(path)) };
    struct tbd_disk_module same = { .inode = disk.inode }, other = { .inode = disk.inode + 1 };
    struct tbd_kept_module list = { .path = path, .copy = "modules/000-file" };
    struct tbd_kept_modules kept = { .trace = traces[0], .count = 1, .list = &list };

    (void)state;
    assert_true(tbd_modules_keep(root, traces[0], path, "000-file", &disk));
    list.disk = disk;
    write_file("new", path, sizeof(path));
    assert_false(tbd_modules_take(&kept, traces[1], path, "001-file", &other));
    assert_false(tbd_modules_take(&kept, traces[1], "/nowhere", "001-file", &same));
    assert_true(tbd_modules_take(&kept, traces[1], path, "001-file", &same));
    assert_memory_equal(&same, &disk, sizeof(disk));
    check_copy(traces[1], "001-file", "old");
}

static void a_store_that_others_may_write_to_is_not_used(void **state)
{
    char path[128];
    struct tbd_disk_module disk = { .inode = write_file("own", path, sizeof(path)) };

    (void)state;
    assert_int_equal(mkdirat(root, ".modules", 0700), 0);
    assert_int_equal(fchmodat(root, ".modules", 0777, 0), 0);
    assert_true(tbd_modules_keep(root, traces[0], path, "000-file", &disk));
    check_copy(traces[0], "000-file", "own");
    assert_int_equal(names_of(traces[0], "modules/000-file"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(traces_share_a_copy_and_outlive_the_file, make, take_away),
        cmocka_unit_test_setup_teardown(another_version_is_another_copy, make, take_away),
        cmocka_unit_test_setup_teardown(a_file_that_was_replaced_is_not_taken, make, take_away),
        cmocka_unit_test_setup_teardown(a_trace_made_from_another_has_its_copies, make, take_away),
        cmocka_unit_test_setup_teardown(a_store_that_others_may_write_to_is_not_used, make,
                                        take_away),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
