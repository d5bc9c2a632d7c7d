// SPDX-License-Identifier: MIT
/* attach_masks.h - threads that block SIGTRAP always, as those of memory allocators do, and signal handlers' own
 *
 * A trap would end the program there.  For a session SIGTRAP is taken out of their masks by ptrace, where the user may do
 * that; afterwards it is put back. */
#ifndef TBD_QUERY_ATTACH_MASKS_H
#define TBD_QUERY_ATTACH_MASKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TBD_UNBLOCKED_MOST 64u /* threads; with more the session is refused */

struct tbd_unblocked {
    pid_t pid;
    pid_t tids[TBD_UNBLOCKED_MOST];
    uint64_t masks[TBD_UNBLOCKED_MOST]; /* as they were */
    unsigned count;
};

/* Threads that block it in two looks; short moments are waited for by the keeper. */
void tbd_attach_unblock(pid_t pid, struct tbd_unblocked *out);
/* But those whose mask has changed otherwise: they have blocked it for a while only. */
void tbd_attach_block_again(const struct tbd_unblocked *threads);

#endif
