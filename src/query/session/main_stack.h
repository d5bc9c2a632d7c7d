// SPDX-License-Identifier: MIT
/* main_stack.h - the main thread's stack: frames on one stack that were left do not come back */
#ifndef TBD_QUERY_MAIN_STACK_H
#define TBD_QUERY_MAIN_STACK_H

#include "query/session/session.h"

/* False also if it is not known where the stack is. */
bool tbd_is_on_main_stack(struct tbd_session *session, uint64_t address);

#endif
