// SPDX-License-Identifier: MIT
/* call_registers.h - for calls whose parameters or results are in vector or x87 registers: these, at
 * entries and returns, by one more replay of the windows they are in */
#ifndef TBD_QUERY_CALL_REGISTERS_H
#define TBD_QUERY_CALL_REGISTERS_H

#include "query/calls/call_list.h"
#include "query/output/output_call.h"

struct tbd_call_registers {
    struct tbd_output_registers *all; /* owned: of each call at its entry, then at its return */
    size_t count;                     /* of calls; 0: none need any */
};

TBD_MUST_CHECK enum tbd_status tbd_call_registers_fetch(struct tbd_call_shapes *shapes,
                                                        const struct tbd_call_list *list,
                                                        struct tbd_call_registers *out);
void tbd_call_registers_free(struct tbd_call_registers *registers);
/* NULL: not needed, or not known. */
const struct tbd_output_registers *tbd_call_registers_at(const struct tbd_call_registers *registers,
                                                         size_t call, bool is_return);

#endif
