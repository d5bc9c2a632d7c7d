// SPDX-License-Identifier: MIT
/* remote_condition.h - the condition of a client's breakpoint, which it sends as code for a small stack machine (GDB manual, appendix F),
 * as a condition of tbdq's
 *
 * So a conditional breakpoint is a search like any other, and nothing is sent at the executions at which it does not hold.  The
 * code is hostile input: it may be anything. */
#ifndef TBD_QUERY_REMOTE_CONDITION_H
#define TBD_QUERY_REMOTE_CONDITION_H

#include <stddef.h>
#include <stdint.h>

#define TBD_REMOTE_CONDITION_BYTES 4096u /* of the condition's text, with its NUL */

/* Owned by the caller.  NULL: it does something that a condition cannot say, it is too long, it is not well-formed, or there is no
 * memory. */
char *tbd_remote_condition(const uint8_t *code, size_t bytes);

#endif
