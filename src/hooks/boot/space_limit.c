// SPDX-License-Identifier: MIT
/* space_limit.c - see space_limit.h */
#include "hooks/boot/space_limit.h"

#include "base/linux_abi.h"
#include "base/log.h"
#include "base/sys.h"

struct kind {
    uint32_t resource;
    const char *what, *option;
};

static const struct kind kinds[] = { { RLIMIT_AS, "the address space", "-v" },
                                     { RLIMIT_DATA, "data", "-d" } };

bool tbd_space_limit_say(void)
{
    const struct kind *lowest = NULL;
    uint64_t bytes = RLIM64_INFINITY;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        uint64_t limit[2] = { RLIM64_INFINITY, 0 };

        tbd_sys4(__NR_prlimit64, 0, kinds[i].resource, 0, tbd_sys_pointer(limit));
        if (limit[0] >= bytes)
            continue;
        bytes = limit[0];
        lowest = &kinds[i];
    }
    if (!lowest)
        return false;
    tbd_say("the limit of %lu MB on %s is too small: the program runs untraced", bytes >> 20,
            lowest->what);
    tbd_say("hint: ulimit %s unlimited", lowest->option);
    return true;
}
