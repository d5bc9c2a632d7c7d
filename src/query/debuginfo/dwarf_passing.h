// SPDX-License-Identifier: MIT
/* dwarf_passing.h - how values are passed to functions and back (System V ABI, 3.2.3)
 *
 * A value of up to 16 bytes has a class for each of its eightbytes, which says what kind of register it
 * is in; a larger one, or one that does not fit in the registers left, is in memory.  Any thread. */
#ifndef TBD_QUERY_DWARF_PASSING_H
#define TBD_QUERY_DWARF_PASSING_H

#include "query/debuginfo/dwarf_location.h"

enum tbd_passing_class {
    TBD_PASS_NONE = 0, /* nothing is there: an empty class, padding */
    TBD_PASS_INTEGER,
    TBD_PASS_SSE,
    TBD_PASS_SSE_UPPER, /* the upper half of the same register */
    TBD_PASS_X87,
    TBD_PASS_X87_UPPER,
    TBD_PASS_MEMORY,
};

/* Where a value is. */
struct tbd_passing {
    bool is_known;
    bool is_address;    /* a register holds the object's address: first_gpr; of a result: rax */
    uint8_t classes[2]; /* enum tbd_passing_class; MEMORY: all of it */
    uint64_t bytes;
    /* parameters: numbers of the first registers that hold a part; where on the stack */
    uint8_t first_gpr, first_vector;
    uint64_t offset; /* MEMORY: from the byte after the return address */
};

/* The result of a function with this DIE, and one of its parameters. */
void tbd_passing_result(const Dwarf_Die *function, struct tbd_passing *out);
void tbd_passing_parameter(const Dwarf_Die *function, const Dwarf_Die *parameter,
                           struct tbd_passing *out);

/* Registers at a function's first instruction (`args`), or at its return. */
struct tbd_passing_registers {
    uint64_t args[6]; /* rdi, rsi, rdx, rcx, r8, r9 */
    uint64_t rax, rdx;
    uint64_t sp;           /* address of the return address */
    const uint8_t *vector; /* 16 bytes for each of xmm0, xmm1, ...; NULL: not known */
    const uint8_t *x87;    /* 16 bytes for each of st0, st1, ...; NULL: not known */
};
/* The value; in memory, or bytes of its own. */
void tbd_passing_value(const struct tbd_passing *passing, bool is_result,
                       const struct tbd_passing_registers *registers, const struct tbd_type *type,
                       struct tbd_data *out);
/* Does tbd_passing_value() need vector or x87 registers, or of a result rdx? */
bool tbd_passing_needs_more(const struct tbd_passing *passing, bool is_result);

#endif
