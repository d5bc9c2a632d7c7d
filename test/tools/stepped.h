// SPDX-License-Identifier: MIT
/* stepped.h - a program that is run one instruction at a time until it dies, for step_values.c
 *
 * stepped.c runs it and keeps what there was before each of its last instructions: that is the truth.  stepped_told.c makes a simulation of
 * them, from what a crash dump would have. */
#ifndef TBD_TEST_STEPPED_H
#define TBD_TEST_STEPPED_H

#include "recorded.h"

#include "replay/simulate/operations.h"
#include "replay/simulate/simulate.h"

#include <sys/types.h>
#include <sys/user.h>

enum { READS = 4, CACHE = 1 << 16, PAGES = 1 << 13 };

/* What there was before one instruction. */
struct stepped_moment {
    struct user_regs_struct regs;
    uint8_t code[16];
    uint64_t memory[READS]; /* of its first memory operands, as far as they were read */
    uint8_t read;           /* mask of those */
    bool is_cut;            /* a signal came before it, or while it ran */
};

struct stepped_code {
    uint64_t address;
    uint8_t bytes[16];
    struct tbd_sim_insn *insn;
};

struct stepped_mapping {
    uint64_t start, end, offset;
    int fd;            /* of its file */
    bool is_relocated; /* ld.so has written there before */
};

extern struct stepped {
    pid_t pid;
    int mem;
    struct stepped_moment *ring;
    size_t asked;       /* of the last steps */
    size_t why;         /* of the last steps: reasons are printed */
    size_t last, count; /* count: of all steps; last: of those that are kept, half as many again */
    struct stepped_code *cache;
    struct stepped_mapping *mappings;
    size_t mapping_count;
    struct recorded recorded;
} stepped;

/* Status 77: it has no right to look. */
void stepped_give_up(const char *what);

void stepped_start(char **argv);
/* Lets it run to a trap instruction; false: it died. */
bool stepped_run_to_trap(void);
/* False: it did not die of a signal. */
bool stepped_to_end(struct user_regs_struct *regs, int *signo);
/* Memory as it is now. */
bool stepped_peek(uint64_t address, void *out, size_t bytes);

/* What there was before the i-th of the instructions that are kept, and what a place held then. */
const struct stepped_moment *stepped_moment_at(size_t i);
struct tbd_bits stepped_truth(const struct user_regs_struct *r, unsigned place);

/* At its end: what cannot be written, for stepped_simulate(). */
void stepped_read_mappings(void);

/* With `focus` not 0 the steps around that far from the end are wanted alone. */
enum { STEPPED_FAR = 1000, STEPPED_GRID = 16384, STEPPED_AROUND = 10000 };
struct tbd_simulation *stepped_simulate(const struct user_regs_struct *end, size_t steps,
                                        size_t focus);

#endif
