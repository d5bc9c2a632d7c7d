// SPDX-License-Identifier: MIT
/* field_names.c - see field_names.h */
#include "query/condition/field_names.h"

#include <ctype.h>
#include <string.h>

#define ON(type)  (1u << TBD_EVENT_##type)
#define ON_ALL    0xffffffffu
#define ON_ACCESS (ON(STORE) | ON(LOAD))
#define ON_ARGS   (ON(FUNC_ENTER) | ON(SYSCALL) | ON(CALL))

// clang-format off
const struct tbd_field_name tbd_field_names[] = {
    { "addr", TBD_FIELD_ADDR, ON_ACCESS | ON(SIGNAL), "address accessed; of a fault" },
    { "size", TBD_FIELD_SIZE, ON_ACCESS, "bytes accessed" },
    { "oldval", TBD_FIELD_OLDVAL, ON_ACCESS, "value before the store; value loaded (low 8 bytes)" },
    { "newval", TBD_FIELD_NEWVAL, ON(STORE), "value after the store (low 8 bytes)" },
    { "pc", TBD_FIELD_PC, ON_ALL, "address of the instruction" },
    { "from", TBD_FIELD_FROM, ON(FUNC_ENTER) | ON(SIGNAL) | ON(CALL),
      "address of the call; what the signal interrupted" },
    { "arg0", TBD_FIELD_ARG0, ON_ARGS, "first argument (rdi)" },
    { "arg1", TBD_FIELD_ARG1, ON_ARGS, "second argument (rsi)" },
    { "arg2", TBD_FIELD_ARG2, ON_ARGS, "third argument (rdx)" },
    { "arg3", TBD_FIELD_ARG3, ON_ARGS, "fourth argument (rcx; r10 of a system call)" },
    { "arg4", TBD_FIELD_ARG4, ON_ARGS, "fifth argument (r8)" },
    { "arg5", TBD_FIELD_ARG5, ON_ARGS, "sixth argument (r9)" },
    { "retval", TBD_FIELD_RETVAL, ON(FUNC_EXIT) | ON(SYSCALL) | ON(CALL),
      "rax; (int)retval where that is an int; result of the system call; in calls: of its type" },
    { "nesting", TBD_FIELD_NESTING, ON(CALL), "calls of the same function around it" },
    { "duration", TBD_FIELD_DURATION, ON(CALL), "block entries from its entry to its return" },
    { "returned", TBD_FIELD_RETURNED, ON(CALL), "1: it returned; 0: it was left, or has not ended" },
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

const struct tbd_field_name *tbd_field_find(const char *name, size_t bytes)
{
    for (const struct tbd_field_name *row = tbd_field_names; row->name != NULL; row++) {
        if (strlen(row->name) == bytes && memcmp(row->name, name, bytes) == 0)
            return row;
    }
    return NULL;
}

/* What people and other tools call them. */
static const struct {
    const char *word, *fields;
} other_words[] = {
    { "value", "; events have newval, oldval" },
    { "val", "; events have newval, oldval" },
    { "new", "; events have newval" },
    { "old", "; events have oldval" },
    { "address", "; events have addr" },
    { "result", "; events have retval" },
    { "ret", "; events have retval" },
    { "tid", "; events have thread" },
    { "ip", "; events have pc" },
    { "caller", "; events have from" },
    { "depth", "; events have nesting" },
};

const char *tbd_field_meant(const char *word)
{
    for (size_t i = 0; i < sizeof(other_words) / sizeof(other_words[0]); i++) {
        if (strcmp(other_words[i].word, word) == 0)
            return other_words[i].fields;
    }
    return "";
}

/* A member or variable whose name ends with the field's is not the field. */
static bool ends_before(const char *text, size_t at)
{
    return at == 0 ||
           (!isalnum((unsigned char)text[at - 1]) && strchr("_$.>", text[at - 1]) == NULL);
}

bool tbd_field_is_compared(const char *text, size_t at, const char *name)
{
    size_t length = strlen(name);

    while (at > 0 && text[at - 1] == ' ')
        at--;
    if (at < 2 || text[at - 1] != '=' || (text[at - 2] != '=' && text[at - 2] != '!'))
        return false;
    for (at -= 2; at > 0 && text[at - 1] == ' ';)
        at--;
    return at >= length && memcmp(text + at - length, name, length) == 0 &&
           ends_before(text, at - length);
}
