// SPDX-License-Identifier: MIT
/* simulate.h - the values before and after every instruction of a sequence, as far as they follow from what is known
 *
 * A caller adds the instructions that one thread ran, in order, and says what is known: registers at the end, or
 * wherever it has them, memory at the end, memory that never changes.  Each register written is a new variable, and so is each
 * piece of memory read or written; tbd_simulation_run() passes over the steps back and forward until no variable becomes
 * known any more.
 *
 * A value is exact if it follows from what is known alone.  Memory across a store whose address is unknown does not;
 * so first nothing is taken across such stores.  Then it is, and what follows is inferred: it rests on the assumption
 * that the store did not hit the word.  Where a contradiction shows that it did, the assumption is withdrawn, and all that is
 * inferred is computed again without it.  A caller may suppose something, too: it is an assumption like these.
 *
 * One thread at a time uses a simulation. */
#ifndef TBD_REPLAY_SIMULATE_SIMULATE_H
#define TBD_REPLAY_SIMULATE_SIMULATE_H

#include "base/status.h"
#include "replay/simulate/bits.h"
#include "replay/simulate/insn.h"

struct tbd_simulation;

struct tbd_sim_range {
    uint64_t address, bytes;
};

/* What a simulation asks its caller.  Any function may be NULL: nothing is known. */
struct tbd_simulation_source {
    void *arg;
    /* The 8 bytes at `address`, a multiple of 8, after the last step. */
    struct tbd_bits (*final)(void *arg, uint64_t address);
    /* The same, if they were the same at all times. */
    struct tbd_bits (*constant)(void *arg, uint64_t address);
    /* The first position from which on they are as at the end, at all times; SIZE_MAX: that is not certain. */
    size_t (*fixed_since)(void *arg, uint64_t address);
    /* All that system call `number` may have written, if that follows from its arguments, of which bit i of `known` says that
     * args[i] is known.  False: anything may have changed. */
    bool (*call_writes)(void *arg, uint64_t number, const uint64_t args[6], unsigned known,
                        struct tbd_sim_range out[6], size_t *out_count);
    bool others; /* other threads may write memory at any time */
    /* Is the word one of those that they did write, nobody knows when?  Nothing is assumed of it.  Not asked without `others`. */
    bool (*is_theirs)(void *arg, uint64_t address);
};

/* A value, which of its bits are exact, and the assumption that the others rest on. */
struct tbd_simulated {
    struct tbd_bits bits;
    uint64_t exact; /* mask; part of bits.known */
    uint32_t why;   /* for tbd_simulation_assumption(); 0: none */
};

/* Memory at `address` held the same from step `from` to step `to`, although the `stores` stores between, of which the last or
 * the first one is step `store`, had unknown addresses. */
struct tbd_assumption {
    uint64_t address;
    uint32_t from, to;
    uint32_t store;
    uint32_t stores;
    uint32_t parent;  /* another assumption that it rests on; 0: none */
    uint32_t doubt;   /* the most doubtful one among these: how much, */
    uint32_t weakest; /* and its number */
    uint64_t bits;    /* of the word: those that it is about */
    /* It is the caller's, about a place before step `from`: no memory, and no stores. */
    bool is_supposed;
    /* A handler that returned before step `from` had changed nothing of what the signal saved. */
    bool is_tie;
};

struct tbd_simulation_counts {
    size_t steps;
    size_t passes;
    size_t assumptions;
    size_t withdrawn;
    size_t contradictions; /* between exact values: what the caller said does not fit together */
};

enum tbd_status tbd_simulation_new(const struct tbd_simulation_source *source,
                                   struct tbd_simulation **out);
void tbd_simulation_free(struct tbd_simulation *sim);

/* Adds the instruction of `length` bytes at `code` that ran at `address`. */
enum tbd_status tbd_simulation_add(struct tbd_simulation *sim, uint64_t address,
                                   const uint8_t *code, size_t length);
/* A signal comes before the next step, which would be the instruction at `address`.  tbd_simulation_break() comes after it. */
enum tbd_status tbd_simulation_interrupted(struct tbd_simulation *sim, uint64_t address);
/* Adds the system call rt_sigreturn at `address`, after which the thread goes on at `next`, where a signal interrupted it, and
 * nowhere else.  All places are as they were there: that is assumed. */
enum tbd_status tbd_simulation_add_return(struct tbd_simulation *sim, uint64_t address,
                                          uint64_t next);
/* The steps from `from` on may have been run only in part (the number of steps: all ran), and anything may have happened
 * between the last one and the next, as when a signal came. */
enum tbd_status tbd_simulation_break(struct tbd_simulation *sim, size_t from);
/* What a place holds after the last step that was added. */
void tbd_simulation_know(struct tbd_simulation *sim, unsigned place, struct tbd_bits bits);
/* What it holds there on an assumption of the caller's. */
enum tbd_status tbd_simulation_suppose(struct tbd_simulation *sim, unsigned place,
                                       struct tbd_bits bits);
/* The `bytes` bytes, 1 to 8, at `address` after the last step that was added. */
enum tbd_status tbd_simulation_know_memory(struct tbd_simulation *sim, uint64_t address,
                                           unsigned bytes, uint64_t value);
/* The last step is a system call, which changed memory in these ranges, 6 at most, and nowhere else. */
enum tbd_status tbd_simulation_know_call(struct tbd_simulation *sim,
                                         const struct tbd_sim_range *ranges, size_t count);
/* Where the thread was after the last step. */
void tbd_simulation_ends_at(struct tbd_simulation *sim, uint64_t address);

/* What rests on more than saved registers is wanted in the steps from `from` to before `to` alone: the others take part in it little. */
void tbd_simulation_focus(struct tbd_simulation *sim, size_t from, size_t to);
/* Computes; `inferred`: also what rests on assumptions.  May be called once. */
enum tbd_status tbd_simulation_run(struct tbd_simulation *sim, bool inferred);
struct tbd_simulation_counts tbd_simulation_counts(const struct tbd_simulation *sim);

/* Answers.  Step i leads from position i to position i + 1. */
const struct tbd_sim_insn *tbd_simulation_insn(const struct tbd_simulation *sim, size_t step);
struct tbd_simulated tbd_simulation_place(const struct tbd_simulation *sim, size_t position,
                                          unsigned place);
/* Address and contents of piece `index` of the step's memory (struct tbd_insn_memory). */
struct tbd_simulated tbd_simulation_address(const struct tbd_simulation *sim, size_t step,
                                            size_t index);
struct tbd_simulated tbd_simulation_data(const struct tbd_simulation *sim, size_t step,
                                         size_t index);
/* Did the step surely run as a whole? */
bool tbd_simulation_ran(const struct tbd_simulation *sim, size_t step);
/* The last step before `position` that wrote the place; SIZE_MAX: none did. */
size_t tbd_simulation_writer(const struct tbd_simulation *sim, size_t position, unsigned place);

/* The last step before a position that wrote memory there. */
struct tbd_sim_storer {
    size_t step;   /* SIZE_MAX: none did */
    size_t index;  /* of its memory; the number of pieces: a system call did it */
    size_t unsure; /* stores after it whose address or length is not known */
};
struct tbd_sim_storer tbd_simulation_storer(const struct tbd_simulation *sim, size_t position,
                                            uint64_t address, uint64_t bytes);
/* False: no such assumption. */
bool tbd_simulation_assumption(const struct tbd_simulation *sim, uint32_t why,
                               struct tbd_assumption *out);

/* Memory at a position, for many addresses: making it passes over the steps.  Free it before the simulation. */
struct tbd_sim_moment;
enum tbd_status tbd_sim_moment_new(struct tbd_simulation *sim, size_t position,
                                   struct tbd_sim_moment **out);
/* To another position; quick if it is one of the next.  After a failure it is good for nothing but to be freed. */
enum tbd_status tbd_sim_moment_move(struct tbd_sim_moment *moment, size_t position);
void tbd_sim_moment_free(struct tbd_sim_moment *moment);
/* The 8 bytes at `address`, a multiple of 8. */
struct tbd_simulated tbd_sim_moment_memory(struct tbd_sim_moment *moment, uint64_t address);

#endif
