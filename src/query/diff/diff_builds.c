// SPDX-License-Identifier: MIT
/* diff_builds.c - the modules of two runs, paired, and what two builds of a module have in common
 *
 * The programs are a pair, whatever their names; other modules are by the last part of their path.  Of a pair with the
 * same build id everything is the same.  Of other pairs, a function is the same if its instructions are, but for
 * addresses outside of it.  All other functions are compared by source lines, which diff_lines.c numbers alike. */
#include "query/diff/diff_builds.h"

#include "base/string.h"
#include "base/binary_search.h"
#include "base/array.h"
#include "base/hash.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTION_BYTES_MAX (1u << 20)

/* A function of one side: `shape` is made of its instructions. */
struct shape {
    uint64_t name, shape;
};

struct shapes {
    struct shape *all; /* owned; sorted */
    size_t count, capacity;
};

struct pair {
    const char *name;   /* last part of the first side's path; borrowed from its symbols */
    const char *second; /* of the second side's */
    struct tbd_module modules[2];
    bool is_program, is_same;
    struct shapes shapes[2]; /* unless is_same */
};

struct tbd_diff_builds {
    struct pair *pairs; /* owned */
    size_t count, capacity;
    struct tbd_diff_lines *lines; /* owned */
};

/* ---- the instructions of a function ---- */

/* Where the instruction's relative operand leads, and which of its bytes say so. */
static bool has_relative(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operands,
                         uint64_t pc, uint64_t *out_target, unsigned *out_at, unsigned *out_bytes)
{
    for (unsigned i = 0; i < insn->operand_count; i++) {
        const ZydisDecodedOperand *operand = &operands[i];
        bool is_memory =
            operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->mem.base == ZYDIS_REGISTER_RIP;
        bool is_branch =
            operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operand->imm.is_relative != 0;

        if (!is_memory && !is_branch)
            continue;
        *out_target = pc + insn->length +
                      (uint64_t)(is_memory ? operand->mem.disp.value : operand->imm.value.s);
        *out_at = is_memory ? insn->raw.disp.offset : insn->raw.imm[0].offset;
        *out_bytes = (is_memory ? insn->raw.disp.size : insn->raw.imm[0].size) / 8u;
        return true;
    }
    return false;
}

/* A number for the instructions: relative operands count by what they lead to within the function. */
static uint64_t shape_of(const ZydisDecoder *decoder, uint8_t *code, size_t bytes)
{
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ZydisDecodedInstruction insn;
    uint64_t hash = bytes;

    for (size_t at = 0; at < bytes; at += insn.length) {
        uint64_t target = 0;
        unsigned from, count;

        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder, code + at, bytes - at, &insn, operands)))
            return tbd_hash64_mix(hash ^ tbd_hash64(code + at, bytes - at));
        if (has_relative(&insn, operands, at, &target, &from, &count) &&
            from + count <= insn.length) {
            memset(code + at + from, 0, count);
            hash ^= target < bytes ? target : bytes;
        }
        hash = tbd_hash64_mix(hash ^ tbd_hash64(code + at, insn.length)) * 3;
    }
    return hash;
}

static int compare_shapes(const void *left, const void *right)
{
    const struct shape *a = left, *b = right;

    if (a->name != b->name)
        return a->name < b->name ? -1 : 1;
    return a->shape < b->shape ? -1 : a->shape > b->shape;
}

static uint64_t name_hash(const char *name)
{
    return tbd_hash64(name, strlen(name));
}

static bool add_shape(struct shapes *shapes, const ZydisDecoder *decoder, struct tbd_elf_file *file,
                      const struct tbd_elf_symbol *symbol)
{
    uint64_t bytes = symbol->end - symbol->start;
    uint8_t *code;

    if (bytes > FUNCTION_BYTES_MAX)
        return true; /* on neither side */
    code = malloc(bytes);
    if (code == NULL ||
        !tbd_array_grow(&shapes->all, shapes->count, &shapes->capacity, sizeof(*shapes->all))) {
        free(code);
        return false;
    }
    bytes = tbd_elf_read(file, symbol->start, code, bytes);
    shapes->all[shapes->count++] =
        (struct shape){ .name = name_hash(symbol->name), .shape = shape_of(decoder, code, bytes) };
    free(code);
    return true;
}

static bool read_shapes(struct shapes *shapes, struct tbd_elf_file *file)
{
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(file);
    ZydisDecoder decoder;

    if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
        return false;
    for (size_t i = 0; i < symbols->count; i++) {
        const struct tbd_elf_symbol *symbol = &symbols->all[i];

        if (symbol->is_function && !symbol->is_stub && symbol->end > symbol->start &&
            !add_shape(shapes, &decoder, file, symbol))
            return false;
    }
    if (shapes->count != 0)
        qsort(shapes->all, shapes->count, sizeof(*shapes->all), compare_shapes);
    return true;
}

/* The functions called `name`: several files of a program may have one each. */
static size_t find_shapes(const struct shapes *shapes, uint64_t name, const struct shape **out)
{
    size_t low = TBD_COUNT_BEFORE(i, shapes->count, shapes->all[i].name < name), end;

    for (end = low; end < shapes->count && shapes->all[end].name == name; end++)
        continue;
    *out = shapes->all + low;
    return end - low;
}

/* ---- pairs ---- */

static struct pair *find_pair(struct tbd_diff_builds *builds, const struct tbd_module *module,
                              bool is_program)
{
    for (size_t i = 0; i < builds->count; i++) {
        struct pair *pair = &builds->pairs[i];

        if (is_program || pair->is_program) {
            if (is_program && pair->is_program)
                return pair;
        } else if (strcmp(pair->name, tbd_base_name(module->path)) == 0) {
            return pair;
        }
    }
    return NULL;
}

static bool add_module(struct tbd_diff_builds *builds, const struct tbd_session *session,
                       const struct tbd_module *module, unsigned side)
{
    bool is_program = strcmp(module->path, session->info->program) == 0;
    struct pair *pair = find_pair(builds, module, is_program);

    if (pair == NULL && side == 1)
        return true; /* it has no partner */
    if (pair == NULL) {
        if (!tbd_array_grow(&builds->pairs, builds->count, &builds->capacity,
                            sizeof(*builds->pairs)))
            return false;
        pair = &builds->pairs[builds->count++];
        *pair = (struct pair){ .name = tbd_base_name(module->path), .is_program = is_program };
    }
    if (pair->modules[side].file == NULL)
        pair->modules[side] = *module;
    if (side == 1)
        pair->second = tbd_base_name(module->path);
    return true;
}

/* Those of the first, the middle and the last window: what was mapped for a short time in between has no partner. */
static enum tbd_status add_modules(struct tbd_diff_builds *builds, struct tbd_session *session,
                                   unsigned side)
{
    uint32_t windows = tbd_trace_window_count(session->trace);

    for (uint32_t i = 0; i < 3 && windows != 0; i++) {
        const struct tbd_module *modules;
        size_t count;
        enum tbd_status status =
            tbd_symbols_modules(session->symbols, (windows - 1) / 2 * i, &modules, &count);

        for (size_t k = 0; status == TBD_OK && k < count; k++)
            if (!add_module(builds, session, &modules[k], side))
                status = TBD_NOMEM;
        if (status != TBD_OK)
            return status;
    }
    return TBD_OK;
}

static bool are_same(const struct pair *pair)
{
    const struct tbd_module *a = &pair->modules[0], *b = &pair->modules[1];

    return a->build_id[0] != '\0' && strcmp(a->build_id, b->build_id) == 0;
}

static bool compare_builds(struct tbd_diff_builds *builds, struct pair *pair)
{
    for (unsigned side = 0; side < 2; side++)
        if (!read_shapes(&pair->shapes[side], pair->modules[side].file))
            return false;
    return tbd_diff_lines_add(builds->lines, tbd_dwarf_of(pair->modules[0].file),
                              tbd_dwarf_of(pair->modules[1].file));
}

enum tbd_status tbd_diff_builds_new(struct tbd_session *a, struct tbd_session *b,
                                    struct tbd_diff_builds **out)
{
    struct tbd_diff_builds *builds = calloc(1, sizeof(*builds));
    enum tbd_status status;

    *out = builds;
    if (builds == NULL)
        return TBD_NOMEM;
    builds->lines = tbd_diff_lines_new();
    if (builds->lines == NULL)
        return TBD_NOMEM;
    status = add_modules(builds, a, 0);
    if (status == TBD_OK)
        status = add_modules(builds, b, 1);
    for (size_t i = 0; i < builds->count && status == TBD_OK; i++) {
        struct pair *pair = &builds->pairs[i];

        if (pair->modules[1].file == NULL)
            continue;
        pair->is_same = are_same(pair);
        if (!pair->is_same && !compare_builds(builds, pair))
            status = TBD_NOMEM;
    }
    return status;
}

void tbd_diff_builds_free(struct tbd_diff_builds *builds)
{
    if (builds == NULL)
        return;
    for (size_t i = 0; i < builds->count; i++) {
        free(builds->pairs[i].shapes[0].all);
        free(builds->pairs[i].shapes[1].all);
    }
    tbd_diff_lines_free(builds->lines);
    free(builds->pairs);
    free(builds);
}

uint32_t tbd_diff_builds_pair(const struct tbd_diff_builds *builds, unsigned side,
                              const struct tbd_module *module)
{
    for (size_t i = 0; i < builds->count; i++) {
        const struct pair *pair = &builds->pairs[i];

        if (pair->modules[1].file != NULL && pair->modules[side].file == module->file)
            return (uint32_t)i;
    }
    return UINT32_MAX;
}

bool tbd_diff_builds_is_same(const struct tbd_diff_builds *builds, uint32_t pair)
{
    return builds->pairs[pair].is_same;
}

bool tbd_diff_builds_is_same_function(const struct tbd_diff_builds *builds, uint32_t pair,
                                      const char *name)
{
    const struct pair *of = &builds->pairs[pair];
    const struct shape *a, *b;
    size_t count;

    if (of->is_same)
        return true;
    count = find_shapes(&of->shapes[0], name_hash(name), &a);
    return count != 0 && find_shapes(&of->shapes[1], name_hash(name), &b) == count &&
           memcmp(a, b, count * sizeof(*a)) == 0;
}

uint32_t tbd_diff_builds_line(const struct tbd_diff_builds *builds, unsigned side, const char *file,
                              uint32_t line)
{
    return tbd_diff_lines_number(builds->lines, side, file, line);
}

bool tbd_diff_builds_differ(const struct tbd_diff_builds *builds, size_t *io_index,
                            const char **out_name)
{
    for (; *io_index < builds->count; (*io_index)++) {
        const struct pair *pair = &builds->pairs[*io_index];

        if (pair->modules[1].file == NULL || pair->is_same)
            continue;
        *out_name = pair->name;
        (*io_index)++;
        return true;
    }
    return false;
}
