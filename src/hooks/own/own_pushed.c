// SPDX-License-Identifier: MIT
/* own_pushed.c - see own.h: what a call to what is no address leaves below the stack
 *
 * Translated code, and so a replay, has pushed the return address before it finds that the target is no address, and what is
 * pushed stays (patcher/interrupted.c).  Of processors, some push before that fault and some do not (AMD's do not).  A window that
 * ends before the handler's return would end with another word in memory than its replay, so it is written here. */
#include "hooks/instructions/decoded.h"
#include "hooks/instructions/processor.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/own/own.h"
#include "patcher/decode.h"
#include "patcher/interrupted.h"
#include "patcher/patcher.h"

/* False: the fault was that of reading it. */
static bool find_target(const struct tbd_insn *call, const struct tbd_regs *regs, uint64_t *out)
{
    const struct tbd_access *first = &call->access[0];

    if (call->access_count && first->flags & TBD_ACCESS_READ)
        return tbd_load_from_program(out, tbd_ea_address(&first->ea, regs), sizeof(*out));
    if (call->field[TBD_FIELD_RM] == TBD_NO_REG)
        return false;
    *out = regs->gpr[call->field[TBD_FIELD_RM]];
    return true;
}

void tbd_own_push_of_fault(const struct tbd_regs *regs)
{
    static const struct tbd_patcher_callbacks callbacks = { .has_long_addresses =
                                                                tbd_processor_has_long_addresses };
    uint8_t bytes[TBD_INSN_MAX_BYTES];
    const struct tbd_insn *insn = tbd_decoded(regs->rip, bytes, sizeof(bytes));
    uint64_t target, next;

    if (!insn || insn->kind != TBD_INSN_CALL_INDIRECT || !find_target(insn, regs, &target) ||
        tbd_is_canonical(&callbacks, target))
        return;
    next = regs->rip + insn->length;
    (void)tbd_store_to_program(regs->gpr[TBD_RSP] - sizeof(next), &next, sizeof(next));
}
