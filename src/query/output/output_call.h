// SPDX-License-Identifier: MIT
/* output_call.h - parameters and results of calls, by the types of the program */
#ifndef TBD_QUERY_OUTPUT_CALL_H
#define TBD_QUERY_OUTPUT_CALL_H

#include "format/files/codec.h"
#include "query/output/call_shape.h"
#include "query/output/output.h"

/* Registers at a call's entry or return that the event does not hold. */
struct tbd_output_registers {
    bool is_known;
    uint64_t rdx;
    uint8_t vector[8 * 16]; /* xmm0 to xmm7 */
    uint8_t x87[2 * 16];    /* st0, st1 */
};
void tbd_output_registers_take(const struct tbd_reg_state *state, struct tbd_output_registers *out);

/* Does printing the parameters, or the result, of this call need them? */
bool tbd_output_needs_entry(struct tbd_call_shapes *shapes, const struct tbd_call_entry *enter);
bool tbd_output_needs_return(struct tbd_call_shapes *shapes, const struct tbd_call_entry *enter);

/* Puts `values` into `object`, "name=value" for each parameter of the function that was entered.
 * `more` NULL: not known. */
void tbd_output_parameters(struct tbd_call_shapes *shapes, const struct tbd_call_entry *enter,
                           const struct tbd_output_registers *more, json_t *object);
/* Puts `result`, and as JSON `result_data`, into `object`: what a function returned at `exit`; `pc` is in the function. */
void tbd_output_result(struct tbd_call_shapes *shapes, uint64_t pc, const struct tbd_event *exit,
                       const struct tbd_output_registers *more, json_t *object);
/* The same as texts, escaped for a terminal: "a=1, b=0x7ffe12", and the result alone. */
void tbd_output_put_parameters(struct tbd_call_shapes *shapes, const struct tbd_call_entry *enter,
                               const struct tbd_output_registers *more, struct tbd_buffer *out);
void tbd_output_put_result(struct tbd_call_shapes *shapes, uint64_t pc,
                           const struct tbd_event *exit, const struct tbd_output_registers *more,
                           struct tbd_buffer *out);
/* The number that conditions compare with: rax, or of a floating-point result its bytes. */
uint64_t tbd_output_retval(struct tbd_call_shapes *shapes, const struct tbd_call_entry *enter,
                           uint64_t retval, const struct tbd_output_registers *registers);

#endif
