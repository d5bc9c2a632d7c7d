// SPDX-License-Identifier: MIT
/* cpu_limit.h - what a program is told of its processor with the option cpu=v3
 *
 * cpuid and xgetbv answer as a processor of x86-64-v3 would: without AVX-512, AMX, APX, protection
 * keys, and vector instructions that came with them.  So the trace replays on such processors, too.
 * Context: APP. */
#ifndef TBD_HOOKS_CPU_LIMIT_H
#define TBD_HOOKS_CPU_LIMIT_H

#include "format/stream/stream.h"

/* Corrects `after`, the registers after the instruction; `before` are those before it. */
void tbd_cpu_limit(enum tbd_special kind, const struct tbd_regs *before, struct tbd_regs *after);

#endif
