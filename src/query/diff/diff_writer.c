// SPDX-License-Identifier: MIT
/* diff_writer.c - see diff_writer.h
 *
 * DIFF_WRITER-1  A writer is before the value's position. */
#include "query/diff/diff_writer.h"

#include "base/vector_layout.h"
#include "base/assert.h"
#include "query/text/user_interrupt.h"

#include <stdlib.h>
#include <string.h>

#define BLOCKS_MAX 100000u

/* ---- instructions ---- */

static void decode(struct tbd_diff_writer *writer)
{
    ZydisDecoder decoder;

    writer->is_decoded =
        writer->place.insn_bytes != 0 &&
        ZYAN_SUCCESS(
            ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) &&
        ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, writer->place.code, writer->place.insn_bytes,
                                            &writer->insn.insn, writer->insn.operands));
}

enum tbd_status tbd_diff_writer_at(struct tbd_diff_side *side, struct tbd_position at,
                                   struct tbd_diff_writer *out)
{
    enum tbd_status status;

    *out = (struct tbd_diff_writer){ .at = at };
    status = tbd_session_place(&side->session, at, &out->place);
    if (status != TBD_OK)
        return status;
    out->is_there = true;
    out->pc = out->place.pc;
    out->thread = out->place.thread;
    decode(out);
    return TBD_OK;
}

void tbd_diff_writer_free(struct tbd_diff_writer *writer)
{
    free(writer->state);
    writer->state = NULL;
}

/* ---- registers ---- */

static bool need_registers(struct tbd_diff_side *side, struct tbd_diff_writer *writer)
{
    uint32_t thread = side->session.thread;
    bool is_known;

    if (writer->state != NULL)
        return true;
    writer->state = calloc(1, sizeof(*writer->state));
    if (writer->state == NULL)
        return false;
    side->session.thread = writer->thread;
    is_known = tbd_session_regs(&side->session, writer->at, writer->state) == TBD_OK;
    side->session.thread = thread;
    if (!is_known)
        tbd_diff_writer_free(writer);
    return is_known;
}

static bool get_register(const struct tbd_diff_writer *writer, ZydisRegister reg, uint64_t *out)
{
    const struct tbd_regs *regs = &writer->state->regs;
    ZydisRegister full = tbd_why_whole(reg);

    *out = 0;
    if (reg == ZYDIS_REGISTER_NONE)
        return true;
    if (full >= ZYDIS_REGISTER_RAX && full <= ZYDIS_REGISTER_R15)
        *out = regs->gpr[full - ZYDIS_REGISTER_RAX];
    else if (reg == ZYDIS_REGISTER_RIP)
        *out = writer->pc + writer->insn.insn.length;
    else
        return false;
    return true;
}

static bool address_of(struct tbd_diff_side *side, struct tbd_diff_writer *writer,
                       const ZydisDecodedOperand *operand, uint64_t *out)
{
    uint64_t base, index;

    if (!need_registers(side, writer) || !get_register(writer, operand->mem.base, &base) ||
        !get_register(writer, operand->mem.index, &index))
        return false;
    *out = base + index * operand->mem.scale + (uint64_t)operand->mem.disp.value;
    if (operand->mem.segment == ZYDIS_REGISTER_FS)
        *out += writer->state->regs.fs_base;
    return true;
}

/* How many bytes the operand has; 0: not known. */
static uint64_t bytes_of(const struct tbd_why_input *input)
{
    return input->place == TBD_WHY_MEMORY ? input->operand->size / 8
           : input->place == TBD_WHY_REGISTER
               ? ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, input->named) / 8
               : 0;
}

bool tbd_diff_input(struct tbd_diff_side *side, struct tbd_diff_writer *writer,
                    const struct tbd_why_input *input, const struct tbd_diff_value *copied,
                    struct tbd_diff_value *out)
{
    uint64_t bytes = bytes_of(input), skip = 0;

    *out = (struct tbd_diff_value){ .at = writer->at,
                                    .thread = writer->thread,
                                    .place = input->place,
                                    .reg = input->reg,
                                    .flags = input->flags };
    if (input->place == TBD_WHY_CONSTANT)
        return false;
    if (copied != NULL && copied->place == TBD_WHY_MEMORY && copied->address > writer->stored_at)
        skip = copied->address - writer->stored_at;
    if (copied != NULL && copied->place == TBD_WHY_REGISTER)
        skip = copied->skip;
    if (skip >= bytes && writer->insn.insn.meta.category != ZYDIS_CATEGORY_STRINGOP)
        skip = 0;
    out->bytes = bytes > skip ? bytes - skip : 1;
    if (copied != NULL && copied->bytes != 0 && copied->bytes < out->bytes)
        out->bytes = copied->bytes;
    out->skip = skip;
    if (input->place != TBD_WHY_MEMORY)
        return true;
    if (!address_of(side, writer, input->operand, &out->address))
        return false;
    out->address += skip;
    return true;
}

/* ---- what a value is ---- */

/* `bytes` of the register's image from `skip` on. */
static size_t take_part(const struct tbd_diff_value *value, const void *image, size_t bytes,
                        uint8_t *out)
{
    size_t skip = value->skip < bytes ? value->skip : 0;

    bytes -= skip;
    if (value->bytes != 0 && value->bytes < bytes)
        bytes = value->bytes;
    memcpy(out, (const uint8_t *)image + skip, bytes);
    return bytes;
}

/* Only the low 16 bytes of vector registers are known. */
static size_t read_register(struct tbd_diff_side *side, const struct tbd_diff_value *value,
                            uint8_t *out)
{
    struct tbd_diff_writer user = { .at = value->at, .thread = value->thread };
    size_t bytes = 0;

    if (!need_registers(side, &user))
        return 0;
    if (value->place == TBD_WHY_FLAGS) {
        uint64_t flags = user.state->regs.rflags & value->flags;

        bytes = 2;
        memcpy(out, &flags, bytes);
    } else if (value->reg >= ZYDIS_REGISTER_RAX && value->reg <= ZYDIS_REGISTER_R15) {
        bytes = take_part(value, &user.state->regs.gpr[value->reg - ZYDIS_REGISTER_RAX], 8, out);
    } else if (value->reg >= ZYDIS_REGISTER_ZMM0 && value->reg <= ZYDIS_REGISTER_ZMM15 &&
               user.state->regs.xsave_bytes >= TBD_VECTOR_XMM + 16 * 16 && value->skip < 16) {
        const uint8_t *image =
            user.state->xsave + TBD_VECTOR_XMM + 16 * (size_t)(value->reg - ZYDIS_REGISTER_ZMM0);

        bytes = value->skip + value->bytes > 16 ? 0 : take_part(value, image, 16, out);
    }
    tbd_diff_writer_free(&user);
    return bytes;
}

size_t tbd_diff_value_read(struct tbd_diff_side *side, const struct tbd_diff_value *value,
                           uint8_t out[TBD_DIFF_BYTES_MAX])
{
    size_t bytes = value->bytes < TBD_DIFF_BYTES_MAX ? value->bytes : TBD_DIFF_BYTES_MAX;

    memset(out, 0, TBD_DIFF_BYTES_MAX);
    if (value->place != TBD_WHY_MEMORY)
        return read_register(side, value, out);
    return tbd_session_read(&side->session, value->at, value->address, out, bytes) == TBD_OK ? bytes
                                                                                             : 0;
}

/* ---- who wrote it ---- */

static struct tbd_command_run run_of(struct tbd_diff_side *side)
{
    return (struct tbd_command_run){ .session = &side->session, .quiet = true, .silent = true };
}

static void find_call(struct tbd_diff_side *side, uint64_t time, struct tbd_diff_writer *out)
{
    struct tbd_question question = tbd_question_first(TBD_EVENT_SYSCALL);
    struct tbd_command_run run = run_of(side);

    tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_EQ, time);
    tbd_question_where_field(&question, TBD_FIELD_THREAD, TBD_EXPR_EQ, out->thread);
    out->is_syscall = tbd_command_find_event(&run, &question, &out->call) == TBD_OK;
    out->is_kernel = !out->is_syscall;
}

static bool is_syscall(const struct tbd_diff_writer *writer)
{
    return writer->is_decoded && writer->insn.insn.mnemonic == ZYDIS_MNEMONIC_SYSCALL;
}

static enum tbd_status find_store(struct tbd_diff_side *side, const struct tbd_diff_value *value,
                                  struct tbd_diff_writer *out)
{
    struct tbd_question question = tbd_question_before(value->at, TBD_EVENT_STORE);
    struct tbd_command_run run = run_of(side);
    struct tbd_event store;
    enum tbd_status status;

    *out = (struct tbd_diff_writer){ .is_there = false };
    tbd_question_where(&question, tbd_expr_touches(value->address, value->bytes));
    status = tbd_command_find_event(&run, &question, &store);
    if (status == TBD_NOTFOUND)
        return TBD_OK;
    if (status == TBD_OK)
        status = tbd_diff_writer_at(side, store.position, out);
    if (status != TBD_OK)
        return status;
    out->stored_at = store.addr;
    if ((store.flags & TBD_EVENT_RESUMED) != 0 || is_syscall(out)) {
        out->pc = store.pc;
        out->thread = store.thread;
        find_call(side, store.position.time, out);
    } else if (!out->is_decoded) {
        out->is_kernel = true;
    }
    TBD_INVARIANT("DIFF_WRITER-1", tbd_position_compare(out->at, value->at) < 0);
    return TBD_OK;
}

static bool writes(const struct tbd_diff_writer *writer, const struct tbd_diff_value *value)
{
    return value->place == TBD_WHY_FLAGS ? tbd_why_writes_flags(&writer->insn, value->flags)
                                         : tbd_why_writes_register(&writer->insn, value->reg);
}

/* The last instruction of a block before `limit` that writes the value. */
static bool find_in_block(struct tbd_diff_side *side, const struct tbd_diff_value *value,
                          uint64_t time, uint32_t limit, struct tbd_diff_writer *out)
{
    for (uint32_t insn = limit; insn-- > 0;) {
        struct tbd_position at = { .time = time, .offset = insn };

        if (tbd_diff_writer_at(side, at, out) != TBD_OK || out->thread != value->thread)
            return false;
        if (out->is_decoded && writes(out, value))
            return true;
    }
    return false;
}

static enum tbd_status find_instruction(struct tbd_diff_side *side,
                                        const struct tbd_diff_value *value,
                                        struct tbd_diff_writer *out)
{
    uint32_t limit = value->at.offset;
    uint64_t time = value->at.time;

    for (uint32_t blocks = 0; blocks < BLOCKS_MAX; blocks++) {
        struct tbd_place place;
        enum tbd_status status;

        if (find_in_block(side, value, time, limit, out)) {
            if (is_syscall(out))
                find_call(side, time, out);
            return TBD_OK;
        }
        if (tbd_is_interrupted())
            return TBD_INTERRUPTED;
        if (time-- == 0)
            break;
        status = tbd_session_place(&side->session, (struct tbd_position){ .time = time }, &place);
        if (status != TBD_OK)
            return status;
        limit = place.insns;
    }
    return TBD_NOTFOUND;
}

enum tbd_status tbd_diff_writer_of(struct tbd_diff_side *side, const struct tbd_diff_value *value,
                                   struct tbd_diff_writer *out)
{
    *out = (struct tbd_diff_writer){ .is_there = false };
    return value->place == TBD_WHY_MEMORY ? find_store(side, value, out)
                                          : find_instruction(side, value, out);
}
