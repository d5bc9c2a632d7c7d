// SPDX-License-Identifier: MIT
// links: tbd_query tbd_format
/* Separate debug files are unpacked once; damaged, foreign and impossible copies do no harm. */
#include "query/debuginfo/debug_cache.h"
#include "query/debuginfo/dwarf_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/tbd-cache-XXXXXX";

/* A program with separate debug information, packed, and large enough to be cached. */
static const char make[] =
    "{ i=0; while [ $i -lt 4000 ]; do echo \"int function_$i(int argument_$i) { int local_$i = "
    "argument_$i; return local_$i; }\"; i=$((i+1)); done; echo 'int main(void) { return "
    "function_7(0); }'; } > made.c && cc -g -O0 -o made made.c && objcopy --only-keep-debug "
    "--compress-debug-sections made made.debug && objcopy --strip-debug "
    "--add-gnu-debuglink=made.debug made";

static int start(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL || chdir(folder) != 0 || setenv("XDG_CACHE_HOME", folder, 1) != 0
               ? -1
               : system(make);
}

static int end(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command);
}

/* The name of the only copy in the cache; false if there is none. */
static bool copy_name(char *out, size_t bytes)
{
    DIR *dir = opendir("tbd/debug");
    struct dirent *entry;
    unsigned count = 0;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(out, bytes, "tbd/debug/%s", entry->d_name);
        count++;
    }
    if (dir != NULL)
        closedir(dir);
    assert_in_range(count, 0, 1);
    return count == 1;
}

static enum tbd_status open_made(struct tbd_elf_file **out)
{
    char path[64];

    snprintf(path, sizeof(path), "%s/made", folder);
    return tbd_elf_open(path, out);
}

static void check_lines(bool is_unpacked)
{
    struct tbd_elf_file *file;
    struct tbd_dwarf *dwarf;
    struct tbd_elf_range range;

    assert_int_equal(open_made(&file), TBD_OK);
    dwarf = tbd_dwarf_of(file);
    assert_non_null(dwarf);
    assert_true(file->debug.elf != NULL && (file->unpacked.elf != NULL) == is_unpacked);
    assert_true(tbd_dwarf_line_ranges(dwarf, "made.c", 8, &range, 1) > 0);
    tbd_elf_close(file);
}

static void the_second_question_finds_a_copy(void **state)
{
    char name[PATH_MAX], again[PATH_MAX];
    struct stat before, after;

    (void)state;
    check_lines(true);
    assert_true(copy_name(name, sizeof(name)));
    assert_return_code(stat(name, &before), 0);
    assert_int_equal(before.st_mode & 0777, 0600);
    check_lines(true);
    assert_true(copy_name(again, sizeof(again)));
    assert_string_equal(name, again);
    assert_return_code(stat(name, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
}

static void another_file_has_another_copy(void **state)
{
    char name[PATH_MAX], again[PATH_MAX];

    (void)state;
    check_lines(true);
    assert_true(copy_name(name, sizeof(name)));
    assert_return_code(unlink(name), 0);
    assert_int_equal(system("touch -d '2001-01-01' made.debug"), 0);
    check_lines(true);
    assert_true(copy_name(again, sizeof(again)));
    assert_string_not_equal(name, again);
}

static void a_copy_that_others_can_write_is_not_used(void **state)
{
    char name[PATH_MAX];

    (void)state;
    check_lines(true);
    assert_true(copy_name(name, sizeof(name)));
    assert_return_code(chmod(name, 0666), 0);
    check_lines(true); /* a new one took its place */
    assert_true(copy_name(name, sizeof(name)));
    assert_return_code(unlink(name), 0);
    assert_return_code(symlink("/dev/zero", name), 0);
    check_lines(true);
}

static void a_damaged_copy_does_no_harm(void **state)
{
    struct tbd_elf_file *file;
    char name[PATH_MAX];

    (void)state;
    check_lines(true);
    assert_true(copy_name(name, sizeof(name)));
    for (off_t bytes = 20000; bytes > 0; bytes -= 1777) {
        struct tbd_source_line line;
        struct tbd_dwarf *dwarf;

        assert_return_code(truncate(name, bytes), 0);
        assert_int_equal(open_made(&file), TBD_OK);
        dwarf = tbd_dwarf_of(file);
        if (dwarf != NULL)
            (void)tbd_dwarf_line_at(dwarf, file->low + 0x1200, &line);
        tbd_elf_close(file);
    }
    assert_return_code(unlink(name), 0);
}

static void without_a_cache_the_file_itself_is_read(void **state)
{
    (void)state;
    setenv("XDG_CACHE_HOME", "/proc/no/such", 1);
    check_lines(false);
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", "", 1);
    check_lines(false);
    setenv("XDG_CACHE_HOME", folder, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_second_question_finds_a_copy),
        cmocka_unit_test(another_file_has_another_copy),
        cmocka_unit_test(a_copy_that_others_can_write_is_not_used),
        cmocka_unit_test(a_damaged_copy_does_no_harm),
        cmocka_unit_test(without_a_cache_the_file_itself_is_read),
    };

    return cmocka_run_group_tests(tests, start, end);
}
