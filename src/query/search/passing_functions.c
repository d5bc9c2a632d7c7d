// SPDX-License-Identifier: MIT
/* passing_functions.c - entries and returns of functions, while their window passes (search_passing.c)
 *
 * A block with a call leads to the next block, which begins a function: the call has its arguments.  So does an import stub's jump, if
 * a function begins there.  Other jumps have none (passing_jumps.c). */
#include "query/search/passing.h"

#include "query/search/scan_jumps.h"

#include <string.h>

static const struct tbd_op *op_of(const struct tbd_block *block, enum tbd_op_kind kind)
{
    for (uint16_t i = block->def.op_count; i-- > 0;) {
        if (block->ops[i].kind == kind)
            return &block->ops[i];
    }
    return NULL;
}

static bool are_within(const struct tbd_passing_window *p, const uint64_t *args)
{
    for (unsigned i = 0; i < 6; i++) {
        if (!tbd_is_within(&p->bounds, (enum tbd_event_field)(TBD_FIELD_ARG0 + i), args[i]))
            return false;
    }
    return true;
}

/* The call, or the jump with operands, of the block before leads to `event`. */
static bool take_called(struct tbd_passing_window *p, struct tbd_event *event, bool is_tail)
{
    const struct tbd_block *before = p->block[p->last];
    const struct tbd_op *op = op_of(before, TBD_OP_CALL);
    struct tbd_block_insn insn;

    if (op == NULL || !are_within(p, p->call.args))
        return true;
    event->from = before->def.start;
    if (op->insn != 0 && tbd_disas_insn(p->run->session->disas, p->last, op->insn, &insn))
        event->from = insn.pc;
    event->sp = is_tail ? p->call.sp : p->call.sp - 8;
    memcpy(event->args, p->call.args, sizeof(event->args));
    event->flags = TBD_EVENT_HAS_SP | (is_tail ? TBD_EVENT_BY_JUMP : 0);
    return !tbd_passing_holds(p, event) ||
           tbd_passing_take(p, event,
                            event->block == 0
                                ? 0
                                : p->first[event->block] + p->block[event->block]->def.op_count);
}

static bool take_jumped(struct tbd_passing_window *p, struct tbd_event *event)
{
    const struct tbd_block *before = p->block[p->last];

    event->from = before->def.start + before->def.last_insn;
    event->flags = TBD_EVENT_BY_JUMP | TBD_EVENT_BARE;
    if (event->block == 0)
        tbd_event_take_operands(event, &p->toc->end_regs);
    else if (tbd_scan_is_inside(p->run->session->symbols, p->toc->index, event->from, event->pc))
        return true;
    else if (p->wants_operands)
        return tbd_passing_list_jump(p, event);
    return !tbd_passing_holds(p, event) ||
           tbd_passing_take(p, event,
                            event->block == 0
                                ? 0
                                : p->first[event->block] + p->block[event->block]->def.op_count);
}

bool tbd_passing_entry(struct tbd_passing_window *p, uint32_t id, uint8_t by)
{
    struct tbd_event event = tbd_passing_event(p, id, p->time, 0);
    bool good;

    if ((by & TBD_BY_CALL) != 0)
        good = take_called(p, &event, false);
    else if ((by & TBD_BY_STUB) != 0)
        good = !tbd_scan_is_function(p->run->session->symbols, p->toc->index, event.pc) ||
               take_called(p, &event, true);
    else
        good = take_jumped(p, &event);
    return good && !p->gives_up;
}

bool tbd_passing_last_entry(struct tbd_passing_window *p)
{
    uint8_t by = p->last == 0 ? 0 : p->leading.leads[p->last];
    struct tbd_event event = { .type = TBD_EVENT_FUNC_ENTER,
                               .position.time = p->toc->first_time + p->toc->blocks,
                               .pc = p->toc->end_regs.rip,
                               .thread = p->toc->regs.thread };
    bool good;

    if (by == 0 || !tbd_enters_at_end(p->run, p->toc, p->block[p->last], by))
        return true;
    good = (by & TBD_BY_JUMP) != 0 ? take_jumped(p, &event)
                                   : take_called(p, &event, (by & TBD_BY_STUB) != 0);
    return good && !p->gives_up;
}

void tbd_passing_call(struct tbd_passing_window *p, uint32_t id, const uint8_t *record)
{
    const struct tbd_op *op = op_of(p->block[id], TBD_OP_CALL);

    if (op != NULL)
        memcpy(&p->call, record + op->data, sizeof(p->call));
}

bool tbd_passing_return(struct tbd_passing_window *p, uint32_t id, const uint8_t *record)
{
    const struct tbd_op *op = op_of(p->block[id], TBD_OP_RET);
    uint64_t operands[2];
    struct tbd_event event;

    if (op == NULL)
        return true;
    memcpy(operands, record + op->data, sizeof(operands));
    if (!tbd_is_within(&p->bounds, TBD_FIELD_RETVAL, operands[1]))
        return true;
    event = tbd_passing_event(p, id, p->time, op->insn);
    event.sp = operands[0];
    event.retval = operands[1];
    event.flags = TBD_EVENT_HAS_SP;
    return !tbd_passing_holds(p, &event) ||
           tbd_passing_take(p, &event, p->first[id] + (uint32_t)(op - p->block[id]->ops));
}
