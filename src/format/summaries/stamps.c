// SPDX-License-Identifier: MIT
/* stamps.c - see stamps.h */
#include "format/summaries/stamps.h"

#include "format/files/codec.h"

bool tbd_stamps_get(const struct tbd_record_view *record, uint64_t blocks, struct tbd_stamp *out,
                    size_t *out_count)
{
    struct tbd_reader in = { record->payload, record->payload + record->bytes, false };
    struct tbd_stamp stamp = { 0 };

    for (*out_count = 0; in.at < in.end && *out_count < tbd_stamps_most(record);) {
        uint64_t later = tbd_reader_varint(&in);

        stamp.ns += (uint64_t)tbd_unzigzag(tbd_reader_varint(&in));
        if (in.failed || later > blocks - stamp.time)
            return false;
        stamp.time += later;
        out[(*out_count)++] = stamp;
    }
    return true;
}
