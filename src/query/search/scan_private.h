// SPDX-License-Identifier: MIT
/* scan_private.h - what scan.c and scan_messages.c share */
#ifndef TBD_QUERY_SCAN_PRIVATE_H
#define TBD_QUERY_SCAN_PRIVATE_H

#include "query/search/scan.h"

/* scan.c: an event at an instruction of the cursor's block. */
struct tbd_event tbd_scan_event(const struct tbd_scan *scan, enum tbd_event_type type,
                                uint32_t insn);
/* To the caller, if it is inside the span. */
void tbd_scan_deliver(struct tbd_scan *scan, struct tbd_event *event);
/* Those at instructions of the block up to `last`. */
void tbd_scan_deliver_insns(struct tbd_scan *scan, uint32_t last);
/* A turn that waits for the block where the thread goes on. */
void tbd_scan_deliver_switch(struct tbd_scan *scan, uint64_t time, uint64_t pc);
/* What the instruction before did counts from now on. */
void tbd_scan_settle(struct tbd_scan *scan);

/* scan_messages.c: the message at the cursor. */
void tbd_scan_at_message(struct tbd_scan *scan);

#endif
