// SPDX-License-Identifier: MIT
// links: tbd_vector_host
/* test_vector.c - images of another processor's vector registers, on one that is limited to AVX
 *
 * Layouts are those that cpuid leaf 13 gave on processors of both makers. */
#include "hooks/instructions/cpu_limit.h"
#include "hooks/instructions/vector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#define INTEL_BYTES 2688u
#define AMD_BYTES   2432u
#define TILES_AT    2816u
#define TILE_BYTES  11008u
#define AVX512      0xe7ull
#define PKRU        (1ull << 9)
#define TILE_CONFIG (1ull << TBD_VECTOR_TILE_CONFIG)

/* x87.c is about translated code. */
void tbd_x87_settle(void)
{
}

bool tbd_x87_is_exact(void)
{
    return true;
}

static void layouts_are_known_by_components_and_length(void **state)
{
    static const struct {
        uint64_t mask;
        uint32_t bytes, masks, zmm, high, pkru;
    } known[] = {
        { 7, 832, 0, 0, 0, 0 },
        { AVX512, INTEL_BYTES, 1088, 1152, 1664, 0 },
        { AVX512, AMD_BYTES, 832, 896, 1408, 0 },
        { AVX512 | 0x18, INTEL_BYTES, 1088, 1152, 1664, 0 },
        { AVX512 | PKRU, 2696, 1088, 1152, 1664, 2688 },
        { AVX512 | PKRU, 2440, 832, 896, 1408, 2432 },
        { 7 | PKRU, 2696, 0, 0, 0, 2688 },
        { 7 | PKRU, 840, 0, 0, 0, 832 },
        { AVX512 | TILE_CONFIG, 2816, 1088, 1152, 1664, 0 },
        { AVX512 | TBD_VECTOR_AMX, 11008, 1088, 1152, 1664, 0 },
        { AVX512 | PKRU | TBD_VECTOR_AMX, 11008, 1088, 1152, 1664, 2688 },
    };
    struct tbd_vector_layout found;

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        assert_true(tbd_vector_layout_find(known[i].mask, known[i].bytes, &found));
        assert_int_equal(found.offset[TBD_VECTOR_YMM], 576);
        assert_int_equal(found.offset[TBD_VECTOR_MASKS], known[i].masks);
        assert_int_equal(found.offset[TBD_VECTOR_ZMM], known[i].zmm);
        assert_int_equal(found.offset[TBD_VECTOR_HIGH], known[i].high);
        assert_int_equal(found.offset[9], known[i].pkru);
    }
}

static void other_layouts_are_refused(void **state)
{
    static const struct {
        uint64_t mask;
        uint32_t bytes;
    } unknown[] = {
        { AVX512, 2500 },
        { AVX512, 832 },
        { 7, AMD_BYTES },
        { 7, 0 },
        { AVX512 | 1ull << 18, 12000 },
        { AVX512 | TILE_CONFIG, AMD_BYTES + 64 },
        { 7 | PKRU, 7 },
        { 7 | PKRU, 836 },
        { 1ull << 62, 576 },
        { 7 | 1ull << 12, 860 },
    };
    struct tbd_vector_layout found;

    (void)state;
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        assert_false(tbd_vector_layout_find(unknown[i].mask, unknown[i].bytes, &found));
}

/* ---- images ---- */

static struct tbd_vector_info info;
static _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES], again[TBD_VECTOR_MAX_BYTES];

static int start(void **state)
{
    (void)state;
    memset(image, 0, sizeof(image));
    image[0] = 0x7f;
    image[1] = 3;
    image[24] = 0x80;
    image[25] = 0x1f;
    return tbd_vector_init(&info, TBD_VECTOR_V3) && info.cpu.mask == TBD_VECTOR_V3 ? 0 : -1;
}

static void mark_present(uint64_t which)
{
    memcpy(image + TBD_VECTOR_LEGACY, &which, sizeof(which));
}

static void fill(uint32_t at, uint32_t bytes, uint8_t with)
{
    for (uint32_t i = 0; i < bytes; i++)
        image[at + i] = (uint8_t)(with + i);
}

static void what_is_missing_is_kept(void **state)
{
    (void)state;
    assert_true(tbd_vector_adopt(&info, AVX512, INTEL_BYTES));
    assert_true(info.is_foreign);
    assert_int_equal(tbd_vector_missing(&info), TBD_VECTOR_AVX512);
    fill(1088, 64, 3);
    fill(1664, 1024, 9);
    mark_present(AVX512);
    tbd_vector_load(&info, image);
    assert_false(tbd_vector_lacks_upper_halves(&info));
    tbd_vector_store(&info, again);
    assert_memory_equal(image + 1088, again + 1088, INTEL_BYTES - 1088);
    assert_memory_equal(image + TBD_VECTOR_LEGACY, again + TBD_VECTOR_LEGACY, TBD_VECTOR_HEADER);
    fill(1152, 32, 1);
    tbd_vector_load(&info, image);
    assert_true(tbd_vector_lacks_upper_halves(&info));
}

static void components_that_are_not_marked_are_clear(void **state)
{
    (void)state;
    assert_true(tbd_vector_adopt(&info, AVX512, INTEL_BYTES));
    fill(1088, INTEL_BYTES - 1088, 5);
    mark_present(TBD_VECTOR_V3 | 1ull << TBD_VECTOR_HIGH);
    tbd_vector_load(&info, image);
    tbd_vector_store(&info, again);
    assert_memory_equal(image + 1664, again + 1664, 1024);
    for (uint32_t i = 1088; i < 1664; i++)
        assert_int_equal(again[i], 0);
    tbd_vector_clear(&info);
    tbd_vector_store(&info, again);
    for (uint32_t i = 1088; i < INTEL_BYTES; i++)
        assert_int_equal(again[i], 0);
}

/* They are last, and left out as long as all are zeros. */
static void tiles_are_there_if_they_are_in_use(void **state)
{
    uint64_t all = AVX512 | TBD_VECTOR_AMX, marked;

    (void)state;
    assert_true(tbd_vector_adopt(&info, all, TILE_BYTES));
    assert_int_equal(info.image.short_bytes, TILES_AT);
    assert_true(tbd_vector_fits(&info, TILE_BYTES) && tbd_vector_fits(&info, TILES_AT));
    assert_false(tbd_vector_fits(&info, INTEL_BYTES));
    fill(TILES_AT - 64, 64, 1); /* the configuration */
    mark_present(all);
    tbd_vector_load(&info, image);
    assert_int_equal(tbd_vector_store(&info, again), TILES_AT);
    assert_memory_equal(image + INTEL_BYTES, again + INTEL_BYTES, TILES_AT - INTEL_BYTES);
    memcpy(&marked, again + TBD_VECTOR_LEGACY, sizeof(marked));
    assert_int_equal(marked, all & ~(1ull << TBD_VECTOR_TILES));
    image[TILE_BYTES - 1] = 1;
    tbd_vector_load(&info, image);
    assert_int_equal(tbd_vector_store(&info, again), TILE_BYTES);
    assert_memory_equal(image + TILES_AT, again + TILES_AT, TILE_BYTES - TILES_AT);
    assert_int_equal(tbd_vector_forget_tiles(&info, again), TILES_AT);
    tbd_vector_load(&info, again); /* as its marks say */
    assert_int_equal(tbd_vector_store(&info, again), TILES_AT);
}

static void own_images_need_no_change(void **state)
{
    (void)state;
    assert_true(tbd_vector_adopt(&info, AVX512, AMD_BYTES));
    assert_true(tbd_vector_adopt(&info, info.cpu.mask, info.cpu.bytes));
    assert_false(info.is_foreign);
    assert_false(tbd_vector_adopt(&info, AVX512, 1234));
}

static void the_mask_of_mxcsr_is_the_recordings(void **state)
{
    static const uint32_t intel = 0xffff, amd = 0x2ffff;

    (void)state;
    for (unsigned foreign = 0; foreign < 2; foreign++) {
        if (foreign)
            assert_true(tbd_vector_adopt(&info, AVX512, INTEL_BYTES));
        memcpy(image + 28, &intel, sizeof(intel));
        tbd_vector_adopt_mxcsr_mask(&info, image);
        tbd_vector_store(&info, again);
        assert_memory_equal(again + 28, &intel, sizeof(intel));
        memcpy(image + 28, &amd, sizeof(amd));
        tbd_vector_adopt_mxcsr_mask(&info, image);
        tbd_vector_store(&info, again);
        assert_memory_equal(again + 28, &amd, sizeof(amd));
    }
}

/* ---- xrstor ---- */

static uint8_t frame[TBD_VECTOR_MAX_BYTES];

static void a_compacted_operand_is_restored(void **state)
{
    uint64_t compacted = TBD_VECTOR_COMPACTED | 0xe6, asked = 0xee, present;

    (void)state;
    assert_true(tbd_vector_adopt(&info, AVX512, INTEL_BYTES));
    fill(160, 256, 1);                   /* xmm */
    fill(576, 256, 2);                   /* ymm */
    fill(576 + 256, 64, 3);              /* masks */
    fill(576 + 256 + 64 + 512, 1024, 4); /* zmm16-31; zmm is clear */
    mark_present(1u << 1 | 1u << 2 | 1u << 5 | 1u << 7);
    memcpy(image + 520, &compacted, sizeof(compacted));
    memset(frame, 0xcc, sizeof(frame));
    memset(frame + TBD_VECTOR_LEGACY, 0, TBD_VECTOR_HEADER);
    tbd_vector_restore_in_frame(&info, image, asked, frame);
    assert_memory_equal(frame + 160, image + 160, 256);
    assert_memory_equal(frame + info.cpu.offset[TBD_VECTOR_YMM], image + 576, 256);
    assert_int_equal(frame[0], 0xcc); /* x87 was not asked for */
    memcpy(&present, frame + TBD_VECTOR_LEGACY, sizeof(present));
    assert_int_equal(present, 6);
    tbd_vector_store(&info, again);
    assert_memory_equal(again + 1088, image + 576 + 256, 64);
    assert_memory_equal(again + 1664, image + 576 + 256 + 64 + 512, 1024);
    for (uint32_t i = 0; i < 512; i++)
        assert_int_equal(again[1152 + i], 0);
}

static void a_standard_operand_is_restored(void **state)
{
    (void)state;
    assert_true(tbd_vector_adopt(&info, AVX512, AMD_BYTES));
    fill(32, 128, 7);
    fill(896, 512, 6);
    mark_present(1);
    memset(frame, 0xcc, sizeof(frame));
    tbd_vector_restore_in_frame(&info, image, 0x47, frame);
    assert_memory_equal(frame + 32, image + 32, 128);
    for (uint32_t i = 0; i < 256; i++) {
        assert_int_equal(frame[160 + i], 0); /* not in the operand: initial */
        assert_int_equal(frame[info.cpu.offset[TBD_VECTOR_YMM] + i], 0);
    }
    assert_memory_equal(frame + 24, image + 24, 4);
    assert_false(tbd_vector_lacks_upper_halves(&info));
    mark_present(1 | 1ull << TBD_VECTOR_ZMM);
    tbd_vector_restore_in_frame(&info, image, 0x47, frame);
    assert_true(tbd_vector_lacks_upper_halves(&info));
}

/* ---- cpu=v3 ---- */

static void cpuid_of_v3_has_none_of_it(void **state)
{
    struct tbd_regs before = { 0 }, after;

    (void)state;
    before.gpr[TBD_RAX] = 7;
    after = before;
    after.gpr[TBD_RBX] = after.gpr[TBD_RCX] = after.gpr[TBD_RDX] = UINT32_MAX;
    tbd_cpu_limit(TBD_SPECIAL_CPUID, &before, &after);
    assert_int_equal(after.gpr[TBD_RBX] >> 16 & 1, 0);   /* AVX512F */
    assert_int_equal(after.gpr[TBD_RBX] & 0x128, 0x128); /* BMI1, AVX2, BMI2 */
    assert_int_equal(after.gpr[TBD_RCX] & 1u << 3, 0);   /* protection keys */
    before.gpr[TBD_RAX] = 13;
    after.gpr[TBD_RAX] = 0x2e7;
    after.gpr[TBD_RBX] = 2696;
    tbd_cpu_limit(TBD_SPECIAL_CPUID, &before, &after);
    assert_int_equal(after.gpr[TBD_RAX], 7);
    assert_int_equal(after.gpr[TBD_RBX], 832);
    after.gpr[TBD_RAX] = 0xe7;
    tbd_cpu_limit(TBD_SPECIAL_XGETBV, &before, &after);
    assert_int_equal(after.gpr[TBD_RAX], 7);
    before.gpr[TBD_RAX] = 0x1d; /* tiles */
    after.gpr[TBD_RAX] = 1;
    tbd_cpu_limit(TBD_SPECIAL_CPUID, &before, &after);
    assert_int_equal(after.gpr[TBD_RAX], 0);
    before.gpr[TBD_RAX] = 1;
    after.gpr[TBD_RCX] = UINT32_MAX;
    tbd_cpu_limit(TBD_SPECIAL_CPUID, &before, &after);
    assert_int_equal(after.gpr[TBD_RCX], UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_are_known_by_components_and_length),
        cmocka_unit_test(other_layouts_are_refused),
        cmocka_unit_test_setup(what_is_missing_is_kept, start),
        cmocka_unit_test_setup(components_that_are_not_marked_are_clear, start),
        cmocka_unit_test_setup(tiles_are_there_if_they_are_in_use, start),
        cmocka_unit_test_setup(own_images_need_no_change, start),
        cmocka_unit_test_setup(the_mask_of_mxcsr_is_the_recordings, start),
        cmocka_unit_test_setup(a_compacted_operand_is_restored, start),
        cmocka_unit_test_setup(a_standard_operand_is_restored, start),
        cmocka_unit_test(cpuid_of_v3_has_none_of_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
