// SPDX-License-Identifier: MIT
/* register_names.h - the processor's registers, by name: rax, r8d, ah, rip, fs_base, ... */
#ifndef TBD_QUERY_REGISTER_NAMES_H
#define TBD_QUERY_REGISTER_NAMES_H

#include "format/stream/stream.h"

#include <stdbool.h>
#include <stddef.h>

/* Numbers of registers after the general ones (enum tbd_reg). */
#define TBD_REGISTER_RIP     TBD_REG_COUNT
#define TBD_REGISTER_RFLAGS  (TBD_REG_COUNT + 1)
#define TBD_REGISTER_FS_BASE (TBD_REG_COUNT + 2)
#define TBD_REGISTER_GS_BASE (TBD_REG_COUNT + 3)
#define TBD_REGISTER_XMM0    (TBD_REG_COUNT + 4) /* vector registers: their low 16 bytes */

struct tbd_register_name {
    uint32_t which; /* enum tbd_reg or TBD_REGISTER_RIP ... */
    uint8_t shift;
    uint8_t width; /* bits */
};

bool tbd_register_find(const char *name, size_t bytes, struct tbd_register_name *out);
/* "rax" for a number below TBD_REG_COUNT, "rip", "rflags", "fs_base", "gs_base". */
const char *tbd_register_text(uint32_t which);
/* The value in `regs` of a register that has such a text. */
uint64_t tbd_register_value(const struct tbd_regs *regs, uint32_t which);

#endif
