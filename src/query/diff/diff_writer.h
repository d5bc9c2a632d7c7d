// SPDX-License-Identifier: MIT
/* diff_writer.h - on one side: who wrote a value last, from what, and what the value was */
#ifndef TBD_QUERY_DIFF_WRITER_H
#define TBD_QUERY_DIFF_WRITER_H

#include "query/diff/diff.h"
#include "query/why/why_inputs.h"

/* Something whose last writer before `at` is wanted. */
struct tbd_diff_value {
    struct tbd_position at;
    uint32_t thread;
    enum tbd_why_place place;
    ZydisRegister reg; /* REGISTER: the whole one */
    ZydisAccessedFlagsMask flags;
    uint64_t address;     /* MEMORY */
    uint64_t skip, bytes; /* `bytes` are wanted; REGISTER: from byte `skip` on */
};

/* An instruction: the writer of a value, or the branch. */
struct tbd_diff_writer {
    bool is_there; /* false: nobody wrote the value */
    struct tbd_position at;
    struct tbd_place place;
    uint64_t pc;
    uint64_t stored_at; /* of a store: where it began */
    uint32_t thread;
    bool is_syscall;       /* the kernel wrote it, for this call */
    bool is_kernel;        /* the kernel wrote it otherwise: a signal's frame */
    struct tbd_event call; /* is_syscall: the call */
    bool is_decoded;
    struct tbd_why_insn insn;
    struct tbd_reg_state *state; /* owned; NULL: not asked for yet */
};

/* The instruction at a position. */
TBD_MUST_CHECK enum tbd_status
tbd_diff_writer_at(struct tbd_diff_side *side, struct tbd_position at, struct tbd_diff_writer *out);
/* The last one that wrote the value; TBD_NOTFOUND: it is too far back.  Release it in any case. */
TBD_MUST_CHECK enum tbd_status tbd_diff_writer_of(struct tbd_diff_side *side,
                                                  const struct tbd_diff_value *value,
                                                  struct tbd_diff_writer *out);
void tbd_diff_writer_free(struct tbd_diff_writer *writer);

/* One input of the writer as a value to follow; of a copy, the part that `copied` wants (NULL: all of it).  False: a
 * constant, or its address is not known. */
bool tbd_diff_input(struct tbd_diff_side *side, struct tbd_diff_writer *writer,
                    const struct tbd_why_input *input, const struct tbd_diff_value *copied,
                    struct tbd_diff_value *out);
#define TBD_DIFF_BYTES_MAX 64u
/* What the value is where it is used: up to TBD_DIFF_BYTES_MAX bytes of it; 0: not known. */
size_t tbd_diff_value_read(struct tbd_diff_side *side, const struct tbd_diff_value *value,
                           uint8_t out[TBD_DIFF_BYTES_MAX]);

#endif
