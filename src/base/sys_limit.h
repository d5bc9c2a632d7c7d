// SPDX-License-Identifier: MIT
/* sys_limit.h - limits of the program's that do not hold for what the engine makes
 *
 * A lower limit is the program's own choice; nothing can pass the upper one.
 *
 * Contexts: any. */
#ifndef TBD_BASE_SYS_LIMIT_H
#define TBD_BASE_SYS_LIMIT_H

#include <stdint.h>

/* The engine's image is linked above 2 GiB: without "hidden", the address of a function would need a
 * table. */
#pragma GCC visibility push(hidden)

struct tbd_sys_limit {
    uint64_t lower, upper;
};

/* Raises a limit (RLIMIT_*) as far as it goes.  Returns it as it was, for tbd_sys_limit_put_back(). */
struct tbd_sys_limit tbd_sys_limit_lift(uint32_t resource);
void tbd_sys_limit_put_back(uint32_t resource, const struct tbd_sys_limit *was);
/* A descriptor that `make` makes, or the error that it returns: it is called again where the lower limit has no number left. */
int tbd_sys_limit_open(int (*make)(void));

#pragma GCC visibility pop

#endif
