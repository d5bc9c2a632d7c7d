// SPDX-License-Identifier: MIT
/* remote_registers.h - registers as gdb numbers and describes them (GDB manual, G.5.11: i386 features)
 *
 * The description (target.xml) and the values come from one table, so that they agree.  Segment registers
 * are not recorded: they have the values that Linux gives to every 64-bit program.  Vector registers are those of the processor that
 * recorded, up to AVX-512. */
#ifndef TBD_QUERY_REMOTE_REGISTERS_H
#define TBD_QUERY_REMOTE_REGISTERS_H

#include "query/remote/remote_packet.h"

#include "replay/replay.h"

struct tbd_trace_info;

/* target.xml for a trace: owned by the caller; NULL without memory. */
char *tbd_remote_description(const struct tbd_trace_info *info);
/* All registers, for `g`. */
void tbd_remote_registers(const struct tbd_trace_info *info, const struct tbd_reg_state *state,
                          struct tbd_reply *reply);
/* One, for `p`; false: there is no such register. */
TBD_MUST_CHECK bool tbd_remote_register(const struct tbd_trace_info *info,
                                        const struct tbd_reg_state *state, uint64_t number,
                                        struct tbd_reply *reply);
/* The same the other way, of the packets `P` and `G`; false: the text is something else. */
TBD_MUST_CHECK bool tbd_remote_take_register(const struct tbd_trace_info *info, const char *text,
                                             uint64_t number, struct tbd_reg_state *state);
TBD_MUST_CHECK bool tbd_remote_take_registers(const struct tbd_trace_info *info, const char *text,
                                              struct tbd_reg_state *state);

#endif
