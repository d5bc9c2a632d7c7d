// SPDX-License-Identifier: MIT
/* function_branches.c - see function_branches.h */
#include "query/contexts/function_branches.h"

#include "base/string.h"
#include "query/contexts/call_graph_private.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>

#define MOST_BYTES (1u << 20)

struct code_reading {
    struct tbd_branch_code *code;
    ZydisDecoder decoder;
    uint8_t *bytes;  /* owned */
    uint8_t *begins; /* owned; of each byte: 1 an instruction, 2 a block */
    size_t count;
};

/* ---- the function ---- */

static bool is_named(struct tbd_elf_file *elf, const struct tbd_elf_symbol *symbol,
                     const char *name)
{
    return !symbol->is_stub && !symbol->is_part && !symbol->is_resolver &&
           symbol->end > symbol->start && tbd_elf_is_code(elf, symbol->start) &&
           (strcmp(symbol->name, name) == 0 || strcmp(tbd_elf_symbol_name(elf, symbol), name) == 0);
}

static const struct tbd_elf_symbol *find_in(struct tbd_elf_file *elf, const char *name)
{
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(elf);

    for (size_t i = 0; i < symbols->count; i++)
        if (is_named(elf, &symbols->all[i], name))
            return &symbols->all[i];
    return NULL;
}

/* The colon of "MODULE:NAME"; NULL: no module is named. */
static const char *colon_of(const char *name)
{
    const char *colon = strchr(name, ':');

    return colon && colon[1] != ':' ? colon : NULL;
}

static const struct tbd_elf_symbol *find_function(struct tbd_branch_code *code, const char *name)
{
    const char *colon = colon_of(name);

    for (uint32_t i = 0; i < code->files->file_count; i++) {
        const struct tbd_graph_file *file = &code->files->files[i];
        const struct tbd_elf_symbol *symbol;

        if (colon && !tbd_is_file_called(file->path, name, (size_t)(colon - name)))
            continue;
        symbol = find_in(file->elf, colon ? colon + 1 : name);
        if (!symbol)
            continue;
        code->elf = file->elf;
        code->file = tbd_base_name(file->path);
        code->function.module = file->number;
        return symbol;
    }
    return NULL;
}

/* ---- instructions ---- */

static bool is_loop(ZydisMnemonic mnemonic)
{
    return mnemonic == ZYDIS_MNEMONIC_JCXZ || mnemonic == ZYDIS_MNEMONIC_JECXZ ||
           mnemonic == ZYDIS_MNEMONIC_JRCXZ || mnemonic == ZYDIS_MNEMONIC_LOOP ||
           mnemonic == ZYDIS_MNEMONIC_LOOPE || mnemonic == ZYDIS_MNEMONIC_LOOPNE;
}

struct insn {
    ZydisDecodedInstruction zydis;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    size_t at;
    uint64_t target; /* of a direct jump; 0: none */
};

static bool decode(struct code_reading *r, size_t at, struct insn *insn)
{
    ZyanU64 target = 0;

    insn->at = at;
    insn->target = 0;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&r->decoder, r->bytes + at, r->count - at,
                                             &insn->zydis, insn->operands)))
        return false;
    if ((insn->zydis.meta.category == ZYDIS_CATEGORY_COND_BR ||
         insn->zydis.meta.category == ZYDIS_CATEGORY_UNCOND_BR) &&
        insn->operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
        ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&insn->zydis, &insn->operands[0], r->code->start + at,
                                              &target)))
        insn->target = target;
    return true;
}

static bool is_jcc(const struct insn *insn)
{
    return insn->zydis.meta.category == ZYDIS_CATEGORY_COND_BR && !is_loop(insn->zydis.mnemonic);
}

static bool ends_block(const struct insn *insn)
{
    return insn->zydis.meta.category == ZYDIS_CATEGORY_COND_BR ||
           insn->zydis.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
           insn->zydis.meta.category == ZYDIS_CATEGORY_RET ||
           insn->zydis.mnemonic == ZYDIS_MNEMONIC_UD2 || insn->zydis.mnemonic == ZYDIS_MNEMONIC_HLT;
}

/* Branches, and where blocks begin. */
static void take_first(struct code_reading *r, const struct insn *insn)
{
    struct tbd_branch_function *f = &r->code->function;
    size_t next = insn->at + insn->zydis.length;

    r->begins[insn->at] |= 1;
    if (ends_block(insn) && next < r->count)
        r->begins[next] |= 2;
    if (insn->target >= r->code->start && insn->target < r->code->start + r->count)
        r->begins[insn->target - r->code->start] |= 2;
    f->begins_again |= insn->target == r->code->start;
    if (!is_jcc(insn))
        return;
    r->code->is_full |= f->count == TBD_BRANCH_MAX;
    if (r->code->is_full)
        return;
    r->code->targets[f->count] = insn->target;
    f->at[f->count++] = (uint32_t)insn->at;
}

/* ---- blocks ---- */

static uint32_t block_at(const struct tbd_branch_code *code, uint64_t address)
{
    for (uint32_t i = 0; i < code->block_count; i++)
        if (code->blocks[i].start == address)
            return i;
    return TBD_BRANCH_NO_BLOCK;
}

static bool begin_blocks(struct code_reading *r)
{
    struct tbd_branch_code *code = r->code;

    r->begins[0] |= 2;
    for (size_t at = 0; at < r->count; at++) {
        if (r->begins[at] != 3)
            continue;
        if (code->block_count == TBD_BRANCH_BLOCKS) {
            code->block_count = 0;
            return false;
        }
        code->blocks[code->block_count++] = (struct tbd_branch_block){ .start = code->start + at,
                                                                       .jumps = TBD_BRANCH_NO_BLOCK,
                                                                       .falls = TBD_BRANCH_NO_BLOCK,
                                                                       .branch = TBD_BRANCH_MAX };
    }
    return true;
}

/* By its stub, its slot, or its own name. */
static bool is_asking(struct code_reading *r, const struct insn *insn)
{
    static const char own[] = "tbd_branch_context";
    struct tbd_elf_file *elf = r->code->elf;
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(elf);
    const struct tbd_elf_symbol *symbol;
    ZyanU64 address = 0;

    if (!ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&insn->zydis, &insn->operands[0],
                                               r->code->start + insn->at, &address)))
        return false;
    symbol = tbd_elf_symbol_at(elf, address);
    if (symbol && strncmp(symbol->name, own, sizeof(own) - 1) == 0)
        return true;
    for (size_t i = 0; i < symbols->slot_count; i++)
        if (symbols->slots[i].address == address && symbols->slots[i].name)
            return strcmp(symbols->slots[i].name, own) == 0;
    return false;
}

static void take_second(struct code_reading *r, struct tbd_branch_block *block,
                        const struct insn *insn)
{
    struct tbd_branch_code *code = r->code;
    uint64_t next = code->start + insn->at + insn->zydis.length;
    bool is_last = ends_block(insn);

    if (insn->zydis.mnemonic == ZYDIS_MNEMONIC_CALL) {
        block->calls = true;
        block->asks |= is_asking(r, insn);
    }
    if (is_jcc(insn))
        block->branch = tbd_branch_index(
            &code->function, code->function.start + insn->at); /* MAX if there are too many */
    if (is_last && insn->target)
        block->jumps = block_at(code, insn->target);
    block->is_indirect =
        is_last && !insn->target && insn->zydis.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
    if (!is_last || insn->zydis.meta.category == ZYDIS_CATEGORY_COND_BR)
        block->falls = block_at(code, next);
}

static void join_blocks(struct code_reading *r)
{
    struct tbd_branch_code *code = r->code;
    struct tbd_branch_block *block = code->blocks;

    for (size_t at = 0; at < r->count;) {
        struct insn insn;

        if (!decode(r, at, &insn)) {
            at++;
            continue;
        }
        if (r->begins[at] & 2)
            block = &code->blocks[block_at(code, code->start + at)];
        take_second(r, block, &insn);
        at += insn.zydis.length;
    }
    for (uint32_t i = 0; i < code->block_count; i++) {
        if (code->blocks[i].jumps != TBD_BRANCH_NO_BLOCK)
            code->blocks[code->blocks[i].jumps].is_led_to = true;
        if (code->blocks[i].falls != TBD_BRANCH_NO_BLOCK)
            code->blocks[code->blocks[i].falls].is_led_to = true;
    }
}

static bool read_code(struct tbd_branch_code *code, size_t bytes)
{
    struct code_reading r = { .code = code, .bytes = malloc(bytes), .begins = calloc(bytes, 1) };
    struct insn insn;

    ZydisDecoderInit(&r.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    if (r.bytes && r.begins)
        r.count = tbd_elf_read(code->elf, code->start, r.bytes, bytes);
    for (size_t at = 0; at < r.count; at += decode(&r, at, &insn) ? insn.zydis.length : 1)
        if (decode(&r, at, &insn))
            take_first(&r, &insn);
    if (r.count && begin_blocks(&r))
        join_blocks(&r);
    free(r.bytes);
    free(r.begins);
    return r.bytes && r.begins;
}

enum tbd_status tbd_branch_code_open(const char *program, char *const *more, size_t more_count,
                                     const char *name, struct tbd_branch_code *out)
{
    const struct tbd_elf_symbol *symbol;
    enum tbd_status status;

    *out = (struct tbd_branch_code){ .files = NULL };
    status = tbd_call_graph_open(program, more, more_count, &out->files);
    if (status != TBD_OK)
        return status;
    symbol = find_function(out, name);
    if (!symbol || symbol->end - symbol->start > MOST_BYTES)
        return TBD_NOTFOUND;
    out->name = tbd_elf_symbol_name(out->elf, symbol);
    out->start = symbol->start;
    out->function.start = tbd_graph_offset(out->elf, symbol->start);
    out->function.end = out->function.start + (symbol->end - symbol->start);
    return read_code(out, symbol->end - symbol->start) ? TBD_OK : TBD_NOMEM;
}

void tbd_branch_code_close(struct tbd_branch_code *code)
{
    tbd_call_graph_free(code->files);
    code->files = NULL;
}
