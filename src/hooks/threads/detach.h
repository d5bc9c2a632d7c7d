// SPDX-License-Identifier: MIT
/* detach.h - letting the program go on natively, exactly where it is
 *
 * Context: APP. */
#ifndef TBD_HOOKS_DETACH_H
#define TBD_HOOKS_DETACH_H

#include "hooks/stream/leaving.h"

/* In play: a note, END, a line on stderr; handlers are the program's, all threads go on natively. */
extern const struct tbd_leaving tbd_leaving_play;

#endif
