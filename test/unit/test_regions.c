// SPDX-License-Identifier: MIT
// links: tbd_hooks_host
/* The table of the program's mappings, against a page-by-page model and against the kernel; files
 * of the kernel. */
#include "hooks/memory/regions.h"

#include "base/layout.h"
#include "hooks/memory/maps.h"
#include "hooks/memory/proc.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE  4096ull
#define PAGES 64u
#define FIRST 0x10000ull

static void add(struct tbd_regions *regions, uint64_t page, uint64_t pages, uint32_t prot,
                uint64_t inode)
{
    struct tbd_msg_region map = { .start = FIRST + page * PAGE,
                                  .end = FIRST + (page + pages) * PAGE,
                                  .prot = prot,
                                  .inode = inode,
                                  .file_offset = inode ? 100 * PAGE : 0 };

    assert_true(tbd_regions_add(regions, &map, inode ? "/file" : ""));
}

struct model {
    uint32_t prot[PAGES]; /* 0xff = not mapped */
    uint64_t offset[PAGES];
};

static void check(const struct tbd_regions *regions, const struct model *model)
{
    for (uint64_t page = 0; page < PAGES; page++) {
        const struct tbd_mapped_region *region =
            tbd_regions_find(regions, FIRST + page * PAGE + 17);

        if (model->prot[page] == 0xff) {
            assert_null(region);
            continue;
        }
        assert_non_null(region);
        assert_int_equal(region->map.prot, model->prot[page]);
        if (region->map.inode)
            assert_int_equal(region->map.file_offset + FIRST + page * PAGE - region->map.start,
                             model->offset[page]);
    }
    for (size_t i = 1; i < regions->count; i++)
        assert_true(regions->table[i - 1].map.end <= regions->table[i].map.start);
}

static void random_changes_agree_with_a_model(void **state)
{
    struct tbd_regions regions;
    struct model model;

    (void)state;
    memset(model.prot, 0xff, sizeof(model.prot));
    for (unsigned i = 0; i < PAGES; i++)
        model.prot[i] = 0xff;
    assert_true(tbd_regions_init(&regions));
    srand(7);
    for (unsigned n = 0; n < 5000; n++) {
        uint64_t page = (uint64_t)rand() % PAGES;
        uint64_t pages = 1 + (uint64_t)rand() % (PAGES - page);
        uint32_t prot = (uint32_t)rand() % 8;
        unsigned what = (unsigned)rand() % 4;
        uint64_t end = FIRST + (page + pages) * PAGE;

        if (what == 0)
            assert_true(tbd_regions_remove(&regions, FIRST + page * PAGE, end));
        else if (what == 1)
            assert_true(tbd_regions_protect(&regions, FIRST + page * PAGE, end, prot));
        else
            add(&regions, page, pages, prot, what == 2 ? 0 : 5);
        for (uint64_t i = page; i < page + pages; i++) {
            if (what == 0)
                model.prot[i] = 0xff;
            else if (what > 1 || model.prot[i] != 0xff)
                model.prot[i] = prot;
            if (what == 3)
                model.offset[i] = (100 + i - page) * PAGE;
        }
        check(&regions, &model);
    }
}

static void code_is_found_in_any_part_of_a_range(void **state)
{
    struct tbd_regions regions;

    (void)state;
    assert_true(tbd_regions_init(&regions));
    add(&regions, 0, 4, PROT_READ, 0);
    add(&regions, 8, 2, PROT_READ | PROT_EXEC, 3);
    assert_false(tbd_regions_has_code(&regions, FIRST, FIRST + 8 * PAGE));
    assert_true(tbd_regions_has_code(&regions, FIRST, FIRST + 8 * PAGE + 1));
    assert_true(tbd_regions_has_code(&regions, FIRST + 9 * PAGE, FIRST + 20 * PAGE));
    assert_false(tbd_regions_has_code(&regions, FIRST + 10 * PAGE, FIRST + 20 * PAGE));
}

struct seen {
    uint64_t address;
    uint32_t prot;
    bool found, self, stack;
};

static bool look(void *context, const struct tbd_msg_region *map, const char *path)
{
    struct seen *seen = context;

    if (seen->address >= map->start && seen->address < map->end) {
        seen->found = true;
        seen->prot = map->prot;
    }
    seen->self |= strstr(path, "test_regions") && map->inode;
    seen->stack |= map->flags & TBD_REGION_STACK;
    return true;
}

static void pages_eight_tebibytes_apart_fold(void **state)
{
    const uint64_t span = TBD_TOUCH_SPAN;
    struct tbd_regions regions;
    struct tbd_msg_region low = { .start = FIRST, .end = FIRST + 4 * PAGE, .prot = 1 };
    struct tbd_msg_region high = { .start = FIRST + 3 * span + 3 * PAGE,
                                   .end = FIRST + 3 * span + 8 * PAGE,
                                   .prot = 3 };
    struct tbd_msg_region closed = { .start = FIRST + span, .end = FIRST + span + PAGE };

    (void)state;
    assert_true(tbd_regions_init(&regions));
    assert_false(tbd_regions_folds(&regions, FIRST, FIRST + PAGE));
    assert_true(tbd_regions_add(&regions, &low, "") && tbd_regions_add(&regions, &high, "") &&
                tbd_regions_add(&regions, &closed, ""));
    assert_true(tbd_regions_folds(&regions, low.start, low.end));
    assert_false(tbd_regions_folds(&regions, low.start, low.end - PAGE));
    assert_true(tbd_regions_folds(&regions, high.start, high.end));
    assert_false(tbd_regions_folds(&regions, high.start + PAGE, high.end));
    assert_true(tbd_regions_folds(&regions, closed.start, closed.end));
    assert_false(tbd_regions_folds(&regions, FIRST + 8 * PAGE, FIRST + 9 * PAGE));
}

static void the_kernels_list_is_understood(void **state)
{
    void *page = mmap(NULL, 3 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct seen seen = { .address = (uint64_t)(uintptr_t)page + PAGE };

    (void)state;
    assert_int_equal(mprotect((char *)page + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
    assert_true(tbd_maps_read(look, &seen));
    assert_true(seen.found && seen.self && seen.stack);
    assert_int_equal(seen.prot, PROT_READ | PROT_WRITE);
    munmap(page, 3 * PAGE);
}

static bool look_for_path(void *context, const struct tbd_msg_region *map, const char *path)
{
    const char **wanted = context;

    (void)map;
    if (strcmp(path, *wanted) == 0)
        *wanted = "";
    return true;
}

/* The kernel escapes newlines, and no more. */
static void paths_are_those_of_the_files(void **state)
{
    char folder[] = "/tmp/tbd-maps-XXXXXX", path[64];
    const char *wanted = path;
    FILE *file;
    void *page;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/a\nb\033\n\\c", folder);
    file = fopen(path, "w+");
    assert_non_null(file);
    assert_int_equal(fputs("text", file) >= 0 && fflush(file) == 0, 1);
    page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fileno(file), 0);
    assert_true(page != MAP_FAILED && tbd_maps_read(look_for_path, &wanted));
    assert_string_equal(wanted, "");
    munmap(page, PAGE);
    fclose(file);
    unlink(path);
    rmdir(folder);
}

static bool count_line(void *context, char *line)
{
    size_t *lines = context;

    assert_int_equal(strlen(line), *lines % 100);
    return ++*lines < 5000;
}

/* Line n is n % 100 bytes long. */
static void lines_are_put_together_from_whole_reads(void **state)
{
    char path[] = "/tmp/tbd-lines-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    char digits[100];
    size_t lines = 0;
    char text[8];

    (void)state;
    assert_non_null(file);
    for (size_t i = 0; i < sizeof(digits); i++)
        digits[i] = (char)('0' + i % 10);
    for (int i = 0; i < 6000; i++)
        fprintf(file, "%.*s\n", i % 100, digits);
    fclose(file);
    assert_true(tbd_proc_lines(path, count_line, &lines));
    assert_int_equal(lines, 5000);
    assert_int_equal(tbd_proc_read(path, text, sizeof(text)), sizeof(text) - 1);
    assert_string_equal(text, "\n0\n01\n0");
    unlink(path);
    assert_false(tbd_proc_lines(path, count_line, &lines));
    assert_true(tbd_proc_read(path, text, sizeof(text)) < 0);
}

static void a_descriptor_has_its_path(void **state)
{
    char path[PATH_MAX];
    size_t length;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    length = tbd_proc_path(ends[0], path, sizeof(path));
    assert_int_equal(strlen(path), length);
    assert_memory_equal(path, "pipe:[", 6);
    assert_int_equal(tbd_proc_path(ends[0], path, 5), 4);
    assert_string_equal(path, "pipe");
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(tbd_proc_path(ends[0], path, sizeof(path)), 0);
    assert_string_equal(path, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_changes_agree_with_a_model),
        cmocka_unit_test(code_is_found_in_any_part_of_a_range),
        cmocka_unit_test(pages_eight_tebibytes_apart_fold),
        cmocka_unit_test(the_kernels_list_is_understood),
        cmocka_unit_test(paths_are_those_of_the_files),
        cmocka_unit_test(lines_are_put_together_from_whole_reads),
        cmocka_unit_test(a_descriptor_has_its_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
