// SPDX-License-Identifier: MIT
/* vector_layout.c - see vector_layout.h; Intel SDM vol. 1, 13.4, and cpuid leaf 13 of Intel's and
 * AMD's processors */
#include "base/vector_layout.h"

#include "base/cpuid.h"
#include "base/string.h"

/* The offsets of a maker's standard format; 0: its processors lack the component. */
struct maker {
    uint16_t offset[TBD_VECTOR_COMPONENTS];
};

static const uint16_t sizes[TBD_VECTOR_COMPONENTS] = {
    [2] = 256,  [3] = 64, [4] = 64,  [5] = 64,    [6] = 512,
    [7] = 1024, [9] = 8,  [17] = 64, [18] = 8192, [19] = 128,
};

/* Protection keys (9) are last in an image without tiles: their offset is found from its length. */
static const struct maker makers[] = {
    { { [2] = 576,
        [3] = 960,
        [4] = 1024,
        [5] = 1088,
        [6] = 1152,
        [7] = 1664,
        [17] = 2752,
        [18] = 2816,
        [19] = 960 } },
    { { [2] = 576, [5] = 832, [6] = 896, [7] = 1408 } },
};
#define PROTECTION_KEYS   9u
#define KEYS_BEFORE_TILES 2688u

uint32_t tbd_vector_component_bytes(unsigned component)
{
    return component < TBD_VECTOR_COMPONENTS ? sizes[component] : 0;
}

uint32_t tbd_vector_layout_end(const struct tbd_vector_layout *layout)
{
    uint32_t end = TBD_VECTOR_EXTENDED;

    for (unsigned i = 2; i < TBD_VECTOR_COMPONENTS; i++)
        if (layout->mask >> i & 1 && i != TBD_VECTOR_TILES && layout->offset[i] + sizes[i] > end)
            end = layout->offset[i] + sizes[i];
    return end;
}

void tbd_vector_layout_of_processor(uint64_t mask, struct tbd_vector_layout *out)
{
    *out = (struct tbd_vector_layout){ .mask = mask, .bytes = TBD_VECTOR_EXTENDED };
    for (uint32_t i = 2; i < 63; i++) {
        uint32_t r[4];

        if (!(mask >> i & 1))
            continue;
        tbd_cpuid(13, i, r);
        if (r[1] + r[0] > out->bytes)
            out->bytes = r[1] + r[0];
        if (i < TBD_VECTOR_COMPONENTS)
            out->offset[i] = r[1];
    }
    out->short_bytes = mask >> TBD_VECTOR_TILES & 1 ? tbd_vector_layout_end(out) : out->bytes;
}

/* 0: the maker's processors lack it. */
static uint32_t offset_of(const struct maker *maker, unsigned component, uint64_t mask,
                          uint32_t bytes)
{
    if (component != PROTECTION_KEYS)
        return maker->offset[component];
    return mask & TBD_VECTOR_AMX ? KEYS_BEFORE_TILES : bytes - sizes[component];
}

static bool is_layout(const struct maker *maker, uint64_t mask, uint32_t bytes,
                      struct tbd_vector_layout *out)
{
    uint32_t end = TBD_VECTOR_EXTENDED;

    *out = (struct tbd_vector_layout){ .mask = mask, .bytes = bytes };
    if (mask >> TBD_VECTOR_COMPONENTS)
        return false;
    for (unsigned i = 2; i < TBD_VECTOR_COMPONENTS; i++) {
        if (!(mask >> i & 1))
            continue;
        out->offset[i] = offset_of(maker, i, mask, bytes);
        if (!out->offset[i] || bytes < sizes[i] || out->offset[i] < TBD_VECTOR_EXTENDED ||
            (i == PROTECTION_KEYS && out->offset[i] < end))
            return false;
        if (out->offset[i] + sizes[i] > end)
            end = out->offset[i] + sizes[i];
    }
    out->short_bytes = mask >> TBD_VECTOR_TILES & 1 ? tbd_vector_layout_end(out) : bytes;
    return end == bytes;
}

bool tbd_vector_layout_find(uint64_t mask, uint32_t bytes, struct tbd_vector_layout *out)
{
    for (unsigned i = 0; i < sizeof(makers) / sizeof(makers[0]); i++)
        if (is_layout(&makers[i], mask, bytes, out))
            return true;
    return false;
}

uint32_t tbd_vector_compacted_offset(uint64_t mask, unsigned component)
{
    uint32_t at = TBD_VECTOR_EXTENDED;

    for (unsigned i = 2; i < component; i++)
        if (mask >> i & 1)
            at += tbd_vector_component_bytes(i);
    return at;
}

/* Where a byte of a vector register is in an image, and in which component. */
static uint32_t byte_at(const struct tbd_vector_layout *layout, unsigned number, unsigned byte,
                        unsigned *component)
{
    uint32_t start;

    *component = number >= 16 ? TBD_VECTOR_HIGH
                 : byte < 16  ? TBD_VECTOR_SSE
                 : byte < 32  ? TBD_VECTOR_YMM
                              : TBD_VECTOR_ZMM;
    if (*component == TBD_VECTOR_SSE)
        return TBD_VECTOR_XMM + 16 * number + byte;
    start = layout->offset[*component];
    if (start == 0)
        return 0;
    return *component == TBD_VECTOR_HIGH  ? start + 64 * (number - 16) + byte
           : *component == TBD_VECTOR_YMM ? start + 16 * number + byte - 16
                                          : start + 32 * number + byte - 32;
}

bool tbd_vector_image_read(const struct tbd_vector_layout *layout, const uint8_t *image,
                           uint32_t image_bytes, unsigned number, unsigned first, unsigned bytes,
                           uint64_t *out)
{
    uint64_t in_use;

    *out = 0;
    if (image_bytes < TBD_VECTOR_EXTENDED)
        return false;
    memcpy(&in_use, image + TBD_VECTOR_LEGACY, sizeof(in_use));
    for (unsigned i = 0; i < bytes && i < 8; i++) {
        unsigned component;
        uint32_t at = byte_at(layout, number, first + i, &component);

        if (at == 0 || at >= image_bytes)
            return false;
        if (in_use >> component & 1)
            *out |= (uint64_t)image[at] << 8 * i;
    }
    return true;
}
