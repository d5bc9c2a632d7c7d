// SPDX-License-Identifier: MIT
/* vector.c - see vector.h
 *
 * XSAVE leaves out components that are in their initial state; whether a component counts as such
 * depends on the processor and on history.  So images are completed to a canonical form (Intel SDM
 * vol. 1, 13.4: legacy region, header at 512, then extended components). */
#include "hooks/instructions/vector.h"

#include "base/cpuid.h"
#include "base/linux.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"

enum {
    XMM_AT = 160,
    XCR0_X87 = 1,
    MXCSR_MASK = 28, /* Intel SDM volume 1, 10.5.1.2 */
    FRAME_COMPONENTS = TBD_VECTOR_SOFTWARE + offsetof(struct _fpx_sw_bytes, xfeatures),
    XSTATE_BV = 512,
    XCOMP_BV = 520,
    FCW_INITIAL = 0x37f,
    MXCSR_INITIAL = 0x1f80,
    MXCSR_AT = 24,
    X87_AT = 32,
    X87_BYTES = 128,
    XMM_BYTES = 256,
};
#define TILES (1ull << TBD_VECTOR_TILES)

/* The part of the program's state that this processor lacks: components that are in the images
 * only. */
static _Alignas(64) uint8_t kept[TBD_VECTOR_MAX_BYTES];

static uint64_t read_xcr0(void)
{
    uint32_t low;
    uint32_t high;

    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool has(const struct tbd_vector_layout *layout, unsigned component)
{
    return layout->mask >> component & 1;
}

bool tbd_vector_init(struct tbd_vector_info *info, uint64_t limit)
{
    uint32_t r[4];
    uint32_t compact[4];

    tbd_cpuid(1, 0, r);
    if (!(r[2] >> 27 & 1)) /* OSXSAVE */
        return false;
    (void)tbd_x87_is_exact(); /* asked here because the test changes the x87 state */
    tbd_vector_layout_of_processor(read_xcr0() & limit, &info->cpu);
    info->image = info->cpu;
    info->is_foreign = false;
    info->mxcsr_mask = 0;
    tbd_cpuid(13, 0, r);
    tbd_cpuid(13, 1, compact);
    info->all_bytes = r[2] > compact[1] ? r[2] : compact[1];
    return info->cpu.bytes <= TBD_VECTOR_MAX_BYTES;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* The end of the last one, in either format. */
uint32_t tbd_vector_xsave_bytes(const struct tbd_vector_info *info, uint64_t asked)
{
    uint64_t mask = asked & read_xcr0();
    uint32_t end = TBD_VECTOR_LEGACY + TBD_VECTOR_HEADER;

    for (unsigned i = 2; i < 64 && mask >> i; i++) {
        uint32_t bytes = i < TBD_VECTOR_COMPONENTS ? tbd_vector_component_bytes(i) : 0;

        if (!(mask >> i & 1))
            continue;
        if (!bytes || !(info->cpu.mask >> i & 1))
            return info->all_bytes;
        end = larger(end, info->cpu.offset[i] + bytes);
        end = larger(end, tbd_vector_compacted_offset(mask, i) + bytes);
    }
    return end;
}

bool tbd_vector_adopt(struct tbd_vector_info *info, uint64_t mask, uint32_t bytes)
{
    struct tbd_vector_layout found;

    info->is_foreign = mask != info->cpu.mask || bytes != info->cpu.bytes;
    if (!info->is_foreign) {
        info->image = info->cpu;
        return true;
    }
    if (bytes > TBD_VECTOR_MAX_BYTES || !tbd_vector_layout_find(mask, bytes, &found))
        return false;
    info->image = found;
    return true;
}

static void put(uint8_t *image, size_t at, uint64_t value, size_t bytes)
{
    memcpy(image + at, &value, bytes);
}

static uint64_t get(const uint8_t *image, size_t at)
{
    uint64_t value;

    memcpy(&value, image + at, sizeof(value));
    return value;
}

void tbd_vector_adopt_mxcsr_mask(struct tbd_vector_info *info, const void *image)
{
    memcpy(&info->mxcsr_mask, (const uint8_t *)image + MXCSR_MASK, sizeof(info->mxcsr_mask));
}

static bool is_zero(const uint8_t *bytes, size_t count)
{
    uint64_t any = 0;

    for (size_t i = 0; i < count; i += 8)
        any |= get(bytes, i);
    return !any;
}

/* Are there tiles in the image, of this layout, that are not all zeros?  Those that are not marked are not stored. */
static bool has_tiles(const struct tbd_vector_layout *layout, const uint8_t *image)
{
    return has(layout, TBD_VECTOR_TILES) && get(image, XSTATE_BV) & TILES &&
           !is_zero(image + layout->offset[TBD_VECTOR_TILES],
                    tbd_vector_component_bytes(TBD_VECTOR_TILES));
}

/* Marks what an image has, and returns its length. */
static uint32_t finish(const struct tbd_vector_layout *layout, uint8_t *image, bool has_tiles)
{
    put(image, XSTATE_BV, has_tiles ? layout->mask : layout->mask & ~TILES, 8);
    return has_tiles ? layout->bytes : layout->short_bytes;
}

/* Stores the live state in the processor's own format, in canonical form, and returns its length. */
static uint32_t store_own(const struct tbd_vector_info *info, uint8_t *image)
{
    tbd_x87_settle();
    memset(image, 0, info->cpu.short_bytes);
    tbd_xsave(image, info->cpu.mask);
    if (!(get(image, XSTATE_BV) & XCR0_X87))
        put(image, 0, FCW_INITIAL, 2);
    if (info->mxcsr_mask)
        put(image, MXCSR_MASK, info->mxcsr_mask, sizeof(info->mxcsr_mask));
    return finish(&info->cpu, image, has_tiles(&info->cpu, image));
}

/* Copies the components `which`, which both layouts have, from one image to another. */
static void copy_components(const struct tbd_vector_layout *to, uint8_t *out,
                            const struct tbd_vector_layout *from, const uint8_t *in, uint64_t which)
{
    for (unsigned i = 2; i < TBD_VECTOR_COMPONENTS; i++)
        if (which >> i & 1 && has(to, i) && has(from, i))
            memcpy(out + to->offset[i], in + from->offset[i], tbd_vector_component_bytes(i));
}

uint32_t tbd_vector_store(const struct tbd_vector_info *info, void *image)
{
    _Alignas(64) uint8_t own[TBD_VECTOR_MAX_BYTES];
    uint8_t *bytes = image;

    if (!info->is_foreign)
        return store_own(info, bytes);
    store_own(info, own);
    memset(bytes, 0, info->image.bytes);
    memcpy(bytes, own, TBD_VECTOR_LEGACY);
    copy_components(&info->image, bytes, &info->cpu, own, get(own, XSTATE_BV));
    copy_components(&info->image, bytes, &info->image, kept, tbd_vector_missing(info));
    put(bytes, XSTATE_BV, info->image.mask, 8);
    return finish(&info->image, bytes, has_tiles(&info->image, bytes));
}

/* ---- tiles ---- */

bool tbd_vector_permit_tiles(const struct tbd_vector_info *info)
{
    static bool is_permitted;

    if (is_permitted || !has(&info->cpu, TBD_VECTOR_TILES))
        return false;
    is_permitted =
        !tbd_sys_failed(tbd_sys3(__NR_arch_prctl, ARCH_REQ_XCOMP_PERM, TBD_VECTOR_TILES, 0));
    return is_permitted;
}

bool tbd_vector_uses_tiles(const struct tbd_vector_info *info)
{
    uint32_t low, high;

    if (!has(&info->cpu, TBD_VECTOR_TILES))
        return false;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
    return low >> TBD_VECTOR_TILES & 1;
}

uint32_t tbd_vector_forget_tiles(const struct tbd_vector_info *info, void *image)
{
    return finish(&info->image, image, false);
}

/* Loads an image in the processor's own format.  Tiles that are all zeros are loaded as their initial state: that needs
 * no permission. */
static void load_own(const struct tbd_vector_info *info, const uint8_t *image)
{
    static const _Alignas(64) uint8_t initial[TBD_VECTOR_EXTENDED];

    if (!has(&info->cpu, TBD_VECTOR_TILES)) {
        tbd_xrstor(image, info->cpu.mask);
        return;
    }
    tbd_xrstor(image, info->cpu.mask & ~TILES);
    if (!has_tiles(&info->cpu, image)) {
        tbd_xrstor(initial, TILES);
        return;
    }
    tbd_vector_permit_tiles(info);
    tbd_xrstor(image, TILES);
}

/* The components of `which`, into an image that has space for all but tiles; those in their initial state are not
 * stored. */
static void store_some(const struct tbd_vector_info *info, uint8_t *image, uint64_t which)
{
    memset(image, 0, info->cpu.short_bytes);
    tbd_xsave(image, which & ~TILES);
}

void tbd_vector_read_tile_config(const struct tbd_vector_info *info,
                                 uint8_t out[TBD_VECTOR_TILE_CONFIG_BYTES])
{
    _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES];

    memset(out, 0, TBD_VECTOR_TILE_CONFIG_BYTES);
    if (!has(&info->cpu, TBD_VECTOR_TILE_CONFIG))
        return;
    store_some(info, image, 1ull << TBD_VECTOR_TILE_CONFIG);
    memcpy(out, image + info->cpu.offset[TBD_VECTOR_TILE_CONFIG], TBD_VECTOR_TILE_CONFIG_BYTES);
}

void tbd_vector_read_tile(const struct tbd_vector_info *info, uint8_t number,
                          uint8_t out[TBD_VECTOR_TILE_BYTES])
{
    _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES];

    memset(out, 0, TBD_VECTOR_TILE_BYTES);
    if (!has(&info->cpu, TBD_VECTOR_TILES))
        return;
    memset(image, 0, info->cpu.bytes);
    tbd_xsave(image, TILES);
    memcpy(out, image + info->cpu.offset[TBD_VECTOR_TILES] + number * TBD_VECTOR_TILE_BYTES,
           TBD_VECTOR_TILE_BYTES);
}

/* ---- loading ---- */

void tbd_vector_load(const struct tbd_vector_info *info, const void *image)
{
    _Alignas(64) uint8_t own[TBD_VECTOR_MAX_BYTES];
    uint64_t present;

    if (!info->is_foreign) {
        load_own(info, image);
        return;
    }
    present = get(image, XSTATE_BV);
    memset(own, 0, info->cpu.bytes);
    memset(kept, 0, sizeof(kept));
    memcpy(own, image, TBD_VECTOR_LEGACY);
    copy_components(&info->cpu, own, &info->image, image, present);
    copy_components(&info->image, kept, &info->image, image, present & tbd_vector_missing(info));
    put(own, XSTATE_BV, present & info->image.mask & info->cpu.mask, 8);
    load_own(info, own);
}

bool tbd_vector_lacks_upper_halves(const struct tbd_vector_info *info)
{
    const uint8_t *upper = kept + info->image.offset[TBD_VECTOR_ZMM];
    uint8_t any = 0;

    if (!(tbd_vector_missing(info) >> TBD_VECTOR_ZMM & 1))
        return false;
    for (uint32_t i = 0; i < tbd_vector_component_bytes(TBD_VECTOR_ZMM); i++)
        any |= upper[i];
    return any;
}

/* ---- xrstor of an image in the recording's format ---- */

struct restored {
    const uint8_t *image;
    uint64_t present; /* components in it */
    /* components in its layout, with TBD_VECTOR_COMPACTED; 0: standard format */
    uint64_t compacted;
};

/* Legacy components: x87 and SSE share the first 512 bytes. */
static void restore_legacy(const struct restored *from, uint64_t asked, uint8_t *frame)
{
    _Alignas(8) uint8_t initial[TBD_VECTOR_LEGACY] = { 0 };
    const uint8_t *x87 = from->present & XCR0_X87 ? from->image : initial;
    const uint8_t *sse = from->present >> TBD_VECTOR_SSE & 1 ? from->image : initial;

    put(initial, 0, FCW_INITIAL, 2);
    put(initial, MXCSR_AT, MXCSR_INITIAL, 4);
    if (asked & XCR0_X87) {
        memcpy(frame, x87, MXCSR_AT);
        memcpy(frame + X87_AT, x87 + X87_AT, X87_BYTES);
    }
    if (asked >> TBD_VECTOR_SSE & 1)
        memcpy(frame + XMM_AT, sse + XMM_AT, XMM_BYTES);
    if (asked >> TBD_VECTOR_SSE &
        3) /* MXCSR: the standard format has it for AVX, too, and always */
        memcpy(frame + MXCSR_AT, (from->compacted ? sse : from->image) + MXCSR_AT, 4);
}

static void restore_component(const struct tbd_vector_info *info, const struct restored *from,
                              unsigned component, uint8_t *frame)
{
    uint32_t bytes = tbd_vector_component_bytes(component);
    uint32_t at = from->compacted ? tbd_vector_compacted_offset(from->compacted, component)
                                  : info->image.offset[component];
    uint8_t *to = has(&info->cpu, component) ? frame + info->cpu.offset[component]
                                             : kept + info->image.offset[component];

    if (from->present >> component & 1)
        memcpy(to, from->image + at, bytes);
    else
        memset(to, 0, bytes);
}

void tbd_vector_restore_in_frame(const struct tbd_vector_info *info, const uint8_t *image,
                                 uint64_t asked, uint8_t *frame)
{
    uint64_t compacted = get(image, XCOMP_BV);
    struct restored from = { .image = image,
                             .present = get(image, XSTATE_BV),
                             .compacted = compacted & TBD_VECTOR_COMPACTED ? compacted : 0 };

    asked &= info->image.mask;
    if (has(&info->cpu, TBD_VECTOR_TILES) && !(get(frame, FRAME_COMPONENTS) & TILES))
        asked &= ~TILES; /* no instruction has used tiles: the frame has no space for them */
    restore_legacy(&from, asked, frame);
    for (unsigned i = 2; i < TBD_VECTOR_COMPONENTS; i++)
        if (asked >> i & 1)
            restore_component(info, &from, i, frame);
    put(frame, XSTATE_BV, get(frame, XSTATE_BV) | (asked & info->cpu.mask), 8);
}

/* ---- initial state ---- */

void tbd_vector_clear(const struct tbd_vector_info *info)
{
    _Alignas(64) uint8_t image[TBD_VECTOR_EXTENDED];

    memset(image, 0, sizeof(image));
    memset(kept, 0, sizeof(kept));
    put(image, 0, FCW_INITIAL, 2);
    put(image, MXCSR_AT, MXCSR_INITIAL, 4);
    tbd_xrstor(image, info->cpu.mask);
}

/* ---- single registers ---- */

void tbd_vector_read(const struct tbd_vector_info *info, uint8_t number, uint8_t *out)
{
    _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES];
    const struct tbd_vector_layout *own = &info->cpu;

    memset(out, 0, TBD_VECTOR_REGISTER_BYTES);
    store_some(info, image, own->mask & ~(uint64_t)XCR0_X87);
    if (number >= 16) {
        if (has(own, TBD_VECTOR_HIGH))
            memcpy(out, image + own->offset[TBD_VECTOR_HIGH] + (number - 16u) * 64u, 64);
        return;
    }
    memcpy(out, image + XMM_AT + number * 16u, 16);
    if (has(own, TBD_VECTOR_YMM))
        memcpy(out + 16, image + own->offset[TBD_VECTOR_YMM] + number * 16u, 16);
    if (has(own, TBD_VECTOR_ZMM))
        memcpy(out + 32, image + own->offset[TBD_VECTOR_ZMM] + number * 32u, 32);
}

void tbd_vector_write(const struct tbd_vector_info *info, uint8_t number, const uint8_t *bytes)
{
    _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES];
    const struct tbd_vector_layout *own = &info->cpu;
    uint64_t mask = own->mask & ~(XCR0_X87 | TBD_VECTOR_AMX);

    store_some(info, image, mask);
    put(image, XSTATE_BV, mask, 8);
    if (number >= 16) {
        if (has(own, TBD_VECTOR_HIGH))
            memcpy(image + own->offset[TBD_VECTOR_HIGH] + (number - 16u) * 64u, bytes, 64);
    } else {
        memcpy(image + XMM_AT + number * 16u, bytes, 16);
        if (has(own, TBD_VECTOR_YMM))
            memcpy(image + own->offset[TBD_VECTOR_YMM] + number * 16u, bytes + 16, 16);
        if (has(own, TBD_VECTOR_ZMM))
            memcpy(image + own->offset[TBD_VECTOR_ZMM] + number * 32u, bytes + 32, 32);
    }
    tbd_xrstor(image, mask);
}

/* The component is not stored in its initial state, which is all zeros. */
static uint8_t *read_masks(const struct tbd_vector_info *info, uint8_t *image)
{
    uint8_t *masks = image + info->cpu.offset[TBD_VECTOR_MASKS];

    memset(image + TBD_VECTOR_LEGACY, 0, TBD_VECTOR_HEADER);
    memset(masks, 0, tbd_vector_component_bytes(TBD_VECTOR_MASKS));
    tbd_xsave(image, 1ull << TBD_VECTOR_MASKS);
    return masks;
}

uint64_t tbd_vector_read_mask(const struct tbd_vector_info *info, uint8_t number)
{
    _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES];
    uint64_t value = 0;

    if (has(&info->cpu, TBD_VECTOR_MASKS))
        memcpy(&value, read_masks(info, image) + number * 8u, sizeof(value));
    return value;
}

void tbd_vector_write_mask(const struct tbd_vector_info *info, uint8_t number, uint64_t value)
{
    _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES];

    if (!has(&info->cpu, TBD_VECTOR_MASKS))
        return;
    put(read_masks(info, image), number * 8u, value, 8);
    put(image, XSTATE_BV, 1ull << TBD_VECTOR_MASKS, 8);
    tbd_xrstor(image, 1ull << TBD_VECTOR_MASKS);
}
