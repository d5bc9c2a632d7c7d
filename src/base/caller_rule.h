// SPDX-License-Identifier: MIT
/* caller_rule.h - how the caller's frame follows from a function's registers, by its file's unwinding table
 *
 * The table is what the loader has mapped for exceptions (.eh_frame_hdr and .eh_frame, LSB 5.0, "Exception Frames").
 * It is read by a function of the user's, which may say no: a wrong table gives a wrong rule, or none, never
 * more.  What a rule cannot say (registers in odd places, expressions that compilers do not write) is UNKNOWN.
 *
 * No state.  Any context; some 800 bytes of stack. */
#ifndef TBD_BASE_CALLER_RULE_H
#define TBD_BASE_CALLER_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tbd_caller_kind {
    TBD_CALLER_UNKNOWN,
    TBD_CALLER_PLAIN,     /* frame = register + frame_offset */
    TBD_CALLER_POINTED,   /* frame = *(register + frame_offset) */
    TBD_CALLER_SIGNAL,    /* the kernel's signal frame lies at rsp */
    TBD_CALLER_OUTERMOST, /* nobody has called */
};

/* Where a register of the caller is. */
enum tbd_caller_place {
    TBD_PLACE_KEPT,     /* it is the function's */
    TBD_PLACE_AT_FRAME, /* at frame + offset */
    TBD_PLACE_AT_RBP,   /* at rbp + offset */
    TBD_PLACE_LOST,
};

/* Those that frames follow from, beside rsp. */
enum tbd_caller_saved { TBD_SAVED_RBP, TBD_SAVED_RBX, TBD_SAVED_COUNT };

/* The caller's rsp is `frame`; the return address lies just below. */
struct tbd_caller_rule {
    uint8_t kind;                   /* enum tbd_caller_kind */
    uint8_t reg;                    /* a DWARF number */
    uint8_t place[TBD_SAVED_COUNT]; /* enum tbd_caller_place */
    int32_t frame_offset;
    int32_t offset[TBD_SAVED_COUNT];
};

#define TBD_CALLER_RBX 3u /* DWARF numbers */
#define TBD_CALLER_RBP 6u
#define TBD_CALLER_RSP 7u

/* Reads all of the bytes, or none. */
struct tbd_table_reader {
    bool (*read)(void *context, uint64_t address, void *out, size_t bytes);
    void *context;
};

/* The rule at instruction `pc` of the file whose .eh_frame_hdr is mapped at `table`. */
struct tbd_caller_rule tbd_caller_rule_find(const struct tbd_table_reader *reader, uint64_t table,
                                            uint64_t pc);

#endif
