// SPDX-License-Identifier: MIT
/* capability.h - what the calling thread may do beyond its user's rights (capabilities(7)).  Context: APP. */
#ifndef TBD_HOOKS_CAPABILITY_H
#define TBD_HOOKS_CAPABILITY_H

#include "base/linux_abi.h"
#include "base/sys.h"

/* `capability`: CAP_... below 32. */
static inline bool tbd_has_capability(unsigned capability)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = { 0 };

    return !tbd_sys_failed(
               tbd_sys3(__NR_capget, tbd_sys_pointer(&head), tbd_sys_pointer(data), 0)) &&
           (data[0].effective >> capability & 1);
}

#endif
