// SPDX-License-Identifier: MIT
/* native_step.c - see native_step.h
 *
 * NATIVE_STEP-1  The registers that the stub takes for itself are neither read nor written by the
 *     instruction.
 * NATIVE_STEP-2  A stub never changes once its place has a trap. (not checked: nobody else has its
 *     memory) */
#include "patcher/native_step.h"

#include "base/assert.h"

#define FLAG_CARRY    0x1u
#define FLAG_PARITY   0x4u
#define FLAG_ZERO     0x40u
#define FLAG_SIGN     0x80u
#define FLAG_TRAP     0x100u
#define FLAG_OVERFLOW 0x800u
#define FLAGS_OF_C    0x202 /* neither DF nor AC */

uint32_t tbd_native_place(uint32_t reg)
{
    static const uint8_t places[16] = { 13, 14, 12, 11, 15, 10, 9, 8, 0, 1, 2, 3, 4, 5, 6, 7 };

    return places[reg & 15];
}

/* ---- the stub ---- */

#define NO_ADDRESS 0xffu

struct own_registers {
    unsigned base;    /* has the context's address */
    unsigned address; /* has the address of a rip-relative operand; NO_ADDRESS */
};

static const uint8_t kept_by_callee[] = { TBD_RBX, TBD_RBP, TBD_R12, TBD_R13, TBD_R14, TBD_R15 };

static unsigned unused_register(uint16_t used, unsigned last)
{
    for (unsigned r = last + 1; r-- > 0;)
        if (!(used & TBD_BIT(r)))
            return r;
    return NO_ADDRESS;
}

static struct own_registers choose(const struct tbd_insn *insn)
{
    uint16_t used = (uint16_t)(insn->reads | insn->writes | TBD_BIT(TBD_RSP));
    struct own_registers own = { .address = NO_ADDRESS };

    for (unsigned i = 0; i < insn->access_count; i++) {
        const struct tbd_ea *ea = &insn->access[i].ea;

        used = (uint16_t)(used | (ea->base < 16 ? TBD_BIT(ea->base) : 0) |
                          (ea->index < 16 ? TBD_BIT(ea->index) : 0));
    }
    if (insn->rip_relative) {
        own.address = unused_register(used, TBD_RDI);
        used = (uint16_t)(used | (own.address < 16 ? TBD_BIT(own.address) : 0));
    }
    own.base = unused_register(used, TBD_R15);
    return own;
}

static struct tbd_ea word_of(unsigned base, unsigned place)
{
    return (struct tbd_ea){
        .base = (uint8_t)base, .index = TBD_NO_REG, .scale = 1, .disp = (int64_t)place * 8
    };
}

static void load(struct tbd_emit *e, unsigned dst, unsigned base, unsigned place)
{
    struct tbd_ea ea = word_of(base, place);

    tbd_emit_load(e, dst, &ea, 8);
}

static void store(struct tbd_emit *e, unsigned src, unsigned base, unsigned place)
{
    struct tbd_ea ea = word_of(base, place);

    tbd_emit_store(e, src, &ea, 8);
}

/* The context's place of rip keeps the caller's rsp meanwhile. */
static void emit_way_in(struct tbd_emit *e, const struct tbd_insn *insn, struct own_registers own)
{
    for (unsigned i = 0; i < sizeof(kept_by_callee); i++)
        tbd_emit_push(e, kept_by_callee[i]);
    if (own.base != TBD_RDI)
        tbd_emit_mov(e, own.base, TBD_RDI);
    store(e, TBD_RSP, own.base, TBD_NATIVE_RIP);
    load(e, own.base == TBD_RAX ? TBD_RCX : TBD_RAX, own.base, TBD_NATIVE_RFLAGS);
    tbd_emit_push(e, own.base == TBD_RAX ? TBD_RCX : TBD_RAX);
    tbd_emit_u8(e, 0x9d); /* popfq */
    if (own.address != NO_ADDRESS)
        tbd_emit_mov_imm(e, own.address, insn->target);
    for (unsigned r = 0; r < 16; r++)
        if (r != own.base && r != own.address && r != TBD_RSP)
            load(e, r, own.base, tbd_native_place(r));
    load(e, TBD_RSP, own.base, tbd_native_place(TBD_RSP));
}

/* Only mov until the flags are saved. */
static void emit_way_out(struct tbd_emit *e, struct own_registers own)
{
    unsigned flags = own.base == TBD_RAX ? TBD_RCX : TBD_RAX;

    for (unsigned r = 0; r < 16; r++)
        if (r != own.base && r != own.address)
            store(e, r, own.base, tbd_native_place(r));
    load(e, TBD_RSP, own.base, TBD_NATIVE_RIP);
    tbd_emit_u8(e, 0x9c); /* pushfq */
    tbd_emit_pop(e, flags);
    store(e, flags, own.base, TBD_NATIVE_RFLAGS);
    tbd_emit_push_imm(e, FLAGS_OF_C);
    tbd_emit_u8(e, 0x9d); /* popfq */
    for (unsigned i = sizeof(kept_by_callee); i-- > 0;)
        tbd_emit_pop(e, kept_by_callee[i]);
    tbd_emit_u8(e, 0xc3); /* ret */
}

/* [rip + disp32] -> [address + disp32] with a displacement of 0: no length changes. */
static void emit_instruction(struct tbd_emit *e, const struct tbd_insn *insn, unsigned address)
{
    uint8_t code[16];

    __builtin_memcpy(code, insn->bytes, insn->length);
    if (address != NO_ADDRESS) {
        uint8_t *modrm = code + insn->modrm_at;

        if (insn->prefix_bytes == 1)
            code[insn->prefix_at] &= (uint8_t)~1u; /* REX.B */
        else if (insn->prefix_bytes >= 3)
            code[insn->prefix_at + 1] |= 0x20; /* B, inverted */
        *modrm = (uint8_t)(0x80u | (*modrm & 0x38u) | address);
        __builtin_memset(code + insn->disp_at, 0, 4);
    }
    tbd_emit_bytes(e, code, insn->length);
}

static enum tbd_step_refusal emit_stub(struct tbd_native_step *out, const struct tbd_insn *insn,
                                       struct tbd_emit *e)
{
    struct own_registers own = choose(insn);

    if (own.base == NO_ADDRESS || (insn->rip_relative && own.address == NO_ADDRESS))
        return TBD_STEP_UNSUPPORTED;
    TBD_INVARIANT("NATIVE_STEP-1", !((insn->reads | insn->writes) & TBD_BIT(own.base)));
    out->stub = tbd_emit_pc(e);
    emit_way_in(e, insn, own);
    emit_instruction(e, insn, own.address);
    emit_way_out(e, own);
    return e->overflow ? TBD_STEP_NO_MEMORY : TBD_STEP_OK;
}

/* The kernel leaves the address after the instruction in rcx, also in a new thread, and goes back by
 * two bytes to make a call again: so the instruction is the stub's first. */
static enum tbd_step_refusal emit_syscall(struct tbd_native_step *out, struct tbd_emit *e)
{
    out->stub = tbd_emit_pc(e);
    tbd_emit_bytes(e, "\x0f\x05", 2);
    tbd_emit_mov_imm(e, TBD_RCX, out->next);
    tbd_emit_jmp_far(e, out->next);
    return e->overflow ? TBD_STEP_NO_MEMORY : TBD_STEP_OK;
}

uint64_t tbd_step_syscall_entry(const struct tbd_native_step *step)
{
    return step->stub;
}

/* ---- what to do ---- */

static bool is_through_segment(const struct tbd_insn *insn)
{
    return insn->gs || (insn->access_count && (insn->access[0].ea.gs || insn->access[0].ea.fs));
}

static enum tbd_step_refusal make_indirect(struct tbd_native_step *out, const struct tbd_insn *insn)
{
    out->target_reg = insn->field[TBD_FIELD_RM];
    if (out->target_reg != TBD_NO_REG)
        return TBD_STEP_OK;
    return is_through_segment(insn) || !insn->access_count ? TBD_STEP_UNSUPPORTED : TBD_STEP_OK;
}

/* One by its bytes, although the decoder says special: a far one, one through gs, a 16-bit one. */
static bool is_transfer(const struct tbd_insn *insn)
{
    unsigned operation = insn->modrm_at ? insn->bytes[insn->modrm_at] >> 3 & 7 : 0;

    switch (insn->opcode) {
    case 0xff: return operation >= 2 && operation <= 5;
    case 0xe8:
    case 0xe9:
    case 0xeb:
    case 0xea:
    case 0x9a:
    case 0xc2:
    case 0xc3:
    case 0xca:
    case 0xcb:
    case 0xcc:
    case 0xcd:
    case 0xcf: return true;
    default: return (insn->opcode & 0xf0) == 0x70 || (insn->opcode & 0xfc) == 0xe0;
    }
}

static bool is_plain_map(const struct tbd_insn *insn)
{
    for (unsigned at = 0; at + 1 < insn->length; at++) {
        uint8_t byte = insn->bytes[at];

        if (tbd_decode_is_prefix(byte) || (byte & 0xf0) == 0x40)
            continue;
        return byte == insn->opcode && insn->prefix_bytes <= 1;
    }
    return true;
}

static enum tbd_step_refusal make_special(struct tbd_native_step *out, const struct tbd_insn *insn,
                                          struct tbd_emit *code)
{
    if (insn->special == TBD_SPECIAL_XBEGIN) {
        out->kind = TBD_STEP_XBEGIN;
        return TBD_STEP_OK;
    }
    if ((is_plain_map(insn) && is_transfer(insn)) || (insn->gs && insn->rip_relative))
        return TBD_STEP_UNSUPPORTED;
    if (insn->special == TBD_SPECIAL_OTHER && !is_plain_map(insn) && !insn->access_count)
        return TBD_STEP_UNSUPPORTED; /* sysenter, vmcall */
    return emit_stub(out, insn, code);
}

static bool has_prefix(const struct tbd_insn *insn, uint8_t prefix)
{
    for (unsigned at = 0; at < insn->length && tbd_decode_is_prefix(insn->bytes[at]); at++)
        if (insn->bytes[at] == prefix)
            return true;
    return false;
}

enum tbd_step_refusal tbd_step_make(struct tbd_native_step *out, const struct tbd_insn *insn,
                                    struct tbd_emit *code)
{
    *out = (struct tbd_native_step){ .pc = insn->pc,
                                     .next = insn->pc + insn->length,
                                     .target = insn->target,
                                     .access_count = insn->access_count,
                                     .kind = TBD_STEP_EXECUTE,
                                     .target_reg = TBD_NO_REG,
                                     .is_vector = insn->uses_vectors,
                                     .first = insn->bytes[0],
                                     .length = insn->length,
                                     .pop_bytes = insn->pop_bytes };
    __builtin_memcpy(out->access, insn->access, sizeof(out->access));
    switch ((enum tbd_insn_kind)insn->kind) {
    case TBD_INSN_PLAIN: return emit_stub(out, insn, code);
    case TBD_INSN_NOP: out->kind = TBD_STEP_NOTHING; return TBD_STEP_OK;
    case TBD_INSN_JUMP:
        out->kind = TBD_STEP_JUMP;
        out->is_direct = true;
        return TBD_STEP_OK;
    case TBD_INSN_BRANCH:
        out->kind = TBD_STEP_BRANCH;
        out->condition = insn->opcode & 15;
        return TBD_STEP_OK;
    case TBD_INSN_BRANCH_RCX:
        out->kind = TBD_STEP_BRANCH_RCX;
        out->condition = insn->opcode;
        out->is_addr32 = has_prefix(insn, 0x67);
        return TBD_STEP_OK;
    case TBD_INSN_CALL:
        out->kind = TBD_STEP_CALL;
        out->is_direct = true;
        return TBD_STEP_OK;
    case TBD_INSN_CALL_INDIRECT: out->kind = TBD_STEP_CALL; return make_indirect(out, insn);
    case TBD_INSN_JUMP_INDIRECT: out->kind = TBD_STEP_JUMP; return make_indirect(out, insn);
    case TBD_INSN_RETURN: out->kind = TBD_STEP_RETURN; return TBD_STEP_OK;
    case TBD_INSN_SYSCALL: out->kind = TBD_STEP_SYSCALL; return emit_syscall(out, code);
    case TBD_INSN_SPECIAL: return make_special(out, insn, code);
    case TBD_INSN_BAD:
    default: return TBD_STEP_RAISES;
    }
}

/* ---- doing it ---- */

static uint64_t *reg_of(uint64_t *context, unsigned reg)
{
    return &context[tbd_native_place(reg)];
}

uint64_t tbd_step_address(const struct tbd_access *access, const uint64_t *context)
{
    const struct tbd_ea *ea = &access->ea;
    uint64_t address = (uint64_t)ea->disp;

    if (ea->base < 16)
        address += context[tbd_native_place(ea->base)];
    if (ea->index < 16) {
        uint64_t index = context[tbd_native_place(ea->index)];

        address += (access->flags & TBD_ACCESS_XLAT) ? index & 0xff : index * ea->scale;
    }
    if (access->flags & TBD_ACCESS_BITS) {
        int64_t bit = (int64_t)context[tbd_native_place(access->bit_reg)];

        bit = access->size == 2 ? (int16_t)bit : access->size == 4 ? (int32_t)bit : bit;
        address += (uint64_t)((bit >> (access->size == 2   ? 4
                                       : access->size == 4 ? 5
                                                           : 6)) *
                              access->size);
    }
    return ea->addr32 ? (uint32_t)address : address;
}

static bool is_met(unsigned condition, uint64_t flags)
{
    bool sign_differs = !(flags & FLAG_SIGN) != !(flags & FLAG_OVERFLOW);
    bool is_met;

    switch (condition >> 1) {
    case 0: is_met = flags & FLAG_OVERFLOW; break;
    case 1: is_met = flags & FLAG_CARRY; break;
    case 2: is_met = flags & FLAG_ZERO; break;
    case 3: is_met = flags & (FLAG_CARRY | FLAG_ZERO); break;
    case 4: is_met = flags & FLAG_SIGN; break;
    case 5: is_met = flags & FLAG_PARITY; break;
    case 6: is_met = sign_differs; break;
    default: is_met = sign_differs || (flags & FLAG_ZERO); break;
    }
    return is_met != (condition & 1);
}

/* loopne, loope, loop, jrcxz */
static bool counts_down(const struct tbd_native_step *step, uint64_t *context)
{
    uint64_t *rcx = reg_of(context, TBD_RCX);
    uint64_t count = step->is_addr32 ? (uint32_t)*rcx : *rcx;
    bool zero = context[TBD_NATIVE_RFLAGS] & FLAG_ZERO;

    if (step->condition == 0xe3)
        return count == 0;
    count--;
    *rcx = step->is_addr32 ? (uint32_t)count : count;
    count = step->is_addr32 ? (uint32_t)count : count;
    return count && (step->condition == 0xe2 || (step->condition == 0xe1) == zero);
}

static uint64_t target_of(const struct tbd_native_step *step, uint64_t *context)
{
    if (step->is_direct)
        return step->target;
    if (step->target_reg != TBD_NO_REG)
        return *reg_of(context, step->target_reg);
    return *(const uint64_t *)(uintptr_t)tbd_step_address(&step->access[0], context);
}

static void push(uint64_t *context, uint64_t value)
{
    uint64_t *rsp = reg_of(context, TBD_RSP);

    *rsp -= 8;
    *(uint64_t *)(uintptr_t)*rsp = value;
}

static void run_stub(const struct tbd_native_step *step, uint64_t *context)
{
    void (*stub)(uint64_t * context) = (void (*)(uint64_t *))(uintptr_t)step->stub;
    uint64_t trap_flag = context[TBD_NATIVE_RFLAGS] & FLAG_TRAP;

    context[TBD_NATIVE_RFLAGS] &= ~(uint64_t)FLAG_TRAP;
    stub(context);
    context[TBD_NATIVE_RFLAGS] |= trap_flag;
    context[TBD_NATIVE_RIP] = step->next;
}

void tbd_step_run(const struct tbd_native_step *step, uint64_t *context)
{
    uint64_t *rip = &context[TBD_NATIVE_RIP];
    uint64_t target;

    *rip = step->next;
    switch ((enum tbd_native_step_kind)step->kind) {
    case TBD_STEP_EXECUTE: run_stub(step, context); break;
    case TBD_STEP_JUMP: *rip = target_of(step, context); break;
    case TBD_STEP_BRANCH:
        if (is_met(step->condition, context[TBD_NATIVE_RFLAGS]))
            *rip = step->target;
        break;
    case TBD_STEP_BRANCH_RCX:
        if (counts_down(step, context))
            *rip = step->target;
        break;
    case TBD_STEP_CALL:
        target = target_of(step, context);
        push(context, step->next);
        *rip = target;
        break;
    case TBD_STEP_RETURN:
        *rip = *(const uint64_t *)(uintptr_t)*reg_of(context, TBD_RSP);
        *reg_of(context, TBD_RSP) += 8u + step->pop_bytes;
        break;
    case TBD_STEP_XBEGIN:
        *reg_of(context, TBD_RAX) = 0;
        *rip = step->target;
        break;
    case TBD_STEP_NOTHING:
    case TBD_STEP_SYSCALL:
    default: break;
    }
}
