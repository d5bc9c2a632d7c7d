// SPDX-License-Identifier: MIT
/* lower_access.c - see lower.h: addresses of memory operands, and the hooks that report accesses */
#include "patcher/lower.h"

#include "patcher/templates.h"

void tbd_lower_phase(struct tbd_translation *t, enum tbd_phase phase)
{
    t->phase = phase;
    tbd_place_note(t);
}

uint16_t tbd_lower_mask(const struct tbd_translation *t, uint16_t registers)
{
    uint16_t mask = registers & (0x3fff | t->place.own);

    for (unsigned left = registers & (uint16_t)~mask; left; left &= left - 1) {
        unsigned hw = tbd_place_hw(t, (unsigned)__builtin_ctz(left));

        if (hw != TBD_NO_REG)
            mask |= TBD_BIT(hw);
    }
    return mask;
}

/* `avoid` has all of these but rsp. */
void tbd_lower_need(struct tbd_translation *t, uint16_t registers, uint16_t avoid)
{
    for (unsigned left = registers & (uint16_t)~t->place.own; left; left &= left - 1)
        tbd_place_need(t, (unsigned)__builtin_ctz(left), avoid);
}

/* ---- addresses for hooks ---- */

struct tbd_ea tbd_lower_ea(const struct tbd_translation *t, const struct tbd_ea *ea)
{
    struct tbd_ea hw = *ea;

    if (ea->base != TBD_NO_REG)
        hw.base = (uint8_t)tbd_place_hw(t, ea->base);
    if (ea->index != TBD_NO_REG)
        hw.index = (uint8_t)tbd_place_hw(t, ea->index);
    return hw;
}

/* lea, also for an absolute address out of reach */
static void address_to(struct tbd_translation *t, unsigned dst, const struct tbd_ea *ea)
{
    bool absolute = ea->base == TBD_NO_REG && ea->index == TBD_NO_REG;

    if (absolute)
        tbd_emit_mov_imm(&t->e, dst, (uint64_t)ea->disp);
    else
        tbd_emit_lea(&t->e, dst, ea);
}

/* s += bytes * (signed bit number / bits), without flags */
static void add_bit_offset(struct tbd_translation *t, const struct tbd_access *a, unsigned s,
                           uint16_t avoid)
{
    unsigned offset = tbd_place_scratch(t, avoid | TBD_BIT(s));
    unsigned count = tbd_place_scratch(t, avoid | TBD_BIT(s) | TBD_BIT(offset));
    unsigned bit = tbd_place_hw(t, a->bit_reg);
    struct tbd_ea sum = { .base = (uint8_t)s, .index = (uint8_t)offset, .scale = (uint8_t)a->size };

    if (a->size == 8)
        tbd_emit_mov(&t->e, offset, bit);
    else
        tbd_emit_movsx(&t->e, offset, bit, a->size);
    tbd_emit_mov_imm(&t->e, count, (unsigned)__builtin_ctz(a->size) + 3u);
    tbd_emit_sarx(&t->e, offset, offset, count);
    tbd_emit_lea(&t->e, s, &sum);
}

/* `field`: in struct tbd_regs. */
static void add_base(struct tbd_translation *t, unsigned s, uint16_t avoid, size_t field)
{
    unsigned base = tbd_place_scratch(t, avoid | TBD_BIT(s));
    struct tbd_ea sum = { .base = (uint8_t)s, .index = (uint8_t)base, .scale = 1 };

    tbd_emit_load_gs(&t->e, base, TBD_THREAD_GS(regs) + (int32_t)field);
    tbd_emit_lea(&t->e, s, &sum);
}

static void add_segment_base(struct tbd_translation *t, const struct tbd_ea *ea, unsigned s,
                             uint16_t avoid)
{
    if (ea->fs)
        add_base(t, s, avoid, offsetof(struct tbd_regs, fs_base));
    if (ea->gs)
        add_base(t, s, avoid, offsetof(struct tbd_regs, gs_base));
}

static void add_al(struct tbd_translation *t, unsigned s, uint16_t avoid)
{
    unsigned al = tbd_place_scratch(t, avoid | TBD_BIT(s));
    struct tbd_ea sum = { .base = (uint8_t)s, .index = (uint8_t)al, .scale = 1 };

    tbd_emit_movzx_al(&t->e, al);
    tbd_emit_lea(&t->e, s, &sum);
}

static bool is_simple(const struct tbd_translation *t, const struct tbd_access *a)
{
    bool absolute = a->ea.base == TBD_NO_REG && a->ea.index == TBD_NO_REG;
    bool large = a->ea.disp > INT32_MAX - 8192 || a->ea.disp < INT32_MIN + 8192;

    if (a->ea.fs || a->ea.gs || a->ea.addr32 || (a->flags & (TBD_ACCESS_XLAT | TBD_ACCESS_BITS)))
        return false;
    return absolute ? tbd_emit_reaches(&t->e, (uint64_t)a->ea.disp) : !large;
}

/* The access' address for a hook; computed into a register if it is not plain. */
static struct tbd_ea hook_ea(struct tbd_translation *t, const struct tbd_access *a, uint16_t avoid)
{
    struct tbd_ea ea = tbd_lower_ea(t, &a->ea);
    unsigned s;

    if (is_simple(t, a))
        return ea;
    s = tbd_place_scratch(t, avoid);
    if (a->flags & TBD_ACCESS_XLAT)
        ea.index = TBD_NO_REG;
    address_to(t, s, &ea);
    if (a->flags & TBD_ACCESS_XLAT)
        add_al(t, s, avoid);
    if (a->flags & TBD_ACCESS_BITS)
        add_bit_offset(t, a, s, avoid);
    add_segment_base(t, &a->ea, s, avoid);
    return tbd_lower_at(s);
}

/* ---- hooks of one instruction ---- */

static uint16_t ea_mask(const struct tbd_ea *ea)
{
    uint16_t mask = 0;

    if (ea->base != TBD_NO_REG)
        mask |= TBD_BIT(ea->base);
    if (ea->index != TBD_NO_REG)
        mask |= TBD_BIT(ea->index);
    return mask;
}

const struct tbd_op *tbd_lower_op(const struct tbd_translation *t, unsigned access, unsigned kind)
{
    const struct tbd_cut *cut = t->cut;

    for (unsigned n = cut->first_op[t->insn]; n < cut->first_op[t->insn + 1]; n++)
        if (cut->op[n].kind == kind && cut->op_more[n].access == access)
            return &cut->op[n];
    return NULL;
}

static void hook_address(struct tbd_translation *t, const struct tbd_hook_access *h,
                         const struct tbd_op *op)
{
    const struct tbd_cut_op *more;

    if (!op)
        return;
    more = &t->cut->op_more[op - t->cut->op];
    if (more->address_at != TBD_BASE_NONE)
        tbd_hook_address(&t->e, h, more->address_at, more->base_only);
}

static void hook_access(struct tbd_translation *t, unsigned access, uint16_t avoid)
{
    const struct tbd_access *a = &t->cut->insn[t->insn].access[access];
    const struct tbd_op *store = tbd_lower_op(t, access, TBD_OP_STORE);
    const struct tbd_op *load = tbd_lower_op(t, access, TBD_OP_LOAD);
    struct tbd_hook_access h = { .size = a->size, .touch = t->cut->touch[t->insn][access] };

    if (!store && !load && !h.touch.marks)
        return;
    h.ea = hook_ea(t, a, avoid);
    h.scratch = (uint8_t)tbd_place_scratch(t, avoid | ea_mask(&h.ea));
    tbd_hook_touch(&t->e, &h); /* first: it tells whether the memory may be accessed
                                * (hooks/memory/shared.h) */
    hook_address(t, &h, load);
    if (store)
        tbd_hook_store(&t->e, &h, store->data);
    hook_address(t, &h, store);
}

void tbd_lower_hooks(struct tbd_translation *t, uint16_t avoid)
{
    for (unsigned a = 0; a < t->cut->insn[t->insn].access_count; a++)
        hook_access(t, a, avoid);
}

static const struct tbd_access *gs_access(const struct tbd_insn *insn)
{
    const struct tbd_access *a = insn->access;

    while (!a->ea.gs)
        a++;
    return a;
}

/* The instruction itself adds bit offsets. */
void tbd_lower_gs_operand(struct tbd_translation *t, const struct tbd_insn *insn, unsigned s,
                          uint16_t avoid)
{
    const struct tbd_access *a = gs_access(insn);
    struct tbd_ea ea = tbd_lower_ea(t, &a->ea);

    if (a->flags & TBD_ACCESS_XLAT)
        ea.index = TBD_NO_REG;
    address_to(t, s, &ea);
    if (a->flags & TBD_ACCESS_XLAT)
        add_al(t, s, avoid);
    add_segment_base(t, &ea, s, avoid);
}
