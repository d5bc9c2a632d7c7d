// SPDX-License-Identifier: MIT
/* guard_places.c - see guard_places.h
 *
 * A function's instructions are gone through one after the other, with the numbers that were moved to eax and edi last. */
#include "query/places/guard_places.h"

#include <Zydis/Zydis.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define CODE_BYTES 4096
#define UNKNOWN    UINT64_MAX

struct call_numbers {
    uint64_t eax, edi;
};

static bool is_register(const ZydisDecodedOperand *operand, ZydisRegister narrow,
                        ZydisRegister wide)
{
    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
           (operand->reg.value == narrow || operand->reg.value == wide);
}

static uint64_t number_in(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operands)
{
    if (insn->mnemonic == ZYDIS_MNEMONIC_MOV && operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
        return operands[1].imm.value.u;
    if (insn->mnemonic == ZYDIS_MNEMONIC_XOR && operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
        operands[1].reg.value == operands[0].reg.value)
        return 0;
    return UNKNOWN;
}

static void note(struct call_numbers *numbers, const ZydisDecodedInstruction *insn,
                 const ZydisDecodedOperand *operands)
{
    if (insn->operand_count_visible < 2)
        return;
    if (is_register(&operands[0], ZYDIS_REGISTER_EAX, ZYDIS_REGISTER_RAX))
        numbers->eax = number_in(insn, operands);
    if (is_register(&operands[0], ZYDIS_REGISTER_EDI, ZYDIS_REGISTER_RDI))
        numbers->edi = number_in(insn, operands);
}

/* Who comes there by a jump has another edi, perhaps. */
static bool joins(const ZydisDecodedInstruction *insn)
{
    return insn->meta.category == ZYDIS_CATEGORY_COND_BR ||
           insn->meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
           insn->meta.category == ZYDIS_CATEGORY_CALL || insn->meta.category == ZYDIS_CATEGORY_RET;
}

/* What a call may do to the thread's mask. */
enum guard_kind { BLOCKS, MAY_BLOCK, GETS_BACK, GUARD_KINDS };

static enum guard_kind kind_of(const struct call_numbers *numbers)
{
    if (numbers->eax == SYS_rt_sigaction)
        return GETS_BACK;
    return numbers->edi == SIG_BLOCK                                    ? BLOCKS
           : numbers->edi == SIG_SETMASK || numbers->edi == SIG_UNBLOCK ? GETS_BACK
                                                                        : MAY_BLOCK;
}

static bool add_call(struct tbd_probe_places *out, const struct call_numbers *numbers,
                     uint64_t address)
{
    if (numbers->eax != SYS_rt_sigprocmask && numbers->eax != SYS_rt_sigaction)
        return true;
    return tbd_process_add_place(&out[kind_of(numbers)], address);
}

/* Most functions have none, and are not decoded.  The bytes may be those of something else. */
static bool may_have_syscall(const uint8_t *code, size_t bytes)
{
    static const uint8_t instruction[] = { 0x0f, 0x05 };

    return memmem(code, bytes, instruction, sizeof(instruction)) != NULL;
}

static bool find_in(struct tbd_elf_file *file, uint64_t bias, const struct tbd_elf_symbol *symbol,
                    struct tbd_probe_places *out)
{
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    struct call_numbers numbers = { UNKNOWN, UNKNOWN };
    size_t bytes = (size_t)(symbol->end - symbol->start), got;
    ZydisDecodedInstruction insn;
    ZydisDecoder decoder;
    uint8_t code[CODE_BYTES];

    got = tbd_elf_read(file, symbol->start, code, bytes < sizeof(code) ? bytes : sizeof(code));
    if (!may_have_syscall(code, got))
        return true;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (size_t at = 0; at < got; at += insn.length) {
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + at, got - at, &insn, operands)))
            return true;
        if (insn.mnemonic == ZYDIS_MNEMONIC_SYSCALL &&
            !add_call(out, &numbers, bias + symbol->start + at))
            return false;
        if (joins(&insn))
            numbers.edi = UNKNOWN;
        note(&numbers, &insn, operands);
    }
    return true;
}

static bool find_all(struct tbd_probe_process *process, struct tbd_probe_places *out)
{
    for (size_t i = 0; i < process->module_count; i++) {
        struct tbd_process_module *module = &process->modules[i];
        const struct tbd_elf_symbols *symbols;
        struct tbd_elf_file *file;
        uint64_t last = UINT64_MAX;

        if (!tbd_process_is_called(process, module, "libc"))
            continue;
        file = tbd_process_file(process, module);
        symbols = file ? tbd_elf_symbols(file) : NULL;
        for (size_t k = 0; symbols && k < symbols->count; k++) {
            const struct tbd_elf_symbol *symbol = &symbols->all[k];

            if (!symbol->is_function || symbol->is_stub || symbol->start == last)
                continue;
            last = symbol->start;
            if (!find_in(file, module->bias, symbol, out))
                return false;
        }
    }
    return true;
}

bool tbd_guard_places_find(struct tbd_probe_process *process, struct tbd_guard_places *out)
{
    struct tbd_probe_places found[GUARD_KINDS] = { 0 };
    bool done = find_all(process, found);

    for (size_t i = 0; done && i < found[GETS_BACK].count; i++)
        done = tbd_process_add_place(&found[MAY_BLOCK], found[GETS_BACK].all[i].address);
    free(found[GETS_BACK].all);
    out->blocks = found[BLOCKS];
    out->others = found[MAY_BLOCK];
    return done;
}

void tbd_guard_places_free(struct tbd_guard_places *places)
{
    free(places->blocks.all);
    free(places->others.all);
    *places = (struct tbd_guard_places){ 0 };
}
