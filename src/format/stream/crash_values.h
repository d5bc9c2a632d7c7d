// SPDX-License-Identifier: MIT
/* crash_values.h - what a program with rings records beside them, so that more values follow from its dump (option `record`)
 *
 * Each ring has slots of 512 bytes for values, in the rings' memory: struct tbd_crash says where.  They are used in turn, so the
 * newest are left.  A slot belongs to a moment of its ring: the one before the entry that comes next.  After those of all rings lie slots of the same kind
 * for copies of memory, which have a turn of their own: they are many, and would push out all else.  They are of the first ring, because a
 * program with several threads has none.  Registers come first there, too.
 *
 * CRASH_VALUES-1  A slot makes sense alone.  `moment` is 0 while the rest of it is written. (not checked: test_values.py kills
 *     nothing at such a moment)
 * CRASH_VALUES-2  A moment is of a lap that has not been written over if its lap is the ring's, or if it is the one before
 *     and its place lies after the ring's newest entry.  Of laps before, it is of a chunk (condensed.h). (not checked: test_crash_values.c)
 *
 * Readers treat all of it as hostile. */
#ifndef TBD_FORMAT_CRASH_VALUES_H
#define TBD_FORMAT_CRASH_VALUES_H

#include "format/stream/stream.h"

#define TBD_VALUE_SLOT_BYTES   512u
#define TBD_VALUE_RANGES       6u
#define TBD_VALUE_STACK        320u
#define TBD_VALUE_CALL_BYTES   320u
#define TBD_VALUE_MORE_BYTES   488u
#define TBD_VALUE_PROBE_BYTES  4096u      /* of one value at a place */
#define TBD_VALUE_MOST_BYTES   (2u << 20) /* of a ring's slots */
#define TBD_VALUE_MEMORY_SLOTS 2048u      /* of the first ring, for copies of memory, at most */
#define TBD_VALUE_MEMORY_PART  2u         /* of these, what one copy may have, */
#define TBD_VALUE_CALLS_PART   4u         /* and of the others, what calls have that are rare */
#define TBD_VALUE_LAP_SHIFT    32u
#define TBD_VALUE_KIND_MASK    3u

/* In the two lowest bits of a moment: an entry has 4 bytes. */
enum tbd_value_kind {
    TBD_VALUE_REGISTERS = 1, /* at the start of the block at rip, which is entered next */
    TBD_VALUE_CALL = 2,      /* after the system call that ends the block entered last */
    TBD_VALUE_BYTES =
        3, /* of that call: more of what it wrote; after registers: what lay there then */
};

struct tbd_value_registers {
    uint64_t rip;
    uint64_t rflags;
    uint64_t fs_base, gs_base;
    uint64_t gpr[TBD_REG_COUNT];
    uint64_t stack_bytes;           /* at most TBD_VALUE_STACK */
    uint8_t stack[TBD_VALUE_STACK]; /* from rsp on */
    uint64_t stamp;                 /* when that was (crash.h, CRASH-3) */
    uint64_t reserved;
};

struct tbd_value_range {
    uint64_t address;
    uint32_t bytes;
    uint32_t kept; /* the first ones; in struct tbd_value_call, then in slots of TBD_VALUE_BYTES */
};

#define TBD_VALUE_ALL_RANGES 1u /* the call wrote nowhere else */

struct tbd_value_call {
    uint64_t number;
    uint64_t args[6];
    int64_t result;
    uint32_t range_count;
    uint32_t flags; /* TBD_VALUE_ALL_RANGES */
    struct tbd_value_range ranges[TBD_VALUE_RANGES];
    uint64_t began, ended;               /* stamps, as in struct tbd_value_registers */
    uint8_t bytes[TBD_VALUE_CALL_BYTES]; /* of the ranges, one after the other */
};

struct tbd_value_bytes {
    uint64_t address;
    uint64_t count; /* at most TBD_VALUE_MORE_BYTES */
    uint8_t bytes[TBD_VALUE_MORE_BYTES];
};

struct tbd_crash_value {
    uint64_t
        moment; /* 0: none; lap << 32, plus the place in the ring in bytes, plus enum tbd_value_kind */
    union {
        struct tbd_value_registers registers;
        struct tbd_value_call call;
        struct tbd_value_bytes more;
    } is;
};
_Static_assert(sizeof(struct tbd_value_registers) == 504, "tbd_value_registers fills its slot");
_Static_assert(sizeof(struct tbd_value_call) == 504, "tbd_value_call fills its slot");
_Static_assert(sizeof(struct tbd_value_bytes) == 504, "tbd_value_bytes fills its slot");
_Static_assert(sizeof(struct tbd_crash_value) == TBD_VALUE_SLOT_BYTES, "a slot is 512 bytes");

/* The dial: what each setting records. */
#define TBD_RECORD_MOST    9u
#define TBD_RECORD_DEFAULT 2u /* the most for which blocks have no check (docs/COSTS.md) */

struct tbd_record_dial {
    uint32_t
        entries; /* of a ring between two sets of registers; 0: blocks do not check whether they are due */
    uint32_t
        after_call; /* entries from which on they are after a system call, and at a ring's end; 0: never */
    uint32_t stack; /* bytes of the stack with these */
    uint32_t
        call; /* bytes that a system call wrote, and more if calls are rare; 0: not even its result */
    uint32_t
        memory; /* bytes of all memory that the program may write, at a ring's end; of more there is none */
};

static const struct tbd_record_dial tbd_record_dials[TBD_RECORD_MOST + 1] = {
#define X(setting, entries, after_call, stack, call, memory)                                       \
    [setting] = { entries, after_call, stack, call, memory },
#include "format/stream/record.def"
#undef X
};

#endif
