// SPDX-License-Identifier: MIT
/* vector.h - the program's vector state, which is live in the processor while the engine runs
 *
 * Images are in XSAVE's standard (non-compacted) format.  In a replay their format is that of the
 * recording, whose processor may have had more components than this one.  These are kept in memory
 * beside the live state, as long as no instruction uses them.  Contexts: BOOT, APP, SIG. */
#ifndef TBD_HOOKS_VECTOR_H
#define TBD_HOOKS_VECTOR_H

#include "base/vector_layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_VECTOR_MAX_BYTES 11264u

struct tbd_vector_info {
    struct tbd_vector_layout image;
    struct tbd_vector_layout cpu; /* the components of this processor that are used */
    uint32_t all_bytes;           /* most bytes that any form of xsave with any mask writes */
    uint32_t mxcsr_mask;          /* of the recording's processor; 0: this processor's own */
    bool is_foreign;              /* images have another processor's format */
};

/* False if the processor has no XSAVE, or an image is too large.  `limit`: the components that may
 * be used (TBD_VECTOR_V3; UINT64_MAX: all). */
bool tbd_vector_init(struct tbd_vector_info *info, uint64_t limit);
/* At most this many bytes are written by any form of xsave that is asked for these components. */
uint32_t tbd_vector_xsave_bytes(const struct tbd_vector_info *info, uint64_t asked);
/* From now on images have the format of a processor with these components and this length.  False:
 * their layout is not known. */
bool tbd_vector_adopt(struct tbd_vector_info *info, uint64_t mask, uint32_t bytes);
/* From now on stored images have the MXCSR_MASK of `image`, which is a constant of the processor
 * and differs between makers (AMD APM volume 2, 11.4.4: bit 17). */
void tbd_vector_adopt_mxcsr_mask(struct tbd_vector_info *info, const void *image);
/* Components of the images that this processor lacks. */
static inline uint64_t tbd_vector_missing(const struct tbd_vector_info *info)
{
    return info->image.mask & ~info->cpu.mask;
}
/* Is an upper half of zmm0 .. zmm15 in use that this processor lacks?  Instructions that this
 * processor has would clear it. */
bool tbd_vector_lacks_upper_halves(const struct tbd_vector_info *info);

/* Stores the live state into `image` (64-byte aligned, space for TBD_VECTOR_MAX_BYTES), and returns its length:
 * image.bytes, or image.short_bytes if all tiles are zeros.  Canonical: every component that it has is marked as present,
 * and the x87 instruction pointer is the program's; so equal states give equal bytes. */
uint32_t tbd_vector_store(const struct tbd_vector_info *info, void *image);
/* Can an image have this length? */
static inline bool tbd_vector_fits(const struct tbd_vector_info *info, uint32_t bytes)
{
    return bytes == info->image.bytes || bytes == info->image.short_bytes;
}
/* Loads an image, whose marks say whether it has tiles; if so, they are permitted first.  Unlike images of tbd_vector_store(), it may have components that are not marked
 * as present. */
void tbd_vector_load(const struct tbd_vector_info *info, const void *image);
/* Carries out xrstor of the components `asked` from `image`, an operand in the recording's format:
 * changes `frame`, the XSAVE image that the kernel will load.  `compacted` says how `image` is laid
 * out. */
void tbd_vector_restore_in_frame(const struct tbd_vector_info *info, const uint8_t *image,
                                 uint64_t asked, uint8_t *frame);
#define TBD_VECTOR_REGISTER_BYTES 64u
/* Reads vector register `number` (0 .. 31); bytes that the processor lacks are zero. */
void tbd_vector_read(const struct tbd_vector_info *info, uint8_t number, uint8_t *out);
/* Writes it: 64 bytes, or as many as the processor has. */
void tbd_vector_write(const struct tbd_vector_info *info, uint8_t number, const uint8_t *bytes);
/* Mask register k `number`. */
uint64_t tbd_vector_read_mask(const struct tbd_vector_info *info, uint8_t number);
void tbd_vector_write_mask(const struct tbd_vector_info *info, uint8_t number, uint64_t value);

/* ---- tiles (AMX) ----
 *
 * They are last in images, which have them only if they are not all zeros.  The kernel raises SIGILL at their first use in a process that has not got its permission for them (arch_prctl). */
#define TBD_VECTOR_TILE_CONFIG_BYTES 64u
#define TBD_VECTOR_TILE_BYTES        1024u /* at most 16 rows of 64 bytes, one each 64 bytes */
/* The configuration of tiles, as sttilecfg stores it. */
void tbd_vector_read_tile_config(const struct tbd_vector_info *info,
                                 uint8_t out[TBD_VECTOR_TILE_CONFIG_BYTES]);
void tbd_vector_read_tile(const struct tbd_vector_info *info, uint8_t number,
                          uint8_t out[TBD_VECTOR_TILE_BYTES]);
/* Are tiles in use in this thread, now? */
bool tbd_vector_uses_tiles(const struct tbd_vector_info *info);
/* Makes all tiles of an image zeros, as a new thread has them; returns its length. */
uint32_t tbd_vector_forget_tiles(const struct tbd_vector_info *info, void *image);
/* Replay: has the kernel permit tiles.  False: it had before, or there are none. */
bool tbd_vector_permit_tiles(const struct tbd_vector_info *info);

/* ---- others ---- */

/* Initial state, as the kernel gives it to a signal handler. */
void tbd_vector_clear(const struct tbd_vector_info *info);

/* Runs fn(arg), which may use SSE. */
void tbd_vector_call(void (*fn)(void *), void *arg, void *save);
#define TBD_VECTOR_CALL_BYTES 272u

/* x87.c: replaces the x87 instruction pointer and opcode, which are those of translated code, by
 * the program's. */
void tbd_x87_settle(void);
/* Likewise, after an instruction that ran on a copy of its operand. */
void tbd_x87_settle_operand(uint64_t operand);
/* Can they be read and set?  Some processors give them only to fnstenv and fnsave, and lose them at
 * every context switch. */
bool tbd_x87_is_exact(void);
/* Called after the instruction at `pc` was run.  If it is fnstenv or fnsave, on such a processor,
 * sets the program's values in the bytes that it stored at `address`. */
void tbd_x87_correct_environment(uint64_t pc, uint32_t length, uint64_t address);
/* Called after the log's bytes were stored in place of running the instruction at `pc`.  If it is
 * fnstenv or fnsave, changes the x87 state as it does. */
void tbd_x87_environment_stored(uint64_t pc, uint32_t length);

/* The instructions alone (vector_x86_64.S). */
void tbd_xsave(void *image, uint64_t mask);
void tbd_xrstor(const void *image, uint64_t mask);

#endif
