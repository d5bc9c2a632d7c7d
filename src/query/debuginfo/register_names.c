// SPDX-License-Identifier: MIT
/* register_names.c - see register_names.h */
#include "query/debuginfo/register_names.h"

#include <stdio.h>
#include <string.h>

static const char *const names64[TBD_REG_COUNT] = {
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
    "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15",
};
static const char *const names32[8] = { "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi" };
static const char *const names16[8] = { "ax", "cx", "dx", "bx", "sp16", "bp", "si", "di" };
static const char *const names8[8] = { "al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil" };
static const char *const names8h[4] = { "ah", "ch", "dh", "bh" };
static const char *const others[] = { "rip", "rflags", "fs_base", "gs_base" };

static int find_in(const char *const *table, unsigned count, const char *name, size_t bytes)
{
    for (unsigned i = 0; i < count; i++) {
        if (strlen(table[i]) == bytes && memcmp(table[i], name, bytes) == 0)
            return (int)i;
    }
    return -1;
}

/* r8d, r8w, r8b ... r15b */
static bool find_numbered_part(const char *name, size_t bytes, struct tbd_register_name *out)
{
    static const char suffixes[] = "dwb";
    const char *suffix = bytes < 3 ? NULL : strchr(suffixes, name[bytes - 1]);
    int found;

    if (suffix == NULL || *suffix == '\0')
        return false;
    found = find_in(names64 + 8, 8, name, bytes - 1);
    if (found < 0)
        return false;
    *out =
        (struct tbd_register_name){ (uint32_t)found + 8, 0, (uint8_t)(32 >> (suffix - suffixes)) };
    return true;
}

bool tbd_register_find(const char *name, size_t bytes, struct tbd_register_name *out)
{
    static const struct {
        const char *const *names;
        unsigned count;
        uint32_t first;
        uint8_t shift, width;
    } tables[] = {
        { names64, TBD_REG_COUNT, 0, 0, 64 },
        { names32, 8, 0, 0, 32 },
        { names16, 8, 0, 0, 16 },
        { names8, 8, 0, 0, 8 },
        { names8h, 4, 0, 8, 8 },
        { others, 4, TBD_REGISTER_RIP, 0, 64 },
    };

    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        int found = find_in(tables[i].names, tables[i].count, name, bytes);

        if (found >= 0) {
            *out = (struct tbd_register_name){ tables[i].first + (uint32_t)found, tables[i].shift,
                                               tables[i].width };
            return true;
        }
    }
    return find_numbered_part(name, bytes, out);
}

const char *tbd_register_text(uint32_t which)
{
    if (which < TBD_REG_COUNT)
        return names64[which];
    return which - TBD_REG_COUNT < 4 ? others[which - TBD_REG_COUNT] : "?";
}

uint64_t tbd_register_value(const struct tbd_regs *regs, uint32_t which)
{
    if (which < TBD_REG_COUNT)
        return regs->gpr[which];
    if (which == TBD_REGISTER_RIP)
        return regs->rip;
    if (which == TBD_REGISTER_RFLAGS)
        return regs->rflags;
    return which == TBD_REGISTER_FS_BASE ? regs->fs_base : regs->gs_base;
}
