// SPDX-License-Identifier: MIT
/* native_insn.h - runs one instruction on the processor, between two complete states
 *
 * The state's registers, rsp too, are what the instruction sees; a fault is caught.  One thread. */
#ifndef TBD_TEST_NATIVE_INSN_H
#define TBD_TEST_NATIVE_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct native_state {
    uint64_t gpr[16];
    uint64_t flags; /* rflags */
    uint64_t unused;
    uint8_t vector[32][64];
    uint64_t mask[8];
};

enum native_vectors { NATIVE_SSE, NATIVE_AVX, NATIVE_AVX512 };

enum { NATIVE_MEMORY = 1 << 12, NATIVE_STATUS = 0xcd5 };

/* Memory for the instruction's operands, and where its code lies. */
extern uint8_t *native_memory;
extern uint8_t *native_code;

/* False: no memory. */
bool native_begin(void);
/* Which part of `vector` and `mask` the processor has. */
enum native_vectors native_vectors(void);
/* The address that a branch in the instruction should lead to; it counts as taken then. */
uint64_t native_landing(void);
/* Runs the instruction of `length` bytes at native_code.  False: it faulted, nothing in *out is valid. */
bool native_run(const struct native_state *in, size_t length, struct native_state *out,
                bool *out_taken);

#endif
