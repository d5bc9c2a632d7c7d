// SPDX-License-Identifier: MIT
/* dap_mend.h - the text of a request that is JSON but for strings that no string of ours can hold
 *
 * Some clients send halves of surrogate pairs, NUL, or bytes that are not UTF-8: a name may have them.  They become text, as in answers:
 * "\xff" for a byte, "\ud800" and "\u0000" for a character.  So the request is answered, instead of a complaint that names none. */
#ifndef TBD_QUERY_DAP_MEND_H
#define TBD_QUERY_DAP_MEND_H

#include <stddef.h>

/* Owned by the caller, with a NUL; NULL without memory.  Text that is JSON stays as it is. */
char *tbd_dap_mend(const char *text, size_t bytes, size_t *out_bytes);

#endif
