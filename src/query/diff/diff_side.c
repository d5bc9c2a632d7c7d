// SPDX-License-Identifier: MIT
/* diff_side.c - one of two runs that are compared: what its blocks are called on both sides
 *
 * Of a module that both sides have, a block is called by its offset in the file.  Where they have different builds of it,
 * a block of a function that is the same in both is called by its offset in the function; one of another function by
 * the source lines of its instructions, or by the function alone if there are none. */
#include "query/diff/diff.h"

#include "base/string.h"
#include "base/array.h"
#include "base/hash.h"
#include "query/session/source/source.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* The C library and what belongs to it: what they do differs with addresses, alignment and the environment. */
static const char *const LIBC[] = { "libc.so*", "libc-*", "ld-linux*", "ld-*.so*", "libpthread*",
                                    "libm.so*", "libm-*", "[vdso]",    "librt*",   "libdl*" };

static bool is_libc(const char *module)
{
    for (size_t i = 0; i < sizeof(LIBC) / sizeof(LIBC[0]); i++) {
        if (fnmatch(LIBC[i], module, 0) == 0)
            return true;
    }
    return false;
}

bool tbd_diff_is_ignored(const struct tbd_diff_rules *rules, const char *module)
{
    for (uint32_t i = 0; i < rules->module_count; i++) {
        size_t length = strlen(rules->modules[i]);

        /* "libz" means libz.so.1, too */
        if (strncmp(module, rules->modules[i], length) == 0 &&
            (module[length] == '\0' || module[length] == '.' || module[length] == '-'))
            return true;
    }
    return !rules->with_libc && is_libc(module);
}

void tbd_diff_side_close(struct tbd_diff_side *side)
{
    if (side->is_open)
        tbd_session_close(&side->session);
    side->is_open = false;
    free(side->codes);
    free(side->line_keys);
    free(side->counts);
    side->codes = NULL;
    side->line_keys = side->counts = NULL;
}

/* ---- keys ---- */

static uint64_t key_of(uint64_t first, uint64_t second)
{
    uint64_t key = tbd_hash64_mix(tbd_hash64_mix(first * 0x9fb21c651e98df25ull) ^ second);

    return key == 0 ? 1 : key;
}

static uint64_t text_hash(const char *text)
{
    return tbd_hash64(text, strlen(text));
}

/* The line of an instruction; where both texts are not known, lines count from the function's first. */
static uint64_t line_key(struct tbd_diff_side *side, const struct tbd_module *module,
                         const struct tbd_elf_symbol *symbol, uint64_t pc)
{
    struct tbd_dwarf *dwarf = tbd_dwarf_of(module->file);
    struct tbd_source_line line, first;
    uint32_t number;
    uint64_t name = text_hash(symbol->name);

    if (dwarf == NULL || !tbd_dwarf_line_at(dwarf, pc - module->bias, &line))
        return key_of(name, 0);
    number = tbd_diff_builds_line(side->builds, side->number, line.file, line.line);
    if (number == 0 && tbd_dwarf_line_at(dwarf, symbol->start, &first) && first.file != NULL &&
        strcmp(first.file, line.file) == 0)
        return key_of(name, line.line - first.line + 1u);
    return key_of(text_hash(tbd_base_name(line.file)), number == 0 ? line.line : number);
}

static uint64_t offset_key(const struct tbd_diff_side *side, const struct tbd_module *module,
                           uint32_t pair, const struct tbd_elf_symbol *symbol, uint64_t pc)
{
    uint64_t offset = pc - module->bias;

    if (pair == UINT32_MAX)
        return key_of(text_hash(module->name), offset);
    return tbd_diff_builds_is_same(side->builds, pair)
               ? key_of(pair, offset)
               : key_of(text_hash(symbol->name), 0x100000000u + offset - symbol->start);
}

/* Is the block called by an offset? */
static bool has_offset(const struct tbd_diff_side *side, uint32_t pair,
                       const struct tbd_elf_symbol *symbol)
{
    return pair == UINT32_MAX || tbd_diff_builds_is_same(side->builds, pair) || symbol == NULL ||
           tbd_diff_builds_is_same_function(side->builds, pair, symbol->name);
}

static bool add_lines(struct tbd_diff_side *side, const struct tbd_module *module,
                      const struct tbd_elf_symbol *symbol, const struct tbd_cursor *cursor,
                      struct tbd_diff_code *code)
{
    struct tbd_block_insn insn;

    code->lines = (uint32_t)side->line_key_count;
    for (uint32_t i = 0; i < cursor->block->def.insn_count && i < TBD_DIFF_STEPS_OF_BLOCK; i++) {
        uint64_t key;

        if (!tbd_disas_insn(side->session.disas, cursor->id, i, &insn))
            break;
        key = line_key(side, module, symbol, insn.pc);
        if (code->line_count != 0 && side->line_keys[side->line_key_count - 1] == key)
            continue;
        if (!tbd_array_grow(&side->line_keys, side->line_key_count, &side->line_key_capacity,
                            sizeof(*side->line_keys)))
            return false;
        side->line_keys[side->line_key_count++] = key;
        code->line_count++;
    }
    return true;
}

static bool name_block(struct tbd_diff_side *side, const struct tbd_cursor *cursor,
                       struct tbd_diff_code *code)
{
    uint64_t pc = cursor->block->def.start;
    const struct tbd_module *module =
        tbd_symbols_module_at(side->session.symbols, cursor->window->index, pc);
    const struct tbd_elf_symbol *symbol;
    uint32_t pair;

    code->is_known = true;
    if (module == NULL || tbd_diff_is_ignored(side->rules, module->name))
        return true;
    symbol = tbd_elf_symbol_at(module->file, pc - module->bias);
    if (symbol != NULL && symbol->is_stub)
        return true;
    pair = tbd_diff_builds_pair(side->builds, side->number, module);
    if (!has_offset(side, pair, symbol))
        return add_lines(side, module, symbol, cursor, code);
    if (pair != UINT32_MAX && !tbd_diff_builds_is_same(side->builds, pair) && symbol == NULL)
        return true; /* code without a name, of two builds */
    code->key = offset_key(side, module, pair, symbol, pc);
    return true;
}

const struct tbd_diff_code *tbd_diff_code_of(struct tbd_diff_side *side,
                                             const struct tbd_cursor *cursor)
{
    if (cursor->id < side->code_capacity && side->codes[cursor->id].is_known)
        return &side->codes[cursor->id];
    if (!tbd_array_reach(&side->codes, cursor->id, &side->code_capacity, sizeof(*side->codes)) ||
        !name_block(side, cursor, &side->codes[cursor->id]))
        return NULL;
    return &side->codes[cursor->id];
}

uint64_t tbd_diff_place_key(struct tbd_diff_side *side, uint32_t window, uint64_t pc)
{
    const struct tbd_module *module = tbd_symbols_module_at(side->session.symbols, window, pc);
    const struct tbd_elf_symbol *symbol;
    uint32_t pair;

    if (module == NULL)
        return key_of(0, pc);
    symbol = tbd_elf_symbol_at(module->file, pc - module->bias);
    pair = tbd_diff_builds_pair(side->builds, side->number, module);
    if (!has_offset(side, pair, symbol))
        return line_key(side, module, symbol, pc);
    return symbol == NULL ? key_of(text_hash(module->name), pc - module->bias)
                          : offset_key(side, module, pair, symbol, pc);
}
