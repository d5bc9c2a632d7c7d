// SPDX-License-Identifier: MIT
/* cmd_why.c - where a value came from: back through stores, loads and copies to what made it
 *
 *   memory    the last store to it; what that instruction stored is a register, a constant, or memory
 *   register  the last instruction before that writes it, block by block
 *
 * Copies are followed; an instruction that calculates, a constant or a system call is an end.
 *
 * I1  Every hop goes back in time, and there are at most HOPS_MAX.
 * I2  The search for a register's writer looks at BLOCKS_MAX blocks at most, and says so. */
#include "query/output.h"
#include "query/rows.h"
#include "query/source_place.h"
#include "hooks/syscalls.h"

#include <Zydis/Zydis.h>
#include <inttypes.h>
#include <string.h>

#define HOPS_MAX   64u
#define BLOCKS_MAX 100000u

struct why {
    struct tbd_command_run *run;
    ZydisDecoder decoder;
    struct tbd_rows rows;
    struct tbd_position at; /* what follows happened before */
    uint32_t thread;
    bool is_register;
    ZydisRegister reg; /* the whole register */
    uint64_t address, bytes;
    char what[128]; /* of the hop */
    bool is_end;
    enum tbd_status status;
};

struct decoded {
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    struct tbd_reg_state state;
    bool has_state;
};

static ZydisRegister whole(ZydisRegister reg)
{
    return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
}

static void end(struct why *why, const char *what)
{
    snprintf(why->what, sizeof(why->what), "%s", what);
    why->is_end = true;
}

static bool decode(struct why *why, const struct tbd_place *place, struct decoded *out)
{
    out->has_state = false;
    return place->insn_bytes != 0 &&
           ZYAN_SUCCESS(ZydisDecoderDecodeFull(&why->decoder, place->code, place->insn_bytes,
                                               &out->insn, out->operands));
}

/* A row about the instruction at why->at. */
static void add_row(struct why *why, const struct tbd_place *place)
{
    struct tbd_event event = {
        .type = TBD_EVENT_POSITION, .position = why->at, .pc = place->pc, .thread = place->thread
    };
    json_t *row = tbd_rows_event(why->run->session, &event);

    json_object_set_new(row, "what", tbd_output_text(why->what));
    tbd_rows_add(&why->rows, row);
}

/* ---- operands ---- */

static bool get_register(struct decoded *d, ZydisRegister reg, uint64_t *out)
{
    ZydisRegister full = whole(reg);

    if (full >= ZYDIS_REGISTER_RAX && full <= ZYDIS_REGISTER_R15)
        *out = d->state.regs.gpr[full - ZYDIS_REGISTER_RAX];
    else if (reg == ZYDIS_REGISTER_FS)
        *out = d->state.regs.fs_base;
    else if (reg == ZYDIS_REGISTER_RIP)
        *out = d->state.regs.rip + d->insn.length;
    else
        return false;
    return true;
}

static bool need_registers(struct why *why, struct decoded *d)
{
    if (!d->has_state)
        why->status = tbd_session_regs(why->run->session, why->at, &d->state);
    d->has_state = why->status == TBD_OK;
    return d->has_state;
}

/* The address of a memory operand at why->at. */
static bool address_of(struct why *why, struct decoded *d, const ZydisDecodedOperand *operand,
                       uint64_t *out)
{
    uint64_t base = 0, index = 0, segment = 0;

    if (!need_registers(why, d) ||
        (operand->mem.base != ZYDIS_REGISTER_NONE && !get_register(d, operand->mem.base, &base)) ||
        (operand->mem.index != ZYDIS_REGISTER_NONE && !get_register(d, operand->mem.index, &index)))
        return false;
    if (operand->mem.segment == ZYDIS_REGISTER_FS)
        segment = d->state.regs.fs_base;
    *out = segment + base + index * operand->mem.scale + (uint64_t)operand->mem.disp.value;
    return true;
}

/* The value comes from this operand of the instruction at why->at. */
static void follow(struct why *why, struct decoded *d, const ZydisDecodedOperand *operand,
                   uint64_t offset)
{
    switch (operand->type) {
    case ZYDIS_OPERAND_TYPE_IMMEDIATE: end(why, "a constant"); return;
    case ZYDIS_OPERAND_TYPE_REGISTER:
        why->is_register = true;
        why->reg = whole(operand->reg.value);
        snprintf(why->what, sizeof(why->what), "from %s",
                 ZydisRegisterGetString(operand->reg.value));
        return;
    case ZYDIS_OPERAND_TYPE_MEMORY:
        if (!address_of(why, d, operand, &why->address)) {
            end(why, "from memory whose address is not known");
            return;
        }
        why->is_register = false;
        why->address += offset;
        why->bytes = operand->size / 8 > offset ? operand->size / 8 - offset : 1;
        snprintf(why->what, sizeof(why->what), "from memory at 0x%" PRIx64, why->address);
        return;
    default: end(why, "made here"); return;
    }
}

static bool is_copy(ZydisMnemonic mnemonic)
{
    static const ZydisMnemonic copies[] = {
        ZYDIS_MNEMONIC_MOV,      ZYDIS_MNEMONIC_MOVZX,   ZYDIS_MNEMONIC_MOVSX,
        ZYDIS_MNEMONIC_MOVSXD,   ZYDIS_MNEMONIC_MOVAPS,  ZYDIS_MNEMONIC_MOVUPS,
        ZYDIS_MNEMONIC_MOVAPD,   ZYDIS_MNEMONIC_MOVUPD,  ZYDIS_MNEMONIC_MOVDQA,
        ZYDIS_MNEMONIC_MOVDQU,   ZYDIS_MNEMONIC_MOVQ,    ZYDIS_MNEMONIC_MOVD,
        ZYDIS_MNEMONIC_MOVSS,    ZYDIS_MNEMONIC_MOVNTI,  ZYDIS_MNEMONIC_VMOVDQU,
        ZYDIS_MNEMONIC_VMOVDQA,  ZYDIS_MNEMONIC_VMOVUPS, ZYDIS_MNEMONIC_VMOVAPS,
        ZYDIS_MNEMONIC_VMOVQ,    ZYDIS_MNEMONIC_VMOVD,   ZYDIS_MNEMONIC_VMOVDQU64,
        ZYDIS_MNEMONIC_VMOVDQU8,
    };

    for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++) {
        if (copies[i] == mnemonic)
            return true;
    }
    return false;
}

static bool is_string_move(const ZydisDecodedInstruction *insn)
{
    return insn->mnemonic == ZYDIS_MNEMONIC_MOVSB || insn->mnemonic == ZYDIS_MNEMONIC_MOVSW ||
           (insn->mnemonic == ZYDIS_MNEMONIC_MOVSD &&
            insn->meta.category == ZYDIS_CATEGORY_STRINGOP) ||
           insn->mnemonic == ZYDIS_MNEMONIC_MOVSQ;
}

/* ---- memory ---- */

/* The call that the instruction at why->at made. */
static void end_in_system_call(struct why *why)
{
    char question[128];
    struct tbd_event event;
    const char *name = NULL;

    snprintf(question, sizeof(question), "first forward syscall 1 where time == %" PRIu64,
             why->at.time);
    if (tbd_command_find_event(why->run, question, &event) == TBD_OK)
        name = tbd_syscall_name(event.number);
    end(why, "");
    snprintf(why->what, sizeof(why->what), "made by the system call %s", name == NULL ? "?" : name);
}

/* What the store at why->at stored at why->address. */
static void follow_store(struct why *why, const struct tbd_event *store,
                         const struct tbd_place *place)
{
    uint64_t offset = why->address > store->addr ? why->address - store->addr : 0;
    struct decoded d;

    if (!decode(why, place, &d)) {
        end(why, "written by the kernel, for a signal handler");
    } else if (d.insn.mnemonic == ZYDIS_MNEMONIC_SYSCALL) {
        end_in_system_call(why);
    } else if (is_string_move(&d.insn) && need_registers(why, &d)) {
        why->address = d.state.regs.gpr[TBD_RSI] + offset;
        snprintf(why->what, sizeof(why->what), "from memory at 0x%" PRIx64, why->address);
    } else if (is_copy(d.insn.mnemonic) || d.insn.mnemonic == ZYDIS_MNEMONIC_MOVSD) {
        follow(why, &d, &d.operands[1], offset);
    } else if (d.insn.mnemonic == ZYDIS_MNEMONIC_PUSH) {
        follow(why, &d, &d.operands[0], offset);
    } else if (d.insn.meta.category == ZYDIS_CATEGORY_CALL) {
        end(why, "a return address");
    } else {
        end(why, "calculated here");
    }
}

static void step_memory(struct why *why)
{
    struct tbd_event store;
    struct tbd_place place;
    char question[128];

    snprintf(question, sizeof(question),
             "%" PRIu64 "+%" PRIu32 " backward store 1 where touches[0x%" PRIx64 ",%" PRIu64 "]",
             why->at.time, why->at.offset, why->address, why->bytes);
    why->status = tbd_command_find_event(why->run, question, &store);
    if (why->status == TBD_NOTFOUND) {
        why->status = TBD_OK;
        why->at = tbd_session_first(why->run->session);
        end(why, "there since the start: nobody stored it");
        if (tbd_session_place(why->run->session, why->at, &place) == TBD_OK)
            add_row(why, &place);
        return;
    }
    if (why->status != TBD_OK)
        return;
    why->at = store.position;
    why->status = tbd_session_place(why->run->session, why->at, &place);
    if (why->status != TBD_OK)
        return;
    why->thread = place.thread;
    follow_store(why, &store, &place);
    add_row(why, &place);
}

/* ---- registers ---- */

static bool writes(const struct decoded *d, ZydisRegister reg)
{
    if (d->insn.mnemonic == ZYDIS_MNEMONIC_SYSCALL && reg == ZYDIS_REGISTER_RAX)
        return true;
    for (unsigned i = 0; i < d->insn.operand_count; i++) {
        const ZydisDecodedOperand *operand = &d->operands[i];

        if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
            (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 &&
            whole(operand->reg.value) == reg)
            return true;
    }
    return false;
}

/* What the instruction at why->at put into why->reg. */
static void follow_writer(struct why *why, struct decoded *d)
{
    if (d->insn.mnemonic == ZYDIS_MNEMONIC_SYSCALL)
        end_in_system_call(why);
    else if (is_copy(d->insn.mnemonic) ||
             (d->insn.mnemonic == ZYDIS_MNEMONIC_MOVSD && !is_string_move(&d->insn)))
        follow(why, d, &d->operands[1], 0);
    else if (d->insn.mnemonic == ZYDIS_MNEMONIC_POP && need_registers(why, d)) {
        why->is_register = false;
        why->address = d->state.regs.gpr[TBD_RSP];
        why->bytes = 8;
        snprintf(why->what, sizeof(why->what), "from the stack at 0x%" PRIx64, why->address);
    } else {
        end(why, "calculated here");
    }
}

/* The last instruction of a block, below `limit`, that writes the register; false if none does. */
static bool find_writer(struct why *why, uint64_t time, uint32_t limit)
{
    struct tbd_place place;
    struct decoded d;

    for (uint32_t insn = limit; insn-- > 0;) {
        struct tbd_position at = { .time = time, .offset = insn };

        if (tbd_session_place(why->run->session, at, &place) != TBD_OK ||
            place.thread != why->thread || !decode(why, &place, &d) || !writes(&d, why->reg))
            continue;
        why->at = at;
        follow_writer(why, &d);
        if (why->status == TBD_OK)
            add_row(why, &place);
        return true;
    }
    return false;
}

static void step_register(struct why *why)
{
    uint32_t limit = why->at.offset;
    uint64_t time = why->at.time;

    for (uint32_t blocks = 0; blocks < BLOCKS_MAX; blocks++) {
        struct tbd_place place;

        if (find_writer(why, time, limit))
            return;
        if (time-- == 0)
            break;
        why->status =
            tbd_session_place(why->run->session, (struct tbd_position){ .time = time }, &place);
        if (why->status != TBD_OK)
            return;
        limit = place.block->def.insn_count;
    }
    end(why, "its writer is too far away");
}

/* ---- the command ---- */

static bool start_at_register(struct why *why, const char *text)
{
    for (ZydisRegister reg = ZYDIS_REGISTER_RAX; reg <= ZYDIS_REGISTER_R15; reg++) {
        if (*text == '$' && strcmp(text + 1, ZydisRegisterGetString(reg)) == 0) {
            why->is_register = true;
            why->reg = reg;
            return true;
        }
    }
    return false;
}

static enum tbd_exit start_at_variable(struct why *why)
{
    struct tbd_command_run *run = why->run;
    struct tbd_source_place place;
    struct tbd_query_error error = { .status = TBD_TYPE, .at = run->arguments, .length = 1 };
    struct tbd_data data;
    enum tbd_exit result = tbd_command_value_of(run, why->at, run->arguments, strlen(run->text),
                                                &place, &data);

    if (result != TBD_EXIT_FOUND)
        return result;
    if (!data.is_known || !data.in_memory) {
        snprintf(error.message, sizeof(error.message), "it is not in memory here%s%s",
                 data.is_known ? "" : ": ", data.is_known ? "" : data.why);
        snprintf(error.hint, sizeof(error.hint), "a register is followed too: why $rax");
        result = tbd_command_wrong(run, &error);
    }
    why->address = data.address;
    why->bytes = tbd_type_look(&data.type).bytes;
    why->bytes = why->bytes == 0 ? 1 : why->bytes;
    tbd_source_place_close(&place);
    return result;
}

enum tbd_exit tbd_command_why(struct tbd_command_run *run)
{
    static const char *const columns[] = { "position", "what", "text", "source", "function", NULL };
    struct why why = { .run = run, .at = tbd_session_current(run->session) };
    struct tbd_place place;
    enum tbd_exit result = TBD_EXIT_FOUND;

    if (run->argc == 0)
        return tbd_command_usage(run, "why takes a variable or a $register");
    if (!ZYAN_SUCCESS(
            ZydisDecoderInit(&why.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
        return TBD_EXIT_SYSTEM;
    why.status = tbd_session_place(run->session, why.at, &place);
    if (why.status != TBD_OK)
        return tbd_command_fail(run, why.status);
    why.thread = place.thread;
    if (!start_at_register(&why, run->text + run->arguments))
        result = start_at_variable(&why);
    if (result != TBD_EXIT_FOUND)
        return result;
    tbd_rows_start(&why.rows, run, columns);
    for (unsigned hop = 0; hop < HOPS_MAX && !why.is_end && why.status == TBD_OK; hop++) {
        if (why.is_register)
            step_register(&why);
        else
            step_memory(&why);
    }
    result = tbd_rows_end(&why.rows);
    return why.status == TBD_OK ? result : tbd_command_fail(run, why.status);
}
