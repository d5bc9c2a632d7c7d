// SPDX-License-Identifier: MIT
/* cpu_limit.c - see cpu_limit.h; Intel SDM vol. 2, cpuid */
#include "hooks/instructions/cpu_limit.h"

#include "base/vector_layout.h"

#define BIT(n)   (1u << (n))
#define V3_BYTES 832u /* of an XSAVE image with x87, SSE and AVX */

/* Feature bits that are cleared in cpuid's result. */
struct hidden {
    uint32_t leaf, sub;
    uint32_t eax, ebx, ecx, edx;
};

static const struct hidden table[] = {
    { .leaf = 7,
      .sub = 0,
      .ebx = BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31),
      .ecx = BIT(1) | BIT(3) | BIT(4) | BIT(6) | BIT(8) | BIT(9) | BIT(10) | BIT(11) | BIT(12) |
             BIT(14),
      .edx = BIT(2) | BIT(3) | BIT(8) | BIT(22) | BIT(23) | BIT(24) | BIT(25) },
    { .leaf = 7,
      .sub = 1,
      .eax = BIT(4) | BIT(5) | BIT(21) | BIT(23),
      .edx = BIT(4) | BIT(5) | BIT(10) | BIT(19) | BIT(21) },
};

static void hide(uint64_t *gpr, uint32_t bits)
{
    *gpr &= ~(uint64_t)bits;
}

static void limit_features(uint32_t leaf, uint32_t sub, struct tbd_regs *regs)
{
    for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].leaf != leaf || table[i].sub != sub)
            continue;
        hide(&regs->gpr[TBD_RAX], table[i].eax);
        hide(&regs->gpr[TBD_RBX], table[i].ebx);
        hide(&regs->gpr[TBD_RCX], table[i].ecx);
        hide(&regs->gpr[TBD_RDX], table[i].edx);
    }
}

/* Leaf 13: components of XSAVE images. */
static void limit_components(uint32_t sub, struct tbd_regs *regs)
{
    if (sub == 0) {
        regs->gpr[TBD_RAX] &= TBD_VECTOR_V3;
        regs->gpr[TBD_RBX] = regs->gpr[TBD_RCX] = V3_BYTES;
        regs->gpr[TBD_RDX] = 0;
    } else if (sub == 1) {
        regs->gpr[TBD_RBX] = V3_BYTES;
    } else if (sub > 2) {
        regs->gpr[TBD_RAX] = regs->gpr[TBD_RBX] = regs->gpr[TBD_RCX] = regs->gpr[TBD_RDX] = 0;
    }
}

void tbd_cpu_limit(enum tbd_special kind, const struct tbd_regs *before, struct tbd_regs *after)
{
    uint32_t leaf = (uint32_t)before->gpr[TBD_RAX], sub = (uint32_t)before->gpr[TBD_RCX];

    if (kind == TBD_SPECIAL_XGETBV) {
        after->gpr[TBD_RAX] &= TBD_VECTOR_V3;
        after->gpr[TBD_RDX] = 0;
    } else if (kind == TBD_SPECIAL_CPUID && leaf == 13) {
        limit_components(sub, after);
    } else if (kind == TBD_SPECIAL_CPUID && (leaf == 0x1d || leaf == 0x1e)) { /* tiles */
        after->gpr[TBD_RAX] = after->gpr[TBD_RBX] = after->gpr[TBD_RCX] = after->gpr[TBD_RDX] = 0;
    } else if (kind == TBD_SPECIAL_CPUID) {
        limit_features(leaf, sub, after);
    }
}
