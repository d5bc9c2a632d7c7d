// SPDX-License-Identifier: MIT
/* protobuf.c - see protobuf.h */
#include "query/exports/protobuf.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* How a field's value is written; the low three bits of its key. */
enum { VARINT = 0, EIGHT_BYTES = 1, WITH_LENGTH = 2 };

static void put_raw(struct tbd_protobuf *message, const void *bytes, size_t count)
{
    if (!tbd_array_reserve(&message->bytes, message->used + count, &message->capacity, 1)) {
        message->no_memory = true;
        return;
    }
    if (count != 0)
        memcpy(message->bytes + message->used, bytes, count);
    message->used += count;
}

static void put_varint(struct tbd_protobuf *message, uint64_t value)
{
    uint8_t bytes[10];
    size_t count = 0;

    do {
        bytes[count] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
        count++;
    } while (value != 0);
    put_raw(message, bytes, count);
}

static void put_key(struct tbd_protobuf *message, uint32_t field, uint32_t form)
{
    put_varint(message, (uint64_t)field << 3 | form);
}

static void put_bytes(struct tbd_protobuf *message, uint32_t field, const void *bytes, size_t count)
{
    put_key(message, field, WITH_LENGTH);
    put_varint(message, count);
    put_raw(message, bytes, count);
}

void tbd_protobuf_begin(struct tbd_protobuf *message)
{
    message->used = 0;
}

void tbd_protobuf_free(struct tbd_protobuf *message)
{
    free(message->bytes);
    *message = (struct tbd_protobuf){ 0 };
}

void tbd_protobuf_number(struct tbd_protobuf *message, uint32_t field, uint64_t value)
{
    put_key(message, field, VARINT);
    put_varint(message, value);
}

void tbd_protobuf_double(struct tbd_protobuf *message, uint32_t field, double value)
{
    put_key(message, field, EIGHT_BYTES);
    put_raw(message, &value, sizeof(value));
}

void tbd_protobuf_text(struct tbd_protobuf *message, uint32_t field, const char *text)
{
    put_bytes(message, field, text, strlen(text));
}

void tbd_protobuf_message(struct tbd_protobuf *message, uint32_t field,
                          const struct tbd_protobuf *inner)
{
    message->no_memory |= inner->no_memory;
    put_bytes(message, field, inner->bytes, inner->used);
}
