// SPDX-License-Identifier: MIT
/* moved.c - see moved.h
 *
 * Goes back from a slot, over operations that move it or add a number, to one that the instruction reads.  What is added is summed up
 * on the way: of 64 bits, or, once only 32 bits are used, of 32. */
#include "replay/simulate/moved.h"

static const struct tbd_moved lost = { .kind = TBD_MOVED_LOST };

static struct tbd_moved number(uint64_t value)
{
    return (struct tbd_moved){ .kind = TBD_MOVED_NUMBER, .by = value };
}

static struct tbd_moved itself(unsigned place)
{
    return (struct tbd_moved){ .kind = TBD_MOVED_WHOLE, .from = place };
}

struct tbd_moved tbd_moved_both(struct tbd_moved first, struct tbd_moved then)
{
    bool is_low = then.kind == TBD_MOVED_LOW;

    if (then.kind == TBD_MOVED_LOST || then.kind == TBD_MOVED_NUMBER)
        return then;
    /* a carry out of the low bits would count */
    if (first.kind == TBD_MOVED_LOST || (first.kind == TBD_MOVED_LOW && !is_low && then.by != 0))
        return lost;
    first.by += then.by;
    if (first.kind == TBD_MOVED_NUMBER)
        first.by = is_low ? (uint32_t)first.by : first.by;
    else if (is_low)
        first.kind = TBD_MOVED_LOW;
    return first;
}

/* What the slot is of `from`: that, with `by` added, and cut to `width` bits. */
static bool is_sum(uint8_t from, uint64_t by, unsigned width, uint8_t *slot,
                   struct tbd_moved *so_far)
{
    struct tbd_moved one = { width == 64 ? TBD_MOVED_WHOLE : TBD_MOVED_LOW, 0, by };

    if (width != 64 && width != 32)
        return false;
    *so_far = tbd_moved_both(one, *so_far);
    *slot = from;
    return so_far->kind != TBD_MOVED_LOST;
}

static bool constant_of(const struct tbd_sim_insn *insn, uint8_t slot, uint64_t *out)
{
    for (size_t i = 0; i < insn->constant_count; i++)
        if (insn->constants[i].slot == slot) {
            *out = insn->constants[i].value;
            return true;
        }
    return false;
}

/* One step back; false: not over this operation. */
static bool step_back(const struct tbd_sim_insn *insn, const struct tbd_insn_op *op, uint8_t *slot,
                      struct tbd_moved *so_far)
{
    uint64_t by;

    switch (op->code) {
    case TBD_OP_LINK: return op->mask == UINT64_MAX && is_sum(op->a, 0, 64, slot, so_far);
    case TBD_OP_FIELD: return op->shift == 0 && is_sum(op->a, 0, op->width, slot, so_far);
    case TBD_OP_ADD:
        if (constant_of(insn, op->b, &by))
            return is_sum(op->a, by, op->width, slot, so_far);
        return constant_of(insn, op->a, &by) && is_sum(op->b, by, op->width, slot, so_far);
    case TBD_OP_SUB:
        return constant_of(insn, op->b, &by) && is_sum(op->a, -by, op->width, slot, so_far);
    default: return false;
    }
}

/* A value with itself: 0, whatever it is. */
static bool is_nothing(const struct tbd_insn_op *op)
{
    return (op->code == TBD_OP_XOR || op->code == TBD_OP_SUB) && op->a == op->b;
}

static bool is_found(const struct tbd_sim_insn *insn, uint8_t slot, struct tbd_moved *out)
{
    uint64_t value;

    if (constant_of(insn, slot, &value)) {
        *out = number(value);
        return true;
    }
    for (size_t i = 0; i < insn->read_count; i++)
        if (insn->reads[i].slot == slot) {
            *out = itself(insn->reads[i].place);
            return true;
        }
    return false;
}

/* Each step goes on at another slot, which is read by the operation: there is no circle. */
struct tbd_moved tbd_moved_to_slot(const struct tbd_sim_insn *insn, uint8_t slot)
{
    struct tbd_moved so_far = itself(0), found;

    for (unsigned steps = 0; steps <= insn->op_count; steps++) {
        bool has_moved = false;

        if (is_found(insn, slot, &found))
            return tbd_moved_both(found, so_far);
        for (size_t i = 0; i < insn->op_count && !has_moved; i++) {
            if (insn->ops[i].d != slot)
                continue;
            if (is_nothing(&insn->ops[i]))
                return tbd_moved_both(number(0), so_far);
            has_moved = step_back(insn, &insn->ops[i], &slot, &so_far);
        }
        if (!has_moved)
            break;
    }
    return lost;
}

struct tbd_moved tbd_moved_to_place(const struct tbd_sim_insn *insn, unsigned place)
{
    bool is_plain = insn->kind == TBD_INSN_PLAIN && !insn->repeats;

    if (insn->kind == TBD_INSN_HAVOC)
        return lost;
    for (size_t i = 0; i < insn->write_count; i++)
        if (insn->writes[i].place == place)
            return is_plain ? tbd_moved_to_slot(insn, insn->writes[i].slot) : lost;
    for (size_t i = 0; i < insn->copy_count; i++)
        if (insn->copies[i].to == place)
            return insn->copies[i].from == TBD_PLACE_COUNT ? number(0)
                                                           : itself(insn->copies[i].from);
    return itself(place);
}
