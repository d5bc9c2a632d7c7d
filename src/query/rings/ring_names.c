// SPDX-License-Identifier: MIT
/* ring_names.c - functions and source lines of what ran (dump_rings.h) */
#include "query/rings/dump_rings.h"

#include "base/string.h"
#include "query/rings/ring_files.h"

#include <stdlib.h>
#include <string.h>

static bool begins_line(struct tbd_dwarf *dwarf, uint64_t address,
                        const struct tbd_source_line *here)
{
    struct tbd_source_line before;

    return !tbd_dwarf_line_at(dwarf, address - 1, &before) || before.line != here->line ||
           strcmp(before.file, here->file) != 0;
}

static struct tbd_rings_place find_place(struct tbd_rings *ring, uint32_t index, uint64_t address)
{
    struct tbd_rings_place place = { .address = address };
    const struct tbd_crash_module *module;
    const struct tbd_elf_symbol *symbol;
    struct tbd_elf_file *file;
    struct tbd_dwarf *dwarf;
    uint64_t bias;

    if (index == TBD_NO_MODULE)
        return place;
    module = &ring->dump.modules[index];
    place.module = tbd_base_name(module->path);
    file = tbd_rings_file(ring, index);
    if (file == NULL || !tbd_elf_bias(file, module->start, module->file_offset, &bias))
        return place;
    symbol = tbd_elf_symbol_at(file, address - bias);
    if (symbol != NULL) {
        place.function = tbd_elf_symbol_name(file, symbol);
        place.function_start = symbol->start + bias;
    }
    dwarf = tbd_dwarf_of(file);
    if (dwarf == NULL || !tbd_dwarf_line_at(dwarf, address - bias, &place.line))
        place.line.line = 0;
    place.begins_line = place.line.line != 0 && begins_line(dwarf, address - bias, &place.line);
    return place;
}

/* Without debug information, which takes long to open. */
bool tbd_rings_begins_function(struct tbd_rings *ring, uint32_t block)
{
    const struct tbd_crash_block *at = &ring->dump.blocks[block];
    struct tbd_elf_file *file =
        at->module != TBD_NO_MODULE ? tbd_rings_file(ring, at->module) : NULL;
    const struct tbd_crash_module *module;
    const struct tbd_elf_symbol *symbol;
    uint64_t bias;

    if (file == NULL)
        return false;
    module = &ring->dump.modules[at->module];
    if (!tbd_elf_bias(file, module->start, module->file_offset, &bias))
        return false;
    symbol = tbd_elf_symbol_at(file, at->start - bias);
    return symbol != NULL && symbol->start + bias == at->start;
}

/* ---- functions, by symbols alone ---- */

/* NULL: none; *bias: of its file. */
static const struct tbd_elf_symbol *symbol_at(struct tbd_rings *ring, uint32_t index,
                                              uint64_t address, uint64_t *bias)
{
    const struct tbd_crash_module *module;
    struct tbd_elf_file *file = index != TBD_NO_MODULE ? tbd_rings_file(ring, index) : NULL;

    if (file == NULL)
        return NULL;
    module = &ring->dump.modules[index];
    if (!tbd_elf_bias(file, module->start, module->file_offset, bias))
        return NULL;
    return tbd_elf_symbol_at(file, address - *bias);
}

#define BINDER "_dl_runtime_resolve"

enum tbd_rings_begin tbd_rings_begins(struct tbd_rings *ring, uint32_t block)
{
    const struct tbd_crash_block *at = &ring->dump.blocks[block];
    struct tbd_rings_block *own = &ring->blocks[block];
    const struct tbd_elf_symbol *symbol;
    uint64_t bias;

    if (own->begins != TBD_RINGS_NOT_ASKED)
        return own->begins;
    own->begins = TBD_RINGS_BEGINS_NOTHING;
    symbol = symbol_at(ring, at->module, at->start, &bias);
    if (symbol == NULL)
        return own->begins;
    if (symbol->is_stub)
        own->begins = TBD_RINGS_BEGINS_STUB;
    else if (strncmp(symbol->name, BINDER, strlen(BINDER)) == 0)
        own->begins = TBD_RINGS_BEGINS_BINDER;
    else if (symbol->start + bias == at->start && symbol->is_function && !symbol->is_part)
        own->begins = TBD_RINGS_BEGINS_FUNCTION;
    return own->begins;
}

bool tbd_rings_is_inside(struct tbd_rings *ring, uint32_t block, uint32_t start)
{
    const struct tbd_crash_block *to = &ring->dump.blocks[start], *from = &ring->dump.blocks[block];
    const struct tbd_rings_block *own = tbd_rings_block(ring, block);
    const struct tbd_elf_symbol *function, *here;
    uint64_t bias, last;

    function = symbol_at(ring, to->module, to->start, &bias);
    if (own == NULL || function == NULL)
        return true;
    last = own->insns[own->insn_count - 1].pc;
    if (last >= function->start + bias && last < function->end + bias)
        return true;
    here = symbol_at(ring, from->module, last, &bias);
    if (here == NULL || !here->is_part || from->module != to->module)
        return false;
    here = tbd_elf_whole(ring->files[from->module], here);
    return here != NULL && here->start == function->start;
}

bool tbd_rings_leads_on(struct tbd_rings *ring, uint32_t block)
{
    const struct tbd_rings_block *own = tbd_rings_block(ring, block);
    const uint8_t *code;

    if (own == NULL)
        return false;
    switch (own->end) {
    case TBD_RINGS_JUMPS:
    case TBD_RINGS_BRANCHES:
    case TBD_RINGS_JUMPS_ANYWHERE:
    case TBD_RINGS_RETURNS: return true;
    case TBD_RINGS_GOES_ON: /* but not from a system call */
        code = tbd_rings_code(ring, block, own->insn_count - 1);
        return code != NULL && !(code[0] == 0x0f && code[1] == 0x05);
    default: return false;
    }
}

static bool make_space(struct tbd_rings *ring)
{
    size_t wanted = ring->place_capacity != 0 ? ring->place_capacity * 2 : 1024;
    struct tbd_rings_place *grown;

    if (ring->place_count < ring->place_capacity)
        return true;
    grown = realloc(ring->places, wanted * sizeof(*grown));
    if (grown == NULL)
        return false;
    ring->places = grown;
    ring->place_capacity = wanted;
    return true;
}

const struct tbd_rings_place *tbd_rings_place(struct tbd_rings *ring, uint32_t block, uint32_t insn)
{
    struct tbd_rings_insn *at;

    if (tbd_rings_block(ring, block) == NULL)
        return NULL;
    at = &ring->blocks[block].insns[insn];
    if (at->place == 0) {
        if (!make_space(ring))
            return NULL;
        ring->places[ring->place_count++] =
            find_place(ring, ring->dump.blocks[block].module, at->pc);
        at->place = (uint32_t)ring->place_count;
    }
    return &ring->places[at->place - 1];
}

/* The file that was mapped there last: a later module lies over an earlier one. */
static uint32_t module_at(const struct tbd_crash_dump *dump, uint64_t address)
{
    for (uint32_t i = dump->head->module_count; i-- > 0;)
        if (address >= dump->modules[i].start && address < dump->modules[i].end)
            return *dump->modules[i].path != '\0' ? i : TBD_NO_MODULE;
    return TBD_NO_MODULE;
}

struct tbd_rings_place tbd_rings_place_at(struct tbd_rings *ring, uint64_t address)
{
    return find_place(ring, module_at(&ring->dump, address), address);
}
