// SPDX-License-Identifier: MIT
/* frame_flow.h - what the instructions of a function do to its frame
 *
 * Read from the code, for frame_unset.c: where the stack and frame pointers are before each
 * instruction, relative to the frame's number (CFA), which registers were written since the
 * function's entry, and which part of the frame the instruction may store to.  Unknown facts are
 * reported as "may". */
#ifndef TBD_QUERY_FRAME_FLOW_H
#define TBD_QUERY_FRAME_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_FLOW_NONE UINT32_MAX
#define TBD_FLOW_XMM_BIT                                                                           \
    16u /* of `written`: xmm0's; those of rax (TBD_RAX) and so on come before */

enum tbd_flow_where {
    TBD_FLOW_CALLERS = 0, /* what it was at the function's entry */
    TBD_FLOW_IN_FRAME,    /* CFA + offset */
    TBD_FLOW_SOMEWHERE,
};

struct tbd_flow_pointer {
    enum tbd_flow_where where;
    int64_t offset;
};

/* The state before an instruction, on all paths that lead to it. */
struct tbd_flow_state {
    bool is_reached;
    bool has_escaped; /* other registers or memory may have an address within the frame */
    uint32_t written; /* registers, since the function's entry */
    struct tbd_flow_pointer rsp, rbp;
};

struct tbd_flow_store {
    enum { TBD_FLOW_NO_STORE = 0, TBD_FLOW_STORE_AT, TBD_FLOW_STORE_ANYWHERE } kind;
    int64_t offset; /* STORE_AT: CFA + offset */
    uint64_t bytes;
};

struct tbd_flow_insn {
    uint32_t at; /* from the function's first byte */
    uint32_t length;
    uint32_t target;    /* index of the instruction that it may jump to; TBD_FLOW_NONE: none */
    bool goes_on;       /* to the next one */
    bool goes_anywhere; /* a jump to an address that is computed */
    bool is_filling;    /* does nothing: between pieces of code */
    struct tbd_flow_state before;
    struct tbd_flow_store store;
};

struct tbd_flow {
    uint64_t start; /* of the function in its file */
    size_t count;
    size_t first_break; /* no jump leads to code before it */
    struct tbd_flow_insn insns[];
};

/* The flow of the function with this code, at `start`; NULL: it is too long, or there is no memory.
 * free() it. */
struct tbd_flow *tbd_flow_read(const uint8_t *code, size_t bytes, uint64_t start);

#endif
