// SPDX-License-Identifier: MIT
// links: tbd_base PkgConfig::ELFUTILS
/* Rules of a function's frame, from the tables that are mapped in this process: the same as libdw's for the same
 * files, on the way to the outermost frame, and never more than "unknown" for tables that are wrong. */
#include "base/caller_rule.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define RETURN_COLUMN 16
#define STEP          3u /* bytes from one address that is looked at to the next */

struct table_file {
    const char *path;
    uint64_t base, table, start, end;
};

static int note_file(struct dl_phdr_info *info, size_t bytes, void *context)
{
    struct table_file *out = context;

    (void)bytes;
    if (!strstr(info->dlpi_name, out->path))
        return 0;
    out->path = info->dlpi_name;
    out->base = info->dlpi_addr;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

        if (segment->p_type == PT_GNU_EH_FRAME)
            out->table = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_X) {
            out->start = info->dlpi_addr + segment->p_vaddr;
            out->end = out->start + segment->p_memsz;
        }
    }
    return 1;
}

static struct table_file find_file(const char *name)
{
    struct table_file file = { .path = name };

    dl_iterate_phdr(note_file, &file);
    return file;
}

static bool read_own(void *context, uint64_t address, void *out, size_t bytes)
{
    (void)context;
    memcpy(out, (const void *)(uintptr_t)address, bytes);
    return true;
}

static const struct tbd_table_reader own = { read_own, NULL };

/* ---- against libdw ---- */

static bool is_plain(const Dwarf_Op *ops, size_t count, const struct tbd_caller_rule *rule)
{
    int64_t offset;
    unsigned reg;

    if (count < 1 || count > 2 || rule->kind != TBD_CALLER_PLAIN)
        return false;
    if (ops[0].atom == DW_OP_bregx) {
        reg = (unsigned)ops[0].number;
        offset = (int64_t)ops[0].number2;
    } else {
        reg = ops[0].atom - DW_OP_breg0;
        offset = (int64_t)ops[0].number;
    }
    if (count == 2 && ops[1].atom == DW_OP_plus_uconst)
        offset += (int64_t)ops[1].number;
    return reg == rule->reg && offset == rule->frame_offset;
}

/* The caller's register lies at the frame + *out. */
static bool is_at_frame(const Dwarf_Op *ops, size_t count, int64_t *out)
{
    *out = count == 2 ? (int64_t)ops[1].number : 0;
    return (count == 1 || count == 2) && ops[0].atom == DW_OP_call_frame_cfa &&
           (count == 1 || ops[1].atom == DW_OP_plus_uconst);
}

struct rule_counts {
    size_t plain, pointed, outermost, signal, unknown, none;
};

static void compare_saved(Dwarf_Frame *frame, const struct tbd_caller_rule *rule, unsigned which)
{
    Dwarf_Op memory[3], *ops;
    size_t count;
    int64_t offset;
    int reg = which == TBD_SAVED_RBP ? (int)TBD_CALLER_RBP : (int)TBD_CALLER_RBX;

    assert_int_equal(dwarf_frame_register(frame, reg, memory, &ops, &count), 0);
    if (!count && ops != memory)
        assert_int_equal(rule->place[which], TBD_PLACE_KEPT);
    else if (is_at_frame(ops, count, &offset)) {
        assert_int_equal(rule->place[which], TBD_PLACE_AT_FRAME);
        assert_int_equal(rule->offset[which], offset);
    } else if (rule->place[which] == TBD_PLACE_AT_RBP)
        assert_int_equal(ops[0].atom, DW_OP_breg0 + (int)TBD_CALLER_RBP);
}

static void compare_at(Dwarf_CFI *cfi, const struct table_file *file, uint64_t pc,
                       struct rule_counts *counts)
{
    struct tbd_caller_rule rule = tbd_caller_rule_find(&own, file->table, pc);
    Dwarf_Frame *frame;
    Dwarf_Op *ops;
    size_t count;
    bool is_signal;

    if (dwarf_cfi_addrframe(cfi, pc - file->base, &frame) != 0) {
        assert_int_equal(rule.kind, TBD_CALLER_UNKNOWN);
        counts->none++;
        return;
    }
    dwarf_frame_info(frame, NULL, NULL, &is_signal);
    assert_int_equal(dwarf_frame_cfa(frame, &ops, &count), 0);
    assert_true(is_signal == (rule.kind == TBD_CALLER_SIGNAL));
    switch ((enum tbd_caller_kind)rule.kind) {
    case TBD_CALLER_SIGNAL: counts->signal++; break;
    case TBD_CALLER_OUTERMOST: counts->outermost++; break;
    case TBD_CALLER_UNKNOWN: counts->unknown++; break;
    case TBD_CALLER_POINTED:
        assert_int_equal(ops[0].atom, DW_OP_breg0 + rule.reg);
        assert_int_equal(ops[1].atom, DW_OP_deref);
        counts->pointed++;
        break;
    case TBD_CALLER_PLAIN:
    default:
        if (count <= 2)
            assert_true(is_plain(ops, count, &rule));
        compare_saved(frame, &rule, TBD_SAVED_RBP);
        compare_saved(frame, &rule, TBD_SAVED_RBX);
        counts->plain++;
        break;
    }
    free(frame);
}

static void compare_file(const char *name)
{
    struct table_file file = find_file(name);
    struct rule_counts counts = { 0 };
    int fd = open(file.path, O_RDONLY);
    Elf *elf;
    Dwarf_CFI *cfi;

    assert_true(file.table && fd >= 0);
    elf_version(EV_CURRENT);
    elf = elf_begin(fd, ELF_C_READ, NULL);
    cfi = dwarf_getcfi_elf(elf);
    assert_non_null(cfi);
    for (uint64_t pc = file.start; pc < file.end; pc += STEP)
        compare_at(cfi, &file, pc, &counts);
    print_message("%s: %zu plain, %zu pointed, %zu outermost, %zu signal, %zu unknown, %zu none\n",
                  name, counts.plain, counts.pointed, counts.outermost, counts.signal,
                  counts.unknown, counts.none);
    assert_true(counts.plain > 100 * counts.unknown);
    dwarf_cfi_end(cfi);
    elf_end(elf);
    close(fd);
}

static void rules_are_those_that_libdw_finds(void **state)
{
    (void)state;
    compare_file("libc.so");
    compare_file("ld-linux");
    compare_file("libdw");
}

/* ---- wrong tables ---- */

struct wrong_table {
    uint64_t address, bytes;
    uint8_t *copy;
};

static bool read_copy(void *context, uint64_t address, void *out, size_t bytes)
{
    const struct wrong_table *table = context;

    if (address < table->address || bytes > table->bytes ||
        address - table->address > table->bytes - bytes)
        return false;
    memcpy(out, table->copy + (address - table->address), bytes);
    return true;
}

static void wrong_tables_end_the_search(void **state)
{
    struct table_file file = find_file("libdw");
    struct wrong_table wrong = { .address = file.table, .bytes = 60000 };
    const struct tbd_table_reader reader = { read_copy, &wrong };
    size_t unknown = 0;

    (void)state;
    srand(7);
    wrong.copy = malloc(wrong.bytes);
    for (unsigned round = 0; round < 2000; round++) {
        uint64_t pc = file.start + (unsigned)rand() % (file.end - file.start);

        memcpy(wrong.copy, (const void *)(uintptr_t)file.table, wrong.bytes);
        for (unsigned i = 0; i < wrong.bytes / 16; i++)
            wrong.copy[12 + (unsigned)rand() % (wrong.bytes - 12)] = (uint8_t)rand();
        unknown += tbd_caller_rule_find(&reader, file.table, pc).kind == TBD_CALLER_UNKNOWN;
    }
    free(wrong.copy);
    assert_true(unknown > 100);
    wrong.bytes = 0;
    assert_int_equal(tbd_caller_rule_find(&reader, file.table, file.start).kind,
                     TBD_CALLER_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_are_those_that_libdw_finds),
        cmocka_unit_test(wrong_tables_end_the_search),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
