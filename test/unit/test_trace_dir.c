// SPDX-License-Identifier: MIT
// links: tbd_format tbd_base
/* A trace's directory in the hands of somebody else: FIFOs, devices, links, files that are cut short or not there, in every
 * place where we read or write. */
#include "base/open_file.h"
#include "format/files/file.h"

#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define OTHER_USER 12345

static char folder[FOLDER_BYTES];
static struct tbd_dir dir;

static int make(void **state)
{
    (void)state;
    alarm(60); /* for what waits at a FIFO */
    if (!folder_make(folder, "dir"))
        return -1;
    dir = (struct tbd_dir){ .fd = tbd_dir_open(folder), .path = folder };
    return dir.fd < 0 || mkdirat(dir.fd, "sub", 0700) ? -1 : 0;
}

static int take_away(void **state)
{
    (void)state;
    close(dir.fd);
    return folder_remove(folder) ? 0 : -1;
}

static void put(const char *name, const char *text)
{
    int fd = openat(dir.fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void check_text(const char *name, const char *expected)
{
    char text[64] = "";
    int fd = openat(dir.fd, name, O_RDONLY);

    assert_true(fd >= 0);
    assert_int_equal(read(fd, text, sizeof(text) - 1), strlen(expected));
    assert_string_equal(text, expected);
    close(fd);
}

static void path_of(const char *name, char out[128])
{
    snprintf(out, 128, "%s/%s", folder, name);
}

static void check_refused(const char *name, int error)
{
    errno = 0;
    assert_int_equal(tbd_open_below(dir.fd, name, O_RDONLY), -1);
    assert_int_equal(errno, error);
}

static void only_regular_files_are_opened(void **state)
{
    int fd;

    (void)state;
    put("sub/file", "text");
    fd = tbd_open_below(dir.fd, "sub/file", O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    close(fd);
    assert_int_equal(mkfifoat(dir.fd, "sub/fifo", 0600), 0);
    check_refused("sub/fifo", EINVAL);
    check_refused("sub", EISDIR);
    check_refused("nothing", ENOENT);
    if (mknodat(dir.fd, "null", S_IFCHR | 0600, makedev(1, 3)) == 0)
        check_refused("null", EINVAL);
    assert_null(tbd_dir_text(dir.fd, "sub/fifo"));
}

static void no_part_of_a_name_is_a_link_or_leads_up(void **state)
{
    (void)state;
    put("sub/file", "text");
    assert_int_equal(symlinkat("file", dir.fd, "sub/link"), 0);
    assert_int_equal(symlinkat("sub", dir.fd, "other"), 0);
    check_refused("sub/link", ELOOP);
    check_refused("other/file", ENOTDIR);
    check_refused("sub/../sub/file", EINVAL);
    check_refused("/etc/passwd", EINVAL);
    check_refused("sub//file", EINVAL);
    check_refused("", EINVAL);
    assert_null(tbd_dir_list(dir.fd, "other"));
    assert_int_equal(tbd_open_folder_below(dir.fd, ".."), -1);
    tbd_dir_remove(dir.fd, "other/file");
    check_text("sub/file", "text");
}

static void what_has_another_name_is_not_changed_in_place(void **state)
{
    int fd;

    (void)state;
    put("mine", "text");
    fd = tbd_open_below(dir.fd, "mine", O_RDWR);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(linkat(dir.fd, "mine", dir.fd, "index", 0), 0);
    assert_int_equal(tbd_open_below(dir.fd, "index", O_RDWR), -1);
    fd = tbd_open_below(dir.fd, "index", O_RDONLY);
    assert_true(fd >= 0);
    close(fd);
}

static void new_files_take_the_place_of_links(void **state)
{
    struct tbd_new_file file;
    struct dirent *entry;
    struct stat info;
    DIR *list;

    (void)state;
    put("mine", "mine");
    assert_int_equal(symlinkat("mine", dir.fd, "position"), 0);
    assert_int_equal(symlinkat("sub", dir.fd, "cache"), 0);
    assert_int_equal(tbd_dir_write(dir.fd, "position", "new", 3), TBD_OK);
    check_text("position", "new");
    check_text("mine", "mine");
    assert_int_equal(fstatat(dir.fd, "position", &info, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISREG(info.st_mode) && (info.st_mode & 07777) == 0600);
    assert_int_equal(tbd_dir_write(dir.fd, "cache/file", "new", 3), TBD_IO);
    assert_int_equal(tbd_new_file(dir.fd, "sub/dropped", &file), TBD_OK);
    tbd_new_file_drop(&file);
    list = tbd_dir_list(dir.fd, "sub");
    assert_non_null(list);
    while ((entry = readdir(list)))
        assert_true(entry->d_name[0] == '.');
    closedir(list);
}

static void two_new_files_have_names_that_nobody_guesses(void **state)
{
    struct tbd_new_file one, other;

    (void)state;
    assert_int_equal(tbd_new_file(dir.fd, "file", &one), TBD_OK);
    assert_int_equal(tbd_new_file(dir.fd, "file", &other), TBD_OK);
    assert_string_not_equal(one.temporary, other.temporary);
    assert_true(strlen(one.temporary) >= 16);
    tbd_new_file_drop(&one);
    tbd_new_file_drop(&other);
}

static void files_that_ended_processes_left_are_removed(void **state)
{
    struct tbd_new_file file;
    pid_t child = fork();
    char mine[64];

    (void)state;
    if (child == 0)
        _exit(tbd_new_file(dir.fd, "sub/theirs", &file) == TBD_OK ? 0 : 1);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(tbd_new_file(dir.fd, "sub/mine", &file), TBD_OK);
    snprintf(mine, sizeof(mine), "%s", file.temporary);
    tbd_dir_clean(file.folder);
    assert_int_equal(faccessat(file.folder, mine, F_OK, 0), 0);
    assert_int_equal(unlinkat(file.folder, mine, 0), 0);
    assert_int_equal(unlinkat(dir.fd, "sub", AT_REMOVEDIR), 0); /* nothing else was in it */
    close(file.fd);
    close(file.folder);
}

/* FILE-2: a page of a mapping beyond the end would be SIGBUS. */
static void a_file_that_others_may_write_stays_what_it_was(void **state)
{
    static char text[3 * 4096];
    struct tbd_file file;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    put("index", text);
    assert_int_equal(fchmodat(dir.fd, "index", 0660, 0), 0);
    assert_int_equal(tbd_file_map(dir, "index", &file, NULL), TBD_OK);
    put("index", "");
    assert_int_equal(file.size, sizeof(text) - 1);
    assert_memory_equal(file.bytes, text, file.size);
    tbd_file_close(&file);
}

static void a_giant_with_holes_is_refused_at_once(void **state)
{
    struct tbd_error why = { 0 };
    struct tbd_file file;
    char path[128];

    (void)state;
    put("index", "text");
    path_of("index", path);
    if (truncate(path, (off_t)1 << 40))
        skip();
    assert_int_equal(tbd_file_map(dir, "index", &file, &why), TBD_CORRUPT);
    assert_non_null(strstr(why.detail, "1099511627776 bytes"));
    assert_int_equal(fchmodat(dir.fd, "index", 0660, 0), 0);
    assert_int_equal(tbd_file_map(dir, "index", &file, &why), TBD_CORRUPT);
}

static void files_that_a_trace_names_are_opened_with_care(void **state)
{
    char file[128], fifo[128], link[128], gone[128];
    int fd;

    (void)state;
    path_of("file", file);
    path_of("fifo", fifo);
    path_of("link", link);
    path_of("gone", gone);
    put("file", "text");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(symlink("file", link), 0);
    assert_int_equal(tbd_open_named(fifo), -1);
    assert_int_equal(tbd_open_named("/dev/null"), -1);
    assert_int_equal(tbd_open_named(folder), -1);
    fd = tbd_open_named(link); /* our own */
    assert_true(fd >= 0);
    close(fd);
    assert_true(tbd_is_openable(file) && tbd_is_openable(gone) && tbd_is_openable(link));
    assert_false(tbd_is_openable(fifo) || tbd_is_openable("/dev/null"));
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rename(fifo, file), 0);
    assert_int_equal(tbd_open_named(link), -1);
    assert_false(tbd_is_openable(link));
    assert_int_equal(unlink(file), 0);
    put("file", "text");
    if (lchown(link, OTHER_USER, OTHER_USER))
        return; /* only root can plant a link of another */
    assert_int_equal(tbd_open_named(link), -1);
    assert_false(tbd_is_openable(link));
}

/* ---- latest ---- */

#define SETTERS 8u
#define ROUNDS  40u

static void check_latest(const char *expected)
{
    char target[64] = "";

    assert_true(readlinkat(dir.fd, "latest", target, sizeof(target) - 1) > 0);
    assert_string_equal(target, expected);
}

static void latest_is_the_trace_that_was_started_last(void **state)
{
    uint64_t hour = UINT64_C(3600) * 1000000000, now = (uint64_t)time(NULL) * 1000000000;

    (void)state;
    assert_int_equal(tbd_dir_set_latest(dir.fd, "second", now - 1), TBD_OK);
    assert_int_equal(tbd_dir_set_latest(dir.fd, "first", now - 2), TBD_OK);
    check_latest("second");
    assert_int_equal(tbd_dir_set_latest(dir.fd, "third", now), TBD_OK);
    check_latest("third");
    assert_int_equal(tbd_dir_remove_latest(dir.fd), TBD_OK);
    assert_int_equal(tbd_dir_set_latest(dir.fd, "of a clock that was set back since", now + hour),
                     TBD_OK);
    assert_int_equal(tbd_dir_set_latest(dir.fd, "first", now - 2), TBD_OK);
    check_latest("first");
    assert_int_equal(tbd_dir_remove_latest(dir.fd), TBD_OK);
    assert_int_equal(tbd_dir_remove_latest(dir.fd), TBD_OK);
    assert_int_equal(faccessat(dir.fd, "latest", F_OK, AT_SYMLINK_NOFOLLOW), -1);
}

/* Child k sets k, SETTERS + k, ..., every other child in reverse. */
static void set_many(unsigned k, uint64_t start)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned i = (k % 2 ? round : ROUNDS - 1 - round) * SETTERS + k;
        char name[32];

        snprintf(name, sizeof(name), "trace-%u", i);
        if (tbd_dir_set_latest(dir.fd, name, start + i) != TBD_OK)
            _exit(1);
    }
    _exit(0);
}

static void latest_of_many_writers_at_once_is_the_one_started_last(void **state)
{
    uint64_t start = ((uint64_t)time(NULL) - 1) * 1000000000;
    struct dirent *entry;
    DIR *list;

    (void)state;
    for (unsigned k = 0; k < SETTERS; k++) {
        if (fork() == 0)
            set_many(k, start);
    }
    for (unsigned k = 0; k < SETTERS; k++) {
        int status;

        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    check_latest("trace-319"); /* the last of SETTERS * ROUNDS */
    ;
    list = tbd_dir_list(dir.fd, ".");
    assert_non_null(list);
    while ((entry = readdir(list)))
        assert_false(strncmp(entry->d_name, ".latest", strlen(".latest")) == 0);
    closedir(list);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, take_away)
    const struct CMUnitTest tests[] = {
        TEST(only_regular_files_are_opened),
        TEST(no_part_of_a_name_is_a_link_or_leads_up),
        TEST(what_has_another_name_is_not_changed_in_place),
        TEST(new_files_take_the_place_of_links),
        TEST(two_new_files_have_names_that_nobody_guesses),
        TEST(files_that_ended_processes_left_are_removed),
        TEST(a_file_that_others_may_write_stays_what_it_was),
        TEST(a_giant_with_holes_is_refused_at_once),
        TEST(files_that_a_trace_names_are_opened_with_care),
        TEST(latest_is_the_trace_that_was_started_last),
        TEST(latest_of_many_writers_at_once_is_the_one_started_last),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
