// SPDX-License-Identifier: MIT
/* assert_engine.c - an assertion fails in the engine, which cannot stop the program
 *
 * An assertion may fail in any context, with locks taken: so it is noted here, and handled where
 * the registers of the program are exact. */
#include "base/assert.h"

static const char *first_failure;

void tbd_assert_failed(const char *what)
{
    const char *none = NULL;

    __atomic_compare_exchange_n(&first_failure, &none, what, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

const char *tbd_assert_seen(void)
{
    return __atomic_load_n(&first_failure, __ATOMIC_ACQUIRE);
}
