// SPDX-License-Identifier: MIT
/* space_limit.h - a limit on the address space (ulimit -v) or on data (ulimit -d) as the reason why a program runs untraced
 *
 * For the engine and for libtbd.so before the engine is mapped. */
#ifndef TBD_HOOKS_SPACE_LIMIT_H
#define TBD_HOOKS_SPACE_LIMIT_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* Says that the lower one is too small.  False, and nothing is said: there is no limit. */
bool tbd_space_limit_say(void);

#pragma GCC visibility pop

#endif
