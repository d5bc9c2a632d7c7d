// SPDX-License-Identifier: MIT
/* decoder.h - the engine's private copy of the decoder library (Zydis)
 *
 * The shared library's bytes are part of the engine image; they are mapped at TBD_DECODER_BASE and
 * relocated by a small loader, once.  Contexts: BOOT to load; calls only inside
 * with_vector_state. */
#ifndef TBD_HOOKS_DECODER_H
#define TBD_HOOKS_DECODER_H

#include "base/status.h"
#include "patcher/patcher.h"

/* Returns NULL on success, otherwise a text that says what is wrong. */
TBD_MUST_CHECK const char *tbd_decoder_load(struct tbd_decoder_api *api);

#endif
