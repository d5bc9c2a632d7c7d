// SPDX-License-Identifier: MIT
/* probe_real.c - see probe_real.h */
#include "hooks/probes/probe_real.h"

#include "format/probe/probe.h"

#define CONTROL 0x1f80u /* nothing traps */

struct borrowed {
    uint8_t vectors[32];
    uint32_t control, plain;
};

/* xmm0 = a, xmm1 = b; `insn`; result = xmm0 */
#define COMPUTE(insn)                                                                              \
    __asm__ volatile("movups %%xmm0, (%[borrowed])\n\t"                                            \
                     "movups %%xmm1, 16(%[borrowed])\n\t"                                          \
                     "stmxcsr 32(%[borrowed])\n\t"                                                 \
                     "ldmxcsr 36(%[borrowed])\n\t"                                                 \
                     "movq %[a], %%xmm0\n\t"                                                       \
                     "movq %[b], %%xmm1\n\t" insn "\n\t"                                           \
                     "movq %%xmm0, %[result]\n\t"                                                  \
                     "ldmxcsr 32(%[borrowed])\n\t"                                                 \
                     "movups 16(%[borrowed]), %%xmm1\n\t"                                          \
                     "movups (%[borrowed]), %%xmm0"                                                \
                     : [result] "=&r"(result)                                                      \
                     : [a] "r"(a), [b] "r"(b), [borrowed] "r"(&borrowed)                           \
                     : "memory")

uint64_t tbd_probe_real(uint32_t op, uint64_t a, uint64_t b)
{
    struct borrowed borrowed = { .plain = CONTROL };
    uint64_t result = 0;

    switch (op) {
    case TBD_PROBE_REAL_ADD: COMPUTE("addsd %%xmm1, %%xmm0"); return result;
    case TBD_PROBE_REAL_SUB: COMPUTE("subsd %%xmm1, %%xmm0"); return result;
    case TBD_PROBE_REAL_MUL: COMPUTE("mulsd %%xmm1, %%xmm0"); return result;
    case TBD_PROBE_REAL_DIV: COMPUTE("divsd %%xmm1, %%xmm0"); return result;
    case TBD_PROBE_REAL_EQ: COMPUTE("cmpeqsd %%xmm1, %%xmm0"); break;
    case TBD_PROBE_REAL_NE: COMPUTE("cmpneqsd %%xmm1, %%xmm0"); break;
    case TBD_PROBE_REAL_LT: COMPUTE("cmpltsd %%xmm1, %%xmm0"); break;
    default: COMPUTE("cmplesd %%xmm1, %%xmm0"); break;
    }
    return result & 1;
}

uint64_t tbd_probe_to_real(uint32_t kind, uint64_t a)
{
    struct borrowed borrowed = { .plain = CONTROL };
    uint64_t result = 0, b = 0;

    if (kind == TBD_PROBE_REAL_FLOAT) {
        COMPUTE("cvtss2sd %%xmm0, %%xmm0");
        return result;
    }
    if (kind == TBD_PROBE_REAL_UNSIGNED &&
        a >> 63) { /* the last bit decides about the rounding only */
        a = a >> 1 | (a & 1);
        COMPUTE("cvtsi2sdq %[a], %%xmm0");
        return tbd_probe_real(TBD_PROBE_REAL_ADD, result, result);
    }
    COMPUTE("cvtsi2sdq %[a], %%xmm0");
    return result;
}

#define VECTOR(number)                                                                             \
    case number: __asm__ volatile("movups %%xmm" #number ", (%0)" : : "r"(halves) : "memory"); break

uint64_t tbd_probe_vector(uint32_t number, uint32_t half)
{
    uint64_t halves[2] = { 0, 0 };

    switch (number) {
        VECTOR(0);
        VECTOR(1);
        VECTOR(2);
        VECTOR(3);
        VECTOR(4);
        VECTOR(5);
        VECTOR(6);
        VECTOR(7);
        VECTOR(8);
        VECTOR(9);
        VECTOR(10);
        VECTOR(11);
        VECTOR(12);
        VECTOR(13);
        VECTOR(14);
        VECTOR(15);
    default: break;
    }
    return halves[half & 1];
}
