// SPDX-License-Identifier: MIT
/* patcher_harness.h - runs a function of the test itself under translation, in process
 *
 * The runtime's part (system calls, specials, stream) is played by small callbacks.  All events
 * that the hooks reported since harness_call() began can be walked afterwards. */
#ifndef TBD_TEST_PATCHER_HARNESS_H
#define TBD_TEST_PATCHER_HARNESS_H

#include "patcher/decode.h"
#include "patcher/patcher.h"

#include <stddef.h>

struct harness_def {
    struct tbd_block_def def;
    struct tbd_op *op; /* def.op_count of them */
};

/* One reported event; `block` counts block entries from 0. */
struct harness_event {
    uint64_t block;
    uint32_t id;
    const struct tbd_op *op; /* NULL: the block entry itself */
    uint64_t address;        /* STORE, LOAD */
    const uint8_t *data;
};

typedef void (*harness_sink)(const struct harness_event *event, void *arg);

/* Why translated code cannot run here; NULL if it can. */
const char *harness_obstacle(void);
void harness_init(uint32_t hook_set, bool link);
/* Before that, with no other threads: children go on with code as it is made on other processors.  They have passed when this
 * returns in the process that called it. */
void harness_also_as_other_processors(void);
/* As in free run. */
void harness_init_free(void);
void harness_configure(uint32_t hook_set, uint32_t max_insns, bool link);
/* Places patch areas far from all code, so that rip-relative operands are out of reach. */
void harness_far_areas(bool far);
/* From the next harness_configure() on: entries are not written, and only harness_blocks() tells of them. */
void harness_only_counts(bool counts);
/* Code made from now on may change without a flush. */
void harness_changing_code(bool changes);
/* Memory that jumps lead through, when code is made from now on, changes only with a flush. */
void harness_constant_memory(bool constant);
/* Patch areas from the next harness_configure() on: their size (0 = default), and how many more can
 * be reserved. */
void harness_limit_areas(uint32_t bytes, unsigned more);
/* Calls function `f` with up to six arguments on a stack of its own; returns its rax. */
uint64_t harness_call(void *f, const uint64_t args[6]);
/* Runs from *regs until an instruction at `stop` is reached; registers afterwards in *regs. */
void harness_run(struct tbd_regs *regs, uint64_t stop);
/* Gets all events in order; call before harness_call.  NULL: none. */
void harness_set_sink(harness_sink sink, void *arg);
const struct harness_def *harness_definition(uint32_t id);
struct tbd_thread *harness_thread(void);
uint64_t harness_blocks(void);
uint8_t *harness_stack_top(void);
/* Is the page marked in the touch map? */
uint32_t harness_hook_set(void);
bool harness_touched(uint64_t address, bool written);
void harness_clear_touch(uint64_t address);
/* Prints program and translated code of every block defined so far. */
void harness_dump(void);
/* The last synchronous fault inside translated code, if f's handler asked for it. */
struct harness_fault {
    struct tbd_interruption where;
    struct tbd_regs state;
    bool happened;
};
extern struct harness_fault harness_fault;

#endif
