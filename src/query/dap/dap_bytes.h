// SPDX-License-Identifier: MIT
/* dap_bytes.h - messages in a stream of bytes, as the Debug Adapter Protocol frames them
 *
 * A message is header lines, "Content-Length: N" among them, an empty line, and N bytes.  The sender is not
 * trusted: what is no header is skipped up to the next one, and a message that is too long is skipped whole.
 *
 * One thread uses an object.  Nothing here prints. */
#ifndef TBD_QUERY_DAP_BYTES_H
#define TBD_QUERY_DAP_BYTES_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_DAP_HEADER_BYTES  1024u
#define TBD_DAP_MESSAGE_BYTES (4u << 20)

struct tbd_dap_bytes {
    char *data; /* owned: [start, end) is not used yet */
    size_t start, end, capacity;
    uint64_t skip; /* bytes still to come of a message that is too long */
};

enum tbd_dap_found {
    TBD_DAP_NOTHING = 0, /* more bytes are needed */
    TBD_DAP_MESSAGE,
    TBD_DAP_GARBAGE, /* some bytes were no header, and were skipped */
    TBD_DAP_TOO_LONG
};

/* False: there is no memory. */
TBD_MUST_CHECK bool tbd_dap_bytes_add(struct tbd_dap_bytes *bytes, const char *data, size_t count);
/* The message's bytes are borrowed until the next call. */
enum tbd_dap_found tbd_dap_bytes_next(struct tbd_dap_bytes *bytes, const char **out,
                                      size_t *out_bytes);
void tbd_dap_bytes_free(struct tbd_dap_bytes *bytes);

#endif
