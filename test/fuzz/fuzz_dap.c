// SPDX-License-Identifier: MIT
// links: tbd_query
// iterations: 20000
/* fuzz_dap.c - bytes from a client of the Debug Adapter Protocol, cut into pieces: the first byte says how
 *
 * Oracle: the same messages are found, in the same order, however the bytes are cut; no message is longer than
 * it may be, and each stands in the bytes that came. */
#include "query/dap/dap_bytes.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

struct found {
    uint64_t hash, messages, too_long;
};

static void take(struct tbd_dap_bytes *bytes, const uint8_t *data, size_t size, struct found *found)
{
    const char *text;
    size_t length;
    enum tbd_dap_found what;

    while ((what = tbd_dap_bytes_next(bytes, &text, &length)) != TBD_DAP_NOTHING) {
        found->too_long += what == TBD_DAP_TOO_LONG;
        if (what != TBD_DAP_MESSAGE)
            continue;
        check(length <= TBD_DAP_MESSAGE_BYTES && length <= size);
        check(length == 0 || memmem(data, size, text, length) != NULL);
        found->messages++;
        for (size_t i = 0; i < length; i++)
            found->hash = (found->hash ^ (uint8_t)text[i]) * 0x100000001b3;
        found->hash = (found->hash ^ 0x100) * 0x100000001b3;
    }
}

static struct found read_all(const uint8_t *data, size_t size, size_t piece)
{
    struct tbd_dap_bytes bytes = { 0 };
    struct found found = { 0 };

    for (size_t at = 0; at < size; at += piece) {
        size_t count = piece < size - at ? piece : size - at;

        check(tbd_dap_bytes_add(&bytes, (const char *)data + at, count));
        take(&bytes, data, size, &found);
    }
    tbd_dap_bytes_free(&bytes);
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct found whole, cut;

    if (size < 2)
        return 0;
    whole = read_all(data + 1, size - 1, size);
    cut = read_all(data + 1, size - 1, (size_t)data[0] % 37 + 1);
    check(whole.messages == cut.messages && whole.hash == cut.hash &&
          whole.too_long == cut.too_long);
    return 0;
}
