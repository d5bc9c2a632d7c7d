// SPDX-License-Identifier: MIT
/* branch_code.c - lowering for functions whose branches count (base/branching.h, hooks/events/branch.c)
 *
 * Between blocks the function's value lies where rsp says.  A block that changes rsp has it in the thread block from
 * its first such instruction on, until its jumps; a call has it back before the return address is pushed: that is
 * where rsp will be after the return, whether the block there is entered by this return or by a jump.
 *
 * A jump to the function's first instruction is a round, not a call: it leaves a mark, which the code there takes away.
 * The mark lies one word below the value, as what a call leaves for tbd_branch_context(): nobody else has that place, a
 * handler of signals neither.  Who is interrupted after that, before the first instruction, gets the mark again (branch_mark).
 *
 * BRANCH_CODE-1  At any instruction the value is in one of both places, and watch->branch_due says in which. (not checked:
 *     test_branches compares with full recordings while signals come) */
#include "patcher/translate.h"

#include "patcher/templates.h"

static bool changes_rsp(const struct tbd_insn *insn)
{
    return insn->kind == TBD_INSN_PLAIN && insn->writes & TBD_BIT(TBD_RSP);
}

static bool block_changes_rsp(const struct tbd_cut *cut)
{
    for (uint32_t n = 0; n < cut->count; n++)
        if (changes_rsp(&cut->insn[n]))
            return true;
    return false;
}

static void set_due(struct tbd_translation *t, enum tbd_branch_due due)
{
    t->branch_due = due;
    tbd_place_note(t);
}

static void choose(struct tbd_translation *t, uint16_t avoid, struct tbd_branch_scratch *s)
{
    s->a = (uint8_t)tbd_place_scratch(t, avoid);
    avoid |= TBD_BIT(s->a);
    s->m = (uint8_t)tbd_place_scratch(t, avoid);
}

void tbd_branch_code_begin(struct tbd_translation *t)
{
    const struct tbd_branch_function *f = t->branches.function;
    bool moves = block_changes_rsp(t->cut);
    struct tbd_branch_scratch s = { .t = TBD_NO_REG };

    if (!f || t->cut->def.start != t->branches.bias + f->start)
        return;
    t->phase = TBD_PHASE_HOOK;
    tbd_place_note(t);
    choose(t, 0, &s);
    s.v = (uint8_t)tbd_place_scratch(t, TBD_BIT(s.a) | TBD_BIT(s.m));
    s.t = (uint8_t)tbd_place_scratch(t, TBD_BIT(s.a) | TBD_BIT(s.m) | TBD_BIT(s.v));
    tbd_hook_branch_begin(&t->e, t->branches.scheme, f, moves, &s);
    t->branch_begun = true;
    set_due(t, moves ? TBD_BRANCH_DUE_PUT_DOWN : TBD_BRANCH_DUE_NOTHING);
}

void tbd_branch_code_before(struct tbd_translation *t, const struct tbd_insn *insn)
{
    struct tbd_branch_scratch s = { .t = TBD_NO_REG };

    if (!t->branches.function || t->branch_due || !changes_rsp(insn))
        return;
    t->phase = TBD_PHASE_HOOK;
    tbd_place_note(t);
    choose(t, 0, &s);
    tbd_hook_branch_pick_up(&t->e, &s);
    set_due(t, TBD_BRANCH_DUE_PUT_DOWN);
}

void tbd_branch_code_put_down(struct tbd_translation *t)
{
    struct tbd_branch_scratch s = { .t = TBD_NO_REG };

    if (!t->branch_due)
        return;
    choose(t, 0, &s);
    tbd_hook_branch_put_down(&t->e, &s);
    set_due(t, TBD_BRANCH_DUE_NOTHING);
}

void tbd_branch_code_forget(struct tbd_translation *t)
{
    if (t->branch_due)
        set_due(t, TBD_BRANCH_DUE_NOTHING);
}

void tbd_branch_code_call(struct tbd_translation *t, uint64_t return_address)
{
    struct tbd_branch_scratch s = { .t = TBD_NO_REG };

    if (!t->branches.function)
        return;
    tbd_branch_code_put_down(t);
    choose(t, 0, &s);
    tbd_hook_branch_call(&t->e, return_address, &s);
}

static bool begins_again(const struct tbd_translation *t, const struct tbd_insn *insn)
{
    const struct tbd_branch_function *f = t->branches.function;

    return f && insn->target == t->branches.bias + f->start;
}

void tbd_branch_code_jump(struct tbd_translation *t, const struct tbd_insn *insn)
{
    struct tbd_branch_scratch s = { .t = TBD_NO_REG };

    if (!begins_again(t, insn))
        return;
    t->phase = TBD_PHASE_HOOK;
    tbd_place_note(t);
    tbd_branch_code_put_down(t);
    choose(t, 0, &s);
    tbd_hook_branch_mark(&t->e, t->branches.function, &s);
}

/* The index of the block's last instruction among those that count; TBD_BRANCH_MAX: it is none. */
static unsigned index_of(const struct tbd_translation *t, const struct tbd_insn *insn)
{
    return t->branches.function
               ? tbd_branch_index(t->branches.function, insn->pc - t->branches.bias)
               : TBD_BRANCH_MAX;
}

bool tbd_branch_code_counts(const struct tbd_translation *t, const struct tbd_insn *insn)
{
    return index_of(t, insn) != TBD_BRANCH_MAX;
}

void tbd_branch_code_take(struct tbd_translation *t, const struct tbd_insn *insn)
{
    struct tbd_branch_scratch s = { .t = TBD_NO_REG };
    uint16_t avoid = 0;

    s.v = TBD_NO_REG;
    if (t->branches.scheme == TBD_BRANCH_PRODUCT) {
        tbd_place_spill(t, TBD_RDX);
        s.v = TBD_RDX;
        avoid = TBD_BIT(TBD_RDX);
    }
    choose(t, avoid, &s);
    avoid = (uint16_t)(avoid | TBD_BIT(s.a) | TBD_BIT(s.m));
    s.t = (uint8_t)tbd_place_scratch(t, avoid);
    if (s.v == TBD_NO_REG)
        s.v = (uint8_t)tbd_place_scratch(t, avoid | TBD_BIT(s.t));
    if (begins_again(t, insn))
        tbd_hook_branch_mark(&t->e, t->branches.function, &s);
    tbd_hook_branch_take(&t->e, t->branches.scheme, t->branches.function, index_of(t, insn), &s);
    set_due(t, TBD_BRANCH_DUE_JUMP);
    tbd_place_finish(t);
}

void tbd_branch_code_tell(struct tbd_translation *t)
{
    struct tbd_branch_scratch s = { .t = TBD_NO_REG };

    choose(t, TBD_BIT(TBD_RAX), &s);
    s.v = (uint8_t)tbd_place_scratch(t, TBD_BIT(TBD_RAX) | TBD_BIT(s.a) | TBD_BIT(s.m));
    s.t = (uint8_t)tbd_place_scratch(t,
                                     TBD_BIT(TBD_RAX) | TBD_BIT(s.a) | TBD_BIT(s.m) | TBD_BIT(s.v));
    tbd_hook_branch_tell(&t->e, &s);
}
