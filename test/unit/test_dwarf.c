// SPDX-License-Identifier: MIT
// links: tbd_query tbd_format
/* Debug information of small programs, compiled here at -O0 and -O2 with DWARF 4 and 5: lines,
 * scopes, inlined functions; files that are damaged. */
#include "query/dwarf_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char text[] = "int total;\n"
                           "static inline __attribute__((always_inline)) int inner(int a)\n"
                           "{\n"
                           "    total += a;\n" /* line 4 */
                           "    return total;\n"
                           "}\n"
                           "__attribute__((noinline)) int outer(int b)\n"
                           "{\n"
                           "    return inner(b * 3) + 1;\n" /* line 9 */
                           "}\n"
                           "int main(int argc, char **argv)\n"
                           "{\n"
                           "    (void)argv;\n"
                           "    return outer(argc);\n"
                           "}\n";

static const char *const kinds[] = { "-O0 -gdwarf-4", "-O0 -gdwarf-5", "-O2 -gdwarf-4",
                                     "-O2 -gdwarf-5", "-O2 -gdwarf-5 -gz" };
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static char folder[] = "/tmp/tbd-dwarf-XXXXXX";

static int compile(void **state)
{
    char command[512];
    FILE *source;

    (void)state;
    if (mkdtemp(folder) == NULL || chdir(folder) != 0 || (source = fopen("made.c", "w")) == NULL)
        return -1;
    fputs(text, source);
    fclose(source);
    for (size_t i = 0; i < KINDS; i++) {
        snprintf(command, sizeof(command), "cc %s -no-pie -fno-pie -o made%zu made.c", kinds[i], i);
        if (system(command) != 0)
            return -1;
    }
    return 0;
}

static int remove_all(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command);
}

static struct tbd_elf_file *open_made(size_t kind)
{
    struct tbd_elf_file *file;
    char name[32];

    snprintf(name, sizeof(name), "made%zu", kind);
    assert_int_equal(tbd_elf_open(name, &file), TBD_OK);
    assert_non_null(tbd_dwarf_of(file));
    return file;
}

static const struct tbd_elf_symbol *symbol(struct tbd_elf_file *file, const char *name)
{
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(file);
    size_t index = tbd_elf_lower_bound(symbols, name);

    assert_true(index < symbols->count);
    assert_string_equal(symbols->all[symbols->by_name[index]].name, name);
    return &symbols->all[symbols->by_name[index]];
}

static void functions_have_their_lines(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct tbd_elf_file *file = open_made(kind);
        struct tbd_dwarf *dwarf = tbd_dwarf_of(file);
        struct tbd_source_line line;

        assert_true(tbd_dwarf_line_at(dwarf, symbol(file, "main")->start, &line));
        assert_in_range(line.line, 12, 14);
        assert_non_null(strstr(line.file, "/made.c"));
        assert_true(tbd_dwarf_line_at(dwarf, symbol(file, "outer")->start, &line));
        assert_in_range(line.line, 4, 9); /* inlined code may begin it */
        assert_false(tbd_dwarf_line_at(dwarf, symbol(file, "_start")->start, &line));
        assert_false(tbd_dwarf_line_at(dwarf, 0, &line));
        assert_false(tbd_dwarf_line_at(dwarf, UINT64_MAX, &line));
        tbd_elf_close(file);
    }
}

static void lines_have_their_addresses(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct tbd_elf_file *file = open_made(kind);
        struct tbd_dwarf *dwarf = tbd_dwarf_of(file);
        struct tbd_elf_range ranges[64];
        struct tbd_source_line line;
        size_t count = tbd_dwarf_line_ranges(dwarf, "made.c", 4, ranges, 64);

        assert_in_range(count, 1, 64);
        for (size_t i = 0; i < count; i++) {
            assert_true(ranges[i].start < ranges[i].end);
            assert_true(tbd_dwarf_line_at(dwarf, ranges[i].start, &line) && line.line == 4);
            assert_true(tbd_dwarf_line_at(dwarf, ranges[i].end - 1, &line) && line.line == 4);
        }
        assert_int_equal(tbd_dwarf_line_ranges(dwarf, "made.c", 4, NULL, 0), count);
        assert_true(tbd_dwarf_line_ranges(dwarf, "made.c", 0, NULL, 0) > count);
        assert_int_equal(tbd_dwarf_line_ranges(dwarf, "ade.c", 0, NULL, 0), 0);
        assert_int_equal(tbd_dwarf_line_ranges(dwarf, "made.c", 99, NULL, 0), 0);
        tbd_elf_close(file);
    }
}

static void inlined_functions_are_around_an_address(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct tbd_elf_file *file = open_made(kind);
        struct tbd_dwarf *dwarf = tbd_dwarf_of(file);
        struct tbd_elf_range ranges[16];
        struct tbd_dwarf_scopes scopes;
        struct tbd_dwarf_function functions[4];
        size_t count = tbd_dwarf_line_ranges(dwarf, "made.c", 4, ranges, 16);
        size_t deepest = 0;

        for (size_t i = 0; i < count && i < 16 && deepest < 2; i++) {
            assert_true(tbd_dwarf_scopes(dwarf, ranges[i].start, &scopes));
            deepest = tbd_dwarf_functions(&scopes, functions, 4);
        }
        assert_int_equal(deepest, 2);
        assert_string_equal(functions[0].name, "inner");
        assert_true(functions[0].is_inlined && functions[0].call.line == 9);
        assert_string_equal(functions[1].name, "outer");
        assert_false(functions[1].is_inlined);
        assert_int_equal(functions[1].first, functions[0].end);
        assert_false(tbd_dwarf_scopes(dwarf, symbol(file, "_start")->start, &scopes));
        tbd_elf_close(file);
    }
}

static void ask_everything(struct tbd_elf_file *file)
{
    struct tbd_dwarf *dwarf = tbd_dwarf_of(file);
    struct tbd_dwarf_scopes scopes;
    struct tbd_dwarf_function functions[4];
    struct tbd_source_line line;

    if (dwarf == NULL)
        return;
    for (uint64_t at = file->low; at < file->high && at < file->low + 0x2000; at += 0x11) {
        (void)tbd_dwarf_line_at(dwarf, at, &line);
        if (tbd_dwarf_scopes(dwarf, at, &scopes))
            assert_true(tbd_dwarf_functions(&scopes, functions, 4) <= 4);
    }
    (void)tbd_dwarf_line_ranges(dwarf, "made.c", 0, NULL, 0);
}

/* Every byte of the debug information is changed once, some at a time. */
static void damaged_files_do_no_harm(void **state)
{
    static uint8_t bytes[64 << 10];
    FILE *in;
    size_t count;
    uint64_t random = 88172645463325252;

    (void)state;
    in = fopen("made3", "r");
    assert_non_null(in);
    count = fread(bytes, 1, sizeof(bytes), in);
    fclose(in);
    for (int round = 0; round < 400; round++) {
        struct tbd_elf_file *file;
        uint8_t saved[8];
        size_t at[8];

        for (int i = 0; i < 8; i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            at[i] = 0x3000 + random % (count - 0x3000);
            saved[i] = bytes[at[i]];
            bytes[at[i]] = (uint8_t)(random >> 32);
        }
        if (tbd_elf_open_image("damaged", bytes, count, &file) == TBD_OK) {
            ask_everything(file);
            tbd_elf_close(file);
        }
        for (int i = 8; i-- > 0;)
            bytes[at[i]] = saved[i];
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_have_their_lines),
        cmocka_unit_test(lines_have_their_addresses),
        cmocka_unit_test(inlined_functions_are_around_an_address),
        cmocka_unit_test(damaged_files_do_no_harm),
    };

    if (system("cc --version >/dev/null 2>&1") != 0)
        return 77;
    return cmocka_run_group_tests(tests, compile, remove_all);
}
