// SPDX-License-Identifier: MIT
/* dwarf_machine.h - the stack machine of location descriptions, for dwarf_location.c (where
 * variables are) and dwarf_entry_value.c (what a caller passed)
 *
 * Functions return false when a value is missing; out->why then names it.  Any thread; a machine
 * belongs to one. */
#ifndef TBD_QUERY_DWARF_MACHINE_H
#define TBD_QUERY_DWARF_MACHINE_H

#include "query/debuginfo/dwarf_location.h"

#define TBD_MACHINE_STACK_MAX   64
#define TBD_MACHINE_STEPS_MAX   4096
#define TBD_MACHINE_NESTING_MAX 64
#define TBD_MACHINE_XMM         17u /* DWARF number of xmm0 */

enum tbd_machine_result {
    TBD_IN_MEMORY = 0, /* the top of the stack is an address */
    TBD_IN_REGISTER,
    TBD_IS_VALUE, /* the top of the stack is the value */
    TBD_IS_BYTES, /* `bytes` */
};

/* What lies on the stack: GENERIC is as wide as an address. */
enum tbd_number {
    TBD_NUMBER_GENERIC = 0,
    TBD_NUMBER_SIGNED,
    TBD_NUMBER_UNSIGNED,
    TBD_NUMBER_FLOAT,
    TBD_NUMBER_DOUBLE
};

static inline bool tbd_number_is_float(enum tbd_number number)
{
    return number >= TBD_NUMBER_FLOAT;
}

struct tbd_machine {
    const struct tbd_place_of *place;
    const Dwarf_Die *function; /* the function whose frame base is used; NULL: none */
    uint64_t stack[TBD_MACHINE_STACK_MAX];
    enum tbd_number numbers[TBD_MACHINE_STACK_MAX]; /* of the stack's words */
    size_t depth;
    enum tbd_machine_result kind;
    uint64_t reg;
    int nesting;
    uint32_t *steps;      /* operations of this and all nested expressions */
    struct tbd_data *out; /* for `why`, and pieces */
};

/* For an expression within another one, at the same or another place. */
struct tbd_machine tbd_machine_nested(const struct tbd_machine *m,
                                      const struct tbd_place_of *place);
/* Always false. */
bool tbd_machine_fail(struct tbd_machine *m, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool tbd_machine_push(struct tbd_machine *m, uint64_t value);
bool tbd_machine_push_number(struct tbd_machine *m, uint64_t value, enum tbd_number number);
bool tbd_machine_pop(struct tbd_machine *m, uint64_t *out);
/* The bytes of a whole register, also of a vector register: up to 16. */
bool tbd_machine_register(struct tbd_machine *m, uint64_t number, uint8_t *out, uint32_t *count);
/* In place of an address, what lies there. */
bool tbd_machine_deref(struct tbd_machine *m, uint64_t bytes);
/* Operations with a base type: dwarf_typed.c. */
bool tbd_machine_typed(struct tbd_machine *m, Dwarf_Attribute *attribute, const Dwarf_Op *op);
/* Operations on two numbers, or one, of a floating-point type. */
bool tbd_machine_combine_floats(struct tbd_machine *m, uint8_t atom, uint64_t first,
                                uint64_t second, enum tbd_number number);
bool tbd_machine_change_float(struct tbd_machine *m, uint8_t atom, uint64_t value,
                              enum tbd_number number);
/* 1 + the number of the general register that DWARF gives `number`; 0 if it is none. */
uint8_t tbd_machine_general(uint64_t number);
/* As tbd_data's in_register has it: also a vector register. */
uint8_t tbd_machine_place(uint64_t number);
/* The operations that are valid at the place's address. */
bool tbd_machine_choose(struct tbd_machine *m, Dwarf_Attribute *attribute, Dwarf_Op **ops,
                        size_t *count);
/* Those of [from, to). */
bool tbd_machine_operations(struct tbd_machine *m, Dwarf_Attribute *attribute, const Dwarf_Op *ops,
                            size_t from, size_t to);
/* A whole expression, without pieces: frame bases, what a caller passed. */
bool tbd_machine_run(struct tbd_machine *m, Dwarf_Attribute *attribute);
/* The value that a register had when the function was entered (DW_OP_entry_value). */
bool tbd_machine_push_entry(struct tbd_machine *m, Dwarf_Attribute *attribute, const Dwarf_Op *op);

#endif
