// SPDX-License-Identifier: MIT
/* vector.c - see vector.h
 *
 * XSAVE leaves out components that are in their initial state, and whether one is counted as such
 * depends on the processor and on history; so images are filled up to a canonical form (Intel SDM
 * vol. 1, 13.4: legacy region, header at 512, extended components behind). */
#include "hooks/instructions/vector.h"

#include "base/string.h"

enum {
    COMPONENT_YMM = 2, /* upper halves of ymm0-15 */
    COMPONENT_MASKS = 5,
    COMPONENT_ZMM = 6,  /* upper halves of zmm0-15 */
    COMPONENT_HIGH = 7, /* zmm16-31 */
    XMM_AT = 160,
    XCR0_X87 = 1,
    XSTATE_BV = 512,
    FCW_INITIAL = 0x37f,
    MXCSR_INITIAL = 0x1f80,
    MXCSR_AT = 24,
    LEGACY_BYTES = 512,
    HEADER_BYTES = 64,
};
#define XCR0_AMX (3ull << 17)

static uint64_t read_xcr0(void)
{
    uint32_t low;
    uint32_t high;

    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static uint32_t image_bytes(uint64_t mask, uint32_t *offset)
{
    uint32_t bytes = LEGACY_BYTES + HEADER_BYTES;

    for (uint32_t i = 2; i < 63; i++) {
        uint32_t r[4];

        if (!(mask >> i & 1))
            continue;
        tbd_cpuid(13, i, r);
        if (r[1] + r[0] > bytes)
            bytes = r[1] + r[0];
        if (i < 8)
            offset[i] = r[1];
    }
    return bytes;
}

bool tbd_vector_init(struct tbd_vector_info *info)
{
    uint32_t r[4];
    uint32_t compact[4];

    tbd_cpuid(1, 0, r);
    if (!(r[2] >> 27 & 1)) /* OSXSAVE */
        return false;
    info->mask = read_xcr0() & ~XCR0_AMX;
    (void)tbd_x87_is_exact(); /* asking takes away what the processor has noted */
    info->bytes = image_bytes(info->mask, info->offset);
    tbd_cpuid(13, 0, r);
    tbd_cpuid(13, 1, compact);
    info->all_bytes = r[2] > compact[1] ? r[2] : compact[1];
    return info->bytes <= TBD_VECTOR_MAX_BYTES;
}

static void put(uint8_t *image, size_t at, uint64_t value, size_t bytes)
{
    memcpy(image + at, &value, bytes);
}

void tbd_vector_store(const struct tbd_vector_info *info, void *image)
{
    uint8_t *bytes = image;
    uint64_t present;

    tbd_x87_settle();
    memset(bytes, 0, info->bytes);
    tbd_xsave(bytes, info->mask);
    memcpy(&present, bytes + XSTATE_BV, sizeof(present));
    if (!(present & XCR0_X87))
        put(bytes, 0, FCW_INITIAL, 2);
    put(bytes, XSTATE_BV, info->mask, 8);
}

void tbd_vector_load(const struct tbd_vector_info *info, const void *image)
{
    tbd_xrstor(image, info->mask);
}

void tbd_vector_clear(const struct tbd_vector_info *info)
{
    _Alignas(64) uint8_t image[LEGACY_BYTES + HEADER_BYTES];

    memset(image, 0, sizeof(image));
    put(image, 0, FCW_INITIAL, 2);
    put(image, MXCSR_AT, MXCSR_INITIAL, 4);
    tbd_xrstor(image, info->mask);
}

static bool has(const struct tbd_vector_info *info, unsigned component)
{
    return info->mask >> component & 1;
}

void tbd_vector_read(const struct tbd_vector_info *info, uint8_t number, uint8_t *out)
{
    _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES];

    memset(out, 0, TBD_VECTOR_REGISTER_BYTES);
    tbd_vector_store(info, image);
    if (number >= 16) {
        if (has(info, COMPONENT_HIGH))
            memcpy(out, image + info->offset[COMPONENT_HIGH] + (number - 16u) * 64u, 64);
        return;
    }
    memcpy(out, image + XMM_AT + number * 16u, 16);
    if (has(info, COMPONENT_YMM))
        memcpy(out + 16, image + info->offset[COMPONENT_YMM] + number * 16u, 16);
    if (has(info, COMPONENT_ZMM))
        memcpy(out + 32, image + info->offset[COMPONENT_ZMM] + number * 32u, 32);
}

void tbd_vector_write(const struct tbd_vector_info *info, uint8_t number, const uint8_t *bytes)
{
    _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES];
    uint64_t mask = info->mask & ~(uint64_t)XCR0_X87;

    memset(image, 0, info->bytes); /* components in their initial state are not stored */
    tbd_xsave(image, mask);
    put(image, XSTATE_BV, mask, 8);
    if (number >= 16) {
        if (has(info, COMPONENT_HIGH))
            memcpy(image + info->offset[COMPONENT_HIGH] + (number - 16u) * 64u, bytes, 64);
    } else {
        memcpy(image + XMM_AT + number * 16u, bytes, 16);
        if (has(info, COMPONENT_YMM))
            memcpy(image + info->offset[COMPONENT_YMM] + number * 16u, bytes + 16, 16);
        if (has(info, COMPONENT_ZMM))
            memcpy(image + info->offset[COMPONENT_ZMM] + number * 32u, bytes + 32, 32);
    }
    tbd_xrstor(image, mask);
}

/* In its initial state the component is not stored: then it is all zeros. */
static uint8_t *read_masks(const struct tbd_vector_info *info, uint8_t *image)
{
    memset(image + LEGACY_BYTES, 0, HEADER_BYTES);
    memset(image + info->offset[COMPONENT_MASKS], 0, 64);
    tbd_xsave(image, 1ull << COMPONENT_MASKS);
    return image + info->offset[COMPONENT_MASKS];
}

uint64_t tbd_vector_read_mask(const struct tbd_vector_info *info, uint8_t number)
{
    _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES];
    uint64_t value = 0;

    if (has(info, COMPONENT_MASKS))
        memcpy(&value, read_masks(info, image) + number * 8u, sizeof(value));
    return value;
}

void tbd_vector_write_mask(const struct tbd_vector_info *info, uint8_t number, uint64_t value)
{
    _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES];

    if (!has(info, COMPONENT_MASKS))
        return;
    put(read_masks(info, image), number * 8u, value, 8);
    put(image, XSTATE_BV, 1ull << COMPONENT_MASKS, 8);
    tbd_xrstor(image, 1ull << COMPONENT_MASKS);
}
