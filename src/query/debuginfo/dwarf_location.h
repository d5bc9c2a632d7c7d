// SPDX-License-Identifier: MIT
/* dwarf_location.h - where a variable is at a place in the program, and its bytes
 *
 * A place is a frame of the call stack: the known registers, memory through a callback, the scopes
 * around its address, and the caller's place for values at function entry. A value that is not
 * available is reported with its reason, never guessed. */
#ifndef TBD_QUERY_DWARF_LOCATION_H
#define TBD_QUERY_DWARF_LOCATION_H

#include "query/debuginfo/dwarf_type.h"
#include "query/debuginfo/frame.h"

#define TBD_DATA_BYTES 256u
#define TBD_DATA_WHY   80u

struct tbd_place_of {
    struct tbd_dwarf *dwarf;       /* NULL: no debug information here */
    uint64_t bias;                 /* address = bias + address in the file */
    uint64_t address;              /* in the file: inside the instruction that is executed */
    const struct tbd_frame *frame; /* NULL: no frame, only globals */
    const uint8_t *xsave;          /* of the innermost frame; NULL: not known */
    const struct tbd_regs *regs;   /* of the thread; NULL: not known */
    uint64_t fs_base;              /* 0: not known */
    bool is_main_program;          /* the module's thread-local storage is the first block */
    const struct tbd_stack_memory *memory;
    const struct tbd_place_of *caller; /* NULL: not known */
    struct tbd_dwarf_scopes scopes;    /* count 0: none */
    size_t first, end;                 /* of `scopes`: those of the selected function */
};

/* Why a value is not known that the program does not have there. */
#define TBD_DATA_NO_LOCATION "it has no location at this instruction"
/* What is not known because the pointer to it is not; why that is follows. */
#define TBD_DATA_NO_POINTER "its pointer is not known: "

#define TBD_DATA_XMM0 16u /* in_register: what the numbers of vector registers begin at */

/* A value: in memory, or bytes of its own (registers, constants, results). */
struct tbd_data {
    struct tbd_type type;
    bool is_known;
    bool in_memory;
    uint64_t address;    /* in_memory */
    uint32_t bit_offset; /* bit-field: of its first bit, in its first byte */
    uint32_t bits;       /* 0: no bit-field */
    uint32_t byte_count; /* not in_memory: of `bytes` */
    /* not in_memory: it is a variable whose place changes with the code: registers, a result, a constant, or nowhere */
    bool of_frame;
    /* 1 + the number (TBD_RAX, ...) of the general register it is in, or 1 + TBD_DATA_XMM0 + that of a vector register; 0: none */
    uint8_t in_register;
    /* 1 + the number of the general register that it is a result of, and of nothing else; 0: none */
    uint8_t from_register;
    uint64_t soon_at; /* not in_memory: where unoptimized code is about to store it; 0: nowhere */
    uint8_t bytes[TBD_DATA_BYTES];
    uint8_t lost[TBD_DATA_BYTES]; /* not in_memory: 1 where a byte was optimized out */
    char why[TBD_DATA_WHY];       /* not is_known: the reason */
};

/* The place becomes one at `address`, as mapped with `bias`, in the file's code (NULL: no debug information); in the scopes of
 * the function with this number, from 0, the innermost, or of the outermost. */
void tbd_place_enter(struct tbd_place_of *place, struct tbd_dwarf *dwarf, uint64_t bias,
                     uint64_t address, size_t function);
/* The value of a variable or parameter entry. */
void tbd_location_value(const struct tbd_place_of *place, const Dwarf_Die *variable,
                        struct tbd_data *out);
/* `bytes` bytes of a value from `offset` on; false: not known. */
bool tbd_data_read(const struct tbd_place_of *place, const struct tbd_data *data, uint64_t offset,
                   void *out, size_t bytes);
/* A scalar: integer, enumeration, pointer, extended to 64 bits by its sign. */
bool tbd_data_scalar(const struct tbd_place_of *place, const struct tbd_data *data, uint64_t *out);
/* A number of `bits` bits as one of 64. */
uint64_t tbd_data_extend(uint64_t value, uint32_t bits, bool is_signed);
/* A floating-point number of 4, 8 or 16 bytes. */
bool tbd_data_float(const struct tbd_place_of *place, const struct tbd_data *data,
                    long double *out);
/* The part of type `type` at `offset` of a value. */
void tbd_data_part(const struct tbd_data *data, uint64_t offset, const struct tbd_type *type,
                   struct tbd_data *out);
/* The member of an object: also a base class, and one whose offset the object knows. A static
 * member is not in the object (tbd_c_static_member()). */
void tbd_data_member(const struct tbd_place_of *place, const struct tbd_data *object,
                     const struct tbd_member *member, struct tbd_data *out);
/* The member called name[0, bytes), also of anonymous members and base classes; *out is the object's
 * part, unless out_member->is_static. */
bool tbd_data_find_member(const struct tbd_place_of *place, const struct tbd_data *object,
                          const char *name, size_t bytes, struct tbd_member *out_member,
                          struct tbd_data *out);
/* The value in memory at `address`. */
void tbd_data_at(uint64_t address, const struct tbd_type *type, struct tbd_data *out);
/* A number of a type made by an expression. */
void tbd_data_number(uint64_t value, const struct tbd_type *type, struct tbd_data *out);
void tbd_data_unknown(struct tbd_data *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
