// SPDX-License-Identifier: MIT
/* shortage.c - see shortage.h */
#include "query/text/shortage.h"

#include <stdatomic.h>

static atomic_bool is_noted;

void tbd_shortage_note(void)
{
    atomic_store(&is_noted, true);
}

bool tbd_shortage_seen(void)
{
    return atomic_load(&is_noted);
}
