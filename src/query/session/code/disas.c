// SPDX-License-Identifier: MIT
/* disas.c - instruction text with names, and the instruction boundaries of blocks
 *
 * DISAS-1  offsets[id] is NULL until it is asked for, then insn_count + 1 offsets into the block's
 *          code; a block whose bytes do not decode to exactly that many instructions gets the
 *          offsets that do decode, and the rest at its end. */
#include "query/session/code/disas.h"

#include "base/assert.h"

#include <Zydis/Zydis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tbd_disas {
    const struct tbd_trace *trace; /* borrowed; may be NULL: text only */
    struct tbd_symbols *symbols;   /* borrowed; may be NULL */
    uint16_t **offsets;            /* owned, each owned; index = block id */
    uint32_t offsets_count;
    ZydisDecoder decoder;
    ZydisFormatter formatter;
};

static bool set_up_zydis(struct tbd_disas *disas, enum tbd_syntax syntax)
{
    if (!ZYAN_SUCCESS(
            ZydisDecoderInit(&disas->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
        !ZYAN_SUCCESS(ZydisFormatterInit(&disas->formatter, syntax == TBD_SYNTAX_ATT
                                                                ? ZYDIS_FORMATTER_STYLE_ATT
                                                                : ZYDIS_FORMATTER_STYLE_INTEL)))
        return false;
    ZydisFormatterSetProperty(&disas->formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
    ZydisFormatterSetProperty(&disas->formatter, ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE,
                              (ZyanUPointer)ZYDIS_PADDING_DISABLED);
    ZydisFormatterSetProperty(&disas->formatter, ZYDIS_FORMATTER_PROP_DISP_PADDING,
                              (ZyanUPointer)ZYDIS_PADDING_DISABLED);
    ZydisFormatterSetProperty(&disas->formatter, ZYDIS_FORMATTER_PROP_IMM_PADDING,
                              (ZyanUPointer)ZYDIS_PADDING_DISABLED);
    return true;
}

enum tbd_status tbd_disas_new(const struct tbd_trace *trace, struct tbd_symbols *symbols,
                              enum tbd_syntax syntax, struct tbd_disas **out)
{
    struct tbd_disas *disas = calloc(1, sizeof(*disas));

    *out = NULL;
    if (!disas)
        return TBD_NOMEM;
    disas->trace = trace;
    disas->symbols = symbols;
    if (!set_up_zydis(disas, syntax)) {
        tbd_disas_free(disas);
        return TBD_SYSTEM;
    }
    *out = disas;
    return TBD_OK;
}

void tbd_disas_free(struct tbd_disas *disas)
{
    if (!disas)
        return;
    for (uint32_t i = 0; i < disas->offsets_count; i++)
        free(disas->offsets[i]);
    free(disas->offsets);
    free(disas);
}

/* ---- boundaries ---- */

/* Makes space for new blocks, which a trace gets while it is written. */
static bool make_space(struct tbd_disas *disas, uint32_t id)
{
    uint32_t count = tbd_trace_block_count(disas->trace) + 1;
    uint16_t **grown;

    if (id < disas->offsets_count)
        return true;
    grown = realloc(disas->offsets, count * sizeof(*grown));
    if (!grown)
        return false;
    memset(grown + disas->offsets_count, 0, (count - disas->offsets_count) * sizeof(*grown));
    disas->offsets = grown;
    disas->offsets_count = count;
    return id < count;
}

/* Keeps DISAS-1. */
static uint16_t *decode_offsets(struct tbd_disas *disas, const struct tbd_block *block)
{
    uint16_t *offsets = malloc((block->def.insn_count + 1u) * sizeof(*offsets));
    uint32_t at = 0;

    if (!offsets)
        return NULL;
    for (uint32_t i = 0; i <= block->def.insn_count; i++) {
        ZydisDecodedInstruction insn;

        offsets[i] = (uint16_t)at;
        if (at < block->def.code_bytes &&
            ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&disas->decoder, NULL, block->code + at,
                                                       block->def.code_bytes - at, &insn)))
            at += insn.length;
        else
            at = block->def.code_bytes;
        TBD_INVARIANT("DISAS-1", offsets[i] <= at && at <= block->def.code_bytes);
    }
    return offsets;
}

static const uint16_t *offsets_of(struct tbd_disas *disas, uint32_t id,
                                  const struct tbd_block **out)
{
    if (!disas->trace || id == 0 || id > tbd_trace_block_count(disas->trace) ||
        !make_space(disas, id))
        return NULL;
    *out = tbd_trace_block(disas->trace, id);
    if (*out && !disas->offsets[id])
        disas->offsets[id] = decode_offsets(disas, *out);
    return *out ? disas->offsets[id] : NULL;
}

bool tbd_disas_insn(struct tbd_disas *disas, uint32_t id, uint32_t insn, struct tbd_block_insn *out)
{
    const struct tbd_block *block;
    const uint16_t *offsets = offsets_of(disas, id, &block);
    uint32_t next;

    if (!offsets || insn > block->def.insn_count)
        return false;
    next = insn < block->def.insn_count ? offsets[insn + 1] : offsets[insn];
    *out = (struct tbd_block_insn){ .pc = block->def.start + offsets[insn],
                                    .bytes = block->code + offsets[insn],
                                    .length = next - offsets[insn] };
    return true;
}

bool tbd_disas_index_of(struct tbd_disas *disas, uint32_t id, uint64_t pc, uint32_t *out_insn)
{
    const struct tbd_block *block;
    const uint16_t *offsets = offsets_of(disas, id, &block);

    if (!offsets)
        return false;
    for (uint32_t i = 0; i < block->def.insn_count; i++) {
        if (block->def.start + offsets[i] == pc) {
            *out_insn = i;
            return true;
        }
    }
    return false;
}

/* ---- text ---- */

/* The address that an instruction names relative to itself: a branch target, or [rip+x]. */
static bool target_of(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operands,
                      uint64_t pc, uint64_t *out)
{
    for (uint8_t i = 0; i < insn->operand_count_visible; i++) {
        const ZydisDecodedOperand *operand = &operands[i];
        bool is_relative =
            (operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operand->imm.is_relative) ||
            (operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->mem.base == ZYDIS_REGISTER_RIP);

        if (is_relative && ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(insn, operand, pc, out)))
            return true;
    }
    return false;
}

static void append_name(struct tbd_disas *disas, uint32_t window, uint64_t address, char *out,
                        size_t out_bytes)
{
    size_t used = strlen(out);
    struct tbd_symbol symbol;

    if (!disas->symbols || !tbd_symbols_at(disas->symbols, window, address, &symbol) ||
        !symbol.name)
        return;
    if (address == symbol.start)
        snprintf(out + used, out_bytes - used, " <%s>", symbol.name);
    else
        snprintf(out + used, out_bytes - used, " <%s+0x%" PRIx64 ">", symbol.name,
                 address - symbol.start);
}

uint32_t tbd_disas_text(struct tbd_disas *disas, uint32_t window, const uint8_t *code, size_t bytes,
                        uint64_t pc, char *out, size_t out_bytes)
{
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ZydisDecodedInstruction insn;
    uint64_t target;

    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&disas->decoder, code, bytes, &insn, operands)) ||
        !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&disas->formatter, &insn, operands,
                                                      insn.operand_count_visible, out, out_bytes,
                                                      pc, NULL))) {
        snprintf(out, out_bytes, "(bad)");
        return 0;
    }
    if (target_of(&insn, operands, pc, &target))
        append_name(disas, window, target, out, out_bytes);
    return insn.length;
}
