// SPDX-License-Identifier: MIT
/* output_stack.h - a stack of calls in one line: "malloc < add list.c:12 < main list.c:40" */
#ifndef TBD_QUERY_OUTPUT_STACK_H
#define TBD_QUERY_OUTPUT_STACK_H

#include "query/session/session.h"

struct tbd_output_stack {
    const char *name;    /* what was called innermost */
    uint32_t window;     /* as of which addresses have names */
    const uint64_t *pcs; /* of the calls around it, innermost first */
    size_t count;
};

/* Calls of inlined functions are among them.  What does not fit is left out. */
void tbd_output_stack_text(struct tbd_session *session, const struct tbd_output_stack *stack,
                           char *out, size_t bytes);

#endif
