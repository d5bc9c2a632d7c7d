// SPDX-License-Identifier: MIT
/* put_text.h - numbers and texts, appended to a buffer: for rows that are printed by the hundred thousand
 *
 * As printf() has them, without its price.  A buffer's failure is sticky (format/files/codec.h). */
#ifndef TBD_QUERY_PUT_TEXT_H
#define TBD_QUERY_PUT_TEXT_H

#include "format/files/codec.h"

void tbd_buffer_unsigned(struct tbd_buffer *out, uint64_t value); /* %llu */
void tbd_buffer_signed(struct tbd_buffer *out, int64_t value);    /* %lld */
void tbd_buffer_hex(struct tbd_buffer *out, uint64_t value);      /* 0x%llx */
void tbd_buffer_text(struct tbd_buffer *out, const char *text);
/* Escapes what follows the first `begin` bytes, as a field (base/escape.h). */
void tbd_buffer_escape(struct tbd_buffer *out, size_t begin);

#endif
