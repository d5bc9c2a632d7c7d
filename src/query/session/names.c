// SPDX-License-Identifier: MIT
/* names.c - tables behind names.h */
#include "query/session/names.h"

#include <stdio.h>
#include <string.h>

#define ON(type)  (1u << TBD_EVENT_##type)
#define ON_ALL    0xffffffffu
#define ON_ACCESS (ON(STORE) | ON(LOAD))
#define ON_ARGS   (ON(FUNC_ENTER) | ON(SYSCALL))

// clang-format off
const struct tbd_field_name tbd_field_names[] = {
    { "addr", TBD_FIELD_ADDR, ON_ACCESS, "address accessed" },
    { "size", TBD_FIELD_SIZE, ON_ACCESS, "bytes accessed" },
    { "oldval", TBD_FIELD_OLDVAL, ON_ACCESS, "value before the store; value loaded (low 8 bytes)" },
    { "newval", TBD_FIELD_NEWVAL, ON(STORE), "value after the store (low 8 bytes)" },
    { "pc", TBD_FIELD_PC, ON_ALL, "address of the instruction" },
    { "from", TBD_FIELD_FROM, ON(FUNC_ENTER) | ON(SIGNAL),
      "address of the call; what the signal interrupted" },
    { "arg0", TBD_FIELD_ARG0, ON_ARGS, "first argument (rdi)" },
    { "arg1", TBD_FIELD_ARG1, ON_ARGS, "second argument (rsi)" },
    { "arg2", TBD_FIELD_ARG2, ON_ARGS, "third argument (rdx)" },
    { "arg3", TBD_FIELD_ARG3, ON_ARGS, "fourth argument (rcx; r10 of a system call)" },
    { "arg4", TBD_FIELD_ARG4, ON_ARGS, "fifth argument (r8)" },
    { "arg5", TBD_FIELD_ARG5, ON_ARGS, "sixth argument (r9)" },
    { "retval", TBD_FIELD_RETVAL, ON(FUNC_EXIT) | ON(SYSCALL),
      "rax; (int)retval where that is an int; result of the system call" },
    { "syscall", TBD_FIELD_SYSCALL, ON(SYSCALL), "name or number of the system call" },
    { "signal", TBD_FIELD_SIGNAL, ON(SIGNAL), "name or number of the signal" },
    { "time", TBD_FIELD_TIME, ON_ALL, "block entries before" },
    { "offset", TBD_FIELD_OFFSET, ON_ALL, "instructions into the block" },
    { "sp", TBD_FIELD_SP, ON_ALL, "stack pointer" },
    { "thread", TBD_FIELD_THREAD, ON_ALL, "number of the thread whose event it is" },
    { "line", TBD_FIELD_LINE, ON_ALL, "number of the source line" },
    { "frame", TBD_FIELD_FRAME, ON_ALL, "stack pointer before the function was called (CFA)" },
    { "previous", TBD_FIELD_PREVIOUS, ON(THREAD_SWITCH), "thread that had control before" },
    { "reason", TBD_FIELD_REASON, ON(THREAD_SWITCH),
      "why that gave way: 1 waits, 2 its time was over, 3 yields, 4 ended" },
    { NULL, TBD_FIELD_ADDR, 0, NULL },
};
// clang-format on

static const char *const names64[TBD_REG_COUNT] = {
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
    "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15",
};
static const char *const names32[8] = { "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi" };
static const char *const names16[8] = { "ax", "cx", "dx", "bx", "sp16", "bp", "si", "di" };
static const char *const names8[8] = { "al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil" };
static const char *const names8h[4] = { "ah", "ch", "dh", "bh" };
static const char *const others[] = { "rip", "rflags", "fs_base", "gs_base" };

const struct tbd_field_name *tbd_field_find(const char *name, size_t bytes)
{
    for (const struct tbd_field_name *row = tbd_field_names; row->name != NULL; row++) {
        if (strlen(row->name) == bytes && memcmp(row->name, name, bytes) == 0)
            return row;
    }
    return NULL;
}

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
        { others, 4, TBD_EXPR_RIP, 0, 64 },
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
