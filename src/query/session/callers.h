// SPDX-License-Identifier: MIT
/* callers.h - the call stack while a window is walked, updated at calls and returns
 *
 * A frame is identified by the address that holds its return address (slot) and by the call that
 * made it.  Slots descend; a call or return removes all frames whose slots lie below the stack
 * pointer, so longjmp, exceptions and tail jumps need no special care. */
#ifndef TBD_QUERY_CALLERS_H
#define TBD_QUERY_CALLERS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct tbd_callers_frame {
    uint64_t slot;
    uint64_t call_pc; /* address inside the call instruction, in the caller */
    uint64_t time;    /* of the block with the call; 0: before the walk began */
    uint32_t marked;  /* tbd_callers_marked() of the frames up to this one; TBD_CALLERS_UNKNOWN */
};
#define TBD_CALLERS_UNKNOWN UINT32_MAX

struct tbd_callers {
    struct tbd_callers_frame *frames; /* outermost first */
    size_t count, capacity;
    bool is_cut;   /* frames further out are missing */
    uint64_t *pcs; /* scratch for tbd_callers_pcs() */
    size_t pcs_capacity;
};

void tbd_callers_clear(struct tbd_callers *callers);
void tbd_callers_free(struct tbd_callers *callers);
/* False when out of memory. */
bool tbd_callers_call(struct tbd_callers *callers, uint64_t slot, uint64_t call_pc, uint64_t time);
void tbd_callers_return(struct tbd_callers *callers, uint64_t slot);
/* The frame whose return address is at `slot`; NULL if there is none.  *out_is_over: it made calls
 * that have not returned. */
const struct tbd_callers_frame *tbd_callers_at(const struct tbd_callers *callers, uint64_t slot,
                                               bool *out_is_over);
/* How many frames have a call_pc that is marked; TBD_CALLERS_UNKNOWN if frames are missing.  Marks do
 * not change until tbd_callers_clear(). */
uint32_t tbd_callers_marked(struct tbd_callers *callers,
                            bool (*is_marked)(const void *context, uint64_t pc),
                            const void *context);
/* call_pc of all frames, innermost (`pc`) first; borrowed until the next call.  NULL when out of
 * memory. */
const uint64_t *tbd_callers_pcs(struct tbd_callers *callers, uint64_t pc, size_t *out_count);

#endif
