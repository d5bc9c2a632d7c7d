// SPDX-License-Identifier: MIT
/* vector.h - the program's vector state, which is live in the processor while the engine runs
 *
 * Images are in XSAVE's standard (non-compacted) format.  In a replay they are those of the recording,
 * whose processor may have had other registers than this one: what it had more is kept beside, as long
 * as nothing that runs here can tell.  Contexts: BOOT, APP, SIG. */
#ifndef TBD_HOOKS_VECTOR_H
#define TBD_HOOKS_VECTOR_H

#include "hooks/instructions/vector_layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_VECTOR_MAX_BYTES 4096u

struct tbd_vector_info {
    struct tbd_vector_layout image;
    struct tbd_vector_layout cpu; /* what this processor has, as far as it is used */
    uint32_t all_bytes;           /* the most that any xsave form with any mask writes */
    bool is_foreign;              /* images are another processor's */
};

/* False when the processor has no XSAVE, or an image is too large.  `limit`: components that are
 * used of what the processor has (TBD_VECTOR_V3; UINT64_MAX: all). */
bool tbd_vector_init(struct tbd_vector_info *info, uint64_t limit);
/* Images are from now on those of a processor with these components and so many bytes.  False: nobody
 * knows what lies where in them. */
bool tbd_vector_adopt(struct tbd_vector_info *info, uint64_t mask, uint32_t bytes);
/* Components of the images that this processor lacks. */
static inline uint64_t tbd_vector_missing(const struct tbd_vector_info *info)
{
    return info->image.mask & ~info->cpu.mask;
}
/* Is part of a zmm0 .. zmm15 in use that this processor lacks?  Instructions that it has would
 * clear that. */
bool tbd_vector_lacks_upper_halves(const struct tbd_vector_info *info);

/* Stores the live state into `image` (64-byte aligned, info->bytes).  Canonical: every
 * component is marked as present, and the x87 instruction pointer is the program's; so equal
 * states give equal bytes. */
void tbd_vector_store(const struct tbd_vector_info *info, void *image);
/* Loads an image: made by tbd_vector_store(), or with components that are not marked as present. */
void tbd_vector_load(const struct tbd_vector_info *info, const void *image);
/* What xrstor does with `image`, an operand of the recording's format, for the components of `asked`: in the
 * XSAVE image that the kernel will load from `frame`.  `compacted` says how `image` is laid out. */
void tbd_vector_restore_in_frame(const struct tbd_vector_info *info, const uint8_t *image,
                                 uint64_t asked, uint8_t *frame);
#define TBD_VECTOR_REGISTER_BYTES 64u
/* Contents of vector register `number` (0 .. 31), zero where the processor has less. */
void tbd_vector_read(const struct tbd_vector_info *info, uint8_t number, uint8_t *out);
/* Its new contents, all 64 bytes or as many as the processor has. */
void tbd_vector_write(const struct tbd_vector_info *info, uint8_t number, const uint8_t *bytes);
/* Mask register k `number`. */
uint64_t tbd_vector_read_mask(const struct tbd_vector_info *info, uint8_t number);
void tbd_vector_write_mask(const struct tbd_vector_info *info, uint8_t number, uint64_t value);
/* Initial state, as the kernel gives it to a signal handler. */
void tbd_vector_clear(const struct tbd_vector_info *info);

/* Runs fn(arg), which may use SSE and (with fs != 0) thread-local storage at fs. */
void tbd_vector_call(void (*fn)(void *), void *arg, void *save, uint64_t fs);
#define TBD_VECTOR_CALL_BYTES 272u

/* x87.c.  The x87 instruction pointer and opcode, which are those of translated code, become
 * the program's. */
void tbd_x87_settle(void);
/* The same behind an instruction that ran on a copy of its operand. */
void tbd_x87_settle_operand(uint64_t operand);
/* Does the processor let them be seen and set?  Others show them to fnstenv and fnsave only, and
 * lose them whenever the kernel has another thread run. */
bool tbd_x87_is_exact(void);
/* The instruction at `pc` was run; if it is one of those two, and the processor one of those
 * others, what it stored at `address` is made to be the program's. */
void tbd_x87_correct_environment(uint64_t pc, uint32_t length, uint64_t address);
/* The instruction at `pc` was not run, but what it stores was: what those two do to the x87
 * state besides. */
void tbd_x87_environment_stored(uint64_t pc, uint32_t length);

/* The bare instructions (vector_x86_64.S). */
void tbd_xsave(void *image, uint64_t mask);
void tbd_xrstor(const void *image, uint64_t mask);

static inline void tbd_cpuid(uint32_t leaf, uint32_t sub, uint32_t out[4])
{
    __asm__ volatile("cpuid"
                     : "=a"(out[0]), "=b"(out[1]), "=c"(out[2]), "=d"(out[3])
                     : "a"(leaf), "c"(sub));
}

#endif
