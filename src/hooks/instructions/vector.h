// SPDX-License-Identifier: MIT
/* vector.h - the program's vector state, which is live in the processor while the engine runs
 *
 * Images are in XSAVE's standard (non-compacted) format.  Contexts: BOOT, APP, SIG. */
#ifndef TBD_HOOKS_VECTOR_H
#define TBD_HOOKS_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_VECTOR_MAX_BYTES 4096u

struct tbd_vector_info {
    uint64_t mask;      /* components in images: XCR0 without AMX tiles */
    uint32_t bytes;     /* of an image */
    uint32_t all_bytes; /* the most that any xsave form with any mask writes */
    /* of components 2 .. 7 in an image (asking the processor is slow in a VM) */
    uint32_t offset[8];
};

/* False when the processor has no XSAVE, or an image is too large. */
bool tbd_vector_init(struct tbd_vector_info *info);

/* Stores the live state into `image` (64-byte aligned, info->bytes).  Canonical: every
 * component is marked as present, and the x87 instruction pointer is the program's; so equal
 * states give equal bytes. */
void tbd_vector_store(const struct tbd_vector_info *info, void *image);
/* Loads an image made by tbd_vector_store(). */
void tbd_vector_load(const struct tbd_vector_info *info, const void *image);
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
