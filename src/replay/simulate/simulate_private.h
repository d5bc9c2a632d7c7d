// SPDX-License-Identifier: MIT
/* simulate_private.h - the parts of a simulation, for the files that make it up
 *
 * Invariants: a step's variables are those of what it writes, then those of its memory, in the order of its instruction.
 * `exact` of a variable is set once, between the two phases. */
#ifndef TBD_REPLAY_SIMULATE_SIMULATE_PRIVATE_H
#define TBD_REPLAY_SIMULATE_SIMULATE_PRIVATE_H

#include "replay/simulate/memory_image.h"
#include "replay/simulate/operations.h"
#include "replay/simulate/simulate.h"

enum {
    TBD_CHECKPOINT_STEPS = 2048,
    TBD_BAR_LISTS = 1 << 15,
    TBD_VARIABLE_ZERO = 0, /* this variable is 0 */
};

/* Assumptions about words are that doubtful unless a register is saved there. */
#define TBD_SIM_DOUBT_OTHER (1u << 30)

/* The first number of an assumption of an answer, and how many of them are noted. */
#define TBD_SIM_ASKED      (1u << 31)
#define TBD_SIM_ASKED_MOST (1u << 18)

enum tbd_sim_settled {
    TBD_NOT_SETTLED = 0,
    TBD_SETTLED_EXACT,
    TBD_SETTLED_SAVED, /* with what rests on saved registers (saved.c) */
    TBD_SETTLED_INFERRED
};

struct tbd_sim_step {
    const struct tbd_sim_insn *insn; /* borrowed from the simulation's table */
    uint32_t first_use;
    uint32_t first_variable;
    uint32_t solved; /* the last change of a variable before it was solved (idle.c) */
    bool is_solved; /* `solved` counts, and what is known of the addresses of its memory is noted */
    uint8_t settled;     /* enum tbd_sim_settled: all of it is known (settled.c) */
    bool unsure;         /* may not have run as a whole: it says nothing */
    bool is_interrupted; /* anything may have happened after it */
    bool
        renews; /* after it each place is a variable of its own, which follow those of its memory */
};

/* The variable of each place at a position that is a multiple of TBD_CHECKPOINT_STEPS. */
struct tbd_sim_checkpoint {
    uint32_t variable[TBD_PLACE_COUNT];
};

/* A variable that is another one plus a constant, whatever that is: a stack pointer and its frame's addresses. */
struct tbd_sim_linear {
    uint32_t root; /* variable; itself if it is not known to be the sum of another one */
    int32_t delta;
};

struct tbd_sim_code {
    struct tbd_sim_insn *insn; /* owned; NULL: free */
    uint8_t bytes[16];
};

/* A word that did change between two steps. */
struct tbd_sim_bar {
    uint64_t address;
    uint32_t from, to;
    uint32_t next; /* 1 + the next one of the list; 0: none */
};

/* Bytes of memory as they are before step `position`. */
struct tbd_sim_fact {
    uint64_t address;
    struct tbd_bits bits;
    uint32_t position;
    uint8_t bytes; /* 1 to 8 */
};

/* The stack pointer before each step, as far as steps that use it are known (dead_stack.c). */
struct tbd_sim_stack {
    uint64_t *at;       /* owned; 0: not known */
    uint32_t *variable; /* owned; that which it is */
    uint64_t *most;     /* owned; the largest one of each block of steps */
    uint64_t least;
};

/* An access of a settled step, or a fact. */
struct tbd_sim_entry {
    uint32_t at; /* step, or number of the fact */
    uint8_t piece;
    bool is_fact;
    bool is_full; /* writes all of the word */
    uint32_t
        full_before; /* the entry of the account that did so last, up to this one; UINT32_MAX: none */
    uint32_t full_after; /* the first one from this one on */
    struct tbd_bits expected
        [2]; /* of the word, by this entry and those that come then, in each direction, by `goes_back` */
};

/* The entries of one word. */
struct tbd_sim_account {
    uint64_t address;
    uint32_t first, count;
};

/* ledger.c; the sets have a bit for each step. */
struct tbd_sim_ledger {
    struct tbd_sim_entry *entries; /* owned; by accounts */
    size_t entry_count, entry_capacity;
    struct tbd_sim_account *accounts; /* owned */
    size_t account_count, account_capacity;
    uint32_t *slots; /* owned; a hash table of 1 + number of an account */
    size_t slot_count;
    uint64_t *entered;           /* owned */
    uint64_t *always;            /* owned; steps that every pass visits */
    uint64_t *due;               /* owned; others that this pass visits */
    uint64_t *due_facts;         /* owned; after which it looks at facts */
    uint64_t *conflicts[2];      /* owned; what of these is due in each pass, by `goes_back` */
    uint64_t *conflict_facts[2]; /* owned */
};

/* An instruction that is known to have stored to a word. */
struct tbd_sim_storer_of {
    uint64_t address;
    const struct tbd_sim_insn *insn; /* borrowed */
};

struct tbd_sim_execution {
    const struct tbd_sim_insn *insn; /* borrowed */
    uint32_t step;
};

/* saved.c: what is known with the least doubtful assumptions alone */
struct tbd_sim_saved {
    uint64_t *known; /* owned; of each variable */
    uint32_t *why;   /* owned */
    size_t known_capacity, why_capacity;
    size_t assumption_count;
    bool is_there;
};

/* focus.c: memory where passes over the steps that are wanted begin. */
struct tbd_sim_border {
    struct tbd_image image;
    uint64_t *due, *due_facts; /* owned; of the ledger; NULL: there was none */
    bool is_there;
};

struct tbd_sim_focus {
    size_t from, to;                  /* to 0: all steps are wanted */
    bool is_on;                       /* the pass is over these alone */
    struct tbd_sim_border borders[2]; /* by `goes_back` */
};

/* storers.c */
struct tbd_sim_storers {
    struct tbd_sim_storer_of *words; /* owned; by word */
    size_t word_count, word_capacity;
    struct tbd_sim_execution *executions; /* owned; of stores, by instruction and step */
    size_t execution_count, execution_capacity;
};

enum { TBD_SIM_CALL_RANGES = 6 };

/* All that a system call wrote. */
struct tbd_sim_known_call {
    struct tbd_sim_range ranges[TBD_SIM_CALL_RANGES];
    uint32_t step, count;
};

/* What a variable is on an assumption of the caller's. */
struct tbd_sim_supposition {
    struct tbd_bits bits;
    uint32_t variable;
    uint32_t position;
};

/* Where a signal came. */
struct tbd_sim_mark {
    struct tbd_sim_checkpoint places;
    uint64_t address; /* of the instruction that was about to run */
};

/* All places at two positions, of which each is the same one, if a handler changed nothing of what a signal saved. */
struct tbd_sim_tie {
    struct tbd_sim_checkpoint one, other;
    uint32_t position; /* of the other */
};

/* Where the last question about a place came to: the next one is often about a position nearby. */
struct tbd_sim_walk {
    size_t position;
    struct tbd_sim_checkpoint map;
};

struct tbd_simulation {
    struct tbd_simulation_source source;
    struct tbd_sim_code *code; /* hash table */
    size_t code_size, code_count;
    struct tbd_sim_step *steps;
    size_t step_count, step_capacity;
    uint32_t *uses; /* variables read */
    size_t use_count, use_capacity;
    struct tbd_bits *variables;
    uint64_t *exact;
    uint32_t *why;
    struct tbd_sim_linear *linear;
    struct tbd_bits *addresses; /* of settled and solved steps' memory, by its variable */
    uint32_t *changed_at;       /* the last change of each variable */
    uint32_t changes;           /* how many there were */
    size_t variable_count, variable_capacity, exact_capacity, why_capacity, linear_capacity;
    size_t address_capacity, changed_capacity;
    struct tbd_sim_checkpoint current;
    struct tbd_sim_checkpoint *checkpoints;
    size_t checkpoint_count, checkpoint_capacity;
    struct tbd_sim_walk *walk; /* owned; NULL: steps may still come */
    struct tbd_sim_fact *facts;
    size_t fact_count, fact_capacity;
    struct tbd_sim_known_call *calls;
    size_t call_count, call_capacity;
    struct tbd_sim_supposition *suppositions;
    size_t supposition_count, supposition_capacity;
    struct tbd_sim_tie *ties;
    size_t tie_count, tie_capacity;
    struct tbd_sim_mark
        *marks; /* interruptions whose handlers have not returned, the latest last */
    size_t mark_count, mark_capacity;
    uint64_t end; /* address after the last step; 0: unknown */
    size_t told;  /* 1 + the first position where the stack pointer was told; 0: nowhere */
    struct tbd_image image;
    struct tbd_assumption *assumptions;
    size_t assumption_count, assumption_capacity;
    struct tbd_assumption *asked; /* owned; those of answers about memory (moment.c) */
    size_t asked_count, asked_capacity;
    struct tbd_sim_bar *bars;
    size_t bar_count, bar_capacity;
    uint32_t bar_lists[TBD_BAR_LISTS];
    struct tbd_sim_stack stack;
    struct tbd_sim_storers storers;
    struct tbd_sim_saved saved;
    struct tbd_sim_focus focus;
    struct tbd_sim_ledger ledgers[2]; /* by whether only what is settled exactly is entered */
    struct tbd_sim_ledger *ledger;    /* one of these, that passes use; NULL: none */
    bool without_ledger;              /* for tests: every step is visited */
    bool has_ledgers;                 /* both are made, for moments */
    uint32_t *first_quiet; /* by variable: where its steps in quiet_steps[] begin (dirty.c) */
    uint32_t *quiet_steps; /* owned, both */
    uint64_t *dirty;       /* owned; a set of quiet steps */
    size_t settled_visits; /* of the pass: of steps that are not entered */
    uint64_t moment;       /* where the pass is, finer than `now` (ledger.c) */
    size_t now;            /* the position where the pass is */
    bool infers;           /* phase two */
    bool goes_back;        /* the pass does */
    uint32_t doubt_most;   /* assumptions that are more doubtful are not made yet */
    bool frozen;           /* variables do not change: an answer is being looked for */
    bool asks;             /* while they are frozen: what an answer about memory assumes is noted */
    bool exact_only;       /* steps get exact values alone */
    bool changed;
    bool no_memory;
    size_t passes, contradictions;
};

/* The variables of a step: what it reads, what it writes, its memory. */
static inline uint32_t tbd_sim_write_variable(const struct tbd_sim_step *step, size_t i)
{
    return step->first_variable + (uint32_t)i;
}
static inline uint32_t tbd_sim_memory_variable(const struct tbd_sim_step *step, size_t i)
{
    return step->first_variable + step->insn->write_count + (uint32_t)i;
}

/* The first place that a step renews: vector registers for an instruction that loads these, all places where it may have been
 * interrupted. */
uint32_t tbd_sim_first_renewed(const struct tbd_sim_step *step);
/* Renames what the step writes, in `map`. */
void tbd_sim_rename(const struct tbd_simulation *sim, size_t step, struct tbd_sim_checkpoint *map);

/* A slot of the step as a variable plus a constant. */
bool tbd_sim_linear(const struct tbd_simulation *sim, const struct tbd_sim_step *step,
                    unsigned slot, struct tbd_sim_linear *out);

/* What stands for the address of a piece of the step's memory that is not known.  False: nothing does. */
bool tbd_sim_stand_in(const struct tbd_simulation *sim, const struct tbd_sim_step *step,
                      const struct tbd_insn_memory *memory, uint64_t *out);

/* Fills the solver's slots with what is known of the step; `exact`: only what is exact. */
void tbd_sim_load(const struct tbd_simulation *sim, size_t step, bool exact,
                  struct tbd_solver *solver);

/* refute.c: withdraws what stores deny whose addresses became known after it was assumed. */
void tbd_sim_refute(struct tbd_simulation *sim);

/* phases.c: the bits that are known now, of each variable. */
void tbd_sim_note_known(const struct tbd_simulation *sim, uint64_t *out);
/* No other bits are known any more than those of `known`. */
void tbd_sim_keep_known(struct tbd_simulation *sim, const uint64_t *known);

/* saved.c: what is known now rests on saved registers alone.  False: no memory. */
bool tbd_sim_note_saved(struct tbd_simulation *sim);
/* Nothing else is known any more. */
void tbd_sim_forget_to_saved(struct tbd_simulation *sim);
/* Has none of what it rests on been withdrawn? */
bool tbd_sim_saved_holds(struct tbd_simulation *sim);
void tbd_sim_free_saved(struct tbd_sim_saved *saved);

/* storers.c: notes which words are known to be stored to now, and by which instructions. */
void tbd_sim_note_storers(struct tbd_simulation *sim);
void tbd_sim_free_storers(struct tbd_sim_storers *storers);
/* Does an instruction that is known to have stored to the word run between the two steps, where its address is not known? */
bool tbd_sim_storer_between(const struct tbd_simulation *sim, uint64_t address, uint32_t one,
                            uint32_t other);

/* Why the inferred bits among the step's variables are known. */
uint32_t tbd_sim_why_of(const struct tbd_simulation *sim, const struct tbd_sim_step *step);

/* What is known of the slots of a step becomes known of its variables. */
void tbd_sim_learn(struct tbd_simulation *sim, const struct tbd_sim_step *step,
                   const struct tbd_solver *solver, uint32_t why);
/* dead_stack.c */
bool tbd_sim_begin_stack(struct tbd_simulation *sim);
void tbd_sim_note_stack(struct tbd_simulation *sim, size_t step, struct tbd_bits pointer);
/* If a signal's handler begins after the step: the frame that the kernel wrote has other values before. */
void tbd_sim_erase_frame(struct tbd_simulation *sim, size_t step);
/* Did a word of the stack lie outside of all frames at some time between the two steps? */
bool tbd_sim_was_dead(const struct tbd_simulation *sim, uint64_t address, size_t one, size_t other);

/* chase.c: in a pass back, which is at `from`: what follows from values that were just found is found, too. */
void tbd_sim_chase(struct tbd_simulation *sim, size_t from);

/* settled.c: the step has just been solved; it may be settled by that. */
void tbd_sim_settle(struct tbd_simulation *sim, size_t index, const struct tbd_solver *solver);
bool tbd_sim_is_settled(const struct tbd_simulation *sim, const struct tbd_sim_step *step);
void tbd_sim_visit_settled(struct tbd_simulation *sim, size_t index, bool forward);
/* Those that are settled as `from`, or later, are not any more: values were forgotten. */
void tbd_sim_unsettle(struct tbd_simulation *sim, enum tbd_sim_settled from);

/* idle.c: the step has just been solved, and its variables know what that said. */
void tbd_sim_note_solved(struct tbd_simulation *sim, size_t index, const struct tbd_solver *solver);
/* False: it has to be solved; *out_written: the image is already as before what it writes, in a pass back. */
bool tbd_sim_visit_idle(struct tbd_simulation *sim, size_t index, bool forward, bool *out_written);
/* Has nothing changed of the variables since the step was solved? */
bool tbd_sim_is_idle(const struct tbd_simulation *sim, const struct tbd_sim_step *step);

/* dirty.c; false: no memory. */
bool tbd_sim_begin_dirty(struct tbd_simulation *sim);
/* More is known of the variable now, or less. */
void tbd_sim_note_change(struct tbd_simulation *sim, uint32_t variable);
/* The step has just been visited. */
void tbd_sim_note_visit(struct tbd_simulation *sim, size_t step);
/* Does a pass visit it only if it is dirty? */
bool tbd_sim_is_quiet(const struct tbd_simulation *sim, size_t step);

/* focus.c: a pass over the steps that are wanted. */
void tbd_sim_pass_focus(struct tbd_simulation *sim, bool forward);
/* Memory where these begin is found anew. */
void tbd_sim_forget_borders(struct tbd_simulation *sim);

/* Passes over the steps [from, to), forward or back. */
void tbd_sim_pass(struct tbd_simulation *sim, size_t from, size_t to, bool forward);
/* Goes on with the image of a pass that has come to `from`, or back to `to`. */
void tbd_sim_pass_on(struct tbd_simulation *sim, size_t from, size_t to, bool forward);

/* NULL: nothing was said about the system call. */
const struct tbd_sim_known_call *tbd_sim_call_at(const struct tbd_simulation *sim, size_t step);
/* The number of the first fact at the position, or after it: where a pass from there on begins; back, it begins with the
 * first one after it. */
size_t tbd_sim_first_fact(const struct tbd_simulation *sim, size_t position);
/* Puts the facts at the position into the image, and moves *cursor past them. */
void tbd_sim_take_facts(struct tbd_simulation *sim, size_t position, bool forward, size_t *cursor);

/* ledger.c: the word as it is where the pass is; NULL: no memory.  Valid until the next call. */
struct tbd_image_word *tbd_sim_word(struct tbd_simulation *sim, uint64_t address);
/* The number of a step's moment. */
static inline uint64_t tbd_sim_moment_of(size_t step)
{
    return 2 * (uint64_t)step + 2;
}
/* Something became known of the word, which is up to date. */
void tbd_sim_look_ahead(struct tbd_simulation *sim, const struct tbd_image_word *word);
/* What was left out of a word that the image has. */
void tbd_sim_catch_up(struct tbd_simulation *sim, struct tbd_image_word *word);

/* Was a repeated instruction interrupted here, to be run again? */
bool tbd_sim_is_part(const struct tbd_simulation *sim, size_t step);
/* Does a visit of a step that is not settled change anything? */
bool tbd_sim_has_effect(const struct tbd_simulation *sim, size_t step);
/* What a word has after the last step; `sim` is a struct tbd_simulation. */
struct tbd_bits tbd_sim_at_end(void *sim, uint64_t address);
/* The bytes of a piece of memory that lie in a word. */
struct tbd_bits tbd_sim_word_part(uint64_t address, unsigned bytes, struct tbd_bits bits,
                                  uint64_t word);
/* Does a piece of memory end before the end of all addresses? */
bool tbd_sim_fits(uint64_t address, uint64_t bytes);
/* tbd_sim_remember() and tbd_sim_erase() for a word that is up to date. */
void tbd_sim_remember_in(struct tbd_simulation *sim, size_t step, struct tbd_image_word *word,
                         struct tbd_bits bits, uint32_t why);
void tbd_sim_erase_in(struct tbd_simulation *sim, struct tbd_image_word *word, uint64_t mask);

/* What a word has at all times, or from before sim->now on; `sim` is a struct tbd_simulation. */
struct tbd_bits tbd_sim_constant(void *sim, uint64_t address);
/* The bits of memory at an address that the step may take, and the assumption for it. */
struct tbd_bits tbd_sim_recall(struct tbd_simulation *sim, size_t step, uint64_t address,
                               unsigned bytes, uint32_t *why);
void tbd_sim_remember(struct tbd_simulation *sim, size_t step, uint64_t address, unsigned bytes,
                      struct tbd_bits bits, uint32_t why);
/* The bytes have another value from here on, in the direction of the pass. */
void tbd_sim_erase(struct tbd_simulation *sim, uint64_t address, uint64_t bytes);
/* The same for many bytes, of which what is the same at all times stays. */
void tbd_sim_replace(struct tbd_simulation *sim, uint64_t address, uint64_t bytes);
/* A store to somewhere. */
void tbd_sim_unknown_store(struct tbd_simulation *sim, size_t step);
/* Anything happened between the step and the next one. */
void tbd_sim_stir(struct tbd_simulation *sim, size_t step);
/* A store of one piece to an address that is not known, or only in part. */
void tbd_sim_unknown_piece(struct tbd_simulation *sim, const struct tbd_image_store *store);
/* The more doubtful one of two assumptions; 0: none. */
uint32_t tbd_sim_weaker(const struct tbd_simulation *sim, uint32_t one, uint32_t other);
/* Did the word surely change between the two steps? */
bool tbd_sim_is_barred(struct tbd_simulation *sim, uint64_t address, uint32_t one, uint32_t other);
/* It did. */
void tbd_sim_bar(struct tbd_simulation *sim, uint64_t address, uint32_t one, uint32_t other);
/* The thread goes on at `next`, where a signal interrupted it, or not. */
enum tbd_status tbd_sim_tie(struct tbd_simulation *sim, uint64_t next);
/* suppose.c: what the caller supposes becomes known, unless something contradicts it. */
void tbd_sim_take_suppositions(struct tbd_simulation *sim);
/* A variable has these bits, on the assumption `why`. */
void tbd_sim_store(struct tbd_simulation *sim, uint32_t variable, struct tbd_bits bits,
                   uint32_t why);
/* What an assumption says is wrong. */
void tbd_sim_withdraw(struct tbd_simulation *sim, uint32_t why);

#endif
