// SPDX-License-Identifier: MIT
/* vectors.h - a replay with other vector registers than the recording's
 *
 * Context: APP; _sigsafe SIG. */
#ifndef TBD_REPLAY_STUB_VECTORS_H
#define TBD_REPLAY_STUB_VECTORS_H

#include <stdbool.h>
#include <stdint.h>

struct tbd_ucontext;

/* Takes over the images of a recording with these components (XCR0) and so many bytes, before anything is
 * translated.  NULL, or why they cannot be. */
const char *tbd_vectors_adopt(uint64_t components, uint32_t bytes);
/* Does the program's instruction at `pc` name registers that this processor lacks? */
bool tbd_vectors_lack_registers(uint64_t pc);
/* Carries out the xrstor that the signal is about; false: it is about something else. */
bool tbd_vectors_xrstor_sigsafe(int signo, struct tbd_ucontext *frame);

#endif
