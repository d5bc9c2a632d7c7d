// SPDX-License-Identifier: MIT
/* sys_ioctl.h - names of ioctl commands, from ioctls.def */
#ifndef TBD_HOOKS_SYS_IOCTL_H
#define TBD_HOOKS_SYS_IOCTL_H

#include <stdint.h>

/* "TCGETS"; NULL for a command that has no row. */
const char *tbd_sys_ioctl_name(uint32_t command);

#endif
