// SPDX-License-Identifier: MIT
/* slot_operands.c - computes the addresses that an instruction in a slot accesses, from the
 * program's registers; see slot_private.h */
#include "hooks/instructions/slot_private.h"

#include "base/string.h"
#include "hooks/instructions/processor.h"

uint64_t tbd_slot_address_mask(const struct tbd_slot *slot)
{
    return slot->has_narrow_addresses ? UINT32_MAX : UINT64_MAX;
}

static int64_t vector_element(const uint8_t *vector, uint32_t i, uint32_t bytes)
{
    int32_t narrow;
    int64_t wide;

    if (bytes == 4) {
        memcpy(&narrow, vector + i * 4, sizeof(narrow));
        return narrow;
    }
    memcpy(&wide, vector + i * 8, sizeof(wide));
    return wide;
}

static uint64_t segment_base(const struct tbd_thread *thread, const struct tbd_slot *slot)
{
    return slot->segment == SEGMENT_FS   ? thread->regs.fs_base
           : slot->segment == SEGMENT_GS ? thread->regs.gs_base
                                         : 0;
}

uint64_t tbd_slot_source_base(const struct tbd_thread *thread, const struct tbd_slot *slot)
{
    return segment_base(thread, slot);
}

/* `more`: the part that a vector index adds. */
static uint64_t operand_address(const struct tbd_thread *thread, const struct tbd_slot *slot,
                                int64_t more)
{
    const struct tbd_regs *regs = &thread->regs;
    uint64_t address = (uint64_t)slot->disp + (uint64_t)more;

    if (slot->base != NONE)
        address += regs->gpr[slot->base];
    if (slot->index != NONE)
        address += regs->gpr[slot->index] * slot->scale;
    return (address & tbd_slot_address_mask(slot)) + segment_base(thread, slot);
}

static uint64_t signs_of(const struct tbd_slot *slot)
{
    uint8_t vector[TBD_VECTOR_REGISTER_BYTES];
    uint64_t mask = 0;

    tbd_vector_read(&tbd_processor.vector, slot->vector_mask, vector);
    for (uint32_t i = 0; i < slot->element_count; i++)
        mask |= (uint64_t)(vector[(i + 1) * slot->element_bytes - 1] >> 7) << i;
    return mask;
}

/* A bit for each element that the instruction accesses. */
static uint64_t chosen(const struct tbd_slot *slot)
{
    uint64_t mask = ~0ull;

    if (slot->mask)
        mask = tbd_vector_read_mask(&tbd_processor.vector, slot->mask);
    else if (slot->vector_mask != NONE)
        mask = signs_of(slot);
    return slot->element_count < 64 ? mask & ((1ull << slot->element_count) - 1) : mask;
}

size_t tbd_slot_elements(const struct tbd_thread *thread, const struct tbd_slot *slot,
                         struct tbd_slot_elements *out)
{
    uint8_t vector[TBD_VECTOR_REGISTER_BYTES];
    uint64_t mask = chosen(slot);

    out->count = 0;
    out->bytes = slot->element_bytes;
    out->data = slot->vector_data;
    out->mask = slot->mask;
    if (!slot->has_store || slot->vector_index == NONE || slot->vector_data == NONE)
        return 0;
    tbd_vector_read(&tbd_processor.vector, slot->vector_index, vector);
    for (uint32_t i = 0; i < slot->element_count; i++) {
        int64_t offset = vector_element(vector, i, slot->index_bytes) * slot->scale;

        if (!(mask >> i & 1))
            continue;
        out->place[out->count] = (uint8_t)i;
        out->address[out->count++] = operand_address(thread, slot, offset);
    }
    return out->count;
}

static size_t scattered(const struct tbd_thread *thread, const struct tbd_slot *slot,
                        struct tbd_sys_range *out)
{
    struct tbd_slot_elements elements;
    size_t count = tbd_slot_elements(thread, slot, &elements);

    for (size_t i = 0; i < count; i++)
        out[i] = (struct tbd_sys_range){ elements.address[i], elements.bytes };
    return count;
}

/* Joins adjacent elements to one range. */
static size_t side_by_side(const struct tbd_slot *slot, uint64_t address, uint64_t mask,
                           struct tbd_sys_range *out)
{
    size_t count = 0;

    for (uint32_t i = 0; i < slot->element_count; i++) {
        if (!(mask >> i & 1))
            continue;
        if (i && (mask >> (i - 1) & 1))
            out[count - 1].bytes += slot->element_bytes;
        else
            out[count++] = (struct tbd_sys_range){ address + (uint64_t)i * slot->element_bytes,
                                                   slot->element_bytes };
    }
    return count;
}

static uint64_t count_bits(uint64_t mask)
{
    uint64_t count = 0;

    for (; mask; mask &= mask - 1)
        count++;
    return count;
}

enum tbd_slot_stores tbd_slot_stores(const struct tbd_thread *thread, const struct tbd_slot *slot,
                                     struct tbd_sys_range *out, size_t *count)
{
    uint64_t mask;
    uint64_t address;

    *count = 0;
    if (!slot->has_store)
        return TBD_SLOT_UNKNOWN;
    mask = chosen(slot);
    address = operand_address(thread, slot, 0);
    if (slot->is_compress) {
        uint64_t bytes = count_bits(mask) * slot->element_bytes;

        out[0] = (struct tbd_sys_range){ address, bytes };
        *count = 1;
    } else if (slot->vector_index != NONE) {
        *count = scattered(thread, slot, out);
    } else {
        *count = side_by_side(slot, address, mask, out);
    }
    return slot->mask || slot->vector_mask != NONE ? TBD_SLOT_EXACTLY : TBD_SLOT_UP_TO;
}

uint64_t tbd_slot_operand(const struct tbd_thread *thread, const struct tbd_slot *slot)
{
    return operand_address(thread, slot, 0);
}

/* ---- rows of tiles ---- */

enum { CONFIG_START_ROW = 1, CONFIG_ROW_BYTES = 16, CONFIG_ROWS = 48 }; /* Intel SDM, ldtilecfg */

uint8_t tbd_slot_tile(const struct tbd_slot *slot)
{
    return slot->has_store && slot->tile != NONE ? slot->tile : TBD_SLOT_NO_TILE;
}

size_t tbd_slot_tile_rows(const struct tbd_thread *thread, const struct tbd_slot *slot,
                          struct tbd_sys_range out[TBD_SLOT_TILE_ROWS], uint8_t *out_first)
{
    uint64_t stride = slot->index == NONE ? 0 : thread->regs.gpr[slot->index] * slot->scale;
    uint8_t config[TBD_VECTOR_TILE_CONFIG_BYTES];
    size_t count = 0;
    uint16_t bytes;

    tbd_vector_read_tile_config(&tbd_processor.vector, config);
    memcpy(&bytes, config + CONFIG_ROW_BYTES + 2 * slot->tile, sizeof(bytes));
    *out_first = config[CONFIG_START_ROW];
    for (uint64_t row = *out_first;
         row < config[CONFIG_ROWS + slot->tile] && row < TBD_SLOT_TILE_ROWS; row++)
        out[count++] =
            (struct tbd_sys_range){ operand_address(thread, slot, (int64_t)((row - 1) * stride)),
                                    bytes };
    return bytes <= TBD_SLOT_TILE_ROW_BYTES ? count : 0;
}

uint32_t tbd_slot_string_bytes(const struct tbd_slot *slot)
{
    return slot->string_bytes;
}

bool tbd_slot_reads_string(const struct tbd_slot *slot)
{
    return slot->reads_string;
}

struct tbd_string_loads tbd_slot_string_loads(const struct tbd_slot *slot)
{
    return slot->string_loads;
}
