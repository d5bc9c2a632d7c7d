// SPDX-License-Identifier: MIT
/* record_code.c - the check at a block's entry whether the thread's registers are due to be recorded (translate.h)
 *
 * thread->record_in is the negative of the place in the ring from which on they are: so the sum with r15 is
 * negative before, and its upper half is 0 from there on.
 *
 *     mov gs:[rcx slot], rcx ; mov r10, rcx ; mov rcx, gs:[record_in] ; lea rcx, [rcx + r15] ; rorx rcx, rcx, 32
 *     jecxz due ; mov rcx, r10
 *
 * Every round of a loop, and every recursion, has a block that ends with a jump back, an indirect jump or a call.  Only these have
 * the check.  The exit lies before the block's code, so control does not fall through into such a block from the one before it.
 *
 * RECORD_CODE-1  Flags and registers are the program's after it, and an interruption finds rcx in its slot. (not checked:
 *     test_free.py and test_values.py run programs with it) */
#include "patcher/asked_places.h"
#include "patcher/translate.h"

#define FURTHEST_BACK 128 /* a jecxz reaches this far */

static bool goes_back(const struct tbd_insn *last)
{
    switch (last->kind) {
    case TBD_INSN_JUMP:
    case TBD_INSN_BRANCH:
    case TBD_INSN_BRANCH_RCX: return last->target <= last->pc;
    case TBD_INSN_CALL:
    case TBD_INSN_CALL_INDIRECT:
    case TBD_INSN_JUMP_INDIRECT: return true;
    default: return false;
    }
}

bool tbd_translate_may_record(const struct tbd_cut *cut)
{
    return cut->count && !cut->check_bytes && goes_back(&cut->insn[cut->count - 1]) &&
           !tbd_asked_places_has(cut->def.start);
}

static void jump_if_due(struct tbd_translation *t, uint64_t records)
{
    uint8_t jecxz[] = { 0x67, 0xe3, 0 };
    int64_t back = (int64_t)(tbd_emit_pc(&t->e) + sizeof(jecxz) - records);

    if (back > FURTHEST_BACK) /* it never is: the tag is the only code between */
        return;
    jecxz[2] = (uint8_t)-back;
    tbd_emit_bytes(&t->e, jecxz, sizeof(jecxz));
}

void tbd_translate_record(struct tbd_translation *t, uint64_t records)
{
    struct tbd_ea sum = { .base = TBD_RCX, .index = TBD_R15, .scale = 1 };

    tbd_emit_mov(&t->e, TBD_R10, TBD_RCX);
    tbd_place_spill(t, TBD_RCX);
    tbd_emit_load_gs(&t->e, TBD_RCX, TBD_THREAD_GS(record_in));
    tbd_emit_lea(&t->e, TBD_RCX, &sum);
    tbd_emit_rorx(&t->e, TBD_RCX, TBD_RCX, 32);
    jump_if_due(t, records);
    tbd_emit_mov(&t->e, TBD_RCX, TBD_R10);
    t->place.own |= TBD_BIT(TBD_RCX);
    t->answered = tbd_emit_pc(&t->e);
    tbd_place_note(t);
}
