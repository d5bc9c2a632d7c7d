// SPDX-License-Identifier: MIT
/* vector_layout.h - the layout of an XSAVE image
 *
 * In the standard format, offsets of components differ between makers of processors.  A trace has
 * the components and the length of its images: these tell the maker.  No state; any context. */
#ifndef TBD_BASE_VECTOR_LAYOUT_H
#define TBD_BASE_VECTOR_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#define TBD_VECTOR_COMPONENTS 20u
#define TBD_VECTOR_V3         7ull /* x86-64-v3: x87, SSE and AVX */
#define TBD_VECTOR_LEGACY     512u /* components 0 and 1 */
#define TBD_VECTOR_HEADER                                                                          \
    64u /* after the legacy region: components in use, components in a compacted image */
#define TBD_VECTOR_EXTENDED  (TBD_VECTOR_LEGACY + TBD_VECTOR_HEADER)
#define TBD_VECTOR_COMPACTED (1ull << 63)
/* In the legacy region: addresses, of 8 bytes, of the last x87 instruction and its operand. */
#define TBD_VECTOR_X87_RIP     8u
#define TBD_VECTOR_X87_OPERAND 16u
#define TBD_VECTOR_XMM         160u /* xmm0 to xmm15 */
/* There too: 48 bytes that the processor leaves alone (Intel SDM, volume 1, 13.4.1).  In a signal frame they are struct _fpx_sw_bytes (asm/sigcontext.h); an image
 * of ptrace() or a core file begins them with the components that the kernel has enabled. */
#define TBD_VECTOR_SOFTWARE 464u

enum tbd_vector_component {
    TBD_VECTOR_X87 = 0,
    TBD_VECTOR_SSE = 1,
    TBD_VECTOR_YMM = 2, /* upper halves of ymm0-15 */
    TBD_VECTOR_MASKS = 5,
    TBD_VECTOR_ZMM = 6,  /* upper halves of zmm0-15 */
    TBD_VECTOR_HIGH = 7, /* zmm16-31 */
    TBD_VECTOR_TILE_CONFIG = 17,
    TBD_VECTOR_TILES = 18,
};
#define TBD_VECTOR_AVX512                                                                          \
    (1ull << TBD_VECTOR_MASKS | 1ull << TBD_VECTOR_ZMM | 1ull << TBD_VECTOR_HIGH)

#define TBD_VECTOR_AMX (1ull << TBD_VECTOR_TILE_CONFIG | 1ull << TBD_VECTOR_TILES)

struct tbd_vector_layout {
    uint64_t mask;                          /* components in images */
    uint32_t bytes;                         /* of an image */
    uint32_t short_bytes;                   /* of an image without tiles, which are last */
    uint32_t offset[TBD_VECTOR_COMPONENTS]; /* of components 2 and up */
};

/* Where the last component but tiles ends. */
uint32_t tbd_vector_layout_end(const struct tbd_vector_layout *layout);
/* Bytes of a component from 2 on; 0: not known. */
uint32_t tbd_vector_component_bytes(unsigned component);
/* The layout of this processor's images with these components. */
void tbd_vector_layout_of_processor(uint64_t mask, struct tbd_vector_layout *out);
/* The layout of images with these components and this length.  False: it is not known. */
bool tbd_vector_layout_find(uint64_t mask, uint32_t bytes, struct tbd_vector_layout *out);
/* The offset of a component in a compacted image with the components of `mask`. */
uint32_t tbd_vector_compacted_offset(uint64_t mask, unsigned component);
/* Bytes `first` to `first` + `bytes` - 1, up to 8 and within 64, of vector register `number` (0 to 31) in an image of the standard
 * format that has `image_bytes`.  A component that is not in use is zeros.  False: the image does not have them. */
bool tbd_vector_image_read(const struct tbd_vector_layout *layout, const uint8_t *image,
                           uint32_t image_bytes, unsigned number, unsigned first, unsigned bytes,
                           uint64_t *out);

#endif
