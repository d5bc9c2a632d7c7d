// SPDX-License-Identifier: MIT
// links: tbd_query tbd_format
/* Symbols of a live child (no trace needed): names for addresses and back, import stubs, files
 * that are damaged; and instruction text with names. */
#include "query/session/code/disas.h"
#include "query/debuginfo/elf_file.h"
#include "query/session/code/symbols.h"

#include "live_process.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>

#include <cmocka.h>

int symbols_test_global = 7;
int symbols_test_zeroed[100];

__attribute__((noinline)) int symbols_test_function(int x);
int symbols_test_function(int x)
{
    return x + symbols_test_global;
}

static int body(void)
{
    return 0;
}

struct fixture {
    struct live live;
    struct tbd_symbols *symbols;
};

static int set_up(void **state)
{
    static struct fixture fixture;

    if (!live_start(&fixture.live, body))
        return -1;
    *state = &fixture;
    return tbd_symbols_new_fixed(fixture.live.regions, fixture.live.region_count,
                                 &fixture.symbols) == TBD_OK
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    tbd_symbols_free(fixture->symbols);
    live_end(&fixture->live);
    return 0;
}

static uint64_t address_of(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

/* The address in libc itself, not in a sanitizer before it. */
static uint64_t library_address(const char *name)
{
    return address_of(dlsym(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), name));
}

static void own_functions_and_data_have_names(void **state)
{
    struct fixture *f = *state;
    uint64_t function = (uint64_t)(uintptr_t)symbols_test_function;
    struct tbd_symbol symbol;

    assert_true(tbd_symbols_at(f->symbols, 0, function + 1, &symbol));
    assert_string_equal(symbol.name, "symbols_test_function");
    assert_string_equal(symbol.module, "test_symbols");
    assert_true(symbol.start == function && symbol.end > function + 1 && symbol.is_function);
    assert_true(tbd_symbols_is_function_start(f->symbols, 0, function));
    assert_false(tbd_symbols_is_function_start(f->symbols, 0, function + 1));
    assert_true(tbd_symbols_at(f->symbols, 0, address_of(&symbols_test_global), &symbol));
    assert_string_equal(symbol.name, "symbols_test_global");
    assert_false(symbol.is_function);
    assert_true(tbd_symbols_at(f->symbols, 0, address_of(&symbols_test_zeroed[99]), &symbol));
    assert_string_equal(symbol.name, "symbols_test_zeroed");
    assert_true(symbol.end - symbol.start == sizeof(symbols_test_zeroed));
}

static void library_functions_are_found_by_name_and_by_address(void **state)
{
    static const char *const names[] = { "malloc", "printf", "qsort", "getenv", "read", "free" };
    struct fixture *f = *state;
    struct tbd_symbol found[8], at;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char name[64];
        uint64_t expected = library_address(names[i]);

        snprintf(name, sizeof(name), "libc!%s", names[i]);
        assert_int_equal(tbd_symbols_find(f->symbols, 0, name, found, 8), 1);
        assert_true(found[0].start == expected);
        snprintf(name, sizeof(name), "libc.so.6!%s", names[i]);
        assert_int_equal(tbd_symbols_find(f->symbols, 0, name, found, 8), 1);
        assert_true(tbd_symbols_at(f->symbols, 0, expected, &at));
        assert_true(at.start == expected && at.is_function);
        assert_string_equal(at.name, names[i]);
    }
}

static void a_name_in_no_module_is_not_found(void **state)
{
    struct fixture *f = *state;
    struct tbd_symbol found;

    assert_int_equal(tbd_symbols_find(f->symbols, 0, "no_such_name_at_all", &found, 1), 0);
    assert_int_equal(tbd_symbols_find(f->symbols, 0, "libnothing!malloc", &found, 1), 0);
    assert_int_equal(tbd_symbols_find(f->symbols, 0, "lib!malloc", &found, 1), 0);
    assert_false(tbd_symbols_at(f->symbols, 0, 16, &found));
    assert_string_equal(found.module, "");
}

static void patterns_match_and_more_matches_than_fit_are_counted(void **state)
{
    struct fixture *f = *state;
    struct tbd_symbol found[2];

    assert_int_equal(tbd_symbols_find(f->symbols, 0, "symbols_test_f*", found, 2), 1);
    assert_int_equal(tbd_symbols_find(f->symbols, 0, "symbols_test_*", found, 2), 3);
    assert_true(found[0].is_function);
    assert_true(tbd_symbols_find(f->symbols, 0, "libc!str*", NULL, 0) > 10);
}

static void import_stubs_are_named_after_what_they_import(void **state)
{
    struct fixture *f = *state;
    struct tbd_symbol found[4], all[4], at;
    size_t count = tbd_symbols_find(f->symbols, 0, "test_symbols!dlsym@plt", found, 4);

    assert_true(count == 1 || count == 2); /* .plt and .plt.sec with -fcf-protection */
    assert_true(found[0].is_stub && found[0].is_function);
    assert_true(tbd_symbols_at(f->symbols, 0, found[0].start + 4, &at));
    assert_string_equal(at.name, "dlsym@plt");
    assert_true(tbd_symbols_find(f->symbols, 0, "*!dlsym", all, 4) ==
                0); /* modules are not patterns */
}

static void format_names_the_module_the_function_and_the_distance(void **state)
{
    struct fixture *f = *state;
    char text[256];
    uint64_t at = (uint64_t)(uintptr_t)symbols_test_function;

    assert_string_equal(tbd_symbols_format(f->symbols, 0, at, text, sizeof(text)),
                        "test_symbols!symbols_test_function");
    assert_string_equal(tbd_symbols_format(f->symbols, 0, at + 2, text, sizeof(text)),
                        "test_symbols!symbols_test_function+0x2");
    assert_string_equal(tbd_symbols_format(f->symbols, 0, 0x10, text, sizeof(text)), "0x10");
}

static void code_in_the_file_is_the_code_in_memory(void **state)
{
    struct fixture *f = *state;
    uint64_t at = library_address("qsort");
    uint8_t in_file[256], in_memory[256];

    assert_int_equal(tbd_symbols_read_file(f->symbols, 0, at, in_file, sizeof(in_file)),
                     sizeof(in_file));
    assert_true(live_read(&f->live, at, in_memory, sizeof(in_memory)));
    assert_memory_equal(in_file, in_memory, sizeof(in_file));
}

static void modules_are_sorted_and_have_build_ids(void **state)
{
    struct fixture *f = *state;
    const struct tbd_module *modules;
    size_t count;

    assert_int_equal(tbd_symbols_modules(f->symbols, 0, &modules, &count), TBD_OK);
    assert_true(count >= 3);
    for (size_t i = 1; i < count; i++)
        assert_true(modules[i - 1].end <= modules[i].start);
    for (size_t i = 0; i < count; i++)
        if (strcmp(modules[i].name, "libc.so.6") == 0)
            assert_int_equal(strlen(modules[i].build_id), 40);
}

static void text_has_names_for_targets_and_data(void **state)
{
    struct fixture *f = *state;
    struct tbd_disas *disas;
    char text[256];
    uint64_t target = (uint64_t)(uintptr_t)symbols_test_function, pc = target - 0x20;
    uint8_t call[5] = { 0xe8, 0x1b }, load[7] = { 0x48, 0x8b, 0x05 }, bad[2] = { 0x06 };
    int32_t distance = (int32_t)(address_of(&symbols_test_global) - (pc + sizeof(load)));

    assert_int_equal(tbd_disas_new(NULL, f->symbols, TBD_SYNTAX_INTEL, &disas), TBD_OK);
    assert_int_equal(tbd_disas_text(disas, 0, call, sizeof(call), pc, text, sizeof(text)), 5);
    assert_non_null(strstr(text, "call 0x"));
    assert_non_null(strstr(text, "<symbols_test_function>"));
    memcpy(load + 3, &distance, 4);
    assert_int_equal(tbd_disas_text(disas, 0, load, sizeof(load), pc, text, sizeof(text)), 7);
    assert_non_null(strstr(text, "mov rax, "));
    assert_non_null(strstr(text, "<symbols_test_global>"));
    assert_int_equal(tbd_disas_text(disas, 0, bad, sizeof(bad), pc, text, sizeof(text)), 0);
    assert_int_equal(tbd_disas_text(disas, 0, call, 3, pc, text, sizeof(text)), 0);
    tbd_disas_free(disas);
    assert_int_equal(tbd_disas_new(NULL, NULL, TBD_SYNTAX_ATT, &disas), TBD_OK);
    assert_int_equal(
        tbd_disas_text(disas, 0, (const uint8_t *)"\x48\x89\xd8", 3, 0, text, sizeof(text)), 3);
    assert_string_equal(text, "mov %rbx, %rax");
    tbd_disas_free(disas);
}

/* ---- hostile files ---- */

static uint8_t *read_whole(const char *path, size_t *out_bytes)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes;
    long size;

    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    rewind(file);
    bytes = malloc((size_t)size);
    assert_int_equal(fread(bytes, 1, (size_t)size, file), (size_t)size);
    fclose(file);
    *out_bytes = (size_t)size;
    return bytes;
}

/* Calls every query of a file: results do not matter, only that none crashes. */
static void use_all(struct tbd_elf_file *file)
{
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(file);
    uint8_t bytes[64];
    uint64_t bias;

    for (size_t i = 0; i < symbols->count; i += 7) {
        assert_non_null(symbols->all[i].name);
        tbd_elf_symbol_at(file, symbols->all[i].start);
        free(tbd_elf_frame(file, symbols->all[i].start));
    }
    for (uint64_t at = file->low; at < file->high && at < file->low + 0x100000; at += 0x333) {
        tbd_elf_read(file, at, bytes, sizeof(bytes));
        tbd_elf_symbol_at(file, at);
    }
    tbd_elf_bias(file, 0x1000, 0x1000, &bias);
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void damaged_files_never_crash(void **state)
{
    size_t bytes;
    uint8_t *good = read_whole("/proc/self/exe", &bytes), *bad = malloc(bytes);
    uint32_t seed = 12345;
    struct tbd_elf_file *file;
    unsigned opened = 0;

    (void)state;
    for (unsigned round = 0; round < 400; round++) {
        size_t length = round % 4 ? bytes : next_random(&seed) % bytes;
        size_t area = round % 3 == 0 ? 1024 : bytes;

        memcpy(bad, good, bytes);
        for (unsigned i = 0; i < 1 + round % 40; i++) {
            size_t at = next_random(&seed) % area;

            bad[round % 3 == 1 ? bytes - 1 - at % 4096 : at] = (uint8_t)next_random(&seed);
        }
        if (tbd_elf_open_image("damaged", bad, length, &file) != TBD_OK)
            continue;
        opened++;
        use_all(file);
        tbd_elf_close(file);
    }
    assert_in_range(opened, 100, 399);
    free(bad);
    free(good);
}

/* Makes a stripped copy: the section is no symbol table any more. */
static void hide_symbols(uint8_t *image)
{
    Elf64_Ehdr *head = (void *)image;
    Elf64_Shdr *sections = (void *)(image + head->e_shoff);

    for (unsigned i = 0; i < head->e_shnum; i++)
        if (sections[i].sh_type == SHT_SYMTAB)
            sections[i].sh_type = SHT_PROGBITS;
}

static void functions_of_a_stripped_file_get_names_from_their_addresses(void **state)
{
    size_t bytes;
    uint8_t *image = read_whole("/proc/self/exe", &bytes);
    struct tbd_elf_file *whole, *stripped;
    const struct tbd_elf_symbol *symbol;
    uint64_t start = 0, end = 0;
    char name[32];

    (void)state;
    assert_int_equal(tbd_elf_open_image("whole", image, bytes, &whole), TBD_OK);
    for (size_t i = 0; i < tbd_elf_symbols(whole)->count; i++) {
        if (strcmp(whole->symbols.all[i].name, "symbols_test_function") == 0) {
            start = whole->symbols.all[i].start;
            end = whole->symbols.all[i].end;
        }
    }
    hide_symbols(image);
    assert_int_equal(tbd_elf_open_image("stripped", image, bytes, &stripped), TBD_OK);
    symbol = tbd_elf_symbol_at(stripped, end - 1);
    assert_non_null(symbol);
    snprintf(name, sizeof(name), "sub_%" PRIx64, start);
    assert_string_equal(symbol->name, name);
    assert_true(symbol->is_made_up && symbol->start == start && symbol->end == end);
    tbd_elf_close(stripped);
    tbd_elf_close(whole);
    free(image);
}

static void what_is_no_elf_file_is_refused(void **state)
{
    struct tbd_elf_file *file;

    (void)state;
    assert_int_equal(tbd_elf_open("/etc/passwd", &file), TBD_CORRUPT);
    assert_int_equal(tbd_elf_open("/nonexistent", &file), TBD_IO);
    assert_int_equal(tbd_elf_open("/dev/zero", &file), TBD_IO);
    assert_int_equal(tbd_elf_open("/tmp", &file), TBD_IO);
    assert_int_equal(tbd_elf_open_image("empty", "", 0, &file), TBD_CORRUPT);
    assert_null(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_functions_and_data_have_names),
        cmocka_unit_test(library_functions_are_found_by_name_and_by_address),
        cmocka_unit_test(a_name_in_no_module_is_not_found),
        cmocka_unit_test(patterns_match_and_more_matches_than_fit_are_counted),
        cmocka_unit_test(import_stubs_are_named_after_what_they_import),
        cmocka_unit_test(format_names_the_module_the_function_and_the_distance),
        cmocka_unit_test(code_in_the_file_is_the_code_in_memory),
        cmocka_unit_test(modules_are_sorted_and_have_build_ids),
        cmocka_unit_test(text_has_names_for_targets_and_data),
        cmocka_unit_test(damaged_files_never_crash),
        cmocka_unit_test(functions_of_a_stripped_file_get_names_from_their_addresses),
        cmocka_unit_test(what_is_no_elf_file_is_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
