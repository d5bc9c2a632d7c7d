// SPDX-License-Identifier: MIT
/* jump_code.c - see jump_code.h
 *
 * Flags are kept by lahf and seto, which cost a tenth of pushfq and popfq; no other flag is changed.
 * Each instruction under the jump becomes exactly one here (a call two), so that an address in the code is an address of the program. */
#include "hooks/probes/jump_code.h"

#include "base/linux_abi.h"
#include "base/string.h"
#include "hooks/probes/jump_inline.h"

#pragma GCC visibility push(hidden) /* addresses without a table: mode.h */
extern const uint8_t tbd_jump_call[], tbd_jump_deferred[];
#pragma GCC visibility pop

static struct tbd_ea frame_word(int disp)
{
    return (struct tbd_ea){ .base = TBD_RSP, .index = TBD_NO_REG, .scale = 1, .disp = disp };
}

static void save(struct tbd_emit *e, unsigned reg, int disp)
{
    struct tbd_ea ea = frame_word(disp);

    tbd_emit_store(e, reg, &ea, 8);
}

static void bring_back(struct tbd_emit *e, unsigned reg, int disp)
{
    struct tbd_ea ea = frame_word(disp);

    tbd_emit_load(e, reg, &ea, 8);
}

static void move_stack(struct tbd_emit *e, int by)
{
    struct tbd_ea ea = frame_word(by);

    tbd_emit_lea(e, TBD_RSP, &ea);
}

static uint32_t offset(const struct tbd_jump_code *out, const struct tbd_emit *e)
{
    return (uint32_t)(tbd_emit_pc(e) - out->start);
}

static void call(struct tbd_emit *e, const uint8_t *function)
{
    tbd_emit_mov_imm(e, TBD_RCX, (uint64_t)(uintptr_t)function);
    tbd_emit_bytes(e, "\xff\xd1", 2); /* call *%rcx */
}

static void write_way_in(struct tbd_jump_code *out, struct tbd_emit *e)
{
    move_stack(e, -TBD_JUMP_FRAME);
    save(e, TBD_RAX, TBD_JUMP_RAX);
    save(e, TBD_RCX, TBD_JUMP_RCX);
    save(e, TBD_RDX, TBD_JUMP_RDX);
    out->flags_read = offset(out, e);
    tbd_emit_bytes(e, "\x9f\x0f\x90\xc0", 4); /* lahf; seto %al */
    save(e, TBD_RAX, TBD_JUMP_FLAGS);
    tbd_emit_bytes(e, "\xc7\x04\x24\x00\x00\x00\x00", 7); /* movl $0, (%rsp) */
    out->body = offset(out, e);
}

/* The engine's functions do it; a signal that comes meanwhile finds the frame by its mark. */
static void write_call(const struct tbd_probe *probe, struct tbd_emit *e)
{
    struct tbd_ea mark = frame_word(TBD_JUMP_MAGIC_ADD);

    tbd_emit_lea(e, TBD_RCX, &mark);
    save(e, TBD_RCX, TBD_JUMP_MAGIC);
    tbd_emit_mov_imm(e, TBD_RAX, (uint64_t)(uintptr_t)probe);
    call(e, tbd_jump_call);
    tbd_emit_bytes(e, "\x48\xc7\x44\x24", 4); /* movq $0, MAGIC(%rsp) */
    tbd_emit_u8(e, TBD_JUMP_MAGIC);
    tbd_emit_u32(e, 0);
}

/* Returns where a deferred signal's branch goes from; the address of its displacement. */
static uint8_t *write_way_out(struct tbd_jump_code *out, struct tbd_emit *e, uint64_t *back)
{
    uint8_t *branch;

    out->check = offset(out, e);
    tbd_emit_bytes(e, "\x83\x3c\x24\x00\x0f\x85", 6); /* cmpl $0, (%rsp); jne */
    branch = e->at;
    tbd_emit_u32(e, 0);
    *back = tbd_emit_pc(e);
    bring_back(e, TBD_RAX, TBD_JUMP_FLAGS);
    tbd_emit_bytes(e, "\x04\x7f\x9e", 3); /* add $0x7f, %al: sets OF as seto has found it; sahf */
    bring_back(e, TBD_RDX, TBD_JUMP_RDX);
    bring_back(e, TBD_RCX, TBD_JUMP_RCX);
    bring_back(e, TBD_RAX, TBD_JUMP_RAX);
    move_stack(e, TBD_JUMP_FRAME);
    out->left = offset(out, e);
    return branch;
}

static void write_tail(struct tbd_jump_code *out, struct tbd_emit *e, uint8_t *branch,
                       uint64_t back)
{
    int32_t ahead = (int32_t)(e->at - (branch + 4));

    if (e->overflow)
        return;
    memcpy(branch, &ahead, sizeof(ahead));
    out->tail = offset(out, e);
    call(e, tbd_jump_deferred);
    tbd_emit_u8(e, 0xe9);
    tbd_emit_u32(e, (uint32_t)(back - (tbd_emit_pc(e) + 4)));
}

/* A displacement to `target` from the end of an instruction whose last four bytes it is. */
static bool write_displacement(struct tbd_emit *e, uint64_t target)
{
    int64_t d = (int64_t)(target - (tbd_emit_pc(e) + 4));

    tbd_emit_u32(e, (uint32_t)d);
    return d == (int32_t)d;
}

static bool write_copy(const struct tbd_jump *jump, const struct tbd_jump_insn *insn,
                       struct tbd_emit *e)
{
    uint8_t code[16];
    int64_t d;

    switch ((enum tbd_insn_kind)insn->kind) {
    case TBD_INSN_JUMP: tbd_emit_u8(e, 0xe9); return write_displacement(e, insn->target);
    case TBD_INSN_BRANCH:
        tbd_emit_u8(e, 0x0f);
        tbd_emit_u8(e, 0x80u | insn->condition);
        return write_displacement(e, insn->target);
    default: break;
    }
    memcpy(code, jump->program + insn->at, insn->length);
    if (insn->disp_at) {
        d = (int64_t)(insn->target - (tbd_emit_pc(e) + insn->length));
        if (d != (int32_t)d)
            return false;
        memcpy(code + insn->disp_at, &(int32_t){ (int32_t)d }, 4);
    }
    tbd_emit_bytes(e, code, insn->length);
    return true;
}

static void note_piece(struct tbd_jump_code *out, const struct tbd_emit *e, uint64_t pc)
{
    out->piece[out->piece_count++] = (struct tbd_jump_piece){ offset(out, e), pc };
}

/* The program's return address, out of the code, and a jump: after the first of the two the call is done. */
static bool write_program_call(struct tbd_jump_code *out, const struct tbd_jump_insn *insn,
                               struct tbd_emit *e)
{
    bool reaches;

    tbd_emit_bytes(e, "\xff\x35\x05\x00\x00\x00", 6); /* pushq 5(%rip) */
    note_piece(out, e, insn->target);
    tbd_emit_u8(e, 0xe9);
    reaches = write_displacement(e, insn->target);
    tbd_emit_u64(e, out->jump->probe->step.pc + insn->at + insn->length);
    return reaches;
}

static bool write_copies(struct tbd_jump_code *out, struct tbd_emit *e)
{
    const struct tbd_jump *jump = out->jump;
    uint64_t pc = jump->probe->step.pc;
    bool reaches = true;

    for (unsigned i = 0; i < jump->insn_count && reaches; i++) {
        note_piece(out, e, pc + jump->insn[i].at);
        reaches = jump->insn[i].kind == TBD_INSN_CALL ? write_program_call(out, &jump->insn[i], e)
                                                      : write_copy(jump, &jump->insn[i], e);
    }
    note_piece(out, e, pc + jump->length);
    tbd_emit_u8(e, 0xe9);
    return reaches && write_displacement(e, pc + jump->length);
}

/* False: it calls a function. */
static bool note_uses(struct tbd_jump_code *out)
{
    const struct tbd_probe_session *session = &tbd_probe_session;
    const struct tbd_probe *probe = out->jump->probe;

    out->session = out->use_count = 0;
    if (!tbd_inline_can(session, probe))
        return false;
    out->session = session->number;
    for (uint32_t use = probe->uses; use; use = session->uses[use - 1].next)
        out->use[out->use_count++] = session->uses[use - 1].code;
    return true;
}

bool tbd_jump_serves(const struct tbd_jump_code *code)
{
    struct tbd_jump_code now = { .jump = code->jump };

    note_uses(&now);
    return now.session == code->session && now.use_count == code->use_count &&
           memcmp(now.use, code->use, now.use_count * sizeof(now.use[0])) == 0;
}

bool tbd_jump_write(struct tbd_jump_code *out, struct tbd_emit *emit)
{
    const struct tbd_probe *probe = out->jump->probe;
    uint8_t *branch;
    uint64_t back;

    write_way_in(out, emit);
    if (note_uses(out))
        tbd_inline_write(&tbd_probe_session, probe, emit);
    else
        write_call(probe, emit);
    branch = write_way_out(out, emit, &back);
    if (!write_copies(out, emit))
        return false;
    write_tail(out, emit, branch, back);
    out->bytes = offset(out, emit);
    return !emit->overflow;
}
