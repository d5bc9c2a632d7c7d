// SPDX-License-Identifier: MIT
/* protobuf.h - messages of protocol buffers, written field by field
 *
 * A message grows in memory, because its length goes before it. */
#ifndef TBD_QUERY_PROTOBUF_H
#define TBD_QUERY_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tbd_protobuf {
    uint8_t *bytes; /* owned */
    size_t used, capacity;
    bool no_memory; /* something is missing */
};

/* Empty again; keeps its memory. */
void tbd_protobuf_begin(struct tbd_protobuf *message);
void tbd_protobuf_free(struct tbd_protobuf *message);

void tbd_protobuf_number(struct tbd_protobuf *message, uint32_t field, uint64_t value);
void tbd_protobuf_double(struct tbd_protobuf *message, uint32_t field, double value);
void tbd_protobuf_text(struct tbd_protobuf *message, uint32_t field, const char *text);
void tbd_protobuf_message(struct tbd_protobuf *message, uint32_t field,
                          const struct tbd_protobuf *inner);

#endif
