// SPDX-License-Identifier: MIT
/* cpuid.h - what the processor says of itself
 *
 * Under a hypervisor each question takes a microsecond and more: answers are to be kept.  No state; any context. */
#ifndef TBD_BASE_CPUID_H
#define TBD_BASE_CPUID_H

#include <stdint.h>

/* out: eax, ebx, ecx, edx.  A leaf above the highest, which leaf 0 has in eax, has no meaning. */
static inline void tbd_cpuid(uint32_t leaf, uint32_t sub, uint32_t out[4])
{
    __asm__ volatile("cpuid"
                     : "=a"(out[0]), "=b"(out[1]), "=c"(out[2]), "=d"(out[3])
                     : "a"(leaf), "c"(sub));
}

#endif
