// SPDX-License-Identifier: MIT
/* opened_descriptors.h - what new descriptors lead to, for questions that follow bytes from process to process
 *
 * A number means nothing in another process, nor does a path later.  So the trace gets what the kernel
 * knows a file or FIFO by (device and inode), and a connection by (its two addresses; of a Unix socket also who
 * connected).  The program and replay know nothing of it.  Context: APP. */
#ifndef TBD_HOOKS_OPENED_DESCRIPTORS_H
#define TBD_HOOKS_OPENED_DESCRIPTORS_H

#include "hooks/calls/call_run.h"

/* After the message of a call: with the first one, the pipes and FIFOs that standard input, output and error lead to.  Who
 * has started the program need not be recorded. */
void tbd_opened_send_inherited(const struct tbd_call *call);
/* After the message of a call whose row says OPENS or CONNECTS. */
void tbd_opened_send(const struct tbd_call *call);

#endif
