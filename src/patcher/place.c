// SPDX-License-Identifier: MIT
/* place.c - where the program's registers are
 *
 * A register becomes scratch by saving it to its slot once; it is restored only when the program
 * needs it, or at the block's end.  A register that the program overwrites first is never restored.
 * Keeps TRANSLATE-1 to TRANSLATE-3: `place` changes after the instruction that makes the change
 * true and before the one that relies on it. */
#include "patcher/translate.h"

#include "base/assert.h"

#define OWNABLE                                                                                    \
    ((uint16_t)0x3fff) /* all but r14, r15, which are own only where nobody else needs them */
#define SCRATCHABLE ((uint16_t)(OWNABLE & ~TBD_BIT(TBD_RSP)))
#define SUBSTITUTES ((uint16_t)0x0f00) /* r8-r11: same REX class as r14, r15 */

void tbd_place_init(struct tbd_translation *t)
{
    t->place = (struct tbd_reg_places){ .own = (uint16_t)~t->at_home,
                                        .slot = t->at_home,
                                        .sub = { TBD_NO_REG, TBD_NO_REG } };
}

static bool is_everywhere_known(const struct tbd_reg_places *p)
{
    uint16_t known = p->own | p->slot;

    for (unsigned n = 0; n < 2; n++)
        if (p->sub[n] != TBD_NO_REG)
            known |= TBD_BIT(TBD_R14 + n);
    return known == UINT16_MAX;
}

void tbd_place_note(struct tbd_translation *t)
{
    TBD_INVARIANT("TRANSLATE-1", is_everywhere_known(&t->place));
    TBD_INVARIANT("TRANSLATE-3", t->place.own & TBD_BIT(TBD_RSP));
    if (!t->watch || tbd_emit_pc(&t->e) > t->watch->pc)
        return;
    t->watch->place = t->place;
    t->watch->insn = t->insn;
    t->watch->phase = t->phase;
    t->watch->due = t->due;
    t->watch->due_reg = t->due_reg;
    t->watch->branch_due = t->branch_due;
    t->watch->branch_begun = t->branch_begun;
}

static bool is_sub(const struct tbd_reg_places *p, unsigned hw)
{
    return p->sub[0] == hw || p->sub[1] == hw;
}

unsigned tbd_place_hw(const struct tbd_translation *t, unsigned r)
{
    return r < TBD_R14 || t->place.own & TBD_BIT(r) ? r : t->place.sub[r - TBD_R14];
}

static void release_sub(struct tbd_translation *t, unsigned n)
{
    unsigned hw = t->place.sub[n];

    if (hw == TBD_NO_REG)
        return;
    if (!(t->place.slot & TBD_BIT(TBD_R14 + n)))
        tbd_emit_store_gs(&t->e, hw, TBD_THREAD_GS_GPR(TBD_R14 + n));
    t->place.slot |= TBD_BIT(TBD_R14 + n);
    t->place.sub[n] = TBD_NO_REG;
    tbd_place_note(t);
}

void tbd_place_evict(struct tbd_translation *t, unsigned hw)
{
    for (unsigned n = 0; n < 2; n++)
        if (t->place.sub[n] == hw)
            release_sub(t, n);
}

void tbd_place_spill(struct tbd_translation *t, unsigned r)
{
    tbd_place_evict(t, r);
    if (!(t->place.own & TBD_BIT(r)))
        return;
    if (!(t->place.slot & TBD_BIT(r)))
        tbd_emit_store_gs(&t->e, r, TBD_THREAD_GS_GPR(r));
    t->place.slot |= TBD_BIT(r);
    t->place.own &= (uint16_t)~TBD_BIT(r);
    tbd_place_note(t);
}

/* ---- choosing ---- */

enum { SCORE_END = 200, SCORE_KILLED = 300, SCORE_SLOT = 400, SCORE_FREE = 1000 };

/* How late the program reads r again: the later, the better as a scratch register. */
static unsigned lateness(const struct tbd_translation *t, unsigned r)
{
    for (uint32_t n = t->insn; n < t->cut->count; n++) {
        if (t->cut->insn[n].reads & TBD_BIT(r))
            return n - t->insn;
        if (t->cut->insn[n].kills & TBD_BIT(r))
            return SCORE_KILLED;
    }
    return SCORE_END;
}

static unsigned score(const struct tbd_translation *t, unsigned hw)
{
    unsigned points = hw < 8 ? 1 : 0; /* shorter code */

    if (is_sub(&t->place, hw))
        return points;
    if (!(t->place.own & TBD_BIT(hw)))
        return points + SCORE_FREE + lateness(t, hw);
    points += 2 * lateness(t, hw);
    return (t->place.slot & TBD_BIT(hw)) ? points + SCORE_SLOT : points;
}

static unsigned best_of(const struct tbd_translation *t, uint16_t candidates)
{
    unsigned best = TBD_NO_REG;
    unsigned best_score = 0;

    for (unsigned hw = 0; hw < TBD_R14; hw++)
        if ((candidates & TBD_BIT(hw)) && (best == TBD_NO_REG || score(t, hw) > best_score)) {
            best = hw;
            best_score = score(t, hw);
        }
    return best;
}

unsigned tbd_place_scratch(struct tbd_translation *t, uint16_t avoid)
{
    unsigned hw = best_of(t, SCRATCHABLE & (uint16_t)~avoid);

    tbd_place_spill(t, hw);
    return hw;
}

/* ---- loading ---- */

/* If all four are taken, the other substitute is evicted: an instruction that needs both r14 and
 * r15 names at most two more of r8-r11; an indirect transfer, which keeps r11 free, names none. */
static unsigned take_substitute(struct tbd_translation *t, uint16_t avoid)
{
    uint16_t subs = 0;
    unsigned hw;

    for (unsigned n = 0; n < 2; n++)
        if (t->place.sub[n] != TBD_NO_REG)
            subs |= TBD_BIT(t->place.sub[n]);
    hw = best_of(t, SUBSTITUTES & (uint16_t) ~(avoid | subs));
    if (hw == TBD_NO_REG)
        hw = best_of(t, SUBSTITUTES & (uint16_t)~avoid);
    tbd_place_spill(t, hw);
    return hw;
}

void tbd_place_need_target(struct tbd_translation *t, unsigned r, uint16_t avoid)
{
    if (tbd_place_hw(t, r) == TBD_NO_REG)
        t->place.sub[r - TBD_R14] = (uint8_t)take_substitute(t, avoid);
}

void tbd_place_need(struct tbd_translation *t, unsigned r, uint16_t avoid)
{
    unsigned hw = r;

    if (t->place.own & TBD_BIT(r) || (r >= TBD_R14 && t->place.sub[r - TBD_R14] != TBD_NO_REG))
        return;
    if (r < TBD_R14)
        tbd_place_evict(t, r);
    else
        hw = take_substitute(t, avoid);
    tbd_emit_load_gs(&t->e, hw, TBD_THREAD_GS_GPR(r));
    if (r < TBD_R14)
        t->place.own |= TBD_BIT(r);
    else
        t->place.sub[r - TBD_R14] = (uint8_t)hw;
    tbd_place_note(t);
}

void tbd_place_written(struct tbd_translation *t, uint16_t registers)
{
    t->place.own |= registers & (uint16_t)(OWNABLE | ~t->at_home);
    t->place.slot &= (uint16_t)~registers;
}

void tbd_place_finish(struct tbd_translation *t)
{
    release_sub(t, 0);
    release_sub(t, 1);
    for (unsigned left = t->at_home & t->place.own; left; left &= left - 1)
        tbd_place_spill(t, (unsigned)__builtin_ctz(left));
    for (unsigned left = OWNABLE & (uint16_t) ~(t->at_home | t->place.own); left; left &= left - 1)
        tbd_place_need(t, (unsigned)__builtin_ctz(left), 0);
    TBD_INVARIANT("TRANSLATE-2", (uint16_t)(t->place.own ^ t->at_home) == UINT16_MAX &&
                                     (t->place.slot & t->at_home) == t->at_home);
}
