// SPDX-License-Identifier: MIT
// links: tbd_query tbd_format
/* fuzz_dwarf.c - debug information and C expressions from anywhere
 *
 * The input is a text up to its first NUL, then a file. Oracles: a line that is found at an
 * address has a file and a number; a variable has the same value in a condition as by itself;
 * everything ends. */
#include "condition_value.h"
#include "query/debuginfo/dwarf_listed.h"
#include "query/debuginfo/dwarf_virtual.h"
#include "query/values/dwarf_print.h"

#include <stdlib.h>
#include <string.h>

#define UNITS_MAX 8
#define TEXT_MAX  200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

static bool read_file(void *context, uint64_t address, void *out, size_t bytes)
{
    return tbd_elf_read(context, address, out, bytes) == bytes;
}

/* As a value, and as a condition: the same for a variable, where both can tell.  (In other text,
 * numbers without a type are unsigned in conditions.) */
static void check_expression(const struct tbd_c_scope *scope, const char *text, bool is_variable)
{
    static char sink[1 << 16];
    struct tbd_printer printer = {
        .place = scope->place,
        .options = { .pretty = true, .object = true, .static_members = true },
    };
    struct tbd_query_error error;
    struct tbd_data value;
    uint64_t word, wanted;
    FILE *out;

    bool good = tbd_c_evaluate(scope, text, 0, strlen(text), &value, &error) == TBD_OK;

    check(good || (error.status != TBD_OK && error.at <= strlen(text)));
    if (good && (out = fmemopen(sink, sizeof(sink), "w")) != NULL) {
        tbd_data_print(&printer, &value, out);
        fclose(out);
    }
    if (condition_value(scope, text, &word) && is_variable && good && value.is_known &&
        tbd_data_scalar(scope->place, &value, &wanted))
        check(word == wanted);
}

static void check_address(struct tbd_elf_file *file, struct tbd_dwarf *dwarf, uint64_t address,
                          const char *text)
{
    struct tbd_stack_memory memory = { .read = read_file, .context = file };
    struct tbd_place_of place = { .dwarf = dwarf, .address = address, .memory = &memory };
    struct tbd_c_scope scope = { .place = &place };
    struct tbd_dwarf_function functions[8];
    struct tbd_source_line line;

    if (tbd_dwarf_line_at(dwarf, address, &line))
        check(line.file != NULL && line.line > 0);
    if (tbd_dwarf_scopes(dwarf, address, &place.scopes)) {
        place.end = place.scopes.count;
        check(tbd_dwarf_functions(&place.scopes, functions, 8) <= 8);
    }
    check_expression(&scope, text, false);
    check_expression(&scope, "first", true);
}

static bool check_listed(void *context, const struct tbd_listed *one)
{
    struct tbd_source_line line = tbd_dwarf_declared_at(context, &one->die);

    check(one->name != NULL && (line.line == 0 || line.file != NULL));
    return true;
}

static void check_overrider(void *context, const char *name)
{
    (void)context;
    check(strstr(name, "::") != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size == 0 ? NULL : memchr(data, 0, size < TEXT_MAX ? size : TEXT_MAX);
    struct tbd_elf_file *file;
    struct tbd_dwarf *dwarf;
    Dwarf_Die unit;

    if (end == NULL ||
        tbd_elf_open_image("fuzz", end + 1, size - (size_t)(end + 1 - data), &file) != TBD_OK)
        return 0;
    dwarf = tbd_dwarf_of(file);
    if (dwarf != NULL) {
        for (size_t i = 0; i < tbd_dwarf_unit_count(dwarf) && i < UNITS_MAX; i++)
            (void)tbd_dwarf_unit(dwarf, i, &unit);
        for (int kind = TBD_LISTED_FUNCTION; kind <= TBD_LISTED_TYPE; kind++)
            tbd_dwarf_list(dwarf, (enum tbd_listed_kind)kind, check_listed, dwarf);
        (void)tbd_dwarf_overriders(dwarf, "Base::run", check_overrider, NULL);
        for (size_t i = 0; i < file->segment_count; i++) {
            for (uint64_t at = 0; at < 0x60; at += 0x11)
                check_address(file, dwarf, file->segments[i].p_vaddr + at, (const char *)data);
        }
    }
    tbd_elf_close(file);
    return 0;
}
