// SPDX-License-Identifier: MIT
/* scan_private.h - what scan.c and scan_messages.c share */
#ifndef TBD_QUERY_SCAN_PRIVATE_H
#define TBD_QUERY_SCAN_PRIVATE_H

#include "query/search/scan.h"

/* scan.c: an event at an instruction of the cursor's block. */
struct tbd_event tbd_scan_event(const struct tbd_scan *scan, enum tbd_event_type type,
                                uint32_t insn);
/* Hands the event to the caller, if it is inside the span. */
void tbd_scan_deliver(struct tbd_scan *scan, struct tbd_event *event);
/* Delivers the events at the block's instructions up to `last`. */
void tbd_scan_deliver_insns(struct tbd_scan *scan, uint32_t last);
/* Delivers the turn that waits for the block where the thread goes on. */
void tbd_scan_deliver_switch(struct tbd_scan *scan, uint64_t time, uint64_t pc);
/* Applies the effects of the previous instruction. */
void tbd_scan_settle(struct tbd_scan *scan);

/* scan.c: an entry by the jump of an import stub's kind, or one without operands, comes from the call around it. */
void tbd_scan_note_caller(const struct tbd_scan *scan, struct tbd_event *event);

/* scan_messages.c: handles the message at the cursor. */
void tbd_scan_at_message(struct tbd_scan *scan);
/* scan_messages.c: at the window's end. */
void tbd_scan_deliver_fatal(struct tbd_scan *scan);

#endif
