// SPDX-License-Identifier: MIT
/* assert_host.c - an assertion fails in an ordinary process: tools, the organizer, unit tests */
#include "base/assert.h"

#include "base/log.h"

#include <stdlib.h>

void tbd_assert_failed(const char *what)
{
    tbd_say("%s", what);
    abort();
}
