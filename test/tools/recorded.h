// SPDX-License-Identifier: MIT
/* recorded.h - what a program with rings would have recorded beside them (option `record`), of one that is single-stepped
 *
 * Block entries are counted as the engine cuts blocks, but that limits of length and special instructions make none.  Registers
 * come at the starts of blocks that end with a jump back, an indirect jump or a call (patcher/record_code.c), if the setting has a check
 * there, after system calls, where a handler begins or has returned, where a block is entered for the first time, and where the shortest ring would be full. */
#ifndef TBD_TEST_RECORDED_H
#define TBD_TEST_RECORDED_H

#include "format/stream/crash_values.h"
#include "replay/simulate/simulate.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

/* Before a step; its registers are known otherwise. */
struct recorded_set {
    size_t step;
    size_t stack_bytes;
    uint8_t stack[TBD_VALUE_STACK];
    struct recorded_piece *memory; /* all that the program may write; NULL: it was not copied */
    size_t memory_count;
};

struct recorded_piece {
    uint64_t address;
    size_t bytes;
    uint8_t *copy;
};

/* The step before `step` was a system call. */
struct recorded_call {
    size_t step;
    struct tbd_sim_range protected; /* mprotect */
    int64_t result;
    struct tbd_sim_range ranges[6];
    size_t range_count;
    bool has_ranges, is_brk;
    uint8_t *bytes; /* owned; of the ranges, one after the other */
    uint32_t kept[6];
};

struct recorded {
    struct tbd_record_dial dial;
    int mem; /* of the program */
    int pid;
    uint64_t spent_until, spare; /* as in hooks/stream/value_slots.c: of entries, and slots */
    int64_t memory_credit;       /* bytes that may be copied; less than 0: none */
    struct recorded_set *sets;
    size_t set_count, set_capacity;
    struct recorded_call *calls;
    size_t call_count, call_capacity;
    uint64_t entries, last_set; /* block entries so far, and when registers came last */
    bool begins_block;          /* the next step does */
    bool is_new;                /* it does, and its block has not been entered before */
    uint64_t *starts;           /* of blocks that were entered; a hash table, or NULL */
    bool leaves_way; /* the next step is a handler's first one, or one that a handler returns to */
    bool was_call;   /* the step before is a system call, with these registers */
    struct user_regs_struct call;
};

/* `from_start`: all of its steps come, so that it is known which blocks are new; else none counts as that. */
void recorded_begin(struct recorded *r, unsigned setting, int pid, int mem, bool from_start);
/* The program is about to run step number `step`, whose code is `code`. */
void recorded_step(struct recorded *r, size_t step, const struct user_regs_struct *regs,
                   const uint8_t code[16]);

/* The step that came last did not run: a handler's first one comes next. */
void recorded_interrupted(struct recorded *r);

/* The step from which on a page that nobody may write at the end has been as it is; SIZE_MAX: that is not known. */
size_t recorded_fixed_since(const struct recorded *r, uint64_t page);

/* NULL: none. */
const struct recorded_set *recorded_set_at(const struct recorded *r, size_t step);
const struct recorded_call *recorded_call_before(const struct recorded *r, size_t step);
void recorded_tell_call(const struct recorded_call *call, struct tbd_simulation *sim);
void recorded_tell_bytes(struct tbd_simulation *sim, uint64_t address, const uint8_t *bytes,
                         size_t count);

#endif
