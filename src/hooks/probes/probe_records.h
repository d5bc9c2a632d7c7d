// SPDX-License-Identifier: MIT
/* probe_records.h - records on their way to the consumer
 *
 * A thread takes one of the session's rings for as long as it writes one record, so that a ring has one
 * writer at a time.  A thread that finds no space waits until the consumer has read, or gone.  Context: SIG. */
#ifndef TBD_HOOKS_PROBE_RECORDS_H
#define TBD_HOOKS_PROBE_RECORDS_H

#include "hooks/probes/probe_session.h"

/* `record` has its fields after it, and its length and number in it. */
void tbd_probe_send(struct tbd_probe_session *session, uint32_t tid,
                    struct tbd_probe_record *record);

/* Until the consumer has answered (tbd_probe_shared.looked), or ends. */
void tbd_probe_await(struct tbd_probe_session *session);

#endif
