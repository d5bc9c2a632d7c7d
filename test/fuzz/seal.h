// SPDX-License-Identifier: MIT
/* seal.h - makes the checksums of a patched trace file good again, so that the code after the
 * checks is reached */
#ifndef TBD_TEST_SEAL_H
#define TBD_TEST_SEAL_H

#include "format/files/codec.h"
#include "format/files/disk_window.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static inline void seal_header(struct tbd_file_header *header)
{
    header->checksum = XXH3_64bits(header, offsetof(struct tbd_file_header, checksum));
}

/* A file of records. */
static inline void seal_records(uint8_t *bytes, size_t size)
{
    size_t at = sizeof(struct tbd_file_header);

    seal_header((void *)bytes);
    while (at + sizeof(struct tbd_record) <= size) {
        struct tbd_record head;

        memcpy(&head, bytes + at, sizeof(head));
        if (head.bytes > size - at - sizeof(head))
            return;
        head.checksum =
            XXH3_64bits_withSeed(bytes + at + sizeof(head), head.bytes, XXH3_64bits(&head, 16));
        memcpy(bytes + at, &head, sizeof(head));
        at += sizeof(head) + head.bytes;
        at += -at & 7;
    }
}

/* A file that is one compressed piece. */
static inline void seal_packed(uint8_t *bytes, size_t size)
{
    struct tbd_disk_packed head;
    uint8_t *content;

    if (size < sizeof(head))
        return;
    memcpy(&head, bytes, sizeof(head));
    seal_header(&head.header);
    content = head.packed_bytes < 1 << 20 ? malloc(head.packed_bytes + 1) : NULL;
    if (content &&
        !tbd_unpack(bytes + sizeof(head), size - sizeof(head), content, head.packed_bytes))
        head.checksum = XXH3_64bits(content, head.packed_bytes);
    free(content);
    head.head_checksum = XXH3_64bits(&head, offsetof(struct tbd_disk_packed, head_checksum));
    memcpy(bytes, &head, sizeof(head));
}

/* A copy of a file of records with patches of (offset 2 bytes, length 1 byte, bytes), its checksums
 * good again; the caller's. */
static inline uint8_t *patched_copy(const struct tbd_buffer *good, const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(good->used);

    if (!bytes)
        abort();
    memcpy(bytes, good->bytes, good->used);
    for (size_t at = 0; at + 3 <= size;) {
        size_t offset = (data[at] | (size_t)data[at + 1] << 8) % good->used;
        size_t n = data[at + 2] % 9;

        at += 3;
        for (size_t i = 0; i < n && at < size && offset + i < good->used; i++)
            bytes[offset + i] = data[at++];
    }
    seal_records(bytes, good->used);
    return bytes;
}

#endif
