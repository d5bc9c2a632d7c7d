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

/* Returns NULL on success, otherwise a text that says what is wrong.  `is_copied`: the engine's image is in memory of its own; else the decoder's
 * constants and code are pages of its file. */
TBD_MUST_CHECK const char *tbd_decoder_load(struct tbd_decoder_api *api, bool is_copied);

#endif
