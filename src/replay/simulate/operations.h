// SPDX-License-Identifier: MIT
/* operations.h - the slots of one instruction, solved for whatever is unknown
 *
 * Not thread-safe for one solver; no state elsewhere. */
#ifndef TBD_REPLAY_SIMULATE_OPERATIONS_H
#define TBD_REPLAY_SIMULATE_OPERATIONS_H

#include "replay/simulate/bits.h"
#include "replay/simulate/insn.h"

struct tbd_solver {
    struct tbd_bits slot[TBD_INSN_SLOTS];
    bool changed;  /* something became known */
    bool conflict; /* something that was known should be something else; what was known stays */
};

/* Every slot unknown, constants known. */
void tbd_solver_begin(struct tbd_solver *solver, const struct tbd_sim_insn *insn);

/* What `bits` knows of a slot, it now knows as well. */
void tbd_solver_learn(struct tbd_solver *solver, unsigned slot, struct tbd_bits bits);

/* Applies the operations in order and back until nothing more becomes known. */
void tbd_solver_solve(struct tbd_solver *solver, const struct tbd_sim_insn *insn);

/* Parts of it, each for some operations. */
void tbd_solve_flags(struct tbd_solver *solver, const struct tbd_insn_op *op);
void tbd_solve_shift(struct tbd_solver *solver, const struct tbd_insn_op *op);
void tbd_solve_pure(struct tbd_solver *solver, const struct tbd_insn_op *op);
void tbd_solve_lanes(struct tbd_solver *solver, const struct tbd_insn_op *op);
void tbd_solve_shuffle(struct tbd_solver *solver, const struct tbd_insn_op *op);
void tbd_solve_spread(struct tbd_solver *solver, const struct tbd_insn_op *op);
void tbd_solve_signs(struct tbd_solver *solver, const struct tbd_insn_op *op);
void tbd_solve_ternary(struct tbd_solver *solver, const struct tbd_insn_op *op);
void tbd_solve_strings(struct tbd_solver *solver, const struct tbd_insn_op *op);

#endif
