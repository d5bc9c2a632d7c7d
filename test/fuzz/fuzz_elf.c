// SPDX-License-Identifier: MIT
// links: tbd_query tbd_format
/* fuzz_elf.c - a module's file from anywhere
 *
 * Oracles: tables are sorted; what is found at an address covers it; every name is found by name;
 * reads stay inside the segments. */
#include "query/debuginfo/elf_file.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

static void check_symbols(struct tbd_elf_file *file)
{
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(file);
    const uint32_t *by_name = tbd_elf_by_name(file);

    for (size_t i = 0; i < symbols->count; i++) {
        const struct tbd_elf_symbol *symbol = &symbols->all[i];
        const char *named = symbols->all[by_name[i]].name;

        check(symbol->start >= file->low && symbol->end <= file->high);
        check(i == 0 || symbols->all[i - 1].start <= symbol->start);
        check(by_name[i] < symbols->count);
        check(strcmp(symbols->all[by_name[tbd_elf_lower_bound(file, named)]].name, named) == 0);
    }
}

static void check_address(struct tbd_elf_file *file, uint64_t address)
{
    const struct tbd_elf_symbol *symbol = tbd_elf_symbol_at(file, address);
    uint8_t bytes[32];

    check(!symbol || symbol->start <= address);
    check(tbd_elf_read(file, address, bytes, sizeof(bytes)) <= sizeof(bytes));
    free(tbd_elf_frame(file, address));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tbd_elf_file *file;
    uint64_t bias;

    if (tbd_elf_open_image("fuzz", data, size, &file) != TBD_OK)
        return 0;
    check_symbols(file);
    for (size_t i = 0; i < file->segment_count; i++) {
        check_address(file, file->segments[i].p_vaddr);
        check_address(file, file->segments[i].p_vaddr + file->segments[i].p_memsz - 1);
        tbd_elf_bias(file, 0x1000, file->segments[i].p_offset, &bias);
    }
    for (uint64_t at = file->low; at < file->high && at < file->low + 0x4000; at += 0x101)
        check_address(file, at);
    tbd_elf_close(file);
    return 0;
}
