// SPDX-License-Identifier: MIT
/* why_channels.h - `why` goes on in the process that wrote what was read from a pipe or socket */
#ifndef TBD_QUERY_WHY_CHANNELS_H
#define TBD_QUERY_WHY_CHANNELS_H

#include "query/why/why_rows.h"
#include "query/session/event.h"

/* Says where the bytes came from that the system call put into memory; returns how many values of `out`,
 * which holds TBD_WHY_INPUTS_MAX, are to be followed. */
size_t tbd_why_from_channel(struct tbd_why *why, const struct tbd_why_value *value,
                            const struct tbd_event *call, struct tbd_why_value *out);
/* The following hops are about this process; false: its trace cannot be asked (why->status). */
bool tbd_why_enter(struct tbd_why *why, uint32_t process);
/* The row of the call that wrote the value to a channel; none if the value was found in another way. */
void tbd_why_show_sender(struct tbd_why *why, const struct tbd_why_value *value, uint32_t depth);
/* Frees what the others have opened; what their answers lack is noted in the own session. */
void tbd_why_end_channels(struct tbd_why *why);

#endif
