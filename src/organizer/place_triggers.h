// SPDX-License-Identifier: MIT
/* place_triggers.h - has `tbd-probe set` find the places of a program's triggers, and functions that are parts, before the program runs
 *
 * That is another program because the organizer needs no library for debug information. */
#ifndef TBD_ORGANIZER_PLACE_TRIGGERS_H
#define TBD_ORGANIZER_PLACE_TRIGGERS_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns when the request is in the rings' memory (format/probe/trigger.h), or a line on stderr says why not. */
void tbd_place_triggers(int stream_fd, pid_t pid, const char *triggers, const char *parts);
/* Some wait for a module, and one has come, or gone: returns when the engine has what is found now.  The triggers are those that it has.
 * False: it was interrupted, and is to be asked again.  The tool stays for a while, and has read the other modules when it is asked next. */
bool tbd_place_triggers_again(int stream_fd, pid_t pid, const char *parts,
                              bool (*is_interrupted)(void *context), void *context);
/* Nobody asks any more. */
void tbd_place_triggers_end(void);

#endif
