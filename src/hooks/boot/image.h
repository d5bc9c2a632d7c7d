// SPDX-License-Identifier: MIT
/* image.h - what a trace begins with: START, regions, pages, registers.  Contexts: BOOT, FORK_CHILD. */
#ifndef TBD_HOOKS_IMAGE_H
#define TBD_HOOKS_IMAGE_H

#include <stdint.h>

/* Keeps the arguments for all later images; sends nothing if nobody records. */
void tbd_image_send(uint64_t argc, char **argv);
/* The same for a forked child. */
void tbd_image_send_child(uint32_t parent_pid);

/* Only START; `flags`: TBD_START_*. */
void tbd_image_send_start(uint32_t parent_pid, uint32_t flags);

#endif
