// SPDX-License-Identifier: MIT
/* image.h - what a trace begins with: START, regions, pages, registers.  Contexts: BOOT, FORK_CHILD. */
#ifndef TBD_HOOKS_IMAGE_H
#define TBD_HOOKS_IMAGE_H

#include <stdint.h>

void tbd_image_send(uint64_t argc, char **argv);
/* The same for a forked child. */
void tbd_image_send_child(uint32_t parent_pid);

#endif
