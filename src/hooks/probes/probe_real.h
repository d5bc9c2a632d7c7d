// SPDX-License-Identifier: MIT
/* probe_real.h - floating point for probe code (TBD_PROBE_REAL, TBD_PROBE_TO_REAL, TBD_PROBE_VECTOR)
 *
 * The engine is compiled without vector registers, as these are the program's.  Each computation takes two of them and the
 * control word, and gives them back: results are those of the processor, rounded to nearest, and no flag of the
 * program's control word changes.  Any context. */
#ifndef TBD_HOOKS_PROBE_REAL_H
#define TBD_HOOKS_PROBE_REAL_H

#include <stdint.h>

/* Values are the bits of doubles; of comparisons 0 or 1.  `op`: enum tbd_probe_real_op. */
uint64_t tbd_probe_real(uint32_t op, uint64_t a, uint64_t b);
/* `kind`: enum tbd_probe_real_kind. */
uint64_t tbd_probe_to_real(uint32_t kind, uint64_t a);
/* Half 0 or 1 of the low 16 bytes of a vector register, 0 to 15, as it is now. */
uint64_t tbd_probe_vector(uint32_t number, uint32_t half);

#endif
