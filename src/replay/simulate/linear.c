// SPDX-License-Identifier: MIT
/* linear.c - variables that are others plus a constant (simulate_private.h)
 *
 * Where a stack pointer is not known, its pushes and pops still belong together: their addresses are the same variable
 * plus constants.  Such an address stands for a place of its own in the image, above all that a program can have. */
#include "replay/simulate/simulate_private.h"

enum { DELTA_MAX = 1 << 22 };

static bool constant_of(const struct tbd_sim_insn *insn, unsigned slot, uint64_t *out)
{
    for (size_t i = 0; i < insn->constant_count; i++) {
        if (insn->constants[i].slot == slot) {
            *out = insn->constants[i].value;
            return true;
        }
    }
    return false;
}

/* The operation that computes the slot from another one and a constant. */
static const struct tbd_insn_op *sum_of(const struct tbd_sim_insn *insn, unsigned slot,
                                        uint64_t *delta)
{
    for (size_t i = 0; i < insn->op_count; i++) {
        const struct tbd_insn_op *op = &insn->ops[i];

        if (op->d != slot || op->width != 64 ||
            (op->code != TBD_OP_ADD && op->code != TBD_OP_SUB) || !constant_of(insn, op->b, delta))
            continue;
        if (op->code == TBD_OP_SUB)
            *delta = (uint64_t)0 - *delta;
        return op;
    }
    return NULL;
}

bool tbd_sim_linear(const struct tbd_simulation *sim, const struct tbd_sim_step *step,
                    unsigned slot, struct tbd_sim_linear *out)
{
    const struct tbd_sim_insn *insn = step->insn;
    uint64_t delta = 0;
    const struct tbd_insn_op *op = sum_of(insn, slot, &delta);

    if (op != NULL)
        slot = op->a;
    for (size_t i = 0; i < insn->read_count; i++) {
        int64_t sum;

        if (insn->reads[i].slot != slot)
            continue;
        *out = sim->linear[sim->uses[step->first_use + i]];
        sum = out->delta + (int64_t)delta;
        out->delta = (int32_t)sum;
        return (int64_t)delta > -DELTA_MAX && (int64_t)delta < DELTA_MAX && sum > -DELTA_MAX &&
               sum < DELTA_MAX;
    }
    return false;
}

bool tbd_sim_stand_in(const struct tbd_simulation *sim, const struct tbd_sim_step *step,
                      const struct tbd_insn_memory *memory, uint64_t *out)
{
    struct tbd_sim_linear linear;

    if (!sim->infers || memory->range || !tbd_sim_linear(sim, step, memory->address, &linear))
        return false;
    *out = 1ull << 63 | (uint64_t)linear.root << 24 |
           (uint32_t)(linear.delta + memory->offset + (1 << 23));
    return true;
}
