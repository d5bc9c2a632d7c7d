// SPDX-License-Identifier: MIT
/* signal_info.h - what the kernel said about a signal: why it came, the address, who sent it */
#ifndef TBD_QUERY_SIGNAL_INFO_H
#define TBD_QUERY_SIGNAL_INFO_H

#include "query/session/event.h"

/* Puts what the kernel's siginfo (TBD_SIGINFO_BYTES) says into a signal event; `number` is set. */
void tbd_signal_take_info(struct tbd_event *event, const uint8_t *siginfo);
/* Did a signal end the program?  Then the event gets it, with TBD_EVENT_FATAL. */
bool tbd_signal_take_fatal(struct tbd_event *event, const struct tbd_trace_info *info);
/* "SIGSEGV", or the number. */
const char *tbd_signal_name(uint64_t number, char *out, size_t bytes);
/* "SEGV_MAPERR"; NULL if it has no name. */
const char *tbd_signal_code_name(uint64_t number, int32_t code);

#endif
