// SPDX-License-Identifier: MIT
/* c_code.h - C expressions compiled for a range of addresses, for conditions asked a million times
 *
 *   tbd_c_compile()    text + place -> code for the innermost frame, and the addresses it holds for:
 *                      every location, scope and frame rule is looked up here, once
 *   tbd_c_code_run()   code + registers, memory -> value; no debug information is touched
 *
 * compiled.h keeps one piece of code per range for a whole trace; most callers want that.
 *
 * Not everything can be compiled: values that only the caller's frame tells (entry values), objects
 * in several pieces, long double.  That is TBD_UNSUPPORTED, and tbd_c_evaluate() at the position is
 * the way.  A variable that is optimized out in the range is no failure: the code says unknown, and
 * code->why the reason. */
#ifndef TBD_QUERY_C_CODE_H
#define TBD_QUERY_C_CODE_H

#include "query/dwarf_expr.h"

#define TBD_C_CODE_NEEDS_FS    (1u << 16) /* fs_base: thread-local variables */
#define TBD_C_CODE_NEEDS_XSAVE (1u << 17)
#define TBD_C_CODE_NEEDS_PC    (1u << 18)

struct tbd_c_code {
    struct tbd_c_insn *insns; /* owned */
    char *strings;            /* owned; what strings are compared with */
    size_t count;
    uint64_t start, end; /* addresses in the program that the code is right for */
    uint32_t needs;      /* bit r: gpr[r]; TBD_C_CODE_NEEDS_* */
    bool needs_memory;
    bool is_float;          /* the value is a double's bits */
    bool is_address;        /* of an array or struct: the value is where it is */
    struct tbd_type type;   /* of the value */
    char why[TBD_DATA_WHY]; /* a variable that is never known in this range, "" if none */
};

/* Names that only the caller knows (an event's newval, addr, ...): their values come in
 * input->fields[slot].  They hide variables of the same name. */
struct tbd_c_fields {
    bool (*find)(void *context, const char *name, uint32_t *slot, struct tbd_type *type);
    void *context;
};

/* `scope->place` needs no frame and no memory, only dwarf, bias, address and scopes; `file` (may be
 * NULL) is its module's, for frame rules; `fields` may be NULL.  TBD_UNSUPPORTED: see above; other
 * failures are the text's, and *error points at the word.  On failure *out is NULL. */
TBD_MUST_CHECK enum tbd_status tbd_c_compile(const struct tbd_c_scope *scope,
                                             struct tbd_elf_file *file,
                                             const struct tbd_c_fields *fields, const char *text,
                                             size_t from, size_t to, struct tbd_c_code **out,
                                             struct tbd_query_error *error);
void tbd_c_code_free(struct tbd_c_code *code); /* NULL is fine */

/* The state before the instruction at an address in [start, end).  What code->needs does not name
 * may be left out. */
struct tbd_c_input {
    const uint64_t *gpr;
    uint32_t known; /* bit r: gpr[r] is known */
    uint64_t pc;
    uint64_t fs_base;     /* 0: not known */
    const uint8_t *xsave; /* NULL: not known */
    const struct tbd_stack_memory *memory;
    const uint64_t *fields;
};
enum tbd_c_result {
    TBD_C_VALUE = 0,
    TBD_C_UNKNOWN,  /* optimized out, or a register is not known */
    TBD_C_UNMAPPED, /* memory is not mapped or not known */
    TBD_C_DIVISION, /* by zero */
};
/* Integers are extended to 64 bits by their sign. */
enum tbd_c_result tbd_c_code_run(const struct tbd_c_code *code, const struct tbd_c_input *input,
                                 uint64_t *out);

/* ---- between c_code.c and c_code_location.c ---- */

enum tbd_c_insn_op {
    TBD_CI_PUSH, /* value */
    TBD_CI_REG,
    TBD_CI_REG_LOAD, /* `size` bytes at register + value */
    TBD_CI_XMM,
    TBD_CI_FS,
    TBD_CI_PC,
    TBD_CI_FIELD,
    TBD_CI_LOAD, /* `size` bytes, zero-extended */
    TBD_CI_SIGN, /* extend from `size` bits */
    TBD_CI_ZERO,
    TBD_CI_ADD_VALUE,
    TBD_CI_ADD,
    TBD_CI_SUB,
    TBD_CI_MUL,
    TBD_CI_AND,
    TBD_CI_OR,
    TBD_CI_XOR,
    TBD_CI_SHL,
    TBD_CI_SHR,
    TBD_CI_SAR,
    TBD_CI_DIV_SIGNED,
    TBD_CI_DIV,
    TBD_CI_MOD_SIGNED,
    TBD_CI_MOD,
    TBD_CI_EQ,
    TBD_CI_NE,
    TBD_CI_LT_SIGNED,
    TBD_CI_LE_SIGNED,
    TBD_CI_LT,
    TBD_CI_LE,
    TBD_CI_NEGATE,
    TBD_CI_COMPLEMENT,
    TBD_CI_NOT,
    TBD_CI_BOOL,
    TBD_CI_SWAP,
    TBD_CI_DUP,
    TBD_CI_DROP,
    TBD_CI_FLOAT_WIDEN, /* float's bits to double's */
    TBD_CI_FROM_SIGNED, /* integer to double */
    TBD_CI_FROM_UNSIGNED,
    TBD_CI_TO_SIGNED, /* double to integer */
    TBD_CI_F_ADD,
    TBD_CI_F_SUB,
    TBD_CI_F_MUL,
    TBD_CI_F_DIV,
    TBD_CI_F_EQ,
    TBD_CI_F_NE,
    TBD_CI_F_LT,
    TBD_CI_F_LE,
    TBD_CI_F_NEGATE,
    TBD_CI_F_BOOL,
    TBD_CI_JUMP,      /* to instruction `value` */
    TBD_CI_JUMP_ZERO, /* takes the top */
    TBD_CI_STRING_EQ, /* value: offset in `strings`, size: bytes with the NUL */
    TBD_CI_UNKNOWN,
};

struct tbd_c_insn {
    uint16_t op; /* enum tbd_c_insn_op */
    uint16_t size;
    uint32_t reg; /* gpr, xmm, field */
    uint64_t value;
};
#define TBD_C_CODE_STACK 64 /* words at run time */

/* How the words that a location leaves are to be taken. */
enum tbd_c_place_kind {
    TBD_C_IN_MEMORY, /* the word is the address */
    TBD_C_IN_WORD,   /* the word is the object's bytes */
    TBD_C_NOWHERE,   /* unknown in this range; nothing is pushed */
    TBD_C_TOO_HARD,  /* TBD_UNSUPPORTED */
};
struct tbd_c_emitter {
    struct tbd_c_code *code;
    size_t capacity;
    size_t depth;
    bool failed; /* no memory, or too long: sticky */
    const struct tbd_place_of *place;
    struct tbd_elf_file *file;
};
void tbd_c_emit(struct tbd_c_emitter *emitter, enum tbd_c_insn_op op, unsigned size, uint32_t reg,
                uint64_t value);
/* Code for the location of a variable's entry; narrows code->start and end. */
enum tbd_c_place_kind tbd_c_emit_location(struct tbd_c_emitter *emitter, const Dwarf_Die *variable);

#endif
