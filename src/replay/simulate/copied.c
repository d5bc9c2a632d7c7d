// SPDX-License-Identifier: MIT
/* copied.c - see copied.h
 *
 * Goes back from the slot that is written, over operations that move bits without changing them, to one that the instruction
 * reads.  Operations that move parts of bytes end it. */
#include "replay/simulate/copied.h"

#include "replay/simulate/bits.h"

/* The bytes of a slot that are looked for. */
struct looked_for {
    uint8_t slot;
    unsigned first, bytes;
};

static unsigned at_most(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static bool are_bytes(unsigned bits, unsigned more_bits, unsigned still_more_bits)
{
    return (bits | more_bits | still_more_bits) % 8 == 0;
}

/* The `width` bits at `shift` are those of slot `from` at `source`; false: the first byte is not among them. */
static bool over_move(struct looked_for *w, uint8_t from, unsigned width, unsigned shift,
                      unsigned source)
{
    if (!are_bytes(width, shift, source) || w->first < shift / 8 || w->first >= (shift + width) / 8)
        return false;
    w->bytes = at_most(w->bytes, (shift + width) / 8 - w->first);
    w->first += source / 8;
    w->first -= shift / 8;
    w->slot = from;
    return true;
}

/* Bits that are linked have their places already. */
static bool over_link(struct looked_for *w, const struct tbd_insn_op *op)
{
    unsigned count = 0;

    while (count < w->bytes && (op->mask >> 8 * (w->first + count) & 0xff) == 0xff)
        count++;
    w->slot = count != 0 ? op->a : w->slot;
    w->bytes = count != 0 ? count : w->bytes;
    return count != 0;
}

static bool over_put(struct looked_for *w, const struct tbd_insn_op *op)
{
    unsigned first = op->shift / 8u, end = (op->shift + op->width) / 8u;

    if (!are_bytes(op->width, op->shift, 0))
        return false;
    if (w->first >= first && w->first < end)
        return over_move(w, op->b, op->width, op->shift, 0);
    if (w->first < first)
        w->bytes = at_most(w->bytes, first - w->first);
    w->slot = op->a;
    return true;
}

/* One step back; false: not over this operation. */
static bool step_back(struct looked_for *w, const struct tbd_insn_op *op)
{
    switch (op->code) {
    case TBD_OP_LINK: return over_link(w, op);
    case TBD_OP_FIELD: return over_move(w, op->a, op->width, 0, op->shift);
    case TBD_OP_PUT: return over_put(w, op);
    case TBD_OP_MOVEBITS: return over_move(w, op->a, op->width, op->shift, op->aux);
    case TBD_OP_SEXT: return over_move(w, op->a, op->aux, 0, 0);
    default: return false;
    }
}

/* Zeros above a field: nothing was read for them. */
static bool is_above(const struct looked_for *w, const struct tbd_insn_op *op)
{
    return op->code == TBD_OP_FIELD && op->width % 8 == 0 && w->first >= op->width / 8u;
}

static struct tbd_copied constant(const struct looked_for *w, uint64_t value)
{
    return (struct tbd_copied){ .from = TBD_COPIED_FROM_CONSTANT,
                                .bytes = (uint8_t)w->bytes,
                                .constant = value >> 8 * w->first & tbd_bits_low(8 * w->bytes) };
}

static struct tbd_copied from_memory(const struct tbd_sim_insn *insn, size_t number,
                                     const struct looked_for *w)
{
    if (w->first >= insn->memory[number].bytes)
        return constant(w, 0);
    return (struct tbd_copied){
        .from = insn->memory[number].range ? TBD_COPIED_NOT : TBD_COPIED_FROM_MEMORY,
        .number = (uint16_t)number,
        .first = (uint8_t)w->first,
        .bytes = (uint8_t)at_most(w->bytes, insn->memory[number].bytes - w->first)
    };
}

/* Is the slot something that the instruction finds? */
static bool is_found(const struct tbd_sim_insn *insn, const struct looked_for *w,
                     struct tbd_copied *out)
{
    for (size_t i = 0; i < insn->read_count; i++)
        if (insn->reads[i].slot == w->slot) {
            *out = (struct tbd_copied){ .from = TBD_COPIED_FROM_PLACE,
                                        .number = insn->reads[i].place,
                                        .first = (uint8_t)w->first,
                                        .bytes = (uint8_t)w->bytes };
            return true;
        }
    for (size_t i = 0; i < insn->memory_count; i++)
        if (!insn->memory[i].write && insn->memory[i].data == w->slot) {
            *out = from_memory(insn, i, w);
            return true;
        }
    for (size_t i = 0; i < insn->constant_count; i++)
        if (insn->constants[i].slot == w->slot) {
            *out = constant(w, insn->constants[i].value);
            return true;
        }
    return false;
}

/* Each step goes on at another slot, which is read by the operation: there is no circle. */
static struct tbd_copied follow(const struct tbd_sim_insn *insn, struct looked_for w)
{
    struct tbd_copied out = { .from = TBD_COPIED_NOT, .bytes = (uint8_t)w.bytes };

    for (unsigned steps = 0; steps <= insn->op_count; steps++) {
        bool has_moved = false;

        if (is_found(insn, &w, &out))
            return out;
        for (size_t i = 0; i < insn->op_count && !has_moved; i++) {
            if (insn->ops[i].d != w.slot)
                continue;
            if (is_above(&w, &insn->ops[i]))
                return constant(&w, 0);
            has_moved = step_back(&w, &insn->ops[i]);
        }
        if (!has_moved)
            break;
    }
    return out;
}

static bool is_described(const struct tbd_sim_insn *insn)
{
    return insn->kind == TBD_INSN_PLAIN && !insn->repeats;
}

struct tbd_copied tbd_copied_to_place(const struct tbd_sim_insn *insn, unsigned place,
                                      unsigned first, unsigned bytes)
{
    struct tbd_copied out = { .from = TBD_COPIED_NOT, .bytes = (uint8_t)bytes };

    for (size_t i = 0; i < insn->write_count; i++)
        if (insn->writes[i].place == place)
            return is_described(insn)
                       ? follow(insn, (struct looked_for){ insn->writes[i].slot, first, bytes })
                       : out;
    out.from = TBD_COPIED_FROM_PLACE;
    out.number = (uint16_t)place;
    out.first = (uint8_t)first;
    for (size_t i = 0; i < insn->copy_count; i++)
        if (insn->copies[i].to == place) {
            out.number = insn->copies[i].from;
            if (out.number == TBD_PLACE_COUNT)
                return constant(&(struct looked_for){ .bytes = bytes }, 0);
        }
    return out;
}

struct tbd_copied tbd_copied_to_memory(const struct tbd_sim_insn *insn, size_t number,
                                       unsigned first, unsigned bytes)
{
    struct looked_for w = { insn->memory[number].data, first,
                            at_most(bytes, insn->memory[number].bytes - first) };

    if (!is_described(insn) || insn->memory[number].range)
        return (struct tbd_copied){ .from = TBD_COPIED_NOT, .bytes = (uint8_t)bytes };
    return follow(insn, w);
}
