// SPDX-License-Identifier: MIT
/* vectors.h - replay on a processor with fewer vector registers than the recording's
 *
 * Context: APP; _sigsafe SIG. */
#ifndef TBD_REPLAY_STUB_VECTORS_H
#define TBD_REPLAY_STUB_VECTORS_H

#include <stdbool.h>
#include <stdint.h>

struct tbd_ucontext;

/* Adopts the image format of a recording with these components (XCR0) and this length; called
 * before any code is translated.  NULL, or why it fails. */
const char *tbd_vectors_adopt(uint64_t components, uint32_t bytes);
/* If the program's instruction at `pc` names registers that this processor lacks: what they belong to.  NULL: it does
 * not. */
const char *tbd_vectors_lacking(uint64_t pc);
/* If an xrstor has raised the signal, carries it out; false: the signal has another cause. */
bool tbd_vectors_xrstor_sigsafe(int signo, struct tbd_ucontext *frame);

#endif
