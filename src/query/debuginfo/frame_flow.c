// SPDX-License-Identifier: MIT
/* frame_flow.c - see frame_flow.h
 *
 * States spread from the entry along all paths until nothing changes.
 *
 * FRAME_FLOW-1  States only ever lose knowledge, so that this ends. (not checked: join() alone
 *     changes them)
 * FRAME_FLOW-2  Code that no path from the entry leads to (landing pads of exceptions) is treated as
 *     reached, with nothing known. (not checked: it is what reach_the_rest() does) */
#include "query/debuginfo/frame_flow.h"

#include "format/stream/stream.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>
#include <string.h>

#define INSNS_MAX  20000u
#define SWEEPS_MAX 64

#define CALL_CHANGES                                                                               \
    (1u << TBD_RAX | 1u << TBD_RCX | 1u << TBD_RDX | 1u << TBD_RSI | 1u << TBD_RDI |               \
     1u << TBD_R8 | 1u << TBD_R9 | 1u << TBD_R10 | 1u << TBD_R11 | 0xffffu << TBD_FLOW_XMM_BIT)

struct decoded {
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

static const struct tbd_flow_pointer somewhere = { .where = TBD_FLOW_SOMEWHERE };

static bool decode(const uint8_t *code, size_t bytes, struct decoded *out)
{
    ZydisDecoder decoder;

    return ZYAN_SUCCESS(
               ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) &&
           ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, bytes, &out->insn, out->operands));
}

/* ---- operands ---- */

static bool is_register(const ZydisDecodedOperand *operand, ZydisRegister reg)
{
    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER && operand->reg.value == reg;
}

static bool is_number(const ZydisDecodedOperand *operand)
{
    return operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

/* The bit of a register in `written`; 0: it is none that matters. */
static uint32_t bit_of(ZydisRegister reg)
{
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    unsigned id = (unsigned char)ZydisRegisterGetId(whole);

    switch (ZydisRegisterGetClass(whole)) {
    case ZYDIS_REGCLASS_GPR64: return 1u << id;
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM:
    case ZYDIS_REGCLASS_ZMM: return id < 16 ? 1u << (TBD_FLOW_XMM_BIT + id) : 0;
    default: return 0;
    }
}
_Static_assert(TBD_RAX == 0 && TBD_RCX == 1 && TBD_RSP == 4 && TBD_RBP == 5 && TBD_R15 == 15,
               "registers are numbered as the processor does");

static uint32_t written_by(const struct decoded *d)
{
    uint32_t written = d->insn.meta.category == ZYDIS_CATEGORY_CALL ? CALL_CHANGES : 0;

    for (uint8_t i = 0; i < d->insn.operand_count; i++) {
        const ZydisDecodedOperand *operand = &d->operands[i];

        if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
            (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0)
            written |= bit_of(operand->reg.value);
    }
    return written;
}

/* ---- stack pointer and frame pointer ---- */

static struct tbd_flow_pointer moved(struct tbd_flow_pointer from, int64_t by)
{
    if (from.where == TBD_FLOW_IN_FRAME)
        from.offset += by;
    return from.where == TBD_FLOW_IN_FRAME ? from : somewhere;
}

/* The value of a register operand, or the address of a memory operand. */
static struct tbd_flow_pointer pointer_of(const struct tbd_flow_state *s,
                                          const ZydisDecodedOperand *operand)
{
    ZydisRegister base =
        operand->type == ZYDIS_OPERAND_TYPE_REGISTER ? operand->reg.value : operand->mem.base;
    int64_t by = 0;

    if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY) {
        if (operand->mem.index != ZYDIS_REGISTER_NONE)
            return somewhere;
        by = operand->mem.disp.value;
    }
    if (base == ZYDIS_REGISTER_RSP)
        return moved(s->rsp, by);
    return base == ZYDIS_REGISTER_RBP ? moved(s->rbp, by) : somewhere;
}

/* A value of the stack or frame pointer that is made of these; false: it is another value. */
static bool is_derived(const struct tbd_flow_state *s, const struct decoded *d,
                       struct tbd_flow_pointer *out)
{
    const ZydisDecodedOperand *to = &d->operands[0], *from = &d->operands[1];
    bool is_two = d->insn.operand_count_visible == 2;

    switch (d->insn.mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_LEA:
        if (from->type != ZYDIS_OPERAND_TYPE_REGISTER && d->insn.mnemonic == ZYDIS_MNEMONIC_MOV)
            return false;
        *out = pointer_of(s, from);
        return true;
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_SUB:
        *out = is_two && is_number(from)
                   ? moved(pointer_of(s, to), d->insn.mnemonic == ZYDIS_MNEMONIC_ADD
                                                  ? from->imm.value.s
                                                  : -from->imm.value.s)
                   : somewhere;
        return true;
    default: return false;
    }
}

static void move_pointers(struct tbd_flow_state *s, const struct decoded *d)
{
    struct tbd_flow_pointer value = somewhere;
    uint32_t written = written_by(d);

    switch (d->insn.mnemonic) {
    case ZYDIS_MNEMONIC_PUSH: s->rsp = moved(s->rsp, d->insn.operand_width == 64 ? -8 : -2); return;
    case ZYDIS_MNEMONIC_POP:
        s->rsp = moved(s->rsp, d->insn.operand_width == 64 ? 8 : 2);
        if (is_register(&d->operands[0], ZYDIS_REGISTER_RBP))
            s->rbp = (struct tbd_flow_pointer){ .where = TBD_FLOW_CALLERS };
        return;
    case ZYDIS_MNEMONIC_LEAVE:
        s->rsp = moved(s->rbp, 8);
        s->rbp = (struct tbd_flow_pointer){ .where = TBD_FLOW_CALLERS };
        return;
    case ZYDIS_MNEMONIC_CALL: return; /* it comes back with the pointers it was given */
    default: break;
    }
    if ((written & (1u << TBD_RSP | 1u << TBD_RBP)) == 0)
        return;
    (void)is_derived(s, d, &value);
    if ((written & 1u << TBD_RSP) != 0)
        s->rsp = value;
    else
        s->rbp = value;
}

/* ---- addresses of the frame that other registers or memory get ---- */

static bool may_be_in_frame(const struct tbd_flow_state *s, ZydisRegister reg)
{
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

    return whole == ZYDIS_REGISTER_RSP ||
           (whole == ZYDIS_REGISTER_RBP && s->rbp.where == TBD_FLOW_IN_FRAME);
}

static bool passes_address_on(const struct tbd_flow_state *s, const struct decoded *d)
{
    bool is_lea = d->insn.mnemonic == ZYDIS_MNEMONIC_LEA;
    bool is_to_pointer =
        d->insn.operand_count_visible > 0 && (is_register(&d->operands[0], ZYDIS_REGISTER_RSP) ||
                                              is_register(&d->operands[0], ZYDIS_REGISTER_RBP));
    struct tbd_flow_pointer value;

    if (is_to_pointer && d->insn.mnemonic == ZYDIS_MNEMONIC_AND) /* aligns it */
        return false;
    if (is_to_pointer && is_derived(s, d, &value))
        return value.where == TBD_FLOW_SOMEWHERE && d->insn.mnemonic != ZYDIS_MNEMONIC_MOV;
    for (uint8_t i = 0; i < d->insn.operand_count_visible; i++) {
        const ZydisDecodedOperand *operand = &d->operands[i];

        if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
            (operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0 &&
            may_be_in_frame(s, operand->reg.value))
            return true;
        if (is_lea && operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
            (may_be_in_frame(s, operand->mem.base) || may_be_in_frame(s, operand->mem.index)))
            return true;
    }
    return false;
}

static struct tbd_flow_state after(const struct tbd_flow_state *before, const struct decoded *d)
{
    struct tbd_flow_state s = *before;

    s.has_escaped = s.has_escaped || passes_address_on(before, d);
    s.written |= written_by(d);
    move_pointers(&s, d);
    return s;
}

/* ---- stores ---- */

static struct tbd_flow_store store_to(const struct tbd_flow_state *s,
                                      const ZydisDecodedOperand *operand)
{
    struct tbd_flow_pointer place = pointer_of(s, operand);
    ZydisRegister base = operand->mem.base;
    bool is_own = base == ZYDIS_REGISTER_RSP ||
                  (base == ZYDIS_REGISTER_RBP && s->rbp.where == TBD_FLOW_IN_FRAME);

    if (operand->mem.segment == ZYDIS_REGISTER_FS || operand->mem.segment == ZYDIS_REGISTER_GS ||
        base == ZYDIS_REGISTER_RIP)
        return (struct tbd_flow_store){ .kind = TBD_FLOW_NO_STORE };
    if (place.where == TBD_FLOW_IN_FRAME && operand->size != 0)
        return (struct tbd_flow_store){ .kind = TBD_FLOW_STORE_AT,
                                        .offset = place.offset,
                                        .bytes = operand->size / 8 };
    return (struct tbd_flow_store){ .kind = is_own || s->has_escaped ? TBD_FLOW_STORE_ANYWHERE
                                                                     : TBD_FLOW_NO_STORE };
}

/* A push writes a new slot on the stack, which is no variable unless the compiler makes one by the
 * push. */
static struct tbd_flow_store store_of_push(const struct tbd_flow_state *s, int64_t bytes)
{
    if (s->rsp.where != TBD_FLOW_IN_FRAME)
        return (struct tbd_flow_store){ .kind = TBD_FLOW_NO_STORE };
    return (struct tbd_flow_store){ .kind = TBD_FLOW_STORE_AT,
                                    .offset = s->rsp.offset - bytes,
                                    .bytes = (uint64_t)bytes };
}

static struct tbd_flow_store store_of(const struct tbd_flow_state *s, const struct decoded *d)
{
    struct tbd_flow_store store = { .kind = TBD_FLOW_NO_STORE };

    switch (d->insn.meta.category) {
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_SYSCALL:
        store.kind = s->has_escaped ? TBD_FLOW_STORE_ANYWHERE : TBD_FLOW_NO_STORE;
        return store;
    case ZYDIS_CATEGORY_PUSH: return store_of_push(s, d->insn.operand_width / 8);
    default: break;
    }
    for (uint8_t i = 0; i < d->insn.operand_count; i++) {
        const ZydisDecodedOperand *operand = &d->operands[i];

        if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
            (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 &&
            store.kind != TBD_FLOW_STORE_ANYWHERE)
            store = store_to(s, operand);
    }
    return store;
}

/* ---- instructions ---- */

static bool is_filling(const struct decoded *d)
{
    return d->insn.meta.category == ZYDIS_CATEGORY_NOP ||
           d->insn.meta.category == ZYDIS_CATEGORY_WIDENOP ||
           d->insn.mnemonic == ZYDIS_MNEMONIC_INT3 || d->insn.mnemonic == ZYDIS_MNEMONIC_UD2;
}

/* `target` is an address first, from the function's start. */
static struct tbd_flow_insn describe(const struct decoded *d, uint32_t at)
{
    struct tbd_flow_insn insn = { .at = at,
                                  .length = d->insn.length,
                                  .target = TBD_FLOW_NONE,
                                  .goes_on = true,
                                  .is_filling = is_filling(d) };
    bool jumps = d->insn.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
    const ZydisDecodedOperand *to = &d->operands[0];

    if (jumps || d->insn.meta.category == ZYDIS_CATEGORY_COND_BR) {
        insn.goes_on = !jumps;
        insn.goes_anywhere = !is_number(to);
        if (is_number(to))
            insn.target = at + d->insn.length + (uint32_t)to->imm.value.s;
    } else if (d->insn.meta.category == ZYDIS_CATEGORY_RET ||
               d->insn.mnemonic == ZYDIS_MNEMONIC_UD2 || d->insn.mnemonic == ZYDIS_MNEMONIC_HLT) {
        insn.goes_on = false;
    }
    return insn;
}

static size_t decode_all(struct tbd_flow *flow, const uint8_t *code, size_t bytes)
{
    struct decoded d;

    for (size_t at = 0; at < bytes; at += d.insn.length) {
        if (flow->count == INSNS_MAX || !decode(code + at, bytes - at, &d))
            return 0;
        flow->insns[flow->count++] = describe(&d, (uint32_t)at);
    }
    return flow->count;
}

static uint32_t index_of(const struct tbd_flow *flow, uint32_t at)
{
    size_t low = 0, high = flow->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (flow->insns[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < flow->count && flow->insns[low].at == at ? (uint32_t)low : TBD_FLOW_NONE;
}

static void find_targets(struct tbd_flow *flow)
{
    flow->first_break = flow->count;
    for (size_t i = 0; i < flow->count; i++) {
        struct tbd_flow_insn *insn = &flow->insns[i];

        if ((!insn->goes_on || insn->target != TBD_FLOW_NONE) && flow->first_break == flow->count)
            flow->first_break = i + 1;
        if (insn->target != TBD_FLOW_NONE)
            insn->target = index_of(flow, insn->target);
    }
}

/* ---- spreading ---- */

static bool join_pointer(struct tbd_flow_pointer *to, const struct tbd_flow_pointer *from,
                         bool *io_escaped)
{
    bool same = to->where == from->where && to->offset == from->offset;

    if (same || to->where == TBD_FLOW_SOMEWHERE)
        return false;
    *io_escaped = true; /* it may lie in the frame, at an unknown offset */
    *to = somewhere;
    return true;
}

static bool join(struct tbd_flow_state *to, const struct tbd_flow_state *from)
{
    struct tbd_flow_state old = *to;
    bool changed = false;

    if (!to->is_reached) {
        *to = *from;
        return true;
    }
    changed |= join_pointer(&to->rsp, &from->rsp, &to->has_escaped);
    changed |= join_pointer(&to->rbp, &from->rbp, &to->has_escaped);
    to->has_escaped |= from->has_escaped;
    to->written |= from->written;
    return changed || to->has_escaped != old.has_escaped || to->written != old.written;
}

static bool spread_one(struct tbd_flow *flow, const uint8_t *code, size_t bytes, size_t i)
{
    struct tbd_flow_insn *insn = &flow->insns[i];
    struct tbd_flow_state next;
    struct decoded d;
    bool changed = false;

    if (!insn->before.is_reached || !decode(code + insn->at, bytes - insn->at, &d))
        return false;
    next = after(&insn->before, &d);
    if (insn->goes_on && i + 1 < flow->count)
        changed |= join(&flow->insns[i + 1].before, &next);
    if (insn->target != TBD_FLOW_NONE)
        changed |= join(&flow->insns[insn->target].before, &next);
    for (size_t k = flow->first_break; insn->goes_anywhere && k < flow->count; k++)
        changed |= join(&flow->insns[k].before, &next);
    return changed;
}

static bool spread(struct tbd_flow *flow, const uint8_t *code, size_t bytes)
{
    bool changed = true;

    for (int sweep = 0; changed && sweep < SWEEPS_MAX; sweep++) {
        changed = false;
        for (size_t i = 0; i < flow->count; i++)
            changed |= spread_one(flow, code, bytes, i);
    }
    return !changed;
}

/* Keeps FRAME_FLOW-2. */
static void reach_the_rest(struct tbd_flow *flow)
{
    const struct tbd_flow_state nothing_known = { .is_reached = true,
                                                  .has_escaped = true,
                                                  .written = UINT32_MAX,
                                                  .rsp = somewhere,
                                                  .rbp = somewhere };

    for (size_t i = 0; i < flow->count; i++) {
        struct tbd_flow_insn *insn = &flow->insns[i];

        if (!insn->before.is_reached && !insn->is_filling)
            insn->before = nothing_known;
    }
}

struct tbd_flow *tbd_flow_read(const uint8_t *code, size_t bytes, uint64_t start)
{
    size_t capacity = bytes < INSNS_MAX ? bytes : INSNS_MAX;
    struct tbd_flow *flow = calloc(1, sizeof(*flow) + capacity * sizeof(flow->insns[0]));
    struct decoded d;

    if (flow == NULL)
        return NULL;
    flow->start = start;
    if (decode_all(flow, code, bytes) == 0)
        goto out_flow;
    find_targets(flow);
    flow->insns[0].before =
        (struct tbd_flow_state){ .is_reached = true,
                                 .rsp = { .where = TBD_FLOW_IN_FRAME, .offset = -8 } };
    if (!spread(flow, code, bytes))
        goto out_flow;
    reach_the_rest(flow);
    if (!spread(flow, code, bytes))
        goto out_flow;
    for (size_t i = 0; i < flow->count; i++) {
        struct tbd_flow_insn *insn = &flow->insns[i];

        if (insn->before.is_reached && decode(code + insn->at, bytes - insn->at, &d))
            insn->store = store_of(&insn->before, &d);
    }
    return flow;
out_flow:
    free(flow);
    return NULL;
}
