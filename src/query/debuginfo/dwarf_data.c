// SPDX-License-Identifier: MIT
/* dwarf_data.c - values and their bytes: in memory, or on their own (dwarf_location.h) */
#include "query/debuginfo/dwarf_location.h"

#include <dwarf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void tbd_data_unknown(struct tbd_data *out, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(out->why, sizeof(out->why), format, args);
    va_end(args);
    out->is_known = false;
}

void tbd_data_at(uint64_t address, const struct tbd_type *type, struct tbd_data *out)
{
    *out = (struct tbd_data){ .type = *type, .is_known = true, .in_memory = true };
    out->address = address;
}

void tbd_data_number(uint64_t value, const struct tbd_type *type, struct tbd_data *out)
{
    *out = (struct tbd_data){ .type = *type, .is_known = true, .byte_count = 8 };
    memcpy(out->bytes, &value, sizeof(value));
}

void tbd_data_part(const struct tbd_data *data, uint64_t offset, const struct tbd_type *type,
                   struct tbd_data *out)
{
    struct tbd_data part = *data; /* `out` may be `data` */

    part.type = *type;
    part.bits = 0;
    part.bit_offset = 0;
    if (offset != 0)
        part.in_register = part.from_register = 0;
    if (!data->is_known) {
        *out = part;
        return;
    }
    if (data->in_memory) {
        part.address += offset;
    } else if (offset >= data->byte_count) {
        tbd_data_unknown(&part, "it is not in a register");
    } else {
        part.byte_count = data->byte_count - (uint32_t)offset;
        memmove(part.bytes, data->bytes + offset, part.byte_count);
        memmove(part.lost, data->lost + offset, part.byte_count);
    }
    *out = part;
}

bool tbd_data_read(const struct tbd_place_of *place, const struct tbd_data *data, uint64_t offset,
                   void *out, size_t bytes)
{
    if (!data->is_known)
        return false;
    if (data->in_memory)
        return place->memory != NULL &&
               place->memory->read(place->memory->context, data->address + offset, out, bytes);
    if (offset > data->byte_count || bytes > data->byte_count - offset)
        return false;
    memcpy(out, data->bytes + offset, bytes);
    return memchr(data->lost + offset, 1, bytes) == NULL;
}

uint64_t tbd_data_extend(uint64_t value, uint32_t bits, bool is_signed)
{
    if (bits == 0 || bits >= 64)
        return value;
    value &= (1ull << bits) - 1;
    if (is_signed && (value >> (bits - 1) & 1) != 0)
        value |= ~0ull << bits;
    return value;
}

static bool read_bits(const struct tbd_place_of *place, const struct tbd_data *data, bool is_signed,
                      uint64_t *out)
{
    uint8_t bytes[16] = { 0 };
    uint32_t wanted = (data->bit_offset + data->bits + 7) / 8;
    uint64_t low, high;

    if (data->bits > 64 || data->bit_offset > 7 || !tbd_data_read(place, data, 0, bytes, wanted))
        return false;
    memcpy(&low, bytes, sizeof(low));
    memcpy(&high, bytes + 8, sizeof(high));
    low >>= data->bit_offset;
    if (data->bit_offset != 0)
        low |= high << (64 - data->bit_offset);
    *out = tbd_data_extend(low, data->bits, is_signed);
    return true;
}

bool tbd_data_scalar(const struct tbd_place_of *place, const struct tbd_data *data, uint64_t *out)
{
    struct tbd_type_view view = tbd_type_look(&data->type);
    uint64_t value = 0;

    if (view.kind != TBD_TYPE_INTEGER && view.kind != TBD_TYPE_ENUM &&
        view.kind != TBD_TYPE_POINTER && view.kind != TBD_TYPE_REFERENCE)
        return false;
    if (data->bits != 0)
        return read_bits(place, data, view.is_signed, out);
    if (view.bytes == 0 || view.bytes > 8 ||
        !tbd_data_read(place, data, 0, &value, (size_t)view.bytes))
        return false;
    *out = tbd_data_extend(value, (uint32_t)view.bytes * 8, view.is_signed);
    return true;
}

bool tbd_data_float(const struct tbd_place_of *place, const struct tbd_data *data, long double *out)
{
    struct tbd_type_view view = tbd_type_look(&data->type);
    float small;
    double normal;

    if (view.kind != TBD_TYPE_FLOAT)
        return false;
    if (view.bytes == 4 && tbd_data_read(place, data, 0, &small, 4))
        *out = (long double)small;
    else if (view.bytes == 8 && tbd_data_read(place, data, 0, &normal, 8))
        *out = (long double)normal;
    else
        return view.bytes == 16 && tbd_data_read(place, data, 0, out, 10);
    return true;
}
