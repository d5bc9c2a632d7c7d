// SPDX-License-Identifier: MIT
/* insn.c - see insn.h */
#include "replay/simulate/insn.h"

#include "base/hash.h"
#include "replay/simulate/forms.h"

#include <stdlib.h>
#include <string.h>

struct row {
    tbd_form form;
    uint8_t operation;
    uint16_t aux;
};

static const struct row rows[ZYDIS_MNEMONIC_MAX_VALUE + 1] = {
#define X(name, form, operation, aux)                                                              \
    [ZYDIS_MNEMONIC_##name] = { tbd_form_##form, TBD_OP_##operation, aux },
#include "replay/simulate/instructions.def"
#undef X
};

bool tbd_build_by_table(struct tbd_build *b)
{
    const struct row *row = &rows[b->insn.mnemonic];

    return row->form != NULL && row->form(b, (enum tbd_operation)row->operation, row->aux) &&
           !b->full;
}

/* Instructions that access the same field of structures, or elements of an array, have the same number, few others do. */
static uint8_t field_of(const struct tbd_build *b)
{
    for (unsigned i = 0; i < b->insn.operand_count_visible; i++) {
        const ZydisDecodedOperand *operand = &b->operand[i];

        if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
            operand->mem.type == ZYDIS_MEMOP_TYPE_MEM && operand->mem.base != ZYDIS_REGISTER_RSP &&
            (operand->mem.disp.value != 0 || operand->mem.index != ZYDIS_REGISTER_NONE))
            return (uint8_t)(1 + tbd_hash64_mix((uint64_t)operand->mem.disp.value << 20 ^
                                                (uint64_t)operand->mem.scale << 16 ^
                                                operand->size) %
                                     63);
    }
    return 0;
}

static void begin(struct tbd_build *b, const struct tbd_build *decoded)
{
    *b = *decoded;
    b->out.address = b->address;
    b->out.length = b->insn.length;
    b->out.mnemonic = (uint16_t)b->insn.mnemonic;
    b->out.next = TBD_INSN_NO_SLOT;
    b->out.field = field_of(b);
}

/* Copies one array and moves on. */
static void *take(uint8_t **at, const void *from, size_t bytes)
{
    void *to = *at;

    memcpy(to, from, bytes);
    *at += (bytes + 7) & ~(size_t)7;
    return to;
}

#define BYTES(b, array, count) ((b)->out.count * sizeof((b)->array[0]))

static struct tbd_sim_insn *finish(const struct tbd_build *b)
{
    size_t bytes = sizeof(b->out) + BYTES(b, reads, read_count) + BYTES(b, writes, write_count) +
                   BYTES(b, memory, memory_count) + BYTES(b, copies, copy_count) +
                   BYTES(b, constants, constant_count) + BYTES(b, ops, op_count);
    struct tbd_sim_insn *insn = malloc(bytes + 48); /* up to 7 of padding after each of the six */
    uint8_t *at;

    if (insn == NULL)
        return NULL;
    at = (uint8_t *)(insn + 1);
    *insn = b->out;
    insn->ops = take(&at, b->ops, BYTES(b, ops, op_count));
    insn->constants = take(&at, b->constants, BYTES(b, constants, constant_count));
    insn->reads = take(&at, b->reads, BYTES(b, reads, read_count));
    insn->writes = take(&at, b->writes, BYTES(b, writes, write_count));
    insn->memory = take(&at, b->memory, BYTES(b, memory, memory_count));
    insn->copies = take(&at, b->copies, BYTES(b, copies, copy_count));
    return insn;
}

static bool decode(struct tbd_build *b, const uint8_t *code, size_t bytes)
{
    ZydisDecoder decoder;

    return ZYAN_SUCCESS(
               ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) &&
           ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, bytes, &b->insn, b->operand));
}

enum tbd_status tbd_insn_make(uint64_t address, const uint8_t *code, size_t bytes,
                              struct tbd_sim_insn **out)
{
    struct tbd_build decoded = { .address = address }, b;

    *out = NULL;
    if (!decode(&decoded, code, bytes))
        return TBD_CORRUPT;
    begin(&b, &decoded);
    if (!tbd_build_by_table(&b)) {
        begin(&b, &decoded);
        tbd_build_unknown(&b);
    }
    *out = finish(&b);
    return *out ? TBD_OK : TBD_NOMEM;
}

enum tbd_status tbd_insn_make_return(uint64_t address, struct tbd_sim_insn **out)
{
    static const uint8_t syscall_code[] = { 0x0f, 0x05 };
    struct tbd_build decoded = { .address = address }, b;

    *out = NULL;
    if (!decode(&decoded, syscall_code, sizeof(syscall_code)))
        return TBD_CORRUPT;
    begin(&b, &decoded);
    tbd_build_return_from_signal(&b);
    *out = finish(&b);
    return *out ? TBD_OK : TBD_NOMEM;
}

void tbd_insn_free(struct tbd_sim_insn *insn)
{
    free(insn);
}

bool tbd_insn_leads_to(const struct tbd_sim_insn *insn, uint64_t next)
{
    uint64_t after = insn->address + insn->length;

    if (insn->indirect || insn->kind == TBD_INSN_HAVOC)
        return true;
    if (insn->repeats && next == insn->address)
        return true;
    if (insn->target == 0)
        return next == after;
    return next == insn->target || (insn->conditional && next == after);
}
