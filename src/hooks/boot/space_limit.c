// SPDX-License-Identifier: MIT
/* space_limit.c - see space_limit.h */
#include "hooks/boot/space_limit.h"

#include "base/linux_abi.h"
#include "base/log.h"
#include "base/sys.h"

bool tbd_space_limit_say(void)
{
    uint64_t limit[2] = { RLIM64_INFINITY, 0 };

    tbd_sys4(__NR_prlimit64, 0, RLIMIT_AS, 0, tbd_sys_pointer(limit));
    if (limit[0] == RLIM64_INFINITY)
        return false;
    tbd_say("the limit of %lu MB on the address space is too small: the program runs untraced",
            limit[0] >> 20);
    tbd_say("hint: ulimit -v unlimited");
    return true;
}
