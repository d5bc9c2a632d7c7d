// SPDX-License-Identifier: MIT
/* function_code.c - see function_code.h */
#include "query/places/function_code.h"

#include <Zydis/Decoder.h>
#include <stdlib.h>

/* ---- which instructions ---- */

/* What is wanted at each instruction of a function. */
typedef bool (*wants_instruction)(const ZydisDecodedInstruction *insn, uint64_t offset,
                                  const struct tbd_where *where);

static bool wants_return(const ZydisDecodedInstruction *insn, uint64_t offset,
                         const struct tbd_where *where)
{
    (void)offset;
    (void)where;
    return insn->meta.category == ZYDIS_CATEGORY_RET;
}

/* All but those that the engine refuses because they raise a signal. */
static bool wants_all(const ZydisDecodedInstruction *insn, uint64_t offset,
                      const struct tbd_where *where)
{
    if (offset < where->number || (where->limit && offset >= where->limit))
        return false;
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_INCSSPD:
    case ZYDIS_MNEMONIC_INCSSPQ:
    case ZYDIS_MNEMONIC_RSTORSSP:
    case ZYDIS_MNEMONIC_SAVEPREVSSP: return false;
    default: break;
    }
    return insn->meta.category != ZYDIS_CATEGORY_INTERRUPT &&
           !(insn->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED);
}

static bool wants_offset(const ZydisDecodedInstruction *insn, uint64_t offset,
                         const struct tbd_where *where)
{
    (void)insn;
    return offset == where->number;
}

/* ---- instructions of a function ---- */

struct function_code {
    uint8_t *bytes;   /* owned, as is the next */
    uint8_t *lengths; /* of the instruction that begins there, 0: none does */
    size_t count;
};

static bool falls_through(const ZydisDecodedInstruction *insn)
{
    return insn->meta.category != ZYDIS_CATEGORY_RET &&
           insn->meta.category != ZYDIS_CATEGORY_UNCOND_BR &&
           insn->mnemonic != ZYDIS_MNEMONIC_UD2 && insn->mnemonic != ZYDIS_MNEMONIC_HLT;
}

/* One after the other from the function's start.  Zeros where nothing falls through are what lies between two
 * pieces of code: a symbol without a size may go on over them. */
static void find_instructions(struct function_code *code)
{
    ZydisDecodedInstruction insn;
    ZydisDecoder decoder;
    bool falls = true;

    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (size_t at = 0; at < code->count; at += insn.length) {
        bool is_zero = at + 1 < code->count && !code->bytes[at] && !code->bytes[at + 1];

        if ((!falls && is_zero) || !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
                                       &decoder, NULL, code->bytes + at, code->count - at, &insn)))
            break;
        code->lengths[at] = insn.length;
        falls = falls_through(&insn);
    }
}

/* Does a direct branch lead into the middle of an instruction?  Then there is data in the code, and the
 * instructions after it were taken from its middle. */
static bool has_data(const struct function_code *code)
{
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ZydisDecodedInstruction insn;
    ZydisDecoder decoder;

    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (size_t at = 0; at < code->count && code->lengths[at]; at += code->lengths[at]) {
        uint64_t target;

        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code->bytes + at, code->count - at,
                                                 &insn, operands)) ||
            !insn.operand_count_visible || operands[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
            !operands[0].imm.is_relative)
            continue;
        target = at + insn.length + operands[0].imm.value.u;
        if (target < code->count && !code->lengths[target])
            return true;
    }
    return false;
}

static bool read_function(struct tbd_elf_file *file, const struct tbd_elf_symbol *symbol,
                          struct function_code *out)
{
    size_t bytes = (size_t)(symbol->end - symbol->start);

    *out = (struct function_code){ .bytes = malloc(bytes + 1), .lengths = calloc(bytes + 1, 1) };
    if (!out->bytes || !out->lengths)
        return false;
    out->count = tbd_elf_read(file, symbol->start, out->bytes, bytes);
    find_instructions(out);
    return true;
}

/* No probe is in the middle of an instruction. */
static bool walk(struct tbd_elf_file *file, uint64_t bias, const struct tbd_elf_symbol *symbol,
                 const struct tbd_where *where, wants_instruction wants,
                 struct tbd_probe_places *out)
{
    struct function_code code;
    ZydisDecodedInstruction insn;
    ZydisDecoder decoder;
    bool done = read_function(file, symbol, &code);

    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    if (done && has_data(&code))
        code.count = 0;
    for (size_t at = 0; done && at < code.count && code.lengths[at]; at += code.lengths[at])
        if (ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, code.bytes + at,
                                                       code.count - at, &insn)) &&
            wants(&insn, at, where))
            done = tbd_process_add_place(out, bias + symbol->start + at);
    free(code.bytes);
    free(code.lengths);
    return done;
}

bool tbd_function_places(struct tbd_elf_file *file, uint64_t bias,
                         const struct tbd_elf_symbol *symbol, const struct tbd_where *where,
                         struct tbd_probe_places *out)
{
    return walk(file, bias, symbol, where,
                where->kind == TBD_WHERE_RETURNS ? wants_return
                : where->kind == TBD_WHERE_ENTRY ? wants_offset
                                                 : wants_all,
                out);
}

/* ---- in the middle of an instruction ---- */

/* The function that an address is in; where one begins, that one around it. */
static const struct tbd_elf_symbol *function_around(struct tbd_elf_file *file, uint64_t address)
{
    const struct tbd_elf_symbol *symbol = tbd_elf_symbol_at(file, address);

    if (symbol && symbol->start == address)
        symbol = address ? tbd_elf_symbol_at(file, address - 1) : NULL;
    return symbol && symbol->is_function && !symbol->is_stub && address < symbol->end ? symbol
                                                                                      : NULL;
}

bool tbd_function_splits(struct tbd_elf_file *file, uint64_t address)
{
    const struct tbd_elf_symbol *symbol = function_around(file, address);
    struct function_code code;
    bool splits = false;
    size_t at = 0;

    if (!symbol)
        return false;
    if (read_function(file, symbol, &code) && !has_data(&code)) {
        while (at < code.count && code.lengths[at] && at < address - symbol->start)
            at += code.lengths[at];
        splits = at > address - symbol->start;
    }
    free(code.bytes);
    free(code.lengths);
    return splits;
}
